/*
 * Looks at, compares and copies single files, directories and links by descriptor. No path is followed twice, and
 * nothing that a box put there is opened before it is known what it is.
 */
#include "layer/object.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "sys/fd.h"

#define COPY_BYTES (128u << 10)
#define MAX_ATTRS  (64u << 10) /* the kernel's own limit of a list and of a value */

#define SECOND 1000000000

/* A file system may keep times that are no 64 bits of nanoseconds: they count as the first or the last that are. */
static int64_t nanoseconds(const struct sys_time *t)
{
    if (t->seconds >= INT64_MAX / SECOND)
        return INT64_MAX;
    if (t->seconds <= INT64_MIN / SECOND)
        return INT64_MIN;
    return t->seconds * SECOND + t->nanoseconds;
}

/* Before 1970 the seconds are negative, and the rest of one is not. */
static struct timespec time_of(int64_t ns)
{
    const int64_t rest = (ns % SECOND + SECOND) % SECOND;
    return (struct timespec){ns / SECOND - (ns % SECOND < 0), rest};
}

int object_look(int dir, const char *name, struct layer_object *ret)
{
    struct sys_stat st;
    const int how = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (*name ? 0 : AT_EMPTY_PATH);
    *ret = (struct layer_object){0};
    int e = sys_stat_at(dir, name, how, SYS_STAT_BASIC, &st);
    if (e == -ENOENT)
        return 0;
    if (e < 0)
        return e;
    *ret = (struct layer_object){.mode = st.mode,
                                 .uid = st.uid,
                                 .gid = st.gid,
                                 .links = st.links,
                                 .device = (uint64_t)st.major << 32 | st.minor,
                                 .ino = st.inode,
                                 .size = st.size,
                                 .room = st.blocks < UINT64_MAX / 512 ? st.blocks * 512 : UINT64_MAX,
                                 .node = (uint64_t)st.device_major << 32 | st.device_minor,
                                 .modified = nanoseconds(&st.modified),
                                 .changed = nanoseconds(&st.changed)};
    return 0;
}

bool object_same_inode(const struct layer_object *a, const struct layer_object *b)
{
    return a->mode && b->mode && a->ino == b->ino && a->device == b->device;
}

bool object_untouched(const struct layer_object *before, const struct layer_object *now)
{
    if (!object_same_inode(before, now) || (before->mode & S_IFMT) != (now->mode & S_IFMT))
        return false;
    return object_is(now, S_IFDIR) ||
           (before->mode == now->mode && before->uid == now->uid && before->gid == now->gid &&
            before->size == now->size && before->modified == now->modified);
}

/* The path by which the kernel names an O_PATH descriptor of ours. */
static const char *kernel_name(int fd, char room[32])
{
    char digits[12];
    size_t n = sizeof digits;
    digits[--n] = 0;
    do {
        digits[--n] = (char)('0' + fd % 10);
        fd /= 10;
    } while (fd);
    memcpy(room, "/proc/self/fd/", 14);
    memcpy(room + 14, digits + n, sizeof digits - n);
    return room;
}

static int open_it(int dir, const char *name, unsigned type, bool whatever_mode)
{
    const int how = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (type == S_IFDIR ? O_DIRECTORY : O_NOCTTY);
    struct layer_object o;
    int fd = sys_openat(dir, name, how, 0);
    if (fd == -EACCES && whatever_mode) {
        own_fd int itself = sys_openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
        char at[32];
        int e = itself < 0 ? itself : object_look(itself, "", &o);
        if (e < 0 || (o.mode & S_IFMT) != type)
            return e < 0 ? e : -ESTALE;
        e = sys_fchmodat(AT_FDCWD, kernel_name(itself, at), (o.mode & 07777) | (type == S_IFDIR ? 0500 : 0400));
        if (e < 0)
            return -EACCES;
        fd = sys_openat(AT_FDCWD, at, how & ~O_NOFOLLOW, 0);
        (void)sys_fchmodat(AT_FDCWD, at, o.mode & 07777);
    }
    int e = fd < 0 ? fd : object_look(fd, "", &o);
    if (fd >= 0 && (e < 0 || (o.mode & S_IFMT) != type)) {
        sys_drop(&fd);
        return e < 0 ? e : -ESTALE;
    }
    return fd;
}

int object_open(int dir, const char *name, unsigned type)
{
    return open_it(dir, name, type, true);
}

int object_open_as_is(int dir, const char *name, unsigned type)
{
    return open_it(dir, name, type, false);
}

/* Where the next byte may be that is not of a hole; INT64_MAX: nowhere. */
static int64_t next_data(int fd, uint64_t at)
{
    const int64_t data = sys_lseek(fd, (int64_t)at, SYS_SEEK_DATA);
    return data == -ENXIO ? INT64_MAX : data < (int64_t)at ? (int64_t)at : data;
}

