/*
 * The namespace tier: turns places and masks, in path order, into steps. A mount comes after those above it, because a
 * directory sorts before its contents; a mask comes after the surrounding tree and before anything attached below. All
 * sources come first, because cloning gets slower with every attached mount.
 */
#include "plan/make.h"

enum { OPEN = STEP_NOSUID | STEP_NODEV | STEP_RECURSE };

struct emitting {
    struct making *m;
    const char *made;    /* the last mount point created in one of our tmpfs */
    const char *made_in; /* and in which */
    size_t *open;        /* places to be made read-only once they are complete */
    size_t n_open;
    bool layered; /* the LAYER exists */
};

static int emit_stubs(struct making *m, const struct veil *v)
{
    for (size_t i = v->first; i < v->first + v->n; i++) {
        const struct stub_ask *ask = &m->stubs[i];
        struct step *s = image_path(&m->image, STEP_STUB, path_rest(ask->path, v->dir), ask->origin);
        if (!s)
            return no_memory(m);
        s->mode = ask->kind;
        s->flags = ask->optional ? STEP_OPTIONAL : 0;
        s->b = image_string(&m->image, ask->text);
        if (s->b == UINT32_MAX)
            return no_memory(m);
    }
    return 0;
}

static int emit_veil(struct making *m, const struct veil *v)
{
    struct step *own = v->apart ? image_path(&m->image, STEP_ATTACH, v->dir, v->origin) : NULL;
    if (own) {
        own->b = v->slot;
        own->flags = OPEN | STEP_RDONLY;
    } else if (v->apart) {
        return no_memory(m);
    }
    struct step *s = image_path(&m->image, v->cover ? STEP_COVER : STEP_VEIL, v->dir, v->origin);
    if (!s)
        return no_memory(m);
    s->b = (uint32_t)v->n;
    s->flags = STEP_RDONLY | STEP_NOSUID | STEP_NODEV;
    return emit_stubs(m, v);
}

static int emit_root(struct making *m)
{
    const struct plan_place *root = &m->places[0];
    struct step *s = image_step(&m->image, m->empty_root ? STEP_ROOT_EMPTY : STEP_ROOT, root->origin);
    if (!s)
        return no_memory(m);
    bool writable = root->region == REGION_WRITABLE;
    s->flags = writable ? STEP_NOSUID | STEP_NODEV | STEP_WORKSPACE : STEP_RDONLY | STEP_NOSUID | STEP_NODEV;
    if (!m->empty_root)
        return 0;
    s->mode = 0755;
    for (size_t i = 0; i < m->n_veils; i++) {
        if (!m->veils[i].dir[1])
            return emit_veil(m, &m->veils[i]);
    }
    return err_say(m->e, ERR_BUG, "an empty root without a cover");
}

static int emit_sources(struct making *m)
{
    for (size_t i = 0; i < m->n_places; i++) {
        const struct plan_place *p = &m->places[i];
        if (p->act != ACT_ATTACH && p->act != ACT_PRIVATE_DIR)
            continue;
        struct step *s = image_path(&m->image, STEP_SOURCE, p->act == ACT_ATTACH ? p->src : p->upper, p->origin);
        if (!s)
            return no_memory(m);
        s->b = p->slot;
    }
    for (size_t i = 0; i < m->n_veils; i++) {
        const struct veil *v = &m->veils[i];
        struct step *s = v->apart ? image_path(&m->image, STEP_SOURCE, v->dir, v->origin) : NULL;
        if (v->apart && !s)
            return no_memory(m);
        if (s)
            s->b = v->slot;
    }
    const bool bound = m->linked && !secret_caches(m); /* linked_caches_step() */
    struct step *s = bound ? image_path(&m->image, STEP_SOURCE, m->linked, m->linked_origin) : NULL;
    if (s)
        s->b = m->linked_slot;
    return s || !bound ? machine_source(m) : no_memory(m);
}

