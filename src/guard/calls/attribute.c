/*
 * Calls that change a file's attributes or truncate it, by path or by descriptor. The object is found, judged, and
 * changed through an O_PATH descriptor, or through a duplicate of the caller's own, so that EBADF and the like come
 * from the kernel. Our working directory is /proc/self/fd, so the number of a descriptor is a path to its object for
 * calls that take only paths.
 */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <utime.h>
#include "base/fd.h"
#include "guard/calls/calls.h"

static bool is_met(const struct object *o, const struct wish *w)
{
    const uint32_t any = AS_IT_IS;
    return w && !S_ISLNK(o->st.mode) && (w->mode == any || w->mode == (o->st.mode & 07777)) &&
           (w->uid == any || w->uid == o->st.uid) && (w->gid == any || w->gid == o->st.gid) &&
           o->st.uid == sys_geteuid();
}

/* Programs set values that are already set: a file server (qemu's) sets owner and mode of everything it creates. For a
   guarded object that is a no-op rather than a denial, and a file with names outside is not copied for it. */
static int object_may(struct guard *g, enum denial_action action, const struct wish *wish, enum hardlink_change change)
{
    struct object *o = &g->object;
    const bool met = is_met(o, wish), so = met && object_guarded(g, o);
    int no = verdict_object(g, o, so ? DENIAL_READ : action);
    if (no == 0)
        no = target_valid(g);
    if (no == 0 && !so && hardlink_foreign(g, o))
        no = met ? 1 : hardlink_own(g, &g->from, o, change);
    return no == 0 && so ? 1 : no;
}

static int object_once(struct guard *g, int dir, bool follow, enum denial_action action, const struct wish *wish,
                       enum hardlink_change change, bool alone)
{
    int no = names_lock(g, alone);
    if (no < 0)
        return no;
    no = place_find(g, dir, g->text[0], &g->from);
    if (no == 0) {
        no = object_find(g, &g->from, follow, &g->object);
        if (no == 0) {
            no = object_may(g, action, wish, change);
            if (no)
                object_drop(&g->object);
        }
        place_drop(&g->from);
    }
    if (no && g->names_held)
        names_unlock(g);
    return no;
}

/* Finds and judges the object at a path of the caller, and makes it the box's own; the lock is held if it returns 0.
   DONE, without the lock: nothing to do. */
#define DONE 1
static int object_judged(struct guard *g, int dir, uint64_t path, bool follow, enum denial_action action,
                         const struct wish *wish, enum hardlink_change change)
{
    int no = target_string(g, path, g->text[0]);
    if (no < 0)
        return no;
    no = object_once(g, dir, follow, action, wish, change, false);
    while (no == HARDLINK_AGAIN)
        no = object_once(g, dir, follow, action, wish, change, true);
    hardlink_done(g);
    return no;
}

/*
 * Judges the object behind `own`, a duplicate of the caller's descriptor, and describes it in g->object, whose descriptor is that duplicate. Returns the
 * descriptor to act on: `own`, or one of the copy that now has the name.
 */
static int fd_once(struct guard *g, int own, int mode, enum denial_action action, enum hardlink_change change,
                   bool alone)
{
    int no = names_lock(g, alone);
    if (no < 0)
        return no;
    no = object_behind(g, own, mode, &g->object);
    if (no == 0)
        no = verdict_object(g, &g->object, action);
    if (no == 0)
        no = target_valid(g);
    int fd = own;
    /* A file that the caller has open for writing is its own, however it was opened. */
    if (no == 0 && !g->object.held && hardlink_foreign(g, &g->object)) {
        no = g->object.fd = sys_fcntl(own, F_DUPFD_CLOEXEC, 0);
        if (no >= 0)
            no = hardlink_own(g, NULL, &g->object, change);
        if (no == 0)
            fd = no = own_reopen(g, g->object.fd, (mode & O_PATH) | O_NONBLOCK);
        object_drop(&g->object);
    }
    if (no < 0 && g->names_held)
        names_unlock(g);
    return no == 0 ? fd : no;
}

/* Judges the object behind a descriptor of the caller; the lock is held if one is returned. `by_path`: O_PATH is
   valid, too. */
