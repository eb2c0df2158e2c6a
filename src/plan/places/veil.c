/*
 * Groups stubs into as few masks as possible: an overlay costs as much as seven stubs. Everything hidden below the home
 * directory is in one mask of it. Elsewhere the directory that contains the name is masked, and a mask takes over those
 * that would be inside it, because overlays can be stacked only twice (FILESYSTEM_MAX_STACK_DEPTH of the kernel).
 * Covers contain only names of their own level: other entries are bound as they are.
 *
 * The home directory's mask stays apart from that of a directory around it (/var/lib and /var/lib/jenkins), where mounts are more
 * likely: there it would be left out, or be a cover in which all names of the home have to be made. So that overlays are not stacked,
 * the home has a mount of its own on the outer mask, and its own mask is over that.
 *
 * The root directory cannot be masked (an overlay shows no mounts below its lower directory): if a name in it is needed
 * or must be hidden, an empty root with everything bound into it replaces it.
 */
#include "plan/make.h"

static bool is_cover_dir(const struct making *m, const char *dir)
{
    for (size_t i = 0; i < m->n_cover_dirs; i++) {
        if (strcmp(m->cover_dirs[i], dir) == 0)
            return true;
    }
    return false;
}

static bool needs_stub(const struct making *m, const struct plan_place *p)
{
    if (p->stub == UINT8_MAX || p->up < 0)
        return false;
    const struct plan_place *around = &m->places[p->up];
    return around->region == REGION_READ_ONLY || around->region == REGION_WRITABLE;
}

static int collect_stubs(struct making *m, bool home_veil)
{
    for (size_t i = 0; i < m->n_places; i++) {
        struct plan_place *p = &m->places[i];
        if (!needs_stub(m, p))
            continue;
        struct stub_ask *s = arena_push(m->mem, &m->stubs, &m->n_stubs, sizeof *s);
        if (!s)
            return no_memory(m);
        *s = (struct stub_ask){.path = p->dst, .dir = p->parent, .region = (uint32_t)p->up, .kind = p->stub};
        s->origin = p->origin;
        s->place = (uint32_t)i;
        s->optional = p->administrators;
        s->text = p->stub == STUB_LINK ? p->target : NULL;
        if (p->stub == STUB_ABSENT)
            s->path = first_missing(m, p);
        if (home_veil && p->up == 0 && path_below(p->dst, m->home))
            s->dir = is_cover_dir(m, p->parent) ? p->parent : m->home;
        if (!s->path || !s->dir)
            return no_memory(m);
    }
    return 0;
}

static int by_stub(const void *a, const void *b)
{
    const struct stub_ask *const *x = a, *const *y = b;
    if ((*x)->region != (*y)->region)
        return (*x)->region < (*y)->region ? -1 : 1;
    return path_order((*x)->path, (*y)->path);
}

/* Sorts, each name once; an absent directory in which something must be mounted is only absent in part. */
static int order_stubs(struct making *m)
{
    const struct stub_ask **by = arena_zero(m->mem, (m->n_stubs + 1) * sizeof *by);
    struct stub_ask *sorted = arena_zero(m->mem, (m->n_stubs + 1) * sizeof *sorted);
    if (!by || !sorted)
        return no_memory(m);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < m->n_stubs; i++)
            by[i] = &m->stubs[i];
        if (sort_pointers(m->mem, (const void **)by, m->n_stubs, by_stub) < 0)
            return no_memory(m);
        bool again = false;
        const struct stub_ask *absent = NULL;
        const char *called = NULL; /* path of `absent`, which may be changed below */
        size_t first = 0;
        for (size_t i = 0; i < m->n_stubs; i++) {
            if (absent && by[i]->region == absent->region && path_below(by[i]->path, called)) {
                /* Stubs that called this directory absent get their own names back. */
                for (size_t k = first; k < i; k++) {
                    struct stub_ask *back = &m->stubs[by[k] - m->stubs];
                    if (back->kind == STUB_ABSENT && strcmp(back->path, called) == 0)
                        back->path = m->places[back->place].dst;
                }
                again = true;
                absent = NULL;
            } else if (by[i]->kind == STUB_ABSENT && (!absent || strcmp(called, by[i]->path) != 0)) {
                absent = by[i];
                called = absent->path;
                first = i;
            }
        }
        if (!again)
            break;
    }
    size_t kept = 0;
    for (size_t i = 0; i < m->n_stubs; i++) {
        if (!kept || by_stub(&(const struct stub_ask *){&sorted[kept - 1]}, &by[i]) != 0)
            sorted[kept++] = *by[i];
        else
            sorted[kept - 1].optional &= by[i]->optional;
    }
    m->stubs = sorted;
    m->n_stubs = kept;
    return 0;
}