/* Creates the directories and the last name that `p` needs in the surrounding tmpfs; device names exist already. */
static int make_point(struct emitting *e, const struct plan_place *p, const struct plan_place *around, bool directory,
                      uint16_t mode)
{
    struct making *m = e->m;
    uint16_t above = around->region == REGION_HIDDEN ? 0111 : 0755;
    size_t base = (size_t)(path_rest(p->dst, around->dst) - p->dst), n = base;
    if (around->kind == PLACE_DEVICES && (strcmp(p->dst + base, "shm") == 0 || strcmp(p->dst + base, "mqueue") == 0))
        return 0;
    for (n += strcspn(p->dst + n, "/"); p->dst[n]; n += 1 + strcspn(p->dst + n + 1, "/")) {
        if (e->made_in == around->dst && strncmp(e->made, p->dst, n) == 0 && (!e->made[n] || e->made[n] == '/'))
            continue;
        const char *dir = arena_str(m->mem, (struct str){p->dst, n});
        struct step *s = dir ? image_path(&m->image, STEP_DIR, dir, p->origin) : NULL;
        if (!s)
            return no_memory(m);
        s->mode = above;
    }
    struct step *s = image_path(&m->image, directory ? STEP_DIR : STEP_FILE, p->dst, p->origin);
    if (!s)
        return no_memory(m);
    s->mode = mode;
    e->made = p->dst;
    e->made_in = around->dst;
    return 0;
}

/* A mount point in one of our tmpfs; elsewhere the host has it, or a stub. */
static int point_for(struct emitting *e, const struct plan_place *p, bool directory)
{
    const struct plan_place *around = &e->m->places[p->up];
    if (around->region != REGION_PRIVATE && (around->region != REGION_HIDDEN || around->act != ACT_HOLLOW))
        return 0;
    uint16_t mode = around->region == REGION_HIDDEN ? 0111 : directory ? 0755 : 0644;
    return make_point(e, p, around, directory, mode);
}

static int emit_attach(struct emitting *e, const struct plan_place *p)
{
    int r = point_for(e, p, p->act == ACT_PRIVATE_DIR || p->type == PATH_DIR);
    if (r < 0)
        return r;
    struct step *s = image_path(&e->m->image, STEP_ATTACH, p->dst, p->origin);
    if (!s)
        return no_memory(e->m);
    s->b = p->slot;
    s->flags = OPEN;
    if (p->device)
        s->flags &= (uint8_t)~STEP_NODEV;
    if (p->region == REGION_WRITABLE)
        s->flags |= STEP_WORKSPACE;
    else if (p->region == REGION_READ_ONLY)
        s->flags |= STEP_RDONLY;
    return 0;
}

static int emit_private(struct emitting *e, const struct plan_place *p)
{
    int r = point_for(e, p, true);
    if (r < 0 || p->kind == PLACE_PROC)
        return r;
    struct step *s = image_path(&e->m->image, p->kind == PLACE_DEVICES ? STEP_DEVICES : STEP_TMPFS, p->dst, p->origin);
    if (!s)
        return no_memory(e->m);
    s->mode = p->mode;
    s->flags = p->kind == PLACE_DEVICES ? STEP_NOSUID : STEP_NOSUID | STEP_NODEV;
    s->b = private_kib(e->m, p->kind == PLACE_DEVICES ? "/dev/shm" : p->dst);
    if (p->kind == PLACE_DEVICES && !p->opened)
        s->flags |= STEP_RDONLY;
    else if (p->kind == PLACE_DEVICES)
        e->open[e->n_open++] = (size_t)(p - e->m->places);
    return 0;
}

static int emit_make(struct emitting *e, const struct plan_place *p)
{
    struct making *m = e->m;
    if (p->kind != PLACE_LINK)
        return make_point(e, p, &m->places[p->up], p->kind == PLACE_DIR, p->mode);
    /* SYMLINK creates the link itself; make_point only creates what is above it. */
    const struct plan_place *around = &m->places[p->up];
    const char *dir = path_dir(m->mem, p->dst);
    if (!dir)
        return no_memory(m);
    struct plan_place above = {.dst = dir, .origin = p->origin};
    int r = strcmp(dir, around->dst) == 0 || (e->made_in == around->dst && path_at_or_below(e->made, dir))
                ? 0
                : make_point(e, &above, around, true, 0755);
    struct step *s = r == 0 ? image_path(&m->image, STEP_SYMLINK, p->dst, p->origin) : NULL;
    if (!s)
        return r < 0 ? r : no_memory(m);
    s->b = image_string(&m->image, p->target);
    return s->b == UINT32_MAX ? no_memory(m) : 0;
}

static int emit_hollow(struct emitting *e, const struct plan_place *p)
{
    struct step *s = image_path(&e->m->image, STEP_TMPFS, p->dst, p->origin);
    if (!s)
        return no_memory(e->m);
    s->mode = 0111;
    s->flags = STEP_NOSUID | STEP_NODEV | STEP_NOEXEC;
    e->open[e->n_open++] = (size_t)(p - e->m->places);
    return 0;
}