static int fd_judged(struct guard *g, int fd, enum denial_action action, enum hardlink_change change, bool by_path)
{
    auto_fd int own = target_fd(g, fd);
    if (own < 0)
        return own;
    const int mode = sys_fcntl(own, F_GETFL, 0);
    if (!by_path && mode & O_PATH)
        return -EBADF;
    int no = fd_once(g, own, mode, action, change, false);
    while (no == HARDLINK_AGAIN)
        no = fd_once(g, own, mode, action, change, true);
    hardlink_done(g);
    return no == own ? take_fd(&own) : no;
}

static long object_done(struct guard *g, int no)
{
    names_unlock(g);
    object_drop(&g->object);
    return no;
}

/* RLIMIT_FSIZE is the caller's; ours does not apply. */
static int size_allowed(struct guard *g, int64_t length)
{
    struct rlimit limit;
    if (sys_call(SYS_prlimit64, g->who->tid, RLIMIT_FSIZE, 0, &limit, 0, 0) < 0 || limit.rlim_cur == RLIM_INFINITY ||
        (uint64_t)length <= limit.rlim_cur)
        return 0;
    if (g->who->pidfd >= 0)
        (void)sys_pidfd_kill(g->who->pidfd, SIGXFSZ);
    return -EFBIG;
}

long truncate_call(struct guard *g, uint64_t path, int64_t length)
{
    char room[12];
    if (length < 0)
        return -EINVAL;
    int no = object_judged(g, AT_FDCWD, path, true, DENIAL_WRITE, NULL, length ? HARDLINK_CONTENT : HARDLINK_EMPTY);
    if (no)
        return no == DONE ? 0 : no;
    no = length ? size_allowed(g, length) : 0;
    if (no == 0)
        no = sys_truncate(decimal(room, g->object.fd), length);
    return object_done(g, no);
}

/* ---- one change, by whatever call ---- */

/* By number in our /proc/self/fd, or as an empty path: `fd` may be one that only names. */
static int change_now(struct guard *g, int fd, const struct alteration *c)
{
    char room[12];
    switch (c->what) {
    case CHANGE_MODE:
        return sys_fchmodat(g->self_fd, decimal(room, fd), c->wish.mode);
    case CHANGE_OWNER:
        return sys_fchownat(fd, "", c->wish.uid, c->wish.gid, AT_EMPTY_PATH);
    case CHANGE_TIMES:
        return sys_utimensat(fd, "", c->times, AT_EMPTY_PATH);
    case CHANGE_XATTR:
        return sys_setxattr(decimal(room, fd), g->text[1], g->bytes, c->n, c->flags);
    case CHANGE_NO_XATTR:
        break;
    }
    return sys_removexattr(decimal(room, fd), g->text[1]);
}

/* Whether it may give every user the permission to write: an access list is not read, of whatever kind. */
static bool may_open(struct guard *g, const struct alteration *c)
{
    return c->what == CHANGE_MODE ? (c->wish.mode & S_IWOTH) != 0
                                  : c->what == CHANGE_XATTR && str_starts(str_of(g->text[1]), STR("system."));
}

/* Whether what is made in the directory later gets permissions from this list by which others than its owner and group
   may write; the lists of NFS and SMB are not read. acl(5); the kernel's form is a version, then tag, permissions and id of each entry. */
static bool is_passed_on(const struct guard *g, const struct alteration *c)
{
    enum { VERSION = 2, OWNER = 1, GROUP = 4, MASK = 16, MAY_WRITE = 2 };
    struct {
        uint16_t tag, may;
        uint32_t id;
    } entry;
    uint32_t version;
    if (!str_is(str_of(g->text[1]), "system.posix_acl_default"))
        return !str_is(str_of(g->text[1]), "system.posix_acl_access");
    if (c->n < sizeof version || (c->n - sizeof version) % sizeof entry)
        return true;
    memcpy(&version, g->bytes, sizeof version);
    bool opens = version != VERSION;
    for (size_t at = sizeof version; !opens && at < c->n; at += sizeof entry) {
        memcpy(&entry, g->bytes + at, sizeof entry);
        opens = entry.may & MAY_WRITE && entry.tag != OWNER && entry.tag != GROUP && entry.tag != MASK;
    }
    return opens;
}

static int change_judged(struct guard *g, const struct object *o, const struct alteration *c)
{
    const bool had = c->what == CHANGE_MODE && o->st.mode & S_IWOTH;
    if (!may_open(g, c) || had)
        return 0;
    if (c->what == CHANGE_XATTR && S_ISDIR(o->st.mode) && is_passed_on(g, c))
        return verdict_passed_on(g, o);
    return verdict_opened_to_all(g, o);
}

