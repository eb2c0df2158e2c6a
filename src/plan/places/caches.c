/*
 * Puts caches into as few mounts as possible. Settled one by one, every cache is an overlay over the host's directory
 * or an attached private directory; a home with seventeen caches would pay for seventeen mounts in every start. With a
 * masked home directory both have a cheaper form:
 *
 *   PART     one private layer over the whole (masked) home, which is never visible itself; the caches' directories in it
 *            are attached. What a rule hides in a cache is then a stub of the mask: below the layer, so that the box can
 *            put something of its own there and never sees the host's.
 *   LINKED   a cache that the host does not have is a link in the mask to a private directory; all of these share a mount.
 *
 * If something else is mounted in a cache, or the home cannot be masked, caches stay as they were.
 */
#include "plan/make.h"

#define LINKED_AT "/run/pinfold-caches"

static bool is_cache_of_home(const struct making *m, const struct plan_place *p)
{
    return p->kind == PLACE_CACHE && p->up == 0 && path_below(p->dst, m->home);
}

/* Whether everything in the cache `at` can move into the mask (`hides`) or has no effect. */
static bool is_simple(const struct making *m, size_t at, bool hides)
{
    for (size_t i = 0; i < m->n_places; i++) {
        const struct plan_place *q = &m->places[i];
        if (q->up != (int)at || q->act == ACT_NONE || q->act == ACT_NOT_THERE)
            continue;
        if (!hides || q->kind != PLACE_HIDE || (q->act != ACT_DENY && q->act != ACT_WHITEOUT))
            return false;
    }
    return true;
}

/* Drops directories that the cache's previous form needed. */
static void drop_dirs(struct making *m, const char *dir)
{
    size_t kept = 0, n = strlen(dir);
    for (size_t i = 0; i < m->n_dirs; i++) {
        /* All of them share one slot's directory, so compare from the end. */
        const char *path = m->dirs[i].path;
        bool can_be = strlen(path) >= n && path[n - 1] == dir[n - 1] && (!path[n] || path[n] == '/');
        if (!can_be || !path_at_or_below(path, dir))
            m->dirs[kept++] = m->dirs[i];
    }
    m->n_dirs = kept;
}

static bool has_run(const struct making *m)
{
    bool found = false;
    for (size_t i = 0; i < m->n_places; i++) {
        const struct plan_place *p = &m->places[i];
        if (path_at_or_below(p->dst, LINKED_AT))
            return false;
        found |= p->kind == PLACE_TMPFS && p->act == ACT_PRIVATE && strcmp(p->dst, "/run") == 0;
    }
    return found;
}

static int make_linked(struct making *m, struct plan_place *p)
{
    const char *own = path_dir(m->mem, p->upper);
    const char *name = own ? path_name(own) : NULL;
    if (!name)
        return no_memory(m);
    drop_dirs(m, own);
    if (!m->linked) {
        m->linked = path_join(m->mem, m->caches, "linked");
        m->linked_slot = m->n_slots++;
        m->linked_origin = p->origin;
        m->linked_at = LINKED_AT;
        if (add_private(m, LINKED_AT, true, p->origin) < 0)
            return no_memory(m);
    }
    p->upper = m->linked ? path_join(m->mem, m->linked, name) : NULL;
    p->target = path_join(m->mem, LINKED_AT, name);
    if (!p->upper || !p->target)
        return no_memory(m);
    p->act = ACT_LINKED;
    p->stub = STUB_LINK;
    return add_make_dir(m, p->upper, false);
}

/* Removes guard rules that are not needed: creating and removing something over a name of the mask uncovers nothing. */
static void drop_guards(struct making *m, const struct plan_place *cache, const struct plan_place *hidden)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->n_guards; i++) {
        const struct guard_line *g = &m->guards[i];
        bool for_it =
            (g->kind == GUARD_RULE_PROTECT && strcmp(g->text, hidden->dst) == 0) ||
            (g->kind == GUARD_RULE_PIN && path_below(g->text, cache->dst) && path_below(hidden->dst, g->text));
        if (!for_it)
            m->guards[kept++] = *g;
    }
    m->n_guards = kept;
}

static void move_into_veil(struct making *m, size_t cache)
{
    for (size_t i = 0; i < m->n_places; i++) {
        struct plan_place *q = &m->places[i];
        if (q->up != (int)cache || (q->act != ACT_DENY && q->act != ACT_WHITEOUT))
            continue;
        drop_guards(m, &m->places[cache], q);
        q->stub = q->type == PATH_MISSING ? STUB_ABSENT : q->type == PATH_DIR ? STUB_DENIED_DIR : STUB_DENIED_FILE;
        q->act = ACT_STUB;
        q->up = 0;
    }
}

static int make_part(struct making *m, size_t at)
{
    struct plan_place *p = &m->places[at];
    const char *own = path_dir(m->mem, p->upper);
    if (!own)
        return no_memory(m);
    drop_dirs(m, own);
    int r = 0;
    if (!m->layer) {
        m->layer = path_join(m->mem, m->caches, "layer");
        r = m->layer ? add_make_dir(m, path_join(m->mem, m->layer, "upper"), false) : no_memory(m);
        if (r == 0)
            r = add_make_dir(m, path_join(m->mem, m->layer, "work"), false);
    }
    move_into_veil(m, at);
    p->act = ACT_PART;
    return r;
}

int caches_gather(struct making *m)
{
    const bool run = has_run(m);
    int r = 0;
    for (size_t i = 0; r == 0 && i < m->n_places; i++) {
        struct plan_place *p = &m->places[i];
        if (!is_cache_of_home(m, p))
            continue;
        if (p->act == ACT_PRIVATE_DIR && p->type == PATH_MISSING && p->builtin && run && is_simple(m, i, false))
            r = make_linked(m, p);
        else if (p->act == ACT_OVERLAY && m->facts->layers && is_simple(m, i, true))
            r = make_part(m, i);
    }
    return r;
}

int linked_caches_step(struct making *m)
{
    if (!m->linked)
        return 0;
    struct step *dir = image_path(&m->image, STEP_DIR, LINKED_AT, m->linked_origin);
    if (dir)
        dir->mode = 0755;
    struct step *s = dir ? image_path(&m->image, STEP_ATTACH, LINKED_AT, m->linked_origin) : NULL;
    if (!s)
        return no_memory(m);
    s->b = m->linked_slot;
    s->flags = STEP_NOSUID | STEP_NODEV | STEP_RECURSE;
    return 0;
}
