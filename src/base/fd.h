/* Owned descriptors: `auto_fd` closes one at the end of the scope; `take_fd` passes ownership on. */
#pragma once
#include <errno.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/buf.h"

/* Closes unless negative. Always returns -1, for `fd = close_fd(fd)`. */
static inline int close_fd(int fd)
{
    if (fd >= 0)
        (void)close(fd);
    return -1;
}
static inline void drop_fd(int *fd)
{
    *fd = close_fd(*fd);
}
static inline int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}
#define auto_fd __attribute__((cleanup(drop_fd)))

/* A call of the C library's that may fail here. Hardened builds warn of some results that nobody takes, in spite of a cast to void. */
static inline void may_fail(int result)
{
    (void)result;
}

/* flock(2) of an open file, whatever signal comes meanwhile; 0 or -errno, -EWOULDBLOCK with LOCK_NB. */
static inline int fd_lock(int fd, int how)
{
    while (flock(fd, how) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    return 0;
}

/* Writes all bytes, with as many calls as needed. 0 or -errno. */
static inline int fd_write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -errno;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

/*
 * Adds all that can be read of `fd` until its end. 0, or -errno: what has been added then is a part, and no more than that; -EFBIG: it
 * does not fit into `to`, which is broken then.
 */
static inline int fd_read_all(int fd, struct buf *to)
{
    for (;;) {
        const size_t left = to->max - to->n, piece = to->n < 16384 ? 4096 : 65536, n = left < piece ? left : piece;
        char more, *at = n ? buf_space(to, n) : &more; /* where nothing more fits, the end is still to be seen */
        const ssize_t k = at ? read(fd, at, n ? n : 1) : 0;
        if (!at)
            return -ENOMEM;
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return k < 0 ? -errno : 0;
        to->broken |= !n;
        if (!n)
            return -EFBIG;
        buf_grew(to, (size_t)k);
    }
}

/* Reads that many bytes, with as many calls as needed. 0 or -errno; -ECONNRESET: the end came before. */
static inline int fd_read_exactly(int fd, void *to, size_t n)
{
    for (char *p = to; n;) {
        const ssize_t k = read(fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return k < 0 ? -errno : -ECONNRESET;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}