/*
 * Whether an empty root is needed. A directory that exists in "/" is instead denied by a mount over it, because only
 * the host's root can replace it; a rule of root's own gets the stronger form. For the same reason a link there (Fedora
 * Silverblue has /root and /home in /var) may stay one, over which nothing can be mounted: what it leads to is hidden.
 */
static bool root_must_be_covered(const struct making *m)
{
    for (size_t i = 0; i < m->n_stubs; i++) {
        const struct plan_place *p = &m->places[m->stubs[i].place];
        bool in_root = m->stubs[i].region == 0 && !m->stubs[i].dir[1];
        if (in_root && (p->type == PATH_MISSING || p->dst_type == PATH_MISSING || (m->facts->uid == 0 && !p->builtin)))
            return true;
    }
    return is_cover_dir(m, "/");
}

static void deny_in_root(struct making *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->n_stubs; i++) {
        struct plan_place *p = &m->places[m->stubs[i].place];
        if (m->stubs[i].region != 0 || m->stubs[i].dir[1])
            m->stubs[kept++] = m->stubs[i];
        else if (p->act == ACT_STUB)
            p->act = p->link ? ACT_NONE : ACT_DENY;
    }
    m->n_stubs = kept;
}

static int by_veil(const void *a, const void *b)
{
    const struct veil *const *x = a, *const *y = b;
    if ((*x)->region != (*y)->region)
        return (*x)->region < (*y)->region ? -1 : 1;
    return path_order((*x)->dir, (*y)->dir);
}

/* Only the native engine makes all mounts itself. */
static bool can_be_apart(const struct making *m, const struct veil *v, const struct veil *outer)
{
    return outer && !v->cover && v->region == 0 && outer->region == 0 && m->home && strcmp(v->dir, m->home) == 0 &&
           path_below(v->dir, outer->dir) && !m->facts->tool && strcmp(m->facts->engine, "native") == 0;
}

static bool takes_over(const struct veil *outer, const struct veil *v)
{
    return outer && outer->region == v->region && path_at_or_below(v->dir, outer->dir) && !v->cover;
}

/* The directories to mask: those of stubs and patterns, except those inside another one. */
static int choose_veils(struct making *m, bool overlay)
{
    size_t n = 0, kept = 0;
    struct veil *all = arena_zero(m->mem, (m->n_stubs + 1) * sizeof *all);
    const struct veil **by = arena_zero(m->mem, (m->n_stubs + 1) * sizeof *by);
    if (!all || !by)
        return no_memory(m);
    for (size_t i = 0; i < m->n_stubs; i++) {
        if (n && m->stubs[i].region == all[n - 1].region && strcmp(m->stubs[i].dir, all[n - 1].dir) == 0)
            continue;
        all[n] = (struct veil){.dir = m->stubs[i].dir, .region = m->stubs[i].region, .origin = m->stubs[i].origin};
        all[n].cover = !overlay || !all[n].dir[1] || is_cover_dir(m, all[n].dir);
        by[n] = &all[n];
        n++;
    }
    if (sort_pointers(m->mem, (const void **)by, n, by_veil) < 0)
        return no_memory(m);
    m->veils = arena_zero(m->mem, (n + 1) * sizeof *m->veils);
    if (!m->veils)
        return no_memory(m);
    const struct veil *outer = NULL,
                      *home = NULL; /* the last overlay, which takes over what is inside it; one apart in it */
    for (size_t i = 0; i < n; i++) {
        const struct veil *v = by[i], *last = kept ? &m->veils[kept - 1] : NULL;
        if (last && last->region == v->region && strcmp(last->dir, v->dir) == 0)
            continue;
        const bool apart = can_be_apart(m, v, outer);
        if (!apart && (takes_over(outer, v) || takes_over(home, v)))
            continue;
        m->veils[kept] = *v;
        m->veils[kept].apart = apart;
        m->veils[kept].slot = apart ? m->n_slots++ : 0;
        if (apart)
            home = &m->veils[kept];
        else if (!v->cover)
            outer = &m->veils[kept];
        kept++;
    }
    m->n_veils = kept;
    return 0;
}

