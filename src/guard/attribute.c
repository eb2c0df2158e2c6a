/*
 * Calls that change what a file is but not what it holds, and truncate: by path or by a descriptor of the caller's. The
 * object is found, judged, and changed through an O_PATH descriptor, or through a duplicate of the caller's own, so that
 * EBADF and the like are the kernel's. Our working directory is our own /proc/self/fd: the number of a descriptor is a
 * path to its object, for calls that know only paths.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <utime.h>
#include "base/fd.h"
#include "guard/inside.h"

struct wish { /* -1: as it is */
    uint32_t mode, uid, gid;
};

/*
 * Programs set again what is so already: a file server (qemu's) sets owner and mode of all that it makes. On what is guarded
 * that is neither done nor denied.
 */
static bool is_so(struct guard *g, const struct object *o, const struct wish *w)
{
    const uint32_t any = (uint32_t)-1;
    return w && !S_ISLNK(o->st.mode) && o->st.uid == (uint32_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0) &&
           (w->mode == any || w->mode == (o->st.mode & 07777)) && (w->uid == any || w->uid == o->st.uid) &&
           (w->gid == any || w->gid == o->st.gid) && object_guarded(g, o);
}

/*
 * The object a path of the caller names, judged; the lock is held when 0 is returned. 1, and no lock: there is nothing to
 * be done.
 */
static int object_judged(struct guard *g, int dir, uint64_t path, bool follow, enum denial_action action,
                         const struct wish *wish)
{
    int no = target_string(g, path, g->text[0]);
    if (no < 0)
        return no;
    no = names_lock(g, false);
    if (no < 0)
        return no;
    no = place_find(g, dir, g->text[0], &g->from);
    if (no == 0) {
        no = object_find(g, &g->from, follow, &g->object);
        place_drop(&g->from);
    }
    if (no == 0) {
        const bool so = is_so(g, &g->object, wish);
        no = verdict_object(g, &g->object, so ? DENIAL_READ : action);
        if (no == 0)
            no = target_valid(g);
        if (no == 0 && so)
            no = 1;
        if (no)
            object_drop(&g->object);
    }
    if (no)
        names_unlock(g);
    return no;
}

/* A duplicate of the caller's descriptor, judged by the object behind it; the lock is held when it is returned. */
static int fd_judged(struct guard *g, int fd, enum denial_action action)
{
    auto_fd int own = target_fd(g, fd);
    if (own < 0)
        return own;
    int no = names_lock(g, false);
    if (no < 0)
        return no;
    no = object_of_fd(g, own, &g->object);
    if (no == 0) {
        no = verdict_object(g, &g->object, action);
        object_drop(&g->object);
    }
    if (no == 0)
        no = target_valid(g);
    if (no < 0) {
        names_unlock(g);
        return no;
    }
    return take_fd(&own);
}

static long object_done(struct guard *g, int no)
{
    names_unlock(g);
    object_drop(&g->object);
    return no;
}

static long fd_done(struct guard *g, int fd, int no)
{
    names_unlock(g);
    (void)sys_close(fd);
    return no;
}

/* RLIMIT_FSIZE is the caller's; ours is not in the way. */
static int size_allowed(struct guard *g, int64_t length)
{
    struct rlimit limit;
    if (sys_call(SYS_prlimit64, g->who->tid, RLIMIT_FSIZE, 0, &limit, 0, 0) < 0 || limit.rlim_cur == RLIM_INFINITY ||
        (uint64_t)length <= limit.rlim_cur)
        return 0;
    if (g->who->pidfd >= 0)
        (void)sys_pidfd_signal(g->who->pidfd, SIGXFSZ);
    return -EFBIG;
}

long truncate_call(struct guard *g, uint64_t path, int64_t length)
{
    char room[12];
    if (length < 0)
        return -EINVAL;
    int no = object_judged(g, AT_FDCWD, path, true, DENIAL_WRITE, NULL);
    if (no < 0)
        return no;
    no = length ? size_allowed(g, length) : 0;
    if (no == 0)
        no = sys_truncate(decimal(room, g->object.fd), length);
    return object_done(g, no);
}

long chmod_call(struct guard *g, int dir, uint64_t path, unsigned mode, int flags)
{
    char room[12];
    if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
        return -EINVAL;
    if (flags & AT_EMPTY_PATH) {
        int no = target_string(g, path, g->text[0]);
        if (no < 0)
            return no;
        if (no == 0) {
            int fd = dir == AT_FDCWD ? -EINVAL : target_fd(g, dir);
            if (fd < 0)
                return fd;
            no = names_lock(g, false);
            if (no < 0) {
                (void)sys_close(fd);
                return no;
            }
            no = object_of_fd(g, fd, &g->object);
            (void)sys_close(fd);
            if (no == 0)
                no = verdict_object(g, &g->object, DENIAL_CHANGE);
            if (no == 0)
                no = sys_fchmodat(g->self_fd, decimal(room, g->object.fd), mode);
            return object_done(g, no);
        }
    }
    const struct wish wish = {mode & 07777, (uint32_t)-1, (uint32_t)-1};
    int no = object_judged(g, dir, path, !(flags & AT_SYMLINK_NOFOLLOW), DENIAL_CHANGE, &wish);
    if (no)
        return no < 0 ? no : 0;
    no = S_ISLNK(g->object.st.mode) ? -EOPNOTSUPP : sys_fchmodat(g->self_fd, decimal(room, g->object.fd), mode);
    return object_done(g, no);
}

long fchmod_call(struct guard *g, int fd, unsigned mode)
{
    int own = fd_judged(g, fd, DENIAL_CHANGE);
    return own < 0 ? own : fd_done(g, own, sys_fchmod(own, mode));
}

