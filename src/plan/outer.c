/*
 * A box whose root is an image: the engine mounts, by its own command line, and pinfold-init does the rest. Mounts are
 * in path order, so that a place inside another comes after it. The plan then has no mount steps, only those for the
 * network, and those that lock down the box and each command.
 */
#include "plan/make.h"

static struct outer *add(struct making *m, enum outer_kind kind, const struct plan_place *p)
{
    struct outer *o = arena_push(m->mem, &m->outer, &m->n_outer, sizeof *o);
    if (o)
        *o = (struct outer){.kind = kind, .dst = p->dst, .src = p->src, .origin = p->origin, .mode = p->mode};
    return o;
}

static int mount_place(struct making *m, const struct plan_place *p)
{
    const struct plan_place *around = p->up < 0 ? NULL : &m->places[p->up];
    struct outer *o;
    switch ((enum act)p->act) {
    case ACT_ATTACH:
        if (around && around->kind == PLACE_DEVICES && p->device)
            o = add(m, OUTER_DEVICE, p);
        else
            o = add(m, OUTER_BIND, p);
        if (!o)
            return no_memory(m);
        o->writable = p->region == REGION_WRITABLE;
        return 0;
    case ACT_PRIVATE_DIR:
        o = add(m, OUTER_BIND, p);
        if (!o)
            return no_memory(m);
        o->src = p->upper;
        o->writable = true;
        return 0;
    case ACT_VOLUME:
        o = add(m, OUTER_VOLUME, p);
        if (!o)
            return no_memory(m);
        o->src = p->upper;
        o->writable = true;
        return 0;
    case ACT_PRIVATE:
        if (p->kind == PLACE_PROC)
            return 0;
        o = add(m, p->kind == PLACE_DEVICES ? OUTER_SHM : OUTER_TMPFS, p);
        if (!o)
            return no_memory(m);
        o->kib = private_kib(m, p->dst);
        o->writable = true;
        return 0;
    default:
        return 0;
    }
}

/* Files for names and addresses: neither the image's nor the host's apply here. */
static int network_files(struct making *m)
{
    size_t first = m->n_stubs;
    int r = egress_stubs(m);
    for (size_t i = first; r == 0 && i < m->n_stubs; i++) {
        struct outer *o = arena_push(m->mem, &m->outer, &m->n_outer, sizeof *o);
        if (!o)
            return no_memory(m);
        *o = (struct outer){
            .kind = OUTER_TEXT, .dst = m->stubs[i].path, .text = m->stubs[i].text, .origin = m->stubs[i].origin};
    }
    return r;
}

/* An engine's mount options have their own separators. */
static int check_words(struct making *m)
{
    for (size_t i = 0; i < m->n_outer; i++) {
        const char *words[] = {m->outer[i].src, m->outer[i].dst};
        for (size_t k = 0; k < 2; k++) {
            if (words[k] && strpbrk(words[k], ",:\"\n\\"))
                return err_say(m->e, ERR_CANNOT,
                               "%s (%s): %s cannot mount a path with a comma, a colon, a quote, a backslash or a new "
                               "line in its name",
                               words[k], origin_of(m, m->outer[i].origin), m->facts->engine);
        }
    }
    return 0;
}

/* The mounts as steps that the tool does: they are not run, but tell which paths the box has (protocol/paths.h). */
static int mount_steps(struct making *m)
{
    for (uint32_t i = 0; i < m->n_outer; i++) {
        const struct outer *o = &m->outer[i];
        bool bound = o->kind == OUTER_BIND;
        struct step *source = bound ? image_path(&m->image, STEP_SOURCE, o->src, o->origin) : NULL;
        if (bound && source) {
            source->b = i;
            source->flags = STEP_TOOL;
        }
        if (!bound && o->kind != OUTER_TMPFS && o->kind != OUTER_VOLUME)
            continue;
        struct step *s = image_path(&m->image, bound ? STEP_ATTACH : STEP_TMPFS, o->dst, o->origin);
        if (!s || (bound && !source))
            return no_memory(m);
        s->b = bound ? i : 0;
        if (o->kind == OUTER_TMPFS) /* podman gives it to root, so it must be writable by all */
            s->mode = m->facts->container->podman ? 01777 : (uint16_t)o->mode;
        s->flags = STEP_TOOL | (bound && !o->writable ? STEP_RDONLY : 0);
    }
    return 0;
}

/* A new volume belongs to the engine's root. */
static int own_volumes(struct making *m)
{
    for (size_t i = 0; i < m->n_outer; i++) {
        const struct outer *o = &m->outer[i];
        if (o->kind == OUTER_VOLUME && !image_path(&m->image, STEP_OWN, o->dst, o->origin))
            return no_memory(m);
    }
    return 0;
}

int outer_make(struct making *m)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < m->n_places; i++)
        r = mount_place(m, &m->places[i]);
    if (r == 0)
        r = network_files(m);
    if (r == 0)
        r = check_words(m);
    if (r == 0)
        r = mount_steps(m);
    if (r == 0)
        r = own_volumes(m);
    if (r == 0 && m->policy->net == NET_ALLOW)
        r = egress_steps(m);
    return r < 0 ? r : lock_make(m);
}