int object_same_content(int a, int b)
{
    struct layer_object x, y;
    char *room = malloc((size_t)2 * COPY_BYTES);
    int r = room ? 1 : -ENOMEM;
    if (r == 1 && object_look(a, "", &x) == 0 && object_look(b, "", &y) == 0 && x.size != y.size)
        r = 0;
    for (uint64_t at = 0; r == 1;) {
        const int64_t data_a = next_data(a, at), data_b = next_data(b, at); /* in the holes of both they are the same */
        if (data_a == INT64_MAX && data_b == INT64_MAX)
            break;
        at = (uint64_t)(data_a < data_b ? data_a : data_b);
        long n = sys_pread(a, room, COPY_BYTES, at), m = sys_pread(b, room + COPY_BYTES, COPY_BYTES, at);
        if (n < 0 || m < 0)
            r = (int)(n < 0 ? n : m);
        else if (n != m || memcmp(room, room + COPY_BYTES, (size_t)n) != 0)
            r = 0;
        else if (n == 0)
            break;
        else
            at += (uint64_t)n;
    }
    free(room);
    return r;
}

/* ---- attributes ---- */

static bool is_copied(const char *name)
{
    if (str_starts(str_of(name), STR("user.")))
        return !str_starts(str_of(name), STR("user.overlay."));
    return same(name, "system.posix_acl_access") || same(name, "system.posix_acl_default");
}

/* A file system without attributes has none. */
static long list_of(int fd, char *list)
{
    long n = sys_flistxattr(fd, list, MAX_ATTRS);
    return n == -EOPNOTSUPP ? 0 : n;
}

/* Whether all that `a` has `b` has, too; what it lacks is set if `repair`. 1, 0 or -errno. */
static int covers(int a, int b, bool repair, char *room)
{
    char *list = room, *x = room + MAX_ATTRS, *y = x + MAX_ATTRS;
    long n = list_of(a, list);
    for (const char *name = list; n > 0 && name < list + n; name += strlen(name) + 1) {
        if (!is_copied(name))
            continue;
        long k = sys_fgetxattr(a, name, x, MAX_ATTRS), m = sys_fgetxattr(b, name, y, MAX_ATTRS);
        if (k < 0)
            return (int)k;
        if (k == m && memcmp(x, y, (size_t)k) == 0)
            continue;
        if (!repair)
            return 0;
        int e = sys_fsetxattr(b, name, x, (size_t)k, 0);
        if (e < 0)
            return e == -ENOSPC ? -E2BIG
                                : e; /* most file systems hold less of them than others, and say that it is full */
    }
    return n < 0 ? (int)n : 1;
}

/* Whether a list of names, as far as it fits, says that there is nothing to compare: what is copied up has overlayfs's own names. */
static bool has_none(int fd)
{
    char quick[512];
    const long n = sys_flistxattr(fd, quick, sizeof quick);
    for (const char *name = quick; n > 0 && name < quick + n; name += strlen(name) + 1)
        if (is_copied(name))
            return false;
    return n >= 0 || n == -EOPNOTSUPP;
}

int object_same_attributes(int a, int b)
{
    if (has_none(a) && has_none(b)) /* almost no file has any */
        return 1;
    char *room = malloc((size_t)3 * MAX_ATTRS);
    int r = room ? covers(a, b, false, room) : -ENOMEM;
    if (r == 1)
        r = covers(b, a, false, room);
    free(room);
    return r;
}

int object_copy_attributes(int from, int to)
{
    char *room = malloc((size_t)3 * MAX_ATTRS);
    if (!room)
        return -ENOMEM;
    int r = covers(from, to, true, room);
    long n = r < 0 ? 0 : list_of(to, room);
    for (const char *name = room; n > 0 && name < room + n; name += strlen(name) + 1) {
        if (is_copied(name) && sys_fgetxattr(from, name, room + MAX_ATTRS, MAX_ATTRS) == -ENODATA)
            r = sys_fremovexattr(to, name);
        if (r < 0)
            break;
    }
    free(room);
    return r < 0 ? r : 0;
}

/* ---- copies ---- */

/* The bytes from `at` to `end`, or to the end of the file. */
static int copy_range(int from, int to, uint64_t at, uint64_t end, char *room)
{
    while (at < end) {
        long n = sys_pread(from, room, end - at < COPY_BYTES ? end - at : COPY_BYTES, at);
        if (n <= 0)
            return (int)n;
        for (long done = 0; done < n;) {
            long k = sys_pwrite(to, room + done, (size_t)(n - done), at + (uint64_t)done);
            if (k < 0)
                return (int)k;
            done += k;
        }
        at += (uint64_t)n;
    }
    return 0;
}

