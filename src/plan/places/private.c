/*
 * What every box in namespaces has of its own: /tmp, /var/tmp, /run, /dev, /proc, and the few names in them that
 * programs look for. A rule for exactly such a path replaces it.
 */
#include "plan/make.h"

static int add_tree(struct making *m, enum place_kind kind, const char *asked, uint16_t mode, bool needed)
{
    const struct path_fact *f = fact_of(m, asked);
    if (!f)
        return -EINVAL;
    if (f->type != PATH_DIR && !(needed && f->type == PATH_MISSING))
        return 0;
    struct plan_place *p = place_add(m, kind, f->real, 0);
    if (!p)
        return no_memory(m);
    p->parent = f->parent;
    p->dst_type = (uint8_t)f->type;
    p->mode = mode;
    p->why = "every box";
    return 0;
}

static struct plan_place *add_name(struct making *m, enum place_kind kind, const char *dst, uint16_t mode)
{
    struct plan_place *p = place_add(m, kind, dst, 0);
    if (p) {
        p->mode = mode;
        p->why = "every box";
    }
    return p;
}

/*
 * Many systems have the resolver's configuration in /run and a link to it in /etc. With the host's network the box gets
 * that file as it is now. With another network the host's servers do not apply; an empty file makes the resolver fail
 * quickly (it then tries localhost, where nothing listens).
 */
static int add_resolver(struct making *m)
{
    const struct path_fact *f = fact_of(m, "/etc/resolv.conf");
    if (!f)
        return -EINVAL;
    if (f->type != PATH_FILE || !path_below(f->real, "/run"))
        return 0;
    bool host = m->policy->net == NET_HOST;
    struct plan_place *p = add_name(m, host ? PLACE_RO : PLACE_FILE, f->real, 0644);
    if (!p)
        return no_memory(m);
    p->src = host ? f->real : NULL;
    p->parent = f->parent;
    p->type = PATH_FILE;
    return 0;
}

/* NixOS reaches the system's programs by links in /run. */
static int add_system_links(struct making *m)
{
    static const char *const links[] = {"/run/current-system", "/run/opengl-driver"};
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        const struct path_fact *f = fact_of(m, links[i]);
        if (!f)
            return -EINVAL;
        if (!f->link || f->type != PATH_DIR || path_at_or_below(f->real, "/run"))
            continue;
        struct plan_place *p = add_name(m, PLACE_LINK, links[i], 0);
        if (!p)
            return no_memory(m);
        p->target = f->real;
    }
    return 0;
}

/*
 * In a container /dev and /proc are the engine's, and the home directory, which no image has, is private, because
 * programs write there. Nothing of it is kept except the caches.
 */
static int collect_of_container(struct making *m)
{
    static const struct {
        enum place_kind kind;
        const char *path;
        uint16_t mode;
    } trees[] = {{PLACE_TMPFS, "/tmp", 01777},
                 {PLACE_TMPFS, "/var/tmp", 01777},
                 {PLACE_TMPFS, "/run", 0755},
                 {PLACE_DEVICES, "/dev", 0755},
                 {PLACE_PROC, "/proc", 0555}};
    for (size_t i = 0; i < sizeof trees / sizeof trees[0]; i++) {
        struct plan_place *p = add_name(m, trees[i].kind, trees[i].path, trees[i].mode);
        if (!p)
            return no_memory(m);
        p->parent = "/";
        p->dst_type = PATH_DIR;
    }
    struct plan_place *home = m->home && m->home[1] ? add_name(m, PLACE_TMPFS, m->home, 0700) : NULL;
    if (!home)
        return m->home && m->home[1] ? no_memory(m) : 0;
    home->parent = path_dir(m->mem, m->home);
    home->dst_type = PATH_DIR;
    return home->parent ? 0 : no_memory(m);
}

int collect_private(struct making *m)
{
    if (m->facts->image)
        return collect_of_container(m);
    int r = add_tree(m, PLACE_TMPFS, "/tmp", 01777, true);
    if (r == 0)
        r = add_tree(m, PLACE_TMPFS, "/var/tmp", 01777, false);
    if (r == 0)
        r = add_tree(m, PLACE_TMPFS, "/run", 0755, false);
    if (r == 0)
        r = add_tree(m, PLACE_TMPFS, "/var/run", 0755, false);
    if (r == 0)
        r = add_tree(m, PLACE_DEVICES, "/dev", 0755, false);
    if (r == 0 && m->facts->can & F(FRESH_PROC))
        r = add_tree(m, PLACE_PROC, "/proc", 0555, false);
    if (r == 0)
        r = add_name(m, PLACE_DIR, "/run/lock", 01777) ? 0 : no_memory(m);
    if (r == 0)
        r = add_resolver(m);
    return r < 0 ? r : add_system_links(m);
}
