/*
 * The lock of the name space. Whoever creates or opens holds it shared from resolving to acting; whoever renames, or
 * touches what makes a directory a repository, holds it alone: between judging `d/hooks` and making it nobody in the
 * box may turn `d` into `.git`. Other boxes are held off by hold.c. Nobody holds it while waiting for anything but the file system.
 *
 * A worker that hangs in a dead file system must not take the box along: waiting ends after LOCK_MS or with the box, and
 * the call fails. Nobody goes on without the lock: how long its holder takes is in the box's hands as well (whoever writes a
 * file, slowly, holds up whoever renames it), and what the holder was about to do, it still does.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <time.h>
#include "guard/inside.h"

#define NAMES_WRITER 0x80000000u
#define LOCK_MS      20000
#define END_MS       500 /* once pid 1 has ended */

uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* `until`: 0 at first. */
static int wait_change(struct guard *g, _Atomic uint32_t *word, uint32_t value, uint64_t *until)
{
    struct timespec t = {.tv_nsec = 50 * 1000 * 1000};
    struct pollfd end = {.fd = g->init_pidfd, .events = POLLIN};
    uint64_t now = now_ms();
    if (!*until)
        *until = now + LOCK_MS;
    if (*until > now + END_MS && poll(&end, 1, 0) > 0)
        *until = now + END_MS;
    if (now > *until)
        return -ETIMEDOUT;
    (void)sys_call(SYS_futex, word, FUTEX_WAIT, value, &t, 0, 0);
    return 0;
}

static void wake(_Atomic uint32_t *word)
{
    (void)sys_call(SYS_futex, word, FUTEX_WAKE, INT_MAX, 0, 0, 0);
}

int names_lock(struct guard *g, bool exclusive)
{
    _Atomic uint32_t *word = &g->shared->names;
    uint64_t until = 0;
    for (;;) {
        uint32_t v = atomic_load(word);
        if (!(v & NAMES_WRITER) && atomic_compare_exchange_weak(word, &v, exclusive ? v | NAMES_WRITER : v + 1))
            break;
        if ((v & NAMES_WRITER) && wait_change(g, word, v, &until) < 0)
            return -ETIMEDOUT;
    }
    /* Readers that came before leave. */
    for (uint32_t v; exclusive && (v = atomic_load(word)) != NAMES_WRITER;) {
        if (wait_change(g, word, v, &until) == 0)
            continue;
        atomic_fetch_and(word, ~NAMES_WRITER);
        wake(word);
        return -ETIMEDOUT;
    }
    g->names_held = exclusive ? 2 : 1;
    return 0;
}

void names_unlock(struct guard *g)
{
    _Atomic uint32_t *word = &g->shared->names;
    uint32_t before;
    if (g->names_held == 2) {
        before = atomic_fetch_and(word, ~NAMES_WRITER);
        /* Waiting readers, or none: waking costs a call, so ask whether anybody could be there. */
        if (atomic_load(&g->shared->workers) > 1)
            wake(word);
    } else if (g->names_held == 1) {
        before = atomic_fetch_sub(word, 1);
        if (before == (NAMES_WRITER | 1))
            wake(word);
    }
    g->names_held = 0;
}

void table_lock(struct shared *s)
{
    for (unsigned spins = 0; atomic_exchange(&s->table, 1); spins++)
        if (spins > 1000)
            (void)sys_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

void table_unlock(struct shared *s)
{
    atomic_store(&s->table, 0);
}
