/*
 * The last steps of both tiers: no new privileges, limits, and the command's working directory. They come last
 * because the steps before need what they take away.
 */
#include "plan/make.h"

#include <sys/resource.h>

enum { SCOPE_ABSTRACT_SOCKETS = 1, SCOPE_SIGNALS = 2 }; /* linux/landlock.h */
/* The most of our own processes in the box's user namespace: the guard's workers, pid 1, a terminal session's
   leader. */
enum { OWN_PROCESSES = 64 + 2 };

static int add_rlimit(struct making *m, uint32_t resource, uint64_t value, uint32_t origin)
{
    struct step *s = image_step(&m->image, STEP_RLIMIT, origin);
    if (!s)
        return no_memory(m);
    s->a = resource;
    s->mode = value > UINT32_MAX ? 1024 : 1;
    value /= s->mode;
    s->b = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
    return 0;
}

int limits_make(struct making *m)
{
    const struct limits *l = &m->policy->limits;
    /* Not 0: core_pattern may name a program, which the kernel would still run. FILTER sets it, too
       (runtime/drop.c). */
    int r = add_rlimit(m, RLIMIT_CORE, 1, 0);
    if (r == 0 && l->open_files.value != LIMIT_NONE)
        r = add_rlimit(m, RLIMIT_NOFILE, l->open_files.value, l->open_files.origin);
    /* A single file may not exceed the disk limit; the watcher handles the rest of the workspace. */
    if (r == 0 && l->disk.value != LIMIT_NONE)
        r = add_rlimit(m, RLIMIT_FSIZE, l->disk.value, l->disk.origin);
    /* In the box's own user namespace this counts only the box (ucounts, Linux 5.14); root is exempt. A container
       has its engine's limit. */
    if (r == 0 && l->processes.value < UINT32_MAX && m->facts->tier == TIER_NAMESPACES && !m->facts->image &&
        m->facts->uid != 0)
        r = add_rlimit(m, RLIMIT_NPROC, l->processes.value + OWN_PROCESSES, l->processes.origin);
    return r;
}

/* The innermost region that contains `path`. */
static const struct plan_place *region_of(const struct making *m, const char *path)
{
    const struct plan_place *best = &m->places[0];
    for (size_t i = 0; i < m->n_places; i++) {
        const struct plan_place *p = &m->places[i];
        if (p->entered && path_at_or_below(path, p->dst) && path_at_or_below(p->dst, best->dst))
            best = p;
    }
    return best;
}

const char *cwd_of(struct making *m)
{
    const char *cwd = m->ask->cwd, *own = m->ask->of_image && m->facts->image ? m->facts->image->workdir : NULL;
    if (own && own[0] == '/' && !m->ask->cwd_said)
        return own; /* the command's words may be relative to it */
    if (!cwd || cwd[0] != '/')
        return path_inside(m, m->workspace);
    const char *inside = path_inside(m, cwd);
    const struct plan_place *p = inside ? region_of(m, inside) : NULL;
    if (!p)
        return NULL;
    bool there = p->region == REGION_READ_ONLY || p->region == REGION_WRITABLE || p->region == REGION_CACHE;
    if (there && p->src && (strcmp(p->src, p->dst) == 0 || inside != cwd || p->region == REGION_CACHE))
        return inside;
    if (m->ask->cwd_said)
        return cwd;
    if (note(m, "the current directory %s is not visible inside: the command starts in the workspace", cwd) < 0)
        return NULL;
    return path_inside(m, m->workspace);
}

static int add_plain(struct making *m, enum step_kind kind)
{
    return image_step(&m->image, kind, 0) ? 0 : no_memory(m);
}

/* The trees in which the box can write, by the steps that make them. */
static bool makes_writable(const struct step *s)
{
    switch (s->kind) {
    case STEP_ATTACH:
    case STEP_TMPFS:
    case STEP_OVERLAY:
    case STEP_PART:
        return !(s->flags & STEP_RDONLY);
    case STEP_DEVICES: /* the nodes, and what lies below is of its own */
    case STEP_PROC:
        return true;
    default:
        return false;
    }
}

static const char *image_at(const struct making *m, uint32_t at)
{
    return m->image.strings + at;
}

/*
 * A FIFO is written through a read-only mount. Where the guard is not asked about opens, Landlock refuses those for writing outside of the
 * trees that the box can write to: a walk to one of them for each of these, and none for opens for reading.
 */
