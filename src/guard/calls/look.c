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
#include <string.h>
#include <sys/inotify.h>
#include "base/fd.h"
#include "guard/inside.h"

#define ATTRIBUTE_MAX (64u << 10) /* XATTR_SIZE_MAX and XATTR_LIST_MAX */

static void look_done(struct guard *g)
{
    object_drop(&g->object);
    place_drop(&g->from);
}

/* Finds and judges g->object, from g->from; the caller drops both if this returns 0. */
static int look_found(struct guard *g, int dir, const char *text, bool follow, bool judged)
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
    char name[NAME_MAX + 2];
    if (!S_ISLNK(o->st.mode))
        return -EINVAL;
    if (!o->proc)
        return sys_readlinkat(o->fd, "", text, PATH_MAX);
    memcpy(name, p->name, p->name_n);
    name[p->name_n] = 0;
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
    const bool same = o->st.inode == st.inode && o->st.major == st.major && o->st.minor == st.minor;
    long n = same ? text_of_found(g, text) : -EACCES;
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

/* Whether the name is still the judged link: attributes of links are read by name. */
static bool look_is_there(const struct guard *g, const char *name)
{
    struct sys_stat st;
    const struct sys_stat *was = &g->object.st;
    return sys_stat_at(place_seen(&g->from), name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) == 0 &&
           st.inode == was->inode && st.major == was->major && st.minor == was->minor && S_ISLNK(st.mode);
}

/* A path to the object, by our working directory /proc/self/fd, for a call that follows or (`link`) does not follow
   links. */
static bool path_of_found(const struct guard *g, char path[NAME_MAX + 16], const char **ret_name)
{
    const struct place *p = &g->from;
    const bool link = S_ISLNK(g->object.st.mode);
    char room[12];
    strcpy(path, decimal(room, link ? place_seen(p) : g->object.fd));
    *ret_name = path + strlen(path) + 1;
    if (!link)
        return false;
    strcat(path, "/");
    const size_t n = strlen(path);
    memcpy(path + n, p->name, p->name_n);
    path[n + p->name_n] = 0;
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

long getxattr_call(struct guard *g, bool follow, uint64_t path, uint64_t name, uint64_t to, uint64_t room)
{
    char text[NAME_MAX + 16];
    const char *last;
    size_t n = room < ATTRIBUTE_MAX ? room : ATTRIBUTE_MAX;
    int no = xattr_name(g, name);
    if (no == 0)
        no = target_string(g, path, g->text[0]);
    if (no >= 0)
        no = look_found(g, AT_FDCWD, g->text[0], follow, !is_access(g->text[1]));
    if (no < 0)
        return no;
    long r;
    if (path_of_found(g, text, &last)) {
        r = sys_lgetxattr(text, g->text[1], g->bytes, n);
        r = look_is_there(g, last) ? r : -ENOENT;
    } else {
        r = sys_getxattr(text, g->text[1], g->bytes, n);
    }
    look_done(g);
    return handed(g, r, to, n);
}

long listxattr_call(struct guard *g, bool follow, uint64_t path, uint64_t to, uint64_t room)
{
    char text[NAME_MAX + 16];
    const char *last;
    size_t n = room < ATTRIBUTE_MAX ? room : ATTRIBUTE_MAX;
    int no = target_string(g, path, g->text[0]);
    if (no >= 0)
        no = look_found(g, AT_FDCWD, g->text[0], follow, true);
    if (no < 0)
        return no;
    long r;
    if (path_of_found(g, text, &last)) {
        r = sys_llistxattr(text, g->bytes, n);
        r = look_is_there(g, last) ? r : -ENOENT;
    } else {
        r = sys_listxattr(text, g->bytes, n);
    }
    look_done(g);
    return handed(g, r, to, n);
}

/* ---- inotify ---- */

long inotify_call(struct guard *g, int fd, uint64_t path, uint32_t mask)
{
    char text[NAME_MAX + 16];
    const char *last;
    auto_fd int own = target_fd(g, fd);
    if (own < 0)
        return own;
    int no = target_string(g, path, g->text[0]);
    if (no >= 0)
        no = look_found(g, AT_FDCWD, g->text[0], !(mask & IN_DONT_FOLLOW), true);
    if (no < 0)
        return no;
    const bool link = path_of_found(g, text, &last);
    no = target_valid(g);
    long r = no < 0 ? no
                    : sys_call(SYS_inotify_add_watch, own, text,
                               link ? mask | IN_DONT_FOLLOW : mask & ~(uint32_t)IN_DONT_FOLLOW, 0, 0, 0);
    look_done(g);
    return r;
}
