/*
 * Files and names: one thin function per kernel call. Everything returns -errno; paths are NUL-terminated.
 */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include "sys/stat.h"
#include "sys/sys.h"

#ifndef RENAME_NOREPLACE /* linux/fs.h; not in every C library */
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE  (1 << 1)
#define RENAME_WHITEOUT  (1 << 2)
#endif

static inline int sys_close(int fd)
{
    return (int)sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
}
static inline int sys_openat(int dir, const char *path, int flags, unsigned mode)
{
    return (int)sys_call(SYS_openat, dir, path, flags, mode, 0, 0);
}
/* openat2(RESOLVE_NO_SYMLINKS) of an existing object where a seccomp filter answers openat2 with ENOSYS (inside another
   box): opens one component after the other with O_NOFOLLOW. */
static inline int sys_open_by_parts(int dir, const char *path, int flags)
{
    char name[257] = "/", *to = name + (*path == '/'); /* the first component of an absolute path has its slash */
    int at = *path == '/' ? AT_FDCWD : dir;
    for (int owned = -1;; owned = at, to = name) {
        size_t n = 0;
        while (*path == '/')
            path++;
        for (; path[n] && path[n] != '/'; n++) {
            if (n == 255)
                break;
            to[n] = path[n];
        }
        to[n] = 0;
        const char *rest = path + n;
        while (*rest == '/')
            rest++;
        const int longer = path[n] && path[n] != '/';
        const int how = *rest ? O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC : flags | O_NOFOLLOW;
        int next = longer ? -ENAMETOOLONG : at < 0 && at != AT_FDCWD ? at : sys_openat(at, *name ? name : ".", how, 0);
        if (owned >= 0)
            (void)sys_close(owned);
        if (next == -ENOTDIR && *rest)
            next = -ELOOP; /* a symbolic link, or a file in the middle of the path */
        char
            first; /* of a link's target: O_PATH opens the link itself, which openat2(2) does only if it is asked for O_NOFOLLOW */
        if (next >= 0 && !*rest && (flags & (O_PATH | O_NOFOLLOW)) == O_PATH &&
            sys_call(SYS_readlinkat, next, "", &first, 1, 0, 0) >= 0) {
            (void)sys_close(next);
            next = -ELOOP;
        }
        if (next < 0 || !*rest)
            return next;
        at = next;
        path = rest;
    }
}
/* `resolve`: RESOLVE_*. `mode` must be 0 unless the flags create a file: openat2(2) is strict. */
static inline int sys_openat2(int dir, const char *path, uint64_t flags, unsigned mode, uint64_t resolve)
{
    struct open_how how = {.flags = flags, .mode = mode, .resolve = resolve};
    int r = (int)sys_call(SYS_openat2, dir, path, &how, sizeof how, 0, 0);
    if (r != -ENOSYS || resolve & ~(uint64_t)(RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS) || flags & O_CREAT)
        return r;
    return sys_open_by_parts(dir, path, (int)flags);
}
static inline long sys_read(int fd, void *bytes, size_t n)
{
    return sys_call(SYS_read, fd, bytes, n, 0, 0, 0);
}
static inline long sys_pread(int fd, void *bytes, size_t n, uint64_t at)
{
    return sys_call(SYS_pread64, fd, bytes, n, at, 0, 0);
}
static inline long sys_pwrite(int fd, const void *bytes, size_t n, uint64_t at)
{
    return sys_call(SYS_pwrite64, fd, bytes, n, at, 0, 0);
}
static inline long sys_write(int fd, const void *bytes, size_t n)
{
    return sys_call(SYS_write, fd, bytes, n, 0, 0, 0);
}
/* All of it, however many calls that takes: 0 or -errno. */
static inline int sys_write_all(int fd, const void *bytes, size_t n)
{
    for (const char *p = (const char *)bytes; n;) {
        const long done = sys_write(fd, p, n);
        if (done == -EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? (int)done : -EIO;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}
/* Returns the length of the target, which is not NUL-terminated. */
static inline long sys_readlinkat(int dir, const char *path, char *target, size_t room)
{
    return sys_call(SYS_readlinkat, dir, path, target, room, 0, 0);
}
/* `flags`: AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW; `mask`: SYS_STAT_*. */
static inline int sys_stat_at(int dir, const char *path, int flags, unsigned mask, struct sys_stat *ret)
{
    return (int)sys_call(SYS_statx, dir, path, flags, mask, ret, 0);
}
/* Of the object that `fd` is, possibly O_PATH. */
static inline int sys_stat_fd(int fd, unsigned mask, struct sys_stat *ret)
{
    return sys_stat_at(fd, "", AT_EMPTY_PATH, mask, ret);
}
/* statfs(2): f_type of file systems that count as layers of an overlay themselves. */
enum { SYS_OVERLAYFS = 0x794c7630, SYS_ECRYPTFS = 0xf15f };
/* Those in which a name has other spellings, at least in capitals. */
#define SYS_FAT   0x4d44u
#define SYS_EXFAT 0x2011bab0u
#define SYS_CIFS  0xff534d42u
#define SYS_SMB   0xfe534d42u
static inline int sys_fstatfs(int fd, struct statfs *ret)
{
    return (int)sys_call(SYS_fstatfs, fd, ret, 0, 0, 0, 0);
}
/* Whether names have a second, short form in this directory: "GIT~1". */
static inline bool sys_has_short_names(int dir)
{
    struct statfs fs = {0};
    const unsigned long is = sys_fstatfs(dir, &fs) < 0 ? 0 : (unsigned long)fs.f_type & 0xffffffffu;
    return is == SYS_FAT || is == SYS_CIFS || is == SYS_SMB;
}
static inline int sys_mkdirat(int dir, const char *path, unsigned mode)
{
    return (int)sys_call(SYS_mkdirat, dir, path, mode, 0, 0, 0);
}
static inline int sys_mknodat(int dir, const char *path, unsigned mode, uint64_t device)
{
    return (int)sys_call(SYS_mknodat, dir, path, mode, device, 0, 0);
}
static inline int sys_symlinkat(const char *target, int dir, const char *path)
{
    return (int)sys_call(SYS_symlinkat, target, dir, path, 0, 0, 0);
}
static inline int sys_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    return (int)sys_call(SYS_linkat, from_dir, from, to_dir, to, flags, 0);
}
static inline int sys_unlinkat(int dir, const char *path, int flags)
{
    return (int)sys_call(SYS_unlinkat, dir, path, flags, 0, 0, 0);
}
static inline int sys_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    return (int)sys_call(SYS_renameat2, from_dir, from, to_dir, to, flags, 0);
}
/* Gives an object a name that is free: -EEXIST if it is not (rename.c). */
int sys_rename_new(int from_dir, const char *from, int to_dir, const char *to);
static inline int sys_truncate(const char *path, int64_t length)
{
    return (int)sys_call(SYS_truncate, path, length, 0, 0, 0, 0);
}
static inline int sys_ftruncate(int fd, int64_t length)
{
    return (int)sys_call(SYS_ftruncate, fd, length, 0, 0, 0, 0);
}
static inline int sys_fchmod(int fd, unsigned mode)
{
    return (int)sys_call(SYS_fchmod, fd, mode, 0, 0, 0, 0);
}
static inline int sys_fchmodat(int dir, const char *path, unsigned mode)
{
    return (int)sys_call(SYS_fchmodat, dir, path, mode, 0, 0, 0);
}
static inline int sys_fchown(int fd, unsigned uid, unsigned gid)
{
    return (int)sys_call(SYS_fchown, fd, uid, gid, 0, 0, 0);
}
static inline int sys_fchownat(int dir, const char *path, unsigned uid, unsigned gid, int flags)
{
    return (int)sys_call(SYS_fchownat, dir, path, uid, gid, flags, 0);
}
/* `path` NULL: the descriptor itself; `times` NULL: now. */
static inline int sys_utimensat(int dir, const char *path, const struct timespec times[2], int flags)
{
    return (int)sys_call(SYS_utimensat, dir, path, times, flags, 0, 0);
}
static inline int sys_setxattr(const char *path, const char *name, const void *value, size_t n, int flags)
{
    return (int)sys_call(SYS_setxattr, path, name, value, n, flags, 0);
}
static inline int sys_fsetxattr(int fd, const char *name, const void *value, size_t n, int flags)
{
    return (int)sys_call(SYS_fsetxattr, fd, name, value, n, flags, 0);
}
/* Returns the length of the value, or with `n` 0 the room that it needs. A list consists of NUL-terminated names. */
static inline long sys_getxattr(const char *path, const char *name, void *value, size_t n)
{
    return sys_call(SYS_getxattr, path, name, value, n, 0, 0);
}
static inline long sys_lgetxattr(const char *path, const char *name, void *value, size_t n)
{
    return sys_call(SYS_lgetxattr, path, name, value, n, 0, 0);
}
static inline long sys_listxattr(const char *path, char *list, size_t n)
{
    return sys_call(SYS_listxattr, path, list, n, 0, 0, 0);
}
static inline long sys_llistxattr(const char *path, char *list, size_t n)
{
    return sys_call(SYS_llistxattr, path, list, n, 0, 0, 0);
}
static inline long sys_fgetxattr(int fd, const char *name, void *value, size_t n)
{
    return sys_call(SYS_fgetxattr, fd, name, value, n, 0, 0);
}
static inline long sys_flistxattr(int fd, char *list, size_t n)
{
    return sys_call(SYS_flistxattr, fd, list, n, 0, 0, 0);
}
static inline int sys_fsync(int fd)
{
    return (int)sys_call(SYS_fsync, fd, 0, 0, 0, 0, 0);
}
/* Writes all of the file system on which `fd` lies to its disk. */
static inline int sys_syncfs(int fd)
{
    return (int)sys_call(SYS_syncfs, fd, 0, 0, 0, 0, 0);
}
static inline int sys_flock(int fd, int how)
{
    return (int)sys_call(SYS_flock, fd, how, 0, 0, 0, 0);
}
static inline int sys_removexattr(const char *path, const char *name)
{
    return (int)sys_call(SYS_removexattr, path, name, 0, 0, 0, 0);
}
static inline int sys_fremovexattr(int fd, const char *name)
{
    return (int)sys_call(SYS_fremovexattr, fd, name, 0, 0, 0, 0);
}
static inline int sys_fcntl(int fd, int command, long value)
{
    return (int)sys_call(SYS_fcntl, fd, command, value, 0, 0, 0);
}
/* inotify(7): a descriptor; and what is told of `path` by it. -errno. */
static inline int sys_inotify(int flags)
{
    return (int)sys_call(SYS_inotify_init1, flags, 0, 0, 0, 0, 0);
}
static inline int sys_inotify_add(int fd, const char *path, uint32_t mask)
{
    return (int)sys_call(SYS_inotify_add_watch, fd, path, mask, 0, 0, 0);
}
/* Bytes of directory records (struct linux_dirent64) put into `records`, 0 at the end. */
static inline long sys_getdents64(int fd, void *records, size_t room)
{
    return sys_call(SYS_getdents64, fd, records, room, 0, 0, 0);
}
/* Returns the mask before. */
static inline int sys_umask(unsigned mask)
{
    return (int)sys_call(SYS_umask, mask, 0, 0, 0, 0, 0);
}