static int fifos_hold(struct making *m, struct step *ruleset)
{
    enum { WRITE_FILE = 1 << 1 }; /* linux/landlock.h */
    ruleset->a = WRITE_FILE;
    const size_t n = m->image.n_steps;
    for (size_t i = 0; i < n; i++) {
        if (!makes_writable(&m->image.steps[i]))
            continue;
        const char *dst = image_at(m, m->image.steps[i].a);
        bool within = false;
        for (size_t j = 0; j < n && !within; j++)
            within = j != i && makes_writable(&m->image.steps[j]) && path_below(dst, image_at(m, m->image.steps[j].a));
        struct step *s = within ? NULL : image_path(&m->image, STEP_RULE, dst, m->image.steps[i].origin);
        if (!within && !s)
            return no_memory(m);
        if (s)
            s->mode = RULE_WRITE;
    }
    return 0;
}

/* Scopes cost nothing on later opens. */
static int add_ruleset(struct making *m)
{
    /* Docker's and podman's filters may refuse Landlock, which a container with its own namespaces does not need. */
    const bool own = m->facts->image && m->policy->net != NET_HOST;
    const bool scopes = m->facts->landlock_abi >= ABI_SCOPES, layered = filter_of(m) & FILTER_LAYERED;
    if (m->facts->tier != TIER_NAMESPACES || own || (!scopes && !layered))
        return 0;
    struct step *s = image_step(&m->image, STEP_RULESET, 0);
    if (!s)
        return no_memory(m);
    s->mode = scopes ? SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS : 0;
    return layered ? fifos_hold(m, s) : 0;
}

int bare_make(struct making *m)
{
    m->n_guards = m->n_reads = m->n_dirs = m->n_set_env = 0;
    for (size_t i = 0; i < m->n_places; i++)
        m->places[i].act = ACT_NONE;
    int r = limits_make(m);
    m->plan->cwd = m->ask->cwd && m->ask->cwd[0] == '/' ? m->ask->cwd : m->workspace;
    if (r < 0)
        return r;
    return image_path(&m->image, STEP_CWD, m->plan->cwd, 0) ? 0 : no_memory(m);
}

bool plan_shuts_root_out(const struct path_fact *top, uint32_t gid, bool read_only)
{
    const unsigned want = read_only ? 05 : 07;
    return top->type == PATH_DIR && top->uid != 0 && ((top->gid == gid ? top->mode >> 3 : top->mode) & want) != want;
}

const char *plan_root_words(struct arena *mem, const struct path_fact *top, bool read_only)
{
    return arena_printf(
        mem,
        "'%s' belongs to user %u, and root cannot %s it in a box, where root has no capabilities; run pinfold as that "
        "user: sudo -u '#%u' pinfold ... (in a container: --user %u)",
        top->real, top->uid, read_only ? "read" : "write", top->uid, top->uid);
}

static int say_roots(struct making *m)
{
    const struct path_fact *top = facts_path(m->facts, m->policy->workspace);
    const bool read_only = m->policy->workspace_read_only;
    if (m->facts->uid != 0 || !top || !plan_shuts_root_out(top, m->facts->gid, read_only))
        return 0;
    m->plan->root_note = plan_root_words(m->mem, top, read_only);
    return m->plan->root_note ? note(m, "%s", m->plan->root_note) : -ENOMEM;
}

/* Who hears of crashes of the command although its limit is 1, or could not become 1. */
static int note_core(struct making *m, const char *handler)
{
    if (!handler)
        return 0;
    if (handler[0] == '@')
        return note(m,
                    "crashes of the command are told to the socket in this machine's core_pattern (%s): the core limit "
                    "keeps its memory from being sent there, but nothing keeps the kernel from connecting",
                    handler);
    return note(m,
                "core dumps of the command go to this machine's core_pattern (%s): a core limit of 1 would prevent "
                "that, but your hard limit is 0 and cannot be raised",
                handler);
}

int lock_make(struct making *m)
{
    int r = add_plain(m, STEP_NO_CAPS);
    if (r == 0)
        r = add_plain(m, STEP_NO_NEW_PRIVS);
    if (r == 0)
        r = add_ruleset(m);
    if (r == 0)
        r = add_plain(m, STEP_UNDUMPABLE);
    struct step *s = r == 0 ? image_step(&m->image, STEP_FILTER, 0) : NULL;
    if (!s)
        return r < 0 ? r : no_memory(m);
    s->a = filter_of(m);
    r = limits_make(m);
    if (r == 0)
        r = say_roots(m);
    if (r == 0)
        r = note_core(m, m->facts->core_handler);
    m->plan->cwd = r == 0 ? cwd_of(m) : NULL;
    if (!m->plan->cwd)
        return r < 0 ? r : no_memory(m);
    return image_path(&m->image, STEP_CWD, m->plan->cwd, 0) ? 0 : no_memory(m);
}
