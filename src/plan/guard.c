/*
 * The guard's rules for guarded names (those for places come from settle.c). A name is relative to each writable tree
 * of the host; in the box's own trees it does not apply.
 */
#include "plan/make.h"

/* By the path in the box, which the guard judges. A rule that makes the name itself writable is intentional. Behind a
   layer everything waits for apply, which looks for targets itself. */
static bool is_writable_there(const struct making *m, const char *path)
{
    for (size_t i = 0; i < m->n_guards; i++)
        if (m->guards[i].kind == GUARD_RULE_ROOT && !(m->guards[i].flags & GUARD_RULE_LAYERED) &&
            path_below(path, m->guards[i].text))
            return true;
    return false;
}

/* If a mount shows a target at another path, it is protected there, too. */
static int guard_shown(struct making *m, const char *path)
{
    for (size_t i = 0; i < m->policy->n_mounts; i++) {
        const struct mount_rule *mount = &m->policy->mounts[i];
        const struct path_fact *source = mount->read_only ? NULL : facts_path(m->facts, mount->from);
        if (!source || !source->real)
            continue;
        const char *there =
            path_at_or_below(path, source->real) ? path_join(m->mem, mount->to, path_rest(path, source->real)) : NULL;
        if (path_at_or_below(path, source->real) && !there)
            return no_memory(m);
        if (there && is_writable_there(m, there) && add_guard(m, GUARD_RULE_PROTECT, there, 0) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* What guarded names lead to, as of the start (survey/targets.c). */
static int guard_targets(struct making *m)
{
    for (size_t i = 0; m->policy->guard != GUARD_OFF && i < m->facts->n_targets; i++) {
        const char *path = m->facts->targets[i];
        if (is_writable_there(m, path) && add_guard(m, GUARD_RULE_PROTECT, path, 0) < 0)
            return -ENOMEM;
        if (guard_shown(m, path) < 0)
            return -ENOMEM;
    }
    if (m->facts->repository_note && note(m, "%s", m->facts->repository_note) < 0)
        return -ENOMEM;
    return m->facts->bounds_note ? note(m, "%s", m->facts->bounds_note) : 0;
}

int guard_names(struct making *m)
{
    const struct policy *p = m->policy;
    for (size_t i = 0; p->guard != GUARD_OFF && i < p->n_guards; i++) {
        const struct guard_name *name = &p->guards[i];
        if (name->everyday && p->everyday == EVERYDAY_ALLOW)
            continue;
        if (add_guard(m, GUARD_RULE_NAME, name->name, name->origin) < 0)
            return -ENOMEM;
        struct guard_line *g = &m->guards[m->n_guards - 1];
        g->place = (uint8_t)name->place;
        g->judge = (uint8_t)name->judge;
        g->flags = (uint8_t)((name->directory ? GUARD_RULE_DIRECTORY : 0) | (name->pattern ? GUARD_RULE_PATTERN : 0) |
                             (name->deep ? GUARD_RULE_DEEP : 0));
    }
    return guard_targets(m);
}

static int by_kind(const void *a, const void *b)
{
    const struct guard_line *const *x = a, *const *y = b;
    if ((*x)->kind != (*y)->kind)
        return (*x)->kind < (*y)->kind ? -1 : 1;
    int c = (*x)->kind == GUARD_RULE_NAME || (*x)->kind == GUARD_RULE_HIDE_NAME || (*x)->kind == GUARD_RULE_BRANCH
                ? 0
                : path_order((*x)->text, (*y)->text);
    return c ? c : *x < *y ? -1 : *x > *y;
}

/* Sorts by kind, then path, and removes duplicates. */
int guard_order(struct making *m)
{
    const struct guard_line **by = arena_zero(m->mem, (m->n_guards + 1) * sizeof *by);
    struct guard_line *sorted = arena_zero(m->mem, (m->n_guards + 1) * sizeof *sorted);
    if (!by || !sorted)
        return no_memory(m);
    for (size_t i = 0; i < m->n_guards; i++)
        by[i] = &m->guards[i];
    if (sort_pointers(m->mem, (const void **)by, m->n_guards, by_kind) < 0)
        return no_memory(m);
    size_t n = 0;
    for (size_t i = 0; i < m->n_guards; i++) {
        const struct guard_line *last = n ? &sorted[n - 1] : NULL;
        if (last && last->kind == by[i]->kind && last->below == by[i]->below && strcmp(last->text, by[i]->text) == 0 &&
            last->place == by[i]->place && last->judge == by[i]->judge && last->flags == by[i]->flags)
            continue;
        sorted[n++] = *by[i];
    }
    m->guards = sorted;
    m->n_guards = n;
    return 0;
}