long chown_call(struct guard *g, int dir, uint64_t path, unsigned uid, unsigned gid, int flags)
{
    if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
        return -EINVAL;
    if (flags & AT_EMPTY_PATH) {
        int no = target_string(g, path, g->text[0]);
        if (no < 0)
            return no;
        if (no == 0 && dir != AT_FDCWD) {
            int own = fd_judged(g, dir, DENIAL_CHANGE);
            return own < 0 ? own : fd_done(g, own, sys_fchownat(own, "", uid, gid, AT_EMPTY_PATH));
        }
    }
    const struct wish wish = {(uint32_t)-1, uid, gid};
    int no = object_judged(g, dir, path, !(flags & AT_SYMLINK_NOFOLLOW), DENIAL_CHANGE, &wish);
    if (no)
        return no < 0 ? no : 0;
    return object_done(g, sys_fchownat(g->object.fd, "", uid, gid, AT_EMPTY_PATH));
}

long fchown_call(struct guard *g, int fd, unsigned uid, unsigned gid)
{
    int own = fd_judged(g, fd, DENIAL_CHANGE);
    return own < 0 ? own : fd_done(g, own, sys_fchown(own, uid, gid));
}

static int times_read(struct guard *g, uint64_t at, enum times form, struct timespec ret[2])
{
    if (form == TIMES_SPEC)
        return target_bytes(g, at, ret, 2 * sizeof *ret);
    if (form == TIMES_VAL) {
        struct timeval v[2];
        if (target_bytes(g, at, v, sizeof v) < 0)
            return -EFAULT;
        for (int i = 0; i < 2; i++) {
            if (v[i].tv_usec < 0 || v[i].tv_usec >= 1000000)
                return -EINVAL;
            ret[i] = (struct timespec){v[i].tv_sec, v[i].tv_usec * 1000};
        }
        return 0;
    }
    struct utimbuf u;
    if (target_bytes(g, at, &u, sizeof u) < 0)
        return -EFAULT;
    ret[0] = (struct timespec){u.actime, 0};
    ret[1] = (struct timespec){u.modtime, 0};
    return 0;
}

long times_call(struct guard *g, int dir, uint64_t path, uint64_t times, enum times form, int flags)
{
    struct timespec t[2], *given = times ? t : NULL;
    int no = times ? times_read(g, times, form, t) : 0;
    if (no < 0)
        return no;
    if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
        return -EINVAL;
    bool by_fd = path == 0;
    if (by_fd && dir == AT_FDCWD)
        return -EFAULT;
    if (by_fd && flags)
        return -EINVAL;
    if (!by_fd && (flags & AT_EMPTY_PATH)) {
        no = target_string(g, path, g->text[0]);
        if (no < 0)
            return no;
        by_fd = no == 0 && dir != AT_FDCWD;
        flags &= by_fd ? AT_EMPTY_PATH : ~0;
    }
    if (by_fd) {
        int own = fd_judged(g, dir, DENIAL_CHANGE);
        if (own < 0)
            return own;
        return fd_done(g, own, sys_utimensat(own, path ? "" : NULL, given, flags));
    }
    no = object_judged(g, dir, path, !(flags & AT_SYMLINK_NOFOLLOW), DENIAL_CHANGE, NULL);
    if (no < 0)
        return no;
    return object_done(g, sys_utimensat(g->object.fd, "", given, AT_EMPTY_PATH));
}

#define XATTR_NAME  256         /* XATTR_NAME_MAX + 1 */
#define XATTR_VALUE (64u << 10) /* XATTR_SIZE_MAX */

static int xattr_name(struct guard *g, uint64_t at)
{
    int n = target_string(g, at, g->text[1]);
    if (n < 0)
        return n == -ENAMETOOLONG ? -ERANGE : n;
    return n == 0 || n >= XATTR_NAME ? -ERANGE : 0;
}

/* Attributes of a link itself: "user." is not allowed there, the others need capabilities nobody has. */
static bool link_itself(const struct guard *g)
{
    return S_ISLNK(g->object.st.mode);
}

long setxattr_call(struct guard *g, bool follow, int fd, uint64_t path, uint64_t name, uint64_t value, uint64_t n,
                   int flags)
{
    char room[12];
    if (flags & ~3) /* XATTR_CREATE | XATTR_REPLACE */
        return -EINVAL;
    int no = xattr_name(g, name);
    if (no == 0 && n > XATTR_VALUE)
        no = -E2BIG;
    if (no == 0)
        no = target_bytes(g, value, g->bytes, n);
    if (no < 0)
        return no;
    if (!path) {
        int own = fd_judged(g, fd, DENIAL_CHANGE);
        return own < 0 ? own : fd_done(g, own, sys_fsetxattr(own, g->text[1], g->bytes, n, flags));
    }
    no = object_judged(g, AT_FDCWD, path, follow, DENIAL_CHANGE, NULL);
    if (no < 0)
        return no;
    no = link_itself(g) ? -EPERM : sys_setxattr(decimal(room, g->object.fd), g->text[1], g->bytes, n, flags);
    return object_done(g, no);
}

long removexattr_call(struct guard *g, bool follow, int fd, uint64_t path, uint64_t name)
{
    char room[12];
    int no = xattr_name(g, name);
    if (no < 0)
        return no;
    if (!path) {
        int own = fd_judged(g, fd, DENIAL_CHANGE);
        return own < 0 ? own : fd_done(g, own, sys_fremovexattr(own, g->text[1]));
    }
    no = object_judged(g, AT_FDCWD, path, follow, DENIAL_CHANGE, NULL);
    if (no < 0)
        return no;
    no = link_itself(g) ? -EPERM : sys_removexattr(decimal(room, g->object.fd), g->text[1]);
    return object_done(g, no);
}