static int emit_overlay(struct emitting *e, const struct plan_place *p)
{
    struct making *m = e->m;
    int r = point_for(e, p, true);
    if (r < 0)
        return r;
    const char *dir = path_dir(m->mem, p->upper);
    const char *hidden = p->workspace ? m->ask->layer_hidden : NULL;
    const char *text = dir ? arena_printf(m->mem, "%s\n%s\n%s/work%s%s%s%s", p->src, p->upper, dir, hidden ? "\n" : "",
                                          hidden ? dir : "", hidden ? "/" : "", hidden ? hidden : "")
                           : NULL;
    for (size_t i = 0; text && hidden && m->ask->layer_below && m->ask->layer_below[i]; i++)
        text = arena_printf(m->mem, "%s\n%s", text, m->ask->layer_below[i]);
    struct step *s = text ? image_path(&m->image, STEP_OVERLAY, p->dst, p->origin) : NULL;
    if (!s)
        return no_memory(m);
    s->flags = STEP_NOSUID | STEP_NODEV;
    if (secret_caches(m) && p->kind == PLACE_CACHE)
        s->mode = OVERLAY_SECRET;
    s->b = image_string(&m->image, text);
    return s->b == UINT32_MAX ? no_memory(m) : 0;
}

/* The layer is over what the home directory shows at this point: its mask must be complete. */
static int emit_part(struct emitting *e, const struct plan_place *p)
{
    struct making *m = e->m;
    if (!e->layered) {
        struct step *layer = image_path(&m->image, STEP_LAYER, m->home, p->origin);
        if (!layer)
            return no_memory(m);
        layer->flags = STEP_NOSUID | STEP_NODEV;
        layer->b = image_string(&m->image, m->layer);
        if (layer->b == UINT32_MAX)
            return no_memory(m);
        e->layered = true;
    }
    struct step *s = image_path(&m->image, STEP_PART, p->dst, p->origin);
    if (!s)
        return no_memory(m);
    s->flags = STEP_NOSUID | STEP_NODEV;
    return 0;
}

static int emit_deny(struct emitting *e, const struct plan_place *p)
{
    struct step *s = image_path(&e->m->image, STEP_DENY, p->dst, p->origin);
    if (!s)
        return no_memory(e->m);
    s->mode = p->type == PATH_DIR || p->type == PATH_MISSING ? STUB_DENIED_DIR : STUB_DENIED_FILE;
    /* firejail covers parts of /sys by itself. */
    if (path_below(p->dst, "/sys") && same(e->m->facts->engine, "firejail"))
        s->flags = STEP_OPTIONAL;
    return 0;
}

static int emit_mqueue(struct emitting *e, const struct plan_place *p)
{
    int r = point_for(e, p, true);
    return r < 0 ? r : image_path(&e->m->image, STEP_MQUEUE, p->dst, p->origin) ? 0 : no_memory(e->m);
}

static int emit_place(struct emitting *e, const struct plan_place *p)
{
    switch ((enum act)p->act) {
    case ACT_ATTACH:
    case ACT_PRIVATE_DIR:
        return emit_attach(e, p);
    case ACT_PRIVATE:
        return emit_private(e, p);
    case ACT_MAKE:
        return emit_make(e, p);
    case ACT_HOLLOW:
        return emit_hollow(e, p);
    case ACT_OVERLAY:
        return emit_overlay(e, p);
    case ACT_PART:
        return emit_part(e, p);
    case ACT_DENY:
        return emit_deny(e, p);
    case ACT_MQUEUE:
        return emit_mqueue(e, p);
    case ACT_NONE:
    case ACT_ROOT:
    case ACT_STUB:
    case ACT_GUARD:
    case ACT_LANDLOCK:
    case ACT_REDIRECT:
    case ACT_NOT_THERE:
    case ACT_REFUSED:
    case ACT_VOLUME:
    case ACT_WHITEOUT:
    case ACT_LINKED:
        return 0;
    }
    return 0;
}

/* A hollow place, or /dev with additional devices, gets its last mount point before it becomes read-only. */
static int close_places(struct emitting *e, const char *next)
{
    while (e->n_open) {
        const struct plan_place *p = &e->m->places[e->open[e->n_open - 1]];
        if (next && path_below(next, p->dst))
            return 0;
        if (!image_path(&e->m->image, STEP_READONLY, p->dst, p->origin))
            return no_memory(e->m);
        e->n_open--;
    }
    return 0;
}

