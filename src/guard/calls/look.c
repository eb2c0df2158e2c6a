/*
 * Calls that read by name without opening: the target of a link, extended attributes, and (inotify) names of what
 * happens in a directory. They are notified only where reads are judged, and are judged like an open. The judged object
 * is held by descriptor and read through that, or through its name in a held directory where the kernel offers no other
 * way (attributes of a link itself).
 *
 * Access lists, labels and capabilities are like the mode, which stat(2) shows: they are read without a verdict, so
 * that `ls -l` of a directory with a hidden name prints no error.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include "base/fd.h"
#include "guard/calls/calls.h"

#define ATTRIBUTE_MAX (64u << 10) /* XATTR_SIZE_MAX and XATTR_LIST_MAX */

static void look_done(struct guard *g)
{
    object_drop(&g->object);
    place_drop(&g->from);
}

int look_found(struct guard *g, int dir, const char *text, bool follow, bool judged)
{
    int no = names_lock(g, false);
    if (no < 0)
        return no;
    no = place_find(g, dir, text, &g->from);
    if (no == 0) {
        no = object_find(g, &g->from, follow, &g->object);
        if (no < 0)
            g->object.fd = -1;
        if (no == 0 && judged)
            no = verdict_object(g, &g->object, DENIAL_READ);
        if (no < 0)
            look_done(g);
    }
    names_unlock(g);
    return no;
}

/* ---- targets of links ---- */

static long text_of_found(struct guard *g, char text[PATH_MAX])
{
    struct place *p = &g->from;
    const struct object *o = &g->object;
    const char *name = place_bare(p);
    if (!S_ISLNK(o->st.mode))
        return -EINVAL;
    if (!o->proc)
        return sys_readlinkat(o->fd, "", text, PATH_MAX);
    long n = proc_link(g, place_seen(p), name, o->fd, text, PATH_MAX);
    return n ? n : magic_read(g, place_seen(p), name, text);
}

static long text_at_path(struct guard *g, int dir, const char *path, char text[PATH_MAX])
{
    int no = look_found(g, dir, path, false, true);
    if (no == -EACCES && place_find(g, dir, path, &g->from) == 0) {
        long n = descriptor_read(g, &g->from, text);
        place_drop(&g->from);
        return n;
    }
    if (no < 0)
        return no;
    long n = text_of_found(g, text);
    look_done(g);
    return n;
}

/* The text of a link in /proc depends on the reader. So it is read by its own path again, which shows whose it is; or,
   if the caller may have mounts of its own, by a process with only the caller's capabilities. */
static long text_of_proc(struct guard *g, int own, char text[PATH_MAX])
{
    struct object *o = &g->object;
    const struct sys_stat st = o->st;
    char path[PLACE_PATH];
    size_t length = 0;
    if (path_of(g, own, path, &length) < 0 || !length)
        return -EACCES;
    path[length] = 0;
    if (g->nested) {
        long n = proc_self(g, &st, strrchr(path, '/') + 1, text, PATH_MAX);
        return n ? n : link_apart(g, own, "", text);
    }
    int no = look_found(g, AT_FDCWD, path, false, true);
    if (no < 0)
        return no;
    long n = sys_same(&o->st, &st) ? text_of_found(g, text) : -EACCES;
    look_done(g);
    return n;
}

/* Of a link opened with O_PATH | O_NOFOLLOW. */
static long text_at_fd(struct guard *g, int fd, char text[PATH_MAX])
{
    struct object *o = &g->object;
    auto_fd int own = target_fd(g, fd);
    if (own < 0)
        return own;
    int no = names_lock(g, false);
    if (no < 0)
        return no;
    no = object_of_fd(g, own, o);
    if (no == 0) {
        no = S_ISLNK(o->st.mode) ? verdict_object(g, o, DENIAL_READ) : -ENOENT;
        object_drop(o);
    }
    names_unlock(g);
    if (no < 0)
        return no;
    return o->proc ? text_of_proc(g, own, text) : sys_readlinkat(own, "", text, PATH_MAX);
}

