/*
 * Names in the new root. Everything is resolved below its uppermost mount: links, absolute ones and "..", stay inside,
 * and links of /proc that would lead to a descriptor are not followed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bwrap/bwrap.h"
#include "sys/fd.h"
#include "sys/mount.h"

enum { IN_ROOT = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

int bw_open(const struct bw_root *r, const char *path, int flags)
{
    int fd;
    do /* -EAGAIN: a rename on the way, which may be retried */
        fd = sys_openat2(r->top, path, (uint64_t)(O_PATH | O_CLOEXEC | flags), 0, IN_ROOT);
    while (fd == -EAGAIN);
    return fd;
}

static unsigned mode_above(int perms)
{
    unsigned mode = 0755;
    if (perms >= 0 && !(perms & 070))
        mode &= ~070u;
    if (perms >= 0 && !(perms & 07))
        mode &= ~07u;
    return mode;
}

/* The directory `path`, made with all above it if it is not there. Recursion ends at "", which is the root. */
static int make_dirs(const struct bw_root *r, const char *path, int perms)
{
    const char *name;
    int fd = bw_open(r, *path ? path : "/", O_DIRECTORY);
    if (fd != -ENOENT)
        return fd;
    own_fd int parent = bw_make_parent(r, path, perms, &name);
    int e = parent < 0 ? parent : sys_mkdirat(parent, name, mode_above(perms));
    return e < 0 && e != -EEXIST ? e : bw_open(r, path, O_DIRECTORY);
}

int bw_make_parent(const struct bw_root *r, const char *path, int perms, const char **ret_name)
{
    size_t n = strlen(path), slash;
    while (n && path[n - 1] == '/') /* mkdir and the like take a name with "/" at its end */
        n--;
    for (slash = n; slash && path[slash - 1] != '/';)
        slash--;
    *ret_name = path + slash;
    while (slash && path[slash - 1] == '/')
        slash--;
    char *parent = strndup(path, slash);
    int fd = parent ? make_dirs(r, parent, perms) : -ENOMEM;
    free(parent);
    return fd;
}

static char *without_slashes(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    char *plain = strndup(path, n);
    if (!plain)
        bw_die_sys(ENOMEM, "Can't create file %s", path);
    return plain;
}

/* Makes an empty file or directory to mount on. */
static int make_target(const struct bw_root *r, const char *path, bool directory, int perms)
{
    const char *name;
    own_fd int parent = bw_make_parent(r, path, perms, &name);
    if (parent < 0)
        return parent;
    int e = directory ? sys_mkdirat(parent, name, 0755) : sys_mknodat(parent, name, S_IFREG | 0444, 0);
    return e < 0 && e != -EEXIST ? e : bw_open(r, path, O_NOFOLLOW);
}

int bw_target(const struct bw_root *r, const char *path, bool directory, int perms)
{
    struct sys_stat st;
    char *plain = without_slashes(path);
    int fd = bw_open(r, plain, O_NOFOLLOW);
    if (fd == -ENOENT)
        fd = make_target(r, plain, directory, perms);
    int e = fd < 0 ? fd : sys_stat_at(fd, "", AT_EMPTY_PATH, SYS_STAT_TYPE, &st);
    if (e < 0)
        bw_die_sys(e, "Can't create file %s", path);
    if (S_ISLNK(st.mode))
        bw_die("Can't mount on symlink destination %s", path);
    if (directory != S_ISDIR(st.mode))
        bw_die("Destination is not a %s %s", directory ? "directory" : "file", path);
    free(plain);
    return fd;
}

/* A mount on the root itself is what all later names are resolved in. */
int bw_attach(struct bw_root *r, int tree, int target)
{
    struct sys_stat at, top;
    int e = sys_stat_at(target, "", AT_EMPTY_PATH, SYS_STAT_BASIC | SYS_STAT_MOUNT, &at);
    if (e == 0)
        e = sys_stat_at(r->top, "", AT_EMPTY_PATH, SYS_STAT_BASIC | SYS_STAT_MOUNT, &top);
    if (e == 0)
        e = sys_move_mount(tree, "", target, "", SYS_MOVE_FROM_EMPTY | SYS_MOVE_TO_EMPTY);
    if (e == 0 && at.mount == top.mount && at.inode == top.inode) {
        sys_shut(r->top);
        r->top = tree;
        r->stacked += r->scratch < 0; /* otherwise the new root is not on "/", but a directory of the scratch tmpfs */
        return 0;
    }
    sys_shut(tree);
    return e;
}
