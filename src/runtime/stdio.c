/*
 * The command's standard input, output and error.
 *
 * A descriptor gives access to more than its data: any process may open /proc/self/fd/N again, with other rights,
 * through the mount that the descriptor came from, which is the host's. So a directory, an O_PATH descriptor, a block
 * device or a kernel handle (namespace, pidfd, mount ...) never enters the box; a read-only file is reopened through
 * the box's own mounts; a writable file, a terminal and any other device is replaced by a pipe that pinfold fills or
 * drains.
 *
 * A pipe is passed on, because a pipe between would read more than the command does. Opened again for writing, it would
 * let the command say what some program of the host reads next from it: a shell that gets its script by a pipe executes
 * that. So its sticky bit, which means nothing else in a pipe, tells the guard whose pipe it is (guard/rules/verdict.c).
 */
#include "runtime/runner.h"

enum { NSFS = 0x6e736673, PIDFS = 0x50494446, PIPEFS = 0x50495045 };

/* Where it fails the pipe is another user's, and the kernel lets nobody else open it. */
static void mark_pipe(int fd, const struct sys_stat *st, int flags)
{
    struct statfs fs;
    if ((flags & O_ACCMODE) == O_RDONLY && !(st->mode & S_ISVTX) && sys_fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS)
        (void)sys_fchmod(fd, (st->mode & 07777) | S_ISVTX);
}

int stdio_way(int fd)
{
    struct sys_stat st;
    struct statfs fs;
    int flags = sys_fcntl(fd, F_GETFL, 0);
    if (flags < 0)
        return flags;
    int e = sys_stat_fd(fd, SYS_STAT_BASIC, &st);
    if (e < 0)
        return e;
    if (flags & O_PATH)
        return -EINVAL;
    switch (st.mode & S_IFMT) {
    case S_IFIFO:
        mark_pipe(fd, &st, flags);
        return STDIO_PASS;
    case S_IFSOCK:
        return STDIO_PASS;
    case S_IFCHR: /* null, zero, full, random, urandom */
        return st.device_major == 1 &&
                       (st.device_minor == 3 || st.device_minor == 5 || (st.device_minor >= 7 && st.device_minor <= 9))
                   ? STDIO_PASS
                   : STDIO_PIPE;
    case S_IFREG:
        e = sys_fstatfs(fd, &fs);
        if (e < 0)
            return e;
        if (fs.f_type == NSFS || fs.f_type == PIDFS)
            return -EINVAL;
        return (flags & O_ACCMODE) == O_RDONLY ? STDIO_REOPEN : STDIO_PIPE;
    default: /* directory, block device, anonymous inode */
        return -EINVAL;
    }
}

/* In a masked directory a file has another device number, but keeps its inode number (overlayfs.rst, "Inode
   properties"): then size and times must also agree. An error would only show the box a file that it sees anyway. */
static bool same_file(const struct sys_stat *a, const struct sys_stat *b)
{
    if (a->inode != b->inode)
        return false;
    return (a->major == b->major && a->minor == b->minor) ||
           (a->size == b->size && a->modified.seconds == b->modified.seconds &&
            a->modified.nanoseconds == b->modified.nanoseconds && a->changed.seconds == b->changed.seconds &&
            a->changed.nanoseconds == b->changed.nanoseconds);
}

/* Opens the same file at the same path through the box's mounts; -ENOENT if the box does not have it there. */
static int reopen(int old, const char *name)
{
    const unsigned mask = SYS_STAT_BASIC;
    struct sys_stat then, now;
    if (name[0] != '/')
        return -ENOENT;
    own_fd int fd = sys_openat2(AT_FDCWD, name, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0, CALM);
    if (fd < 0)
        return fd;
    int e = sys_stat_fd(old, mask, &then);
    if (e == 0)
        e = sys_stat_fd(fd, mask, &now);
    if (e < 0)
        return e;
    if (!same_file(&then, &now))
        return -ENOENT;
    int flags = sys_fcntl(old, F_GETFL, 0);
    if (flags >= 0)
        flags = sys_fcntl(fd, F_SETFL, flags & ~O_NOATIME);
    int64_t at = flags < 0 ? flags : sys_lseek(old, 0, SEEK_CUR);
    if (at >= 0)
        at = sys_lseek(fd, at, SEEK_SET);
    return at < 0 ? (int)at : sys_taken(&fd);
}

static int stand_in(int report, unsigned which)
{
    const struct frame f = {.kind = FRAME_PIPE, .a = which};
    int ends[2];
    int e = sys_pipe(ends, O_CLOEXEC);
    if (e < 0)
        return e;
    int mine = ends[which != 0], theirs = ends[which == 0];
    long n = sys_send_fd(report, &f, sizeof f, theirs, 0);
    sys_drop(&theirs);
    if (n < 0)
        sys_drop(&mine);
    return n < 0 ? (int)n : mine;
}

int stdio_enter(struct job *job, char (*names)[4096], int report)
{
    job->stdin_at = -1;
    for (unsigned i = 0; i < 3; i++) {
        if (job->stdio[i] < 0)
            continue;
        int way = stdio_way(job->stdio[i]);
        if (way < 0)
            return way;
        if (way == STDIO_PASS)
            continue;
        int fd = way == STDIO_REOPEN && names ? reopen(job->stdio[i], names[i]) : -ENOENT;
        if (fd >= 0 && i == 0)
            job->stdin_at = 0;
        if (fd < 0)
            fd = stand_in(report, i);
        if (fd < 0)
            return fd;
        job->stdio[i] = fd; /* the caller's stays open in the builder, unused, until it closes unneeded descriptors */
    }
    return 0;
}