int link_text(struct guard *g, int dir, uint64_t path, char text[PATH_MAX])
{
    long n = target_string(g, path, g->text[0]);
    if (n > 0)
        n = text_at_path(g, dir, g->text[0], text);
    else if (n == 0)
        n = dir == AT_FDCWD ? -ENOENT : text_at_fd(g, dir, text);
    return (int)n;
}

long readlink_call(struct guard *g, int dir, uint64_t path, uint64_t to, int room)
{
    if (room <= 0)
        return -EINVAL;
    int n = link_text(g, dir, path, g->text[1]);
    if (n > room)
        n = room;
    int no = n < 0 ? n : target_write(g, to, g->text[1], (size_t)n);
    return no < 0 ? no : n;
}

/* ---- extended attributes ---- */

/* A path to the object, by our working directory /proc/self/fd, for a call that follows links, or (true: it is one) does not. */
static bool path_of_found(const struct guard *g, char path[NAME_MAX + 16])
{
    const struct place *p = &g->from;
    char room[12];
    if (!S_ISLNK(g->object.st.mode)) {
        strcpy(path, decimal(room, g->object.fd));
        return false;
    }
    (void)snprintf(path, NAME_MAX + 16, "%s/%s", decimal(room, place_seen(p)), place_bare(p));
    return true;
}

/* Writes the result to the caller; `n`: its length, or -errno. */
static long handed(struct guard *g, long n, uint64_t to, size_t room)
{
    if (n == -ERANGE && room >= ATTRIBUTE_MAX)
        return -E2BIG;
    int no = n > 0 && room ? target_write(g, to, g->bytes, (size_t)n) : 0;
    return no < 0 ? no : n;
}

static bool is_access(const char *name)
{
    static const char *const names[] = {"system.posix_acl_access", "system.posix_acl_default", "security.selinux",
                                        "security.capability"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

/* The value of the attribute in text[1], or (`list`) the names of all. */
static long attribute_read(struct guard *g, bool list, bool follow, uint64_t path, uint64_t to, uint64_t room)
{
    char text[NAME_MAX + 16];
    const size_t n = room < ATTRIBUTE_MAX ? room : ATTRIBUTE_MAX;
    int no = target_string(g, path, g->text[0]);
    if (no >= 0)
        no = look_found(g, AT_FDCWD, g->text[0], follow, list || !is_access(g->text[1]));
    if (no < 0)
        return no;
    long r;
    if (path_of_found(g, text)) {
        r = list ? sys_llistxattr(text, g->bytes, n) : sys_lgetxattr(text, g->text[1], g->bytes, n);
        /* By name, which must still be that of the judged link. */
        if (!sys_is_at(place_seen(&g->from), place_bare(&g->from), &g->object.st))
            r = -ENOENT;
    } else {
        r = list ? sys_listxattr(text, g->bytes, n) : sys_getxattr(text, g->text[1], g->bytes, n);
    }
    look_done(g);
    return handed(g, r, to, n);
}

long getxattr_call(struct guard *g, bool follow, uint64_t path, uint64_t name, uint64_t to, uint64_t room)
{
    const int no = xattr_name(g, name);
    return no < 0 ? no : attribute_read(g, false, follow, path, to, room);
}

long listxattr_call(struct guard *g, bool follow, uint64_t path, uint64_t to, uint64_t room)
{
    return attribute_read(g, true, follow, path, to, room);
}

/* ---- inotify ---- */

long inotify_call(struct guard *g, int fd, uint64_t path, uint32_t mask)
{
    char text[NAME_MAX + 16];
    auto_fd int own = target_fd(g, fd);
    if (own < 0)
        return own;
    int no = target_string(g, path, g->text[0]);
    if (no >= 0)
        no = look_found(g, AT_FDCWD, g->text[0], !(mask & IN_DONT_FOLLOW), true);
    if (no < 0)
        return no;
    const bool link = path_of_found(g, text);
    no = target_valid(g);
    long r = no < 0 ? no
                    : sys_call(SYS_inotify_add_watch, own, text,
                               link ? mask | IN_DONT_FOLLOW : mask & ~(uint32_t)IN_DONT_FOLLOW, 0, 0, 0);
    look_done(g);
    return r;
}