/* `by_path`: a descriptor with O_PATH is valid, too. */
long change_fd(struct guard *g, int fd, const struct alteration *c, bool by_path)
{
    const int own = fd_judged(g, fd, DENIAL_CHANGE, c->copy, by_path);
    if (own < 0 || own == GONE_ON)
        return own;
    int no = change_judged(g, &g->object, c);
    if (no == 0)
        no = change_now(g, own, c);
    names_unlock(g);
    (void)sys_close(own);
    return no;
}

/* Attributes of a link itself: "user." is not permitted there, others need capabilities that nobody has. */
static int link_refuses(const struct alteration *c)
{
    return c->what == CHANGE_MODE ? -EOPNOTSUPP : c->what == CHANGE_XATTR || c->what == CHANGE_NO_XATTR ? -EPERM : 0;
}

static long change_path(struct guard *g, int dir, uint64_t path, bool follow, const struct alteration *c)
{
    const bool wishes = c->what == CHANGE_MODE || c->what == CHANGE_OWNER;
    int no = object_judged(g, dir, path, follow, DENIAL_CHANGE, wishes ? &c->wish : NULL, c->copy);
    if (no)
        return no == DONE ? 0 : no;
    no = S_ISLNK(g->object.st.mode) ? link_refuses(c) : change_judged(g, &g->object, c);
    if (no == 0)
        no = change_now(g, g->object.fd, c);
    if (no == -EINVAL && c->what == CHANGE_OWNER) /* the user namespace has no such id */
        deny_built(g, DENIAL_OWNER, object_path(&g->object));
    return object_done(g, no);
}

long change_at(struct guard *g, int dir, uint64_t path, int flags, const struct alteration *c)
{
    if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
        return -EINVAL;
    const int n = flags & AT_EMPTY_PATH ? target_string(g, path, g->text[0]) : 1;
    if (n < 0)
        return n;
    if (n == 0 && dir == AT_FDCWD && c->what == CHANGE_MODE)
        return -EINVAL;
    return n == 0 && dir != AT_FDCWD ? change_fd(g, dir, c, true)
                                     : change_path(g, dir, path, !(flags & AT_SYMLINK_NOFOLLOW), c);
}

/* ---- the calls ---- */

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
    struct timespec t[2];
    const struct alteration c = {CHANGE_TIMES, .times = times ? t : NULL,
                                 .copy = times ? HARDLINK_ATTRIBUTE : HARDLINK_TOUCH};
    int no = times ? times_read(g, times, form, t) : 0;
    if (no < 0)
        return no;
    if (path || flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
        return change_at(g, dir, path, flags, &c);
    return dir == AT_FDCWD ? -EFAULT : flags ? -EINVAL : change_fd(g, dir, &c, false);
}

#define XATTR_NAME  256         /* XATTR_NAME_MAX + 1 */
#define XATTR_VALUE (64u << 10) /* XATTR_SIZE_MAX */

int xattr_name(struct guard *g, uint64_t at)
{
    int n = target_string(g, at, g->text[1]);
    if (n < 0)
        return n == -ENAMETOOLONG ? -ERANGE : n;
    return n == 0 || n >= XATTR_NAME ? -ERANGE : 0;
}

static long change_xattr(struct guard *g, bool follow, int fd, uint64_t path, const struct alteration *c)
{
    return path ? change_path(g, AT_FDCWD, path, follow, c) : change_fd(g, fd, c, false);
}

long setxattr_call(struct guard *g, bool follow, int fd, uint64_t path, uint64_t name, uint64_t value, uint64_t n,
                   int flags)
{
    const struct alteration c = {CHANGE_XATTR, .copy = HARDLINK_ATTRIBUTE, .n = n, .flags = flags};
    if (flags & ~3) /* XATTR_CREATE | XATTR_REPLACE */
        return -EINVAL;
    int no = xattr_name(g, name);
    if (no == 0 && n > XATTR_VALUE)
        no = -E2BIG;
    if (no == 0)
        no = target_bytes(g, value, g->bytes, n);
    return no < 0 ? no : change_xattr(g, follow, fd, path, &c);
}

long removexattr_call(struct guard *g, bool follow, int fd, uint64_t path, uint64_t name)
{
    const struct alteration c = {CHANGE_NO_XATTR, .copy = HARDLINK_ATTRIBUTE};
    const int no = xattr_name(g, name);
    return no < 0 ? no : change_xattr(g, follow, fd, path, &c);
}
