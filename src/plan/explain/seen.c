/*
 * Finds what a box sees at a path: the innermost place around it decides, as in steps.c, which makes what is said
 * here. `pinfold why` asks it; no file is opened for the answer.
 */
#include "plan/seen.h"

#include "plan/make.h"

/* Index of the innermost place at or above `path` that begins a region of its own. The root's does. */
static size_t region_at(const struct plan *p, const char *path)
{
    size_t best = 0;
    for (size_t i = 1; i < p->n_places; i++) {
        if (p->places[i].entered && path_at_or_below(path, p->places[i].dst))
            best = i;
    }
    return best;
}

/* Whether the box is given something below `path`, so that the directory is made. */
static bool is_made_above(const struct plan *p, const char *path)
{
    for (size_t i = 1; i < p->n_places; i++) {
        const struct plan_place *at = &p->places[i];
        bool made = at->act == ACT_ATTACH || at->act == ACT_PRIVATE || at->act == ACT_MAKE || at->act == ACT_OVERLAY ||
                    at->act == ACT_PRIVATE_DIR || at->act == ACT_VOLUME || at->act == ACT_MQUEUE;
        if (made && path_below(at->dst, path))
            return true;
        if (at->act == ACT_LINKED && path_at_or_below(at->target, path))
            return true;
    }
    return false;
}

static const struct plan_place *made_at(const struct plan *p, const char *path)
{
    for (size_t i = 1; i < p->n_places; i++) {
        if ((p->places[i].act == ACT_MAKE || p->places[i].act == ACT_MQUEUE) && strcmp(p->places[i].dst, path) == 0)
            return &p->places[i];
    }
    return NULL;
}

static bool is_usual_device(const char *path)
{
    static const char names[][16] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(path, names[i]) == 0)
            return true;
    }
    return false;
}

static void seen_private(const struct plan *p, const struct plan_place *at, const char *path, struct seen_at *s)
{
    const struct plan_place *made = made_at(p, path);
    s->mode = 0755;
    if (at->kind == PLACE_PROC) {
        s->kind = SEEN_PROC;
    } else if (made && made->kind == PLACE_LINK) {
        *s = (struct seen_at){.kind = SEEN_LINK, .place = made, .link = made->target};
    } else if (made) {
        *s = (struct seen_at){.kind = SEEN_MADE, .place = made, .mode = made->mode, .file = made->kind == PLACE_FILE};
    } else if (strcmp(path, at->dst) == 0) {
        s->kind = SEEN_MADE;
        s->mode = at->kind == PLACE_DEVICES ? 0755 : at->mode;
    } else if (at->kind == PLACE_DEVICES && (strcmp(path, "/dev/shm") == 0 || path_below(path, "/dev/shm"))) {
        s->kind = path[8] ? SEEN_OWN : SEEN_MADE;
        s->mode = 01777;
    } else if (at->kind == PLACE_DEVICES && is_usual_device(path)) {
        s->kind = SEEN_DEVICES;
    } else {
        s->kind = is_made_above(p, path) ? SEEN_MADE : SEEN_OWN;
    }
}

/* A directory of pinfold's own on the host. It is made when the box starts. */
static int seen_kept(const struct plan_place *at, const char *dir, const char *rest, struct arena *mem,
                     struct seen_at *s)
{
    s->place = at;
    s->kind = *rest ? SEEN_HOST : SEEN_MADE;
    s->mode = 0700;
    s->host = path_join(mem, dir, rest);
    return s->host ? 0 : -ENOMEM;
}

/* Caches without a directory on the host are links to directories beside each other. */
static const struct plan_place *linked_at(const struct plan *p, const char *path)
{
    for (size_t i = 1; i < p->n_places; i++) {
        if (p->places[i].act == ACT_LINKED && path_at_or_below(path, p->places[i].target))
            return &p->places[i];
    }
    return NULL;
}

