/* Ends a builder that does not end by itself, of whatever engine, and waits for what is below it.
   It knows processes by numbers alone: what a box may do is decided long before. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include "backends/engine.h"
#include "sys/fd.h"
#include "sys/poll.h"
#include "sys/process.h"

/* Descriptors of the present children of process `pid`, readable when they have ended. */
static unsigned children(int pid, struct pollfd *ret, unsigned most)
{
    char path[64], text[512], *at = text, *end;
    unsigned n = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    (void)sys_read_text(AT_FDCWD, path, text, sizeof text);
    for (long child; n < most && (child = strtol(at, &end, 10)) > 0; at = end) {
        ret[n] = (struct pollfd){.fd = sys_pidfd_open((int)child, 0), .events = POLLIN};
        n += ret[n].fd >= 0;
    }
    return n;
}

void engine_kill(const struct started *s)
{
    enum { MOST = 16, TRIES = 100 /* of 100 ms for all, on a machine that has no time for them */ };
    static const struct timespec moment = {0, 100000000};
    struct pollfd ends[MOST];
    if (s->pidfd < 0)
        return;
    unsigned n = children(s->pid, ends, MOST);
    (void)sys_pidfd_kill(s->pidfd, SIGKILL);
    for (unsigned i = 0, tries = 0; i < n; i++) {
        for (; tries < TRIES && sys_poll(&ends[i], 1, &moment) != 1; tries++)
            ;
        (void)sys_shut(ends[i].fd);
    }
}
