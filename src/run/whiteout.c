/*
 * Creates whiteouts in a private layer, so that hidden names never become visible. They are made before the box
 * begins, by descriptor, in what an earlier box may have written.
 */
#include "run/whiteout.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/fd.h"

/* A directory that its owner may not search (a box may have said so) is opened up by descriptor, over no link. */
static int open_layer(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    auto_fd int shut =
        fd < 0 && errno == EACCES ? openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    char itself[32];
    if (shut < 0)
        return fd < 0 ? -errno : fd;
    snprintf(itself, sizeof itself, "/proc/self/fd/%d", shut);
    if (chmod(itself, 0700) < 0 || (fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
        return -errno;
    return fd;
}

/* overlayfs.rst: "user.overlay.opaque" in a layer mounted with userxattr. -ENOTSUP where there are no such marks. */
static int make_opaque(int dir)
{
    char has;
    if (fgetxattr(dir, "user.overlay.opaque", &has, 1) == 1 && has == 'y')
        return 0;
    return fsetxattr(dir, "user.overlay.opaque", "y", 1, 0) < 0 ? -errno : 0;
}

/* A whiteout is a character device 0/0; since Linux 5.8 making one needs no capability. */
static int put_whiteout(int dir, const char *name, bool opaque)
{
    if (mknodat(dir, name, S_IFCHR, 0) < 0 && errno != EEXIST)
        return -errno;
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    bool whiteout = S_ISCHR(st.st_mode) && st.st_rdev == 0;
    if (!S_ISDIR(st.st_mode) && !(whiteout && opaque))
        return 0; /* the whiteout, or something of the box's own in front of the host's name */
    if (whiteout) {
        /* Made under another name and moved: what stands there is at no time a directory that lets anything through. */
        (void)unlinkat(dir, ".pinfold-opaque", AT_REMOVEDIR);
        if (mkdirat(dir, ".pinfold-opaque", 0700) < 0)
            return -errno;
        auto_fd int fd = openat(dir, ".pinfold-opaque", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int no = fd < 0 ? -errno : make_opaque(fd);
        if (no == 0 && (unlinkat(dir, name, 0) < 0 || renameat(dir, ".pinfold-opaque", dir, name) < 0))
            no = -errno;
        if (no == 0)
            return 0;
        (void)unlinkat(dir, ".pinfold-opaque", AT_REMOVEDIR);
        return no == -ENOTSUP ? 0 : no; /* without marks the whiteout stays: nobody can make a directory of it */
    }
    auto_fd int fd = open_layer(dir, name);
    return fd < 0 ? fd : make_opaque(fd);
}

static int below_layer(int layer, const char *rest, bool opaque)
{
    int fd = layer;
    auto_fd int held = -1;
    char name[NAME_MAX + 1];
    for (;;) {
        size_t n = strcspn(rest, "/");
        if (n == 0 || n > NAME_MAX)
            return -EINVAL;
        memcpy(name, rest, n);
        name[n] = 0;
        if (!rest[n])
            return put_whiteout(fd, name, opaque);
        if (mkdirat(fd, name, 0700) < 0 && errno != EEXIST)
            return -errno;
        int next = open_layer(fd, name);
        if (next == -ENOTDIR || next == -ELOOP)
            return 0; /* a file or whiteout stands in front of the host's directory, with all that is below it */
        if (next < 0)
            return next;
        (void)close_fd(held);
        fd = held = next;
        rest += n + 1;
    }
}

int whiteout_make(const char *path, size_t n, bool opaque, struct err *e)
{
    char layer[PATH_MAX];
    if (n >= sizeof layer || path[n] != '/')
        return err_say(e, ERR_BUG, "'%s' is not in a private layer", path);
    memcpy(layer, path, n);
    layer[n] = 0;
    auto_fd int top = open_layer(AT_FDCWD, layer);
    int no = top < 0 ? top : below_layer(top, path + n + 1, opaque);
    if (no == 0)
        return 0;
    int r = err_sys(e, ERR_SYSTEM, -no, "cannot keep a hidden name out of a package cache: '%s'", path);
    return err_hint(e, r,
                    "set XDG_STATE_HOME to a directory on a file system that takes whiteouts and user attributes");
}
