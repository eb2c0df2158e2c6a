/*
 * The lock of the name space. Creating and opening hold it shared from resolving to acting; renames, and changes to
 * what makes a directory a repository, hold it exclusively: between judging `d/hooks` and creating it nobody in the box
 * may turn `d` into `.git`. hold.c excludes other boxes. While holding it a worker waits only for the file system.
 *
 * A worker that hangs in a dead file system must not block the whole box: waiting ends after LOCK_MS or with the box,
 * and the call fails. Nobody proceeds without the lock, because the box controls how long it is held (a slow write to a
 * file delays its rename), and the holder will still do what it was about to do.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <time.h>
#include "guard/workers.h"
#include "sys/poll.h"

#define NAMES_WRITER 0x80000000u
#define LOCK_MS      20000
#define END_MS       10000 /* once pid 1 has ended: what a command wrote last is still put in place (gitdir.c) */

static uint64_t clock_ns(clockid_t which)
{
    struct timespec t;
    (void)clock_gettime(which, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t exact_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t now_ms(void)
{
    return clock_ns(CLOCK_MONOTONIC_COARSE) / 1000000;
}

/* `until`: 0 the first time. */
static int wait_change(struct guard *g, _Atomic uint32_t *word, uint32_t value, uint64_t *until)
{
    struct timespec t = {.tv_nsec = 50 * 1000 * 1000};
    struct pollfd end = {.fd = g->init_pidfd, .events = POLLIN};
    uint64_t now = now_ms();
    if (!*until)
        *until = now + LOCK_MS;
    if (*until > now + END_MS && sys_poll_ms(&end, 1, 0) > 0)
        *until = now + END_MS;
    if (now > *until)
        return -ETIMEDOUT;
    /* Counted before the kernel compares: who changes the word later sees it, and otherwise nobody need be woken. */
    atomic_fetch_add(&g->shared->names_waiting, 1);
    (void)sys_call(SYS_futex, word, FUTEX_WAIT, value, &t, 0, 0);
    atomic_fetch_sub(&g->shared->names_waiting, 1);
    return 0;
}

/* A worker that is killed while it waits ends the box; until then the count is too high, which costs a call. */
static void wake(struct guard *g, _Atomic uint32_t *word)
{
    if (atomic_load(&g->shared->names_waiting))
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
    /* Waits until earlier readers have left. */
    for (uint32_t v; exclusive && (v = atomic_load(word)) != NAMES_WRITER;) {
        if (wait_change(g, word, v, &until) == 0)
            continue;
        atomic_fetch_and(word, ~NAMES_WRITER);
        wake(g, word);
        return -ETIMEDOUT;
    }
    g->names_held = exclusive ? 2 : 1;
    return 0;
}

void names_unlock(struct guard *g)
{
    _Atomic uint32_t *word = &g->shared->names;
    if (g->names_held == 2) {
        (void)atomic_fetch_and(word, ~NAMES_WRITER);
        wake(g, word);
    } else if (g->names_held == 1 && atomic_fetch_sub(word, 1) == (NAMES_WRITER | 1)) {
        wake(g, word);
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
