/*
 * plan_make(): runs the stages of this folder in order. Policy and facts in, a plan out; nothing of the machine is
 * looked at here.
 */
#include "plan/make.h"

#include <linux/sched.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_PLAN_MEMORY (256u << 20)

static int begin_plan(struct making *m)
{
    int r = image_begin(&m->image, m->mem);
    if (r == 0)
        r = facts_begin(m);
    if (r < 0)
        return no_memory(m);
    if (m->facts->home) {
        const struct path_fact *home = fact_of(m, m->facts->home);
        if (!home)
            return -EINVAL;
        m->home = home->real;
    }
    return 0;
}

static uint32_t namespaces_of(const struct making *m)
{
    if (m->facts->tier == TIER_LANDLOCK || m->facts->image)
        return 0;
    uint32_t bits = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWUTS;
    /* With version 1 a group's name no longer fits the mounts that the box sees of its trees, and Java fails to find its limits. */
    bits |= m->facts->cgroup_trees ? 0 : CLONE_NEWCGROUP;
    bits |= m->policy->net == NET_HOST ? 0 : CLONE_NEWNET;
    bits |= m->facts->can & F(PID_NAMESPACE) ? CLONE_NEWPID : 0;
    bits |= m->facts->can & F(PRIVATE_IPC) ? CLONE_NEWIPC : 0;
    return bits;
}

/* Marks what the engine's program does by its command line: it also sets lo up in a network that it creates. */
static void give_to_tool(struct plan_image *image, uint32_t namespaces)
{
    struct step *s = (void *)((char *)image + image->steps_at);
    image->outer = image->namespaces & namespaces;
    for (uint32_t i = 0; i < image->n_steps; i++) {
        if (s[i].kind == STEP_ROOT || s[i].kind == STEP_HOSTNAME ||
            (s[i].kind == STEP_LOOPBACK && image->outer & CLONE_NEWNET))
            s[i].flags |= STEP_TOOL;
    }
}

static int finish_image(struct making *m)
{
    struct plan *p = m->plan;
    struct plan_image *image = NULL;
    int r = guard_order(m);
    if (r == 0)
        r = image_end(m, &image);
    if (r < 0)
        return r;
    image->tier = m->facts->tier;
    image->filter = filter_of(m);
    image->grants = m->ask->grants;
    image->namespaces = namespaces_of(m);
    image->uid = m->policy->user == USER_ROOT ? 0 : m->policy->user == USER_IDS ? m->policy->uid : m->facts->uid;
    image->gid = m->policy->user == USER_ROOT ? 0 : m->policy->user == USER_IDS ? m->policy->gid : m->facts->gid;
    if (m->facts->tool_namespaces)
        give_to_tool(image, m->facts->tool_namespaces);
    p->image = image;
    p->workspace = m->workspace;
    p->session = m->ask->session ? arena_text(m->mem, m->ask->session) : NULL;
    p->layered = m->layered;
    p->places = m->places;
    p->n_places = m->n_places;
    p->outer = m->outer;
    p->n_outer = m->n_outer;
    p->stored = m->stored;
    p->n_stored = m->n_stored;
    p->make_dirs = m->dirs;
    p->n_make_dirs = m->n_dirs;
    if (m->ask->session && !p->session)
        return no_memory(m);
    if (m->n_reads) {
        r = add_read(m, NULL);
        p->read_on_every_open = m->reads;
    }
    if (r == 0 && m->n_refused) {
        const char **end = arena_push(m->mem, &m->refused, &m->n_refused, sizeof *end);
        p->refused = m->refused;
        r = end ? 0 : no_memory(m);
    }
    if (r == 0 && m->n_notes) {
        const char **end = arena_push(m->mem, &m->notes, &m->n_notes, sizeof *end);
        p->notes = m->notes;
        r = end ? 0 : no_memory(m);
    }
    return r;
}

