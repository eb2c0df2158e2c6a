/*
 * Answers of the session daemon to its clients; large ones are sent in a memfd. A client that does not read never
 * holds the daemon up.
 */
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include "sessiond/parts.h"
#include "sys/fd.h"

uint64_t sessiond_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

int sessiond_watch(struct sessiond *k, int fd, uint32_t events, uint64_t ticket)
{
    struct epoll_event e = {.events = events, .data.u64 = ticket};
    return epoll_ctl(k->epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

void answer_refused(int to, const struct err *e, int r)
{
    struct {
        struct frame f;
        char text[sizeof e->text];
    } m = {.f = {.kind = FRAME_REFUSED, .a = e->kind ? e->kind : ERR_SYSTEM, .b = (uint32_t)-r}};
    size_t n = strlen(e->text);
    memcpy(m.text, e->text, n);
    if (to >= 0)
        (void)send(to, &m, sizeof m.f + n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void answer_bytes(int to, const char *bytes, size_t n, uint32_t c, uint64_t a, uint64_t b)
{
    struct frame f = {.kind = FRAME_ANSWER, .a = (uint32_t)n, .c = c, .utime_us = a, .stime_us = b};
    struct iovec v[2] = {{&f, sizeof f}, {(void *)(uintptr_t)bytes, n}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
    if (n <= KEEP_MESSAGE) {
        (void)sendmsg(to, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
        return;
    }
    auto_fd int fd = bytes_in_memory((struct str){bytes, n});
    f.b = 1;
    if (fd >= 0)
        (void)sys_send_fd(to, &f, sizeof f, fd, MSG_DONTWAIT);
}

ssize_t answer_receive(int from, void *p, size_t room, int *ret_fd)
{
    long n;
    do
        n = sys_recv_fd(from, p, room, ret_fd, MSG_DONTWAIT);
    while (n == -EINTR || n == -ECONNRESET);
    return n;
}
