/*
 * Gives a caller a descriptor, and keeps both on one processor meanwhile. The kernel wakes the caller to install it and
 * then the guard (SECCOMP_IOCTL_NOTIF_ADDFD), each on an idle processor if there is one, whatever
 * SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP says, which concerns notifications and answers alone. An idle processor of a
 * virtual machine takes some 30 us to wake, twice per file created, more than everything else that the guard does. So
 * for the length of this call both may run on this processor only, and the guard for some of its next calls, too: it is where the caller is, whom
 * its answer wakes here (SYNC_WAKE_UP), and to be allowed one processor and then all again takes as long as six other calls.
 *
 * Nobody sees it: the caller waits, so it cannot ask for its processors or start a thread that would inherit them.
 * What is given back is what was there; who may use all processors of its cpuset is given "all" (sched_setaffinity(2)
 * cuts that to the cpuset), so it follows a cpuset that grows. Only speed depends on this: whatever fails is left alone.
 */
#include <string.h>
#include "guard/workers.h"

#define INSTALLS_FIRST 16     /* a command that creates a few files does not pay for the look at our own processors */
#define SLOW_NS        400000 /* longer than the call takes: others wait for this processor */
#define INSTALLS_APART 64     /* for so many calls, then */
#define STAYS          64     /* calls of this caller for which the worker stays: it may have moved meanwhile */

static bool same_set(const struct sys_processor_set *a, const struct sys_processor_set *b)
{
    return a->bytes == b->bytes && memcmp(a->bits, b->bits, a->bytes) == 0;
}

/* What may be used again: `were`, or all if that is all that the cpuset has. */
static void allow(const struct guard *g, int tid, const struct sys_processor_set *were)
{
    struct sys_processor_set all = {.bytes = were->bytes};
    memset(all.bits, 0xff, sizeof all.bits);
    (void)sys_processors_allow(tid, g->processors_whole && same_set(were, &g->processors_own) ? &all : were);
}

/* Which processors this worker may use, and whether its cpuset has no other. False: unknown, or only one. */
static bool look_at_own(struct guard *g)
{
    struct sys_processor_set all, *own = &g->processors_own;
    if (own->bytes)
        return own->bytes > 1;
    own->bytes = 1; /* no kernel's set is so small: not known, and not looked for again */
    if (sys_processors() < 2 || sys_processors_allowed(0, own) < 0)
        return false;
    memset(all.bits, 0xff, sizeof all.bits);
    all.bytes = own->bytes;
    if (sys_processors_allow(0, &all) < 0 || sys_processors_allowed(0, &all) < 0)
        return true;
    g->processors_whole = same_set(own, &all);
    if (!g->processors_whole)
        (void)sys_processors_allow(0, own);
    return true;
}

void install_leave(struct guard *g)
{
    if (g->stays)
        allow(g, 0, &g->processors_own);
    g->stays = 0;
}

void install_next(struct guard *g)
{
    if (g->stays == 1 || g->stays_for != g->n.pid)
        install_leave(g);
    else if (g->stays)
        g->stays--;
}

/* This worker stays on the processor where it is. */
static bool stay(struct guard *g)
{
    const int cpu = sys_processor();
    struct sys_processor_set *here = &g->processors_here;
    *here = (struct sys_processor_set){.bytes = g->processors_own.bytes};
    if (cpu < 0 || (size_t)cpu >= here->bytes * 8)
        return false;
    here->bits[cpu / 64] = 1ul << cpu % 64;
    if (sys_processors_allow(0, here) < 0)
        return false;
    g->stays = STAYS;
    g->stays_for = g->n.pid;
    return true;
}

/* False: the caller and we stay where the kernel has us. */
static bool keep_here(struct guard *g, struct sys_processor_set *ret_callers)
{
    if (g->parallel || g->installs++ < INSTALLS_FIRST || !look_at_own(g) || (!g->stays && !stay(g)))
        return false;
    return sys_processors_allowed((int)g->n.pid, ret_callers) == 0 && ret_callers->bytes == g->processors_here.bytes &&
           sys_processors_allow((int)g->n.pid, &g->processors_here) == 0;
}

int descriptor_install(struct guard *g, int fd, unsigned fd_flags)
{
    struct sys_processor_set callers;
    if (!keep_here(g, &callers))
        return sys_notify_install(g->notify, g->n.id, fd, fd_flags);
    const uint64_t from = exact_ns();
    const int no = sys_notify_install(g->notify, g->n.id, fd, fd_flags);
    const bool slow = exact_ns() - from > SLOW_NS;
    allow(g, (int)g->n.pid, &callers);
    if (slow)
        install_leave(g);
    g->installs = slow ? INSTALLS_FIRST - INSTALLS_APART : INSTALLS_FIRST;
    return no;
}
