/*
 * plan_make(): the table of contents of this folder.
 */
#include "plan/make.h"

#include <linux/sched.h>
#include <stdio.h>

#define MAX_PLAN_MEMORY (256u << 20)

static int begin(struct making *m)
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
    if (m->facts->tier == TIER_LANDLOCK)
        return 0;
    uint32_t bits = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWCGROUP;
    bits |= m->policy->net == NET_HOST ? 0 : CLONE_NEWNET;
    bits |= m->facts->can & F(PID_NAMESPACE) ? CLONE_NEWPID : 0;
    bits |= m->facts->can & F(PRIVATE_IPC) ? CLONE_NEWIPC : 0;
    return bits;
}

static int finish(struct making *m)
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
    image->namespaces = namespaces_of(m);
    image->uid = m->policy->user == USER_ROOT ? 0 : m->policy->user == USER_IDS ? m->policy->uid : m->facts->uid;
    image->gid = m->policy->user == USER_ROOT ? 0 : m->policy->user == USER_IDS ? m->policy->gid : m->facts->gid;
    p->image = image;
    p->workspace = m->workspace;
    p->places = m->places;
    p->n_places = m->n_places;
    p->make_dirs = m->dirs;
    p->n_make_dirs = m->n_dirs;
    if (m->n_reads) {
        r = add_read(m, NULL);
        p->read_on_every_open = m->reads;
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
    struct plan *plan = mem ? arena_zero(mem, sizeof *plan) : NULL;
    struct making m = {.plan = plan, .policy = policy, .facts = facts, .ask = ask, .mem = mem, .e = e};
    if (!plan)
        return no_memory(&m);
    *plan = (struct plan){.mem = mem, .policy = policy, .facts = facts};
    plan->catch = catch_of(&m);
    int r = begin(&m);
    if (r == 0)
        r = collect(&m);
    if (r == 0)
        r = settle(&m);
    if (r == 0)
        r = guard_names(&m);
    if (r == 0)
        r = parent_make(&m);
    if (r == 0)
        r = needs_make(&m);
    if (r == 0)
        r = facts->tier == TIER_LANDLOCK ? landlock_make(&m) : steps_make(&m);
    if (r == 0)
        r = env_make(&m);
    if (r == 0)
        r = finish(&m);
    if (r < 0)
        return r;
    mem = NULL;
    *ret = plan;
    return 0;
}

struct plan *plan_free(struct plan *p)
{
    if (p)
        arena_free(p->mem);
    return NULL;
}