/* What a file has no room for, its copy has none for either. */
static int copy_bytes(int from, int to, uint64_t size)
{
    if (sys_ioctl(to, SYS_CLONE_FILE, (void *)(intptr_t)from) == 0) // NOLINT(performance-no-int-to-ptr)
        return 0;
    char *room = malloc(COPY_BYTES);
    int e = room ? sys_ftruncate(to, (int64_t)size) : -ENOMEM;
    for (int64_t at = 0; e == 0 && (uint64_t)at < size;) {
        const int64_t data = sys_lseek(from, at, SYS_SEEK_DATA);
        if (data == -ENXIO)
            break;
        const int64_t hole = data < 0 ? data : sys_lseek(from, data, SYS_SEEK_HOLE);
        if (data < 0 && data != -EINVAL && data != -EOPNOTSUPP)
            e = (int)data;
        else /* where nothing is known of holes, all is data */
            e = copy_range(from, to, data < 0 ? 0 : (uint64_t)data, hole < 0 ? size : (uint64_t)hole, room);
        at = hole < 0 ? (int64_t)size : hole;
    }
    free(room);
    return e;
}

/* The owner first, because a change of owner clears setuid. A user who is not root owns all that he makes; a group of
   his is kept. */
static int dress(int dir, const char *name, const struct layer_object *as, const struct layer_object *now)
{
    if (as->uid != now->uid || as->gid != now->gid) {
        int e = sys_fchownat(dir, name, as->uid, as->gid, AT_SYMLINK_NOFOLLOW);
        if (e < 0)
            return e;
    }
    if (!object_is(as, S_IFLNK)) {
        own_fd int fd = sys_openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
        struct layer_object o;
        char at[32];
        int e = fd < 0 ? fd : object_look(fd, "", &o);
        if (e == 0 && (o.mode & S_IFMT) != (as->mode & S_IFMT))
            e = -ESTALE;
        if (e == 0 && (o.mode & 07777) != (as->mode & 07777))
            e = sys_fchmodat(AT_FDCWD, kernel_name(fd, at), as->mode & 07777);
        if (e < 0)
            return e;
    }
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, time_of(as->modified)};
    return sys_utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
}

int object_dress(int dir, const char *name, const struct layer_object *as)
{
    struct layer_object now;
    int e = object_look(dir, name, &now);
    return e < 0 ? e : now.mode ? dress(dir, name, as, &now) : -ENOENT;
}

static int copy_file(int from_dir, const char *from_name, const struct layer_object *expected, int to_dir,
                     const char *to_name)
{
    struct layer_object before, after;
    own_fd int from = object_open(from_dir, from_name, S_IFREG);
    int e = from < 0 ? from : object_look(from, "", &before);
    if (e == 0 && !object_untouched(expected, &before))
        e = -ESTALE;
    if (e < 0)
        return e;
    own_fd int to = sys_openat(to_dir, to_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return to;
    e = copy_bytes(from, to, before.size);
    if (e == 0)
        e = object_copy_attributes(from, to);
    if (e == 0)
        e = object_look(from, "", &after);
    /* A box that lives may write while this copies: neither the old nor the new state. */
    if (e == 0 && (!object_untouched(expected, &after) || after.changed != before.changed))
        e = -ESTALE;
    return e;
}

static int copy_link(int from_dir, const char *from_name, int to_dir, const char *to_name)
{
    char target[PATH_MAX];
    long n = sys_readlinkat(from_dir, from_name, target, sizeof target);
    if (n < 0 || n == (long)sizeof target)
        return n < 0 ? (int)n : -ENAMETOOLONG;
    target[n] = 0;
    return sys_symlinkat(target, to_dir, to_name);
}

static int copy_directory(int from_dir, const char *from_name, int to_dir, const char *to_name)
{
    own_fd int from = object_open(from_dir, from_name, S_IFDIR);
    int e = from < 0 ? from : sys_mkdirat(to_dir, to_name, 0700);
    if (e < 0)
        return e;
    own_fd int to = sys_openat(to_dir, to_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    return to < 0 ? to : object_copy_attributes(from, to);
}

int object_copy(int from_dir, const char *from_name, const struct layer_object *expected, int to_dir,
                const char *to_name)
{
    struct layer_object now;
    int e = object_look(from_dir, from_name, &now);
    if (e == 0 && !object_untouched(expected, &now))
        e = -ESTALE;
    if (e < 0)
        return e;
    if (object_is(&now, S_IFREG))
        e = copy_file(from_dir, from_name, expected, to_dir, to_name);
    else if (object_is(&now, S_IFLNK))
        e = copy_link(from_dir, from_name, to_dir, to_name);
    else if (object_is(&now, S_IFDIR))
        e = copy_directory(from_dir, from_name, to_dir, to_name);
    else if (object_is(&now, S_IFIFO) || object_is(&now, S_IFSOCK))
        e = sys_mknodat(to_dir, to_name, (now.mode & S_IFMT) | 0600, 0);
    else
        return -EPERM;
    if (e == 0)
        e = object_dress(to_dir, to_name, expected);
    if (e < 0 && e != -EEXIST)
        (void)sys_unlinkat(to_dir, to_name, object_is(&now, S_IFDIR) ? AT_REMOVEDIR : 0);
    return e;
}

int object_parent(int top, const char *path, const char **ret_name)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    *ret_name = slash ? slash + 1 : path;
    if (n >= sizeof dir)
        return -ENAMETOOLONG;
    memcpy(dir, path, n);
    dir[n] = 0;
    return sys_openat2(top, n ? dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0,
                       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
}