int plan_make(const struct policy *policy, const struct facts *facts, const struct plan_ask *ask, struct plan **ret,
              struct err *e)
{
    auto_arena struct arena *mem = arena_new(MAX_PLAN_MEMORY);
    struct plan *plan = mem ? calloc(1, sizeof *plan) : NULL; /* outlives `mem`: plan_settle_down() */
    struct making m = {.plan = plan, .policy = policy, .facts = facts, .ask = ask, .mem = mem, .e = e};
    if (!plan)
        return no_memory(&m);
    *plan = (struct plan){.mem = mem, .policy = policy, .facts = facts};
    plan->catch = catch_of(&m);
    int r = begin_plan(&m);
    if (r == 0)
        r = machine_check(&m);
    if (r == 0)
        r = collect(&m);
    if (r == 0)
        r = settle(&m);
    if (r == 0)
        r = machine_check_hides(&m);
    if (r == 0)
        r = guard_names(&m);
    if (r == 0)
        r = parent_make(&m);
    if (r == 0)
        r = needs_make(&m);
    if (r == 0)
        r = facts->unsandboxed             ? bare_make(&m)
            : facts->image                 ? outer_make(&m)
            : facts->tier == TIER_LANDLOCK ? landlock_make(&m)
                                           : steps_make(&m);
    if (r == 0)
        r = env_make(&m);
    if (r == 0)
        r = finish_image(&m);
    if (r < 0) {
        free(plan);
        return r;
    }
    mem = NULL;
    *ret = plan;
    return 0;
}

struct plan *plan_free(struct plan *p)
{
    if (!p)
        return NULL;
    arena_free(p->rest);
    arena_free(p->mem);
    free(p);
    return NULL;
}

/* Copies a NULL-terminated list of texts; each only up to and including `stop`, unless that is 0. */
static const char **moved_list(struct arena *to, const char **list, char stop)
{
    size_t n = 0;
    if (!list)
        return NULL;
    while (list[n])
        n++;
    const char **copy = arena_zero(to, (n + 1) * sizeof *copy);
    for (size_t i = 0; copy && i < n; i++) {
        const char *end = stop ? strchr(list[i], stop) : NULL;
        copy[i] = arena_str(to, (struct str){list[i], end ? (size_t)(end - list[i]) + 1 : strlen(list[i])});
    }
    return copy;
}

bool plan_settle_down(struct plan *p)
{
    auto_arena struct arena *to = p->rest ? NULL : arena_new(MAX_PLAN_MEMORY);
    struct plan kept = *p;

    if (!to || p->proxies) /* proxies has further pointers */
        return false;
    kept.enforced = arena_zero(to, p->n_enforced * sizeof *kept.enforced);
    struct plan_dir *dirs = arena_zero(to, p->n_make_dirs * sizeof *dirs);
    if (!kept.enforced || !dirs)
        return false;
    for (size_t i = 0; i < p->n_enforced; i++)
        kept.enforced[i] = (struct enforcement){p->enforced[i].what, arena_text_or_null(to, p->enforced[i].by)};
    for (size_t i = 0; i < p->n_make_dirs; i++) {
        dirs[i] = p->make_dirs[i];
        dirs[i].path = arena_text_or_null(to, dirs[i].path);
    }
    kept.make_dirs = dirs;
    kept.env = moved_list(to, p->env, '=');
    kept.read_on_every_open = moved_list(to, p->read_on_every_open, 0);
    kept.cwd = arena_text_or_null(to, p->cwd);
    kept.proxy_socket = arena_text_or_null(to, p->proxy_socket);
    kept.workspace = arena_text_or_null(to, p->workspace);
    kept.places = NULL;
    kept.n_places = 0;
    kept.outer = NULL;
    kept.n_outer = 0;
    kept.stored = NULL;
    kept.n_stored = 0;
    kept.notes = NULL;
    kept.root_note = NULL;
    if (arena_failed(to))
        return false;
    arena_trim(to);
    kept.rest = to;
    to = NULL;
    *p = kept;
    arena_keep(p->mem, p->image, p->image->bytes);
    return true;
}
