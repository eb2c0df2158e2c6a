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
#endif

SYS_CALL(int, sys_close, (int fd), SYS_close, fd)
SYS_CALL(int, sys_openat, (int dir, const char *path, int flags, unsigned mode), SYS_openat, dir, path, flags, mode)
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
SYS_CALL(long, sys_read, (int fd, void *bytes, size_t n), SYS_read, fd, bytes, n)
SYS_CALL(long, sys_pread, (int fd, void *bytes, size_t n, uint64_t at), SYS_pread64, fd, bytes, n, at)
SYS_CALL(long, sys_pwrite, (int fd, const void *bytes, size_t n, uint64_t at), SYS_pwrite64, fd, bytes, n, at)
SYS_CALL(long, sys_write, (int fd, const void *bytes, size_t n), SYS_write, fd, bytes, n)
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
/* Reads until the end, or until `most` bytes are there, with as many calls as needed: how many, or -errno. */
static inline long sys_read_all(int fd, char *to, size_t most)
{
    size_t n = 0;
    for (long got = 1; got != 0 && n < most;) {
        got = sys_read(fd, to + n, most - n);
        if (got < 0 && got != -EINTR)
            return got;
        n += got > 0 ? (size_t)got : 0;
    }
    return (long)n;
}
/* Returns the length of the target, which is not NUL-terminated. */
SYS_CALL(long, sys_readlinkat, (int dir, const char *path, char *target, size_t room), SYS_readlinkat, dir, path,
         target, room)
/* `flags`: AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW; `mask`: SYS_STAT_*. */
SYS_CALL(int, sys_stat_at, (int dir, const char *path, int flags, unsigned mask, struct sys_stat *ret), SYS_statx, dir,
         path, flags, mask, ret)
/* Of the object that `fd` is, possibly O_PATH. */
static inline int sys_stat_fd(int fd, unsigned mask, struct sys_stat *ret)
{
    return sys_stat_at(fd, "", AT_EMPTY_PATH, mask, ret);
}
/* Whether `name` in `dir`, a link itself, is that object: nobody has put another in its place. */
static inline bool sys_is_at(int dir, const char *name, const struct sys_stat *is)
{
    struct sys_stat st;
    return sys_stat_at(dir, name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) == 0 && sys_same(&st, is) &&
           (st.mode & S_IFMT) == (is->mode & S_IFMT);
}
/* statfs(2): f_type of file systems that count as layers of an overlay themselves. */
enum { SYS_OVERLAYFS = 0x794c7630, SYS_ECRYPTFS = 0xf15f };
/* Those in which a name has other spellings, at least in capitals. */
#define SYS_FAT   0x4d44u
#define SYS_EXFAT 0x2011bab0u
#define SYS_CIFS  0xff534d42u
#define SYS_SMB   0xfe534d42u
SYS_CALL(int, sys_fstatfs, (int fd, struct statfs *ret), SYS_fstatfs, fd, ret)
/* Whether names have a second, short form in this directory: "GIT~1". */
static inline bool sys_has_short_names(int dir)
{
    struct statfs fs = {0};
    const unsigned long is = sys_fstatfs(dir, &fs) < 0 ? 0 : (unsigned long)fs.f_type & 0xffffffffu;
    return is == SYS_FAT || is == SYS_CIFS || is == SYS_SMB;
}
SYS_CALL(int, sys_mkdirat, (int dir, const char *path, unsigned mode), SYS_mkdirat, dir, path, mode)
SYS_CALL(int, sys_mknodat, (int dir, const char *path, unsigned mode, uint64_t device), SYS_mknodat, dir, path, mode,
         device)
SYS_CALL(int, sys_symlinkat, (const char *target, int dir, const char *path), SYS_symlinkat, target, dir, path)
SYS_CALL(int, sys_linkat, (int from_dir, const char *from, int to_dir, const char *to, int flags), SYS_linkat, from_dir,
         from, to_dir, to, flags)