/* The upper directory of a PART is in the one layer over the home directory (caches.c). */
static const char *upper_of(const struct plan *p, const struct plan_place *at, const char *rest, struct arena *mem)
{
    if (at->act == ACT_OVERLAY)
        return path_join(mem, at->upper, rest);
    const char *own = path_dir(mem, at->upper), *caches = own ? path_dir(mem, own) : NULL;
    const char *home = p->facts->home;
    if (!caches || !home || !path_below(at->dst, home))
        return NULL;
    const char *top = path_join(mem, path_join(mem, caches, "layer/upper"), path_rest(at->dst, home));
    return path_join(mem, top, rest);
}

/* In a layer what a box has made itself stays in view, whatever a later rule hides of the host's. */
static void seen_over(const struct plan *p, const struct plan_place *at, const char *path, struct arena *mem,
                      struct seen_at *s)
{
    for (size_t i = 1; !s->over && i < p->n_places; i++) {
        const struct plan_place *c = &p->places[i];
        if ((c->act == ACT_PART || (c->act == ACT_OVERLAY && c->kind == PLACE_CACHE)) && path_below(at->dst, c->dst))
            s->over = c;
    }
    if (!s->over)
        return;
    s->own = upper_of(p, s->over, path_rest(at->dst, s->over->dst), mem);
    s->upper = upper_of(p, s->over, path_rest(path, s->over->dst), mem);
}

static int seen_in(const struct plan *p, size_t region, const char *path, struct arena *mem, struct seen_at *s)
{
    const struct plan_place *at = &p->places[region];
    const char *rest = path_rest(path, at->dst);
    switch ((enum act)at->act) {
    case ACT_ATTACH:
        s->host = path_join(mem, at->src, rest);
        return s->host ? 0 : -ENOMEM;
    case ACT_PART:
    case ACT_OVERLAY:
        s->kind = SEEN_LAYER;
        s->host = path_join(mem, at->src, rest);
        s->upper = upper_of(p, at, rest, mem);
        return s->host ? 0 : -ENOMEM;
    case ACT_PRIVATE_DIR:
        return seen_kept(at, at->upper, rest, mem, s);
    case ACT_LINKED:
        *s = (struct seen_at){.kind = SEEN_LINK, .place = at, .link = at->target};
        return 0;
    case ACT_PRIVATE:
    case ACT_VOLUME:
        seen_private(p, at, path, s);
        return 0;
    case ACT_STUB:
        s->kind = at->stub == STUB_ABSENT ? SEEN_ABSENT : SEEN_DENIED;
        seen_over(p, at, path, mem, s);
        return 0;
    case ACT_DENY:
        s->kind = SEEN_DENIED;
        return 0;
    case ACT_WHITEOUT:
        s->kind = SEEN_ABSENT;
        seen_over(p, at, path, mem, s);
        return 0;
    case ACT_HOLLOW:
        s->kind = !*rest || is_made_above(p, path) ? SEEN_MADE : SEEN_ABSENT;
        s->mode = 0111;
        return 0;
    case ACT_GUARD: /* what is around it shows it; the guard refuses */
        return seen_in(p, (size_t)at->up, path, mem, s);
    case ACT_ROOT:
    case ACT_LANDLOCK:
        s->kind = p->facts->image ? SEEN_IMAGE : SEEN_HOST;
        s->host = p->facts->image ? NULL : path;
        return 0;
    case ACT_NONE:
    case ACT_MAKE:
    case ACT_MQUEUE:
    case ACT_REDIRECT:
    case ACT_NOT_THERE:
    case ACT_REFUSED:
        break; /* begin no region */
    }
    return seen_in(p, 0, path, mem, s);
}

int plan_seen(const struct plan *p, const char *path, struct arena *mem, struct seen_at *ret)
{
    size_t region = region_at(p, path);
    const struct plan_place *linked = linked_at(p, path);
    *ret = (struct seen_at){.kind = SEEN_HOST, .place = &p->places[region]};
    if (linked)
        return seen_kept(linked, linked->upper, path_rest(path, linked->target), mem, ret);
    return seen_in(p, region, path, mem, ret);
}