static int by_dir(const void *a, const void *b)
{
    const struct veil *const *x = a, *const *y = b;
    return path_order((*x)->dir, (*y)->dir);
}

static int emit_tree(struct making *m)
{
    struct emitting e = {.m = m};
    e.open = arena_zero(m->mem, (m->n_places + 1) * sizeof *e.open);
    const struct veil **veils = arena_zero(m->mem, (m->n_veils + 1) * sizeof *veils);
    size_t n = 0, v = 0;
    if (!e.open || !veils)
        return no_memory(m);
    for (size_t i = 0; i < m->n_veils; i++) {
        if (m->veils[i].dir[1])
            veils[n++] = &m->veils[i];
    }
    if (sort_pointers(m->mem, (const void **)veils, n, by_dir) < 0)
        return no_memory(m);
    int r = 0;
    for (size_t i = 1; r == 0 && i < m->n_places; i++) {
        const struct plan_place *p = &m->places[i];
        r = close_places(&e, p->dst);
        for (; r == 0 && v < n && path_order(veils[v]->dir, p->dst) < 0; v++)
            r = emit_veil(m, veils[v]);
        if (r == 0)
            r = emit_place(&e, p);
    }
    if (r == 0)
        r = close_places(&e, NULL);
    for (; r == 0 && v < n; v++)
        r = emit_veil(m, veils[v]);
    if (r == 0)
        r = linked_caches_step(m);
    return r < 0 ? r : machine_steps(m);
}

/* A new sysfs would be expensive; even with a writable root it must stay read-only. */
static int emit_sys(struct making *m)
{
    const struct path_fact *sys = fact_of(m, "/sys");
    if (!sys)
        return -EINVAL;
    if (m->places[0].region != REGION_WRITABLE || sys->type != PATH_DIR)
        return 0;
    struct step *s = image_path(&m->image, STEP_READONLY, sys->real, 0);
    if (!s)
        return no_memory(m);
    s->flags = STEP_RECURSE;
    return 0;
}

static const struct plan_place *place_of(const struct making *m, enum place_kind kind)
{
    for (size_t i = 0; i < m->n_places; i++) {
        if (m->places[i].kind == kind && m->places[i].act == ACT_PRIVATE)
            return &m->places[i];
    }
    return NULL;
}

static int emit_inside(struct making *m)
{
    const struct plan_place *proc = place_of(m, PLACE_PROC), *dev = place_of(m, PLACE_DEVICES);
    int r = m->policy->net == NET_ALLOW ? egress_steps(m) : 0;
    if (r < 0)
        return r;
    if (m->policy->net == NET_NONE && !image_step(&m->image, STEP_LOOPBACK, m->policy->net_origin))
        return no_memory(m);
    if (m->policy->hostname && !image_path(&m->image, STEP_HOSTNAME, m->policy->hostname, 0))
        return no_memory(m);
    if (proc) {
        struct step *s = image_path(&m->image, STEP_PROC, proc->dst, 0);
        if (!s)
            return no_memory(m);
        s->flags = STEP_NOSUID | STEP_NODEV | STEP_NOEXEC;
        /* The kernel lets a nested user namespace mount /proc only if it sees another one without anything mounted
           over it. */
        bool bare = m->policy->allow_nested_userns && m->facts->uid != 0;
        if (!bare && !image_path(&m->image, STEP_PROC_LOCK, proc->dst, 0))
            return no_memory(m);
    }
    if (dev && !image_path(&m->image, STEP_DEVPTS, path_join(m->mem, dev->dst, "pts"), 0))
        return no_memory(m);
    /* The box around this one has its keyring, and refuses the call. */
    return m->facts->around || image_step(&m->image, STEP_KEYRING, 0) ? 0 : no_memory(m);
}

int steps_make(struct making *m)
{
    int r = veils_make(m);
    if (r == 0)
        r = emit_root(m);
    if (r == 0)
        r = emit_sources(m);
    if (r == 0 && !image_step(&m->image, STEP_ENTER, 0))
        r = no_memory(m);
    if (r == 0)
        r = emit_tree(m);
    if (r == 0)
        r = emit_sys(m);
    if (r == 0)
        r = emit_inside(m);
    return r < 0 ? r : lock_make(m);
}