/* The mask of a stub: of its own directory, or the overlay that took that over. */
static size_t veil_of(const struct making *m, const struct stub_ask *s)
{
    size_t low = 0, high = m->n_veils;
    const struct veil want = {.dir = s->dir, .region = s->region}, *key = &want;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct veil *v = &m->veils[mid];
        if (by_veil(&v, &key) <= 0)
            low = mid + 1;
        else
            high = mid;
    }
    /* low - 1 is the last mask at or before s->dir; it, or an overlay shortly before it, contains the directory. */
    while (low > 0) {
        const struct veil *v = &m->veils[low - 1];
        if (v->region == s->region && (strcmp(v->dir, s->dir) == 0 || (!v->cover && path_below(s->dir, v->dir))))
            return low - 1;
        low--;
    }
    return SIZE_MAX;
}

/* Sorts the stubs by mask. */
static int fill_veils(struct making *m)
{
    size_t *of = arena_zero(m->mem, (m->n_stubs + 1) * sizeof *of);
    struct stub_ask *sorted = arena_zero(m->mem, (m->n_stubs + 1) * sizeof *sorted);
    if (!of || !sorted)
        return no_memory(m);
    for (size_t i = 0; i < m->n_stubs; i++) {
        of[i] = veil_of(m, &m->stubs[i]);
        if (of[i] == SIZE_MAX)
            return err_say(m->e, ERR_BUG, "no mask for %s", m->stubs[i].path);
        m->veils[of[i]].n++;
    }
    size_t at = 0;
    for (size_t v = 0; v < m->n_veils; v++) {
        m->veils[v].first = at;
        at += m->veils[v].n;
        m->veils[v].n = 0;
    }
    for (size_t i = 0; i < m->n_stubs; i++) {
        struct veil *v = &m->veils[of[i]];
        sorted[v->first + v->n++] = m->stubs[i];
    }
    m->stubs = sorted;
    return 0;
}

/*
 * A socket is found by its inode, and in an overlay names have the overlay's inodes, where nobody listens
 * (unix_find_bsd() in net/unix/af_unix.c). So a socket that a mask would cover is attached by itself.
 */
static int uncover_sockets(struct making *m)
{
    for (size_t i = 0; i < m->n_places; i++) {
        struct plan_place *p = &m->places[i];
        if (p->kind != PLACE_SOCKET || p->act != ACT_GUARD || p->up < 0)
            continue;
        const struct stub_ask it = {.dir = p->dst, .region = (uint32_t)p->up};
        if (veil_of(m, &it) == SIZE_MAX)
            continue;
        if (p->type == PATH_OTHER) {
            p->act = ACT_ATTACH;
            p->slot = m->n_slots++;
        } else if (note(m,
                        "unix socket %s does not exist, and this box could not connect if it were created later, "
                        "because its directory is masked; start its server first",
                        p->dst) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

int veils_make(struct making *m)
{
    const struct path_fact *home = m->facts->home ? facts_path(m->facts, m->facts->home) : NULL;
    bool overlay = m->facts->overlay;
    bool home_veil = overlay && m->home && m->home[1] && home && home->type == PATH_DIR && !is_cover_dir(m, m->home);
    int r = home_veil ? caches_gather(m) : 0;
    if (r == 0)
        r = caches_secret_settle(m);
    if (r == 0)
        r = collect_stubs(m, home_veil);
    if (r == 0)
        r = egress_stubs(m);
    if (r == 0)
        r = order_stubs(m);
    if (r < 0)
        return r;
    m->empty_root = root_must_be_covered(m);
    if (!m->empty_root)
        deny_in_root(m);
    r = choose_veils(m, overlay);
    if (r == 0)
        r = uncover_sockets(m);
    return r < 0 ? r : fill_veils(m);
}
