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
        m->linked = path_join(m->mem, m->caches, secret_caches(m) ? "linked/upper" : "linked");
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
        q->stub = (uint8_t)stub_of_hidden(q);
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

/* `path` below the secret directory, in the slot itself; any other as it is. NULL: no memory. */
static const char *told_path(const struct making *m, const char *path)
{
    const size_t n = strlen(secret_caches(m));
    if (!path_below(path, m->caches))
        return path;
    return arena_printf(m->mem, "%.*s%s", (int)(strlen(m->caches) - n), m->caches, path_rest(path, m->caches));
}

/* An empty directory, whose place is told, so it is not in the secret one. */
static const char *linked_none(struct making *m)
{
    const char *in = path_join(m->mem, m->caches, "none");
    return in ? told_path(m, in) : NULL;
}

/* The linked caches of a layered box: over an empty directory, because the place of what is bound is told in mountinfo. */
static int linked_overlay(struct making *m, struct step *s)
{
    const char *own = path_dir(m->mem, m->linked);
    const char *none = linked_none(m);
    const char *text = own && none ? arena_printf(m->mem, "%s\n%s/upper\n%s/work", none, own, own) : NULL;
    if (!text)
        return no_memory(m);
    s->b = image_string(&m->image, text);
    s->mode = OVERLAY_SECRET;
    s->flags = STEP_NOSUID | STEP_NODEV;
    return s->b == UINT32_MAX ? no_memory(m) : 0;
}

static int linked_overlay_dirs(struct making *m)
{
    const char *own = path_dir(m->mem, m->linked);
    int r = own ? add_make_dir(m, linked_none(m), false) : no_memory(m);
    return r < 0 ? r : add_make_dir(m, path_join(m->mem, own, "work"), false);
}

static bool is_told_to_nobody(const struct making *m, const char *path)
{
    if (m->linked && strcmp(path, LINKED_AT) == 0)
        return true;
    for (size_t i = 0; i < m->n_places; i++) {
        const struct plan_place *p = &m->places[i];
        if (p->kind == PLACE_CACHE && strcmp(p->dst, path) == 0)
            return p->act == ACT_OVERLAY || p->act == ACT_PART || p->act == ACT_LINKED;
    }
    return false;
}

/* What is bound is told in mountinfo, with the name that must stay a secret: such caches are where those of other boxes are. */
static int tell_bound_caches(struct making *m)
{
    for (size_t i = 0; i < m->n_places; i++) {
        struct plan_place *p = &m->places[i];
        if (p->kind != PLACE_CACHE || p->act != ACT_PRIVATE_DIR)
            continue;
        for (size_t k = 0; k < m->n_dirs; k++) {
            const char *own = path_dir(m->mem, p->upper);
            if (own && path_at_or_below(m->dirs[k].path, own))
                m->dirs[k].path = told_path(m, m->dirs[k].path);
            if (!own || !m->dirs[k].path)
                return no_memory(m);
        }
        if (!(p->upper = told_path(m, p->upper)))
            return no_memory(m);
    }
    return 0;
}

/* Nothing can be led to them, so they are as private as the box's memory. */
static void free_secret_caches(struct making *m)
{
    for (size_t i = 0; i < m->n_guards; i++) {
        struct guard_line *g = &m->guards[i];
        if (g->kind == GUARD_RULE_PRIVATE && g->flags & GUARD_RULE_KEPT && is_told_to_nobody(m, g->text))
            g->flags &= (uint8_t)~GUARD_RULE_KEPT;
    }
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
    if (r == 0 && secret_caches(m) && m->linked)
        r = linked_overlay_dirs(m);
    return r;
}

int caches_secret_settle(struct making *m)
{
    if (!secret_caches(m) || !m->caches)
        return 0;
    free_secret_caches(m);
    return tell_bound_caches(m);
}

int linked_caches_step(struct making *m)
{
    if (!m->linked)
        return 0;
    struct step *dir = image_path(&m->image, STEP_DIR, LINKED_AT, m->linked_origin);
    if (dir)
        dir->mode = 0755;
    const enum step_kind kind = secret_caches(m) ? STEP_OVERLAY : STEP_ATTACH;
    struct step *s = dir ? image_path(&m->image, kind, LINKED_AT, m->linked_origin) : NULL;
    if (!s)
        return no_memory(m);
    if (secret_caches(m))
        return linked_overlay(m, s);
    s->b = m->linked_slot;
    s->flags = STEP_NOSUID | STEP_NODEV | STEP_RECURSE;
    return 0;
}
