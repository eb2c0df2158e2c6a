/* Descriptors: owning, copying, closing, sending. Sources: close_range(2), dup(2), pipe(2), unix(7). */
#pragma once
#include <errno.h>

#include "sys/file.h"
#include "sys/socket.h"

/* Closes unless negative; always returns -1. */
static inline int sys_shut(int fd)
{
    if (fd >= 0)
        (void)sys_close(fd);
    return -1;
}
static inline void sys_drop(int *fd)
{
    *fd = sys_shut(*fd);
}
/* Like auto_fd of base/fd.h, for code that must not touch libc's errno. */
#define own_fd __attribute__((cleanup(sys_drop)))

static inline int sys_taken(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}
SYS_CALL(int, sys_close_range, (unsigned first, unsigned last), SYS_close_range, first, last)
/* faccessat(2) of `name` in `dir`, with the real ids and their capabilities; `what`: 4 read, 2 write, 1 search. */
SYS_CALL(int, sys_may, (int dir, const char *name, int what), SYS_faccessat, dir, name, what)
SYS_CALL(int, sys_dup3, (int from, int to, int flags), SYS_dup3, from, to, flags)
SYS_CALL(int, sys_pipe, (int ret[2], int flags), SYS_pipe2, ret, flags)
/* lseek(2): SEEK_DATA and SEEK_HOLE, which musl 1.2.2 lacks. */
enum { SYS_SEEK_DATA = 3, SYS_SEEK_HOLE = 4 };
SYS_CALL(int64_t, sys_lseek, (int fd, int64_t at, int whence), SYS_lseek, fd, at, whence)
SYS_CALL(int, sys_ioctl, (int fd, unsigned long what, void *arg), SYS_ioctl, fd, what, arg)

/* The beginning of a text of the kernel's, with a NUL: "" where it cannot be read. The length, or -errno. */
static inline long sys_read_text(int dir, const char *path, char *text, size_t room)
{
    own_fd int fd = sys_openat(dir, path, O_RDONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? fd : sys_read(fd, text, room - 1);
    text[n > 0 ? n : 0] = 0;
    return n;
}

enum { SYS_OUTQ = 0x5411 }; /* SIOCOUTQ, TIOCOUTQ */
/* Whether something that was sent on a Unix socket waits for its other end to read it. */
static inline bool sys_unread(int fd)
{
    int bytes = 0;
    return sys_ioctl(fd, SYS_OUTQ, &bytes) == 0 && bytes > 0;
}

struct sys_dirent { /* struct linux_dirent64 of getdents64(2) */
    uint64_t ino;
    int64_t off;
    uint16_t reclen;
    uint8_t type;
    char name[];
};
/* A directory that is being read by way of `room`, which is aligned to 8 bytes. */
struct sys_entries {
    int dir;
    char *room;
    size_t bytes;
    long n, at; /* in `room` */
    int no;     /* why it ended: -errno, or 0 */
};
#define SYS_ENTRIES(fd, buffer) ((struct sys_entries){.dir = (fd), .room = (buffer), .bytes = sizeof(buffer)})
/* The next entry but "." and "..", valid until the next call; NULL at the end. */
static inline const struct sys_dirent *sys_next_entry(struct sys_entries *e)
{
    for (;;) {
        if (e->at >= e->n) {
            e->at = 0;
            e->n = sys_getdents64(e->dir, e->room, e->bytes);
            e->no = e->n < 0 ? (int)e->n : 0;
            if (e->n <= 0)
                return NULL;
        }
        const struct sys_dirent *d = (const void *)(e->room + e->at);
        e->at += d->reclen;
        if (d->name[0] != '.' || (d->name[1] && (d->name[1] != '.' || d->name[2])))
            return d;
    }
}

union sys_fd_message {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
};
/* After -ETOOMANYREFS: send.c. */
long sys_send_again(int s, const struct msghdr *m, int flags);
/* A message with descriptors; as sendmsg(2), but -errno. */
static inline long sys_send_fds(int s, const struct msghdr *m, int flags)
{
    const long r = sys_sendmsg(s, m, flags);
    return r == -ETOOMANYREFS ? sys_send_again(s, m, flags) : r;
}
/* Sends one message of `n` bytes, with the descriptor `fd` unless that is negative. Returns bytes sent or -errno. */
static inline long sys_send_fd(int s, const void *bytes, size_t n, int fd, int flags)
{
    struct iovec v = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n}; // NOLINT(performance-no-int-to-ptr)
    union sys_fd_message c = {.bytes = {0}};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    if (fd >= 0) {
        c.head.cmsg_len = CMSG_LEN(sizeof fd);
        c.head.cmsg_level = SOL_SOCKET;
        c.head.cmsg_type = SCM_RIGHTS;
        __builtin_memcpy(CMSG_DATA(&c.head), &fd, sizeof fd);
        m.msg_control = &c;
        m.msg_controllen = sizeof c;
    }
    return fd < 0 ? sys_sendmsg(s, &m, flags | MSG_NOSIGNAL) : sys_send_fds(s, &m, flags | MSG_NOSIGNAL);
}
/* Receives one message of at most `n` bytes; *ret_fd: the descriptor in it (close-on-exec) or -1. 0: end of stream. */
static inline long sys_recv_fd(int s, void *bytes, size_t n, int *ret_fd, int flags)
{
    struct iovec v = {.iov_base = bytes, .iov_len = n};
    union sys_fd_message c = {.bytes = {0}};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = CMSG_LEN(sizeof(int))};
    long r = sys_recvmsg(s, &m, flags | MSG_CMSG_CLOEXEC);
    if (r < 0)
        return r;
    *ret_fd = -1;
    if (m.msg_controllen >= CMSG_LEN(sizeof(int)) && c.head.cmsg_type == SCM_RIGHTS)
        __builtin_memcpy(ret_fd, CMSG_DATA(&c.head), sizeof(int));
    return r;
}
