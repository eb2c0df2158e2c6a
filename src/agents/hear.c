/*
 * What the processes that copy a login say, and for how long they are waited for. They read what a box wrote: one
 * that says nothing within a minute counts as failed, and holds nobody up.
 */
#include <errno.h>
#include <poll.h>
#include <time.h>
#include "agents/agents.h"
#include "sys/socket.h"

enum { PATIENCE_MS = 60000 };

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t agent_patience(void)
{
    return now_ms() + PATIENCE_MS;
}

long agent_hear(int from, int64_t until, void *ret, size_t n)
{
    for (;;) {
        struct pollfd p = {.fd = from, .events = POLLIN};
        int64_t left = until - now_ms();
        int ready = left > 0 ? poll(&p, 1, (int)left) : 0;
        if (ready == 0)
            return -ETIMEDOUT;
        if (ready < 0 && errno != EINTR)
            return -errno;
        long got = ready > 0 ? sys_recv(from, ret, n, 0) : -EINTR;
        if (got != -EINTR)
            return got;
    }
}