SYS_CALL(int, sys_unlinkat, (int dir, const char *path, int flags), SYS_unlinkat, dir, path, flags)
SYS_CALL(int, sys_renameat2, (int from_dir, const char *from, int to_dir, const char *to, unsigned flags),
         SYS_renameat2, from_dir, from, to_dir, to, flags)
/* Gives an object a name that is free: -EEXIST if it is not (rename.c). */
int sys_rename_new(int from_dir, const char *from, int to_dir, const char *to);
SYS_CALL(int, sys_truncate, (const char *path, int64_t length), SYS_truncate, path, length)
SYS_CALL(int, sys_ftruncate, (int fd, int64_t length), SYS_ftruncate, fd, length)
SYS_CALL(int, sys_fchmod, (int fd, unsigned mode), SYS_fchmod, fd, mode)
SYS_CALL(int, sys_fchmodat, (int dir, const char *path, unsigned mode), SYS_fchmodat, dir, path, mode)
SYS_CALL(int, sys_fchown, (int fd, unsigned uid, unsigned gid), SYS_fchown, fd, uid, gid)
SYS_CALL(int, sys_fchownat, (int dir, const char *path, unsigned uid, unsigned gid, int flags), SYS_fchownat, dir, path,
         uid, gid, flags)
/* `path` NULL: the descriptor itself; `times` NULL: now. */
SYS_CALL(int, sys_utimensat, (int dir, const char *path, const struct timespec times[2], int flags), SYS_utimensat, dir,
         path, times, flags)
SYS_CALL(int, sys_setxattr, (const char *path, const char *name, const void *value, size_t n, int flags), SYS_setxattr,
         path, name, value, n, flags)
SYS_CALL(int, sys_fsetxattr, (int fd, const char *name, const void *value, size_t n, int flags), SYS_fsetxattr, fd,
         name, value, n, flags)
/* Returns the length of the value, or with `n` 0 the room that it needs. A list consists of NUL-terminated names. */
SYS_CALL(long, sys_getxattr, (const char *path, const char *name, void *value, size_t n), SYS_getxattr, path, name,
         value, n)
SYS_CALL(long, sys_lgetxattr, (const char *path, const char *name, void *value, size_t n), SYS_lgetxattr, path, name,
         value, n)
SYS_CALL(long, sys_listxattr, (const char *path, char *list, size_t n), SYS_listxattr, path, list, n)
SYS_CALL(long, sys_llistxattr, (const char *path, char *list, size_t n), SYS_llistxattr, path, list, n)
SYS_CALL(long, sys_fgetxattr, (int fd, const char *name, void *value, size_t n), SYS_fgetxattr, fd, name, value, n)
SYS_CALL(long, sys_flistxattr, (int fd, char *list, size_t n), SYS_flistxattr, fd, list, n)
SYS_CALL(int, sys_fsync, (int fd), SYS_fsync, fd)
/* Writes all of the file system on which `fd` lies to its disk. */
SYS_CALL(int, sys_syncfs, (int fd), SYS_syncfs, fd)
SYS_CALL(int, sys_flock, (int fd, int how), SYS_flock, fd, how)
SYS_CALL(int, sys_removexattr, (const char *path, const char *name), SYS_removexattr, path, name)
SYS_CALL(int, sys_fremovexattr, (int fd, const char *name), SYS_fremovexattr, fd, name)
SYS_CALL(int, sys_fcntl, (int fd, int command, long value), SYS_fcntl, fd, command, value)
/* inotify(7): a descriptor; and what is told of `path` by it. -errno. */
SYS_CALL(int, sys_inotify, (int flags), SYS_inotify_init1, flags)
SYS_CALL(int, sys_inotify_add, (int fd, const char *path, uint32_t mask), SYS_inotify_add_watch, fd, path, mask)
/* Bytes of directory records (struct linux_dirent64) put into `records`, 0 at the end. */
SYS_CALL(long, sys_getdents64, (int fd, void *records, size_t room), SYS_getdents64, fd, records, room)
/* Returns the mask before. */
SYS_CALL(int, sys_umask, (unsigned mask), SYS_umask, mask)
