/* Waiting: ppoll(2), and descriptors that exist only to be waited for. */
#pragma once
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include "sys/sys.h"

/* The kernel's signal set has 64 bits on all supported architectures; libc's sigset_t begins with them. */
#define SYS_SIGSET_BYTES 8

/* ppoll(2) without a signal mask; `timeout` NULL: no limit. Returns the number of ready entries, or -errno. */
static inline int sys_poll(struct pollfd *fds, unsigned n, const struct timespec *timeout)
{
    struct timespec left; /* the kernel writes back what remains */
    if (timeout)
        left = *timeout;
    return (int)sys_call(SYS_ppoll, fds, n, timeout ? &left : NULL, NULL, SYS_SIGSET_BYTES, 0);
}

/* Whether the other end of a connection is closed. */
static inline bool sys_hung_up(int fd)
{
    struct pollfd p = {.fd = fd};
    const struct timespec now = {0};
    return sys_poll(&p, 1, &now) > 0 && p.revents & POLLHUP;
}

/* sys_poll() with poll(2)'s timeout: milliseconds, negative: no limit. */
static inline int sys_poll_ms(struct pollfd *fds, unsigned n, int ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l};
    return sys_poll(fds, n, ms < 0 ? NULL : &t);
}

/* Waits without a limit while exactly the signals of `mask` are blocked; bit n - 1 is signal n. */
SYS_CALL(int, sys_poll_masked, (struct pollfd * fds, unsigned n, uint64_t mask), SYS_ppoll, fds, n, NULL, &mask,
         SYS_SIGSET_BYTES)

/* A descriptor from which signals of `set` are read as struct signalfd_siginfo, or -errno. signalfd(2). */
SYS_CALL(int, sys_signalfd, (const sigset_t *set, int flags), SYS_signalfd4, -1, set, SYS_SIGSET_BYTES, flags)

SYS_CALL(int, sys_eventfd, (unsigned start, int flags), SYS_eventfd2, start, flags)
