/*
 * The lock of the name space. Whoever creates or opens holds it shared from resolving to acting; whoever renames, or
 * touches what makes a directory a repository, holds it alone: between judging `d/hooks` and making it nobody in the
 * box may turn `d` into `.git`. Nobody holds it while waiting for anything but the file system.
 *
 * A worker that hangs in a dead file system must not take the box along: waiting ends after LOCK_MS, and the caller
 * goes on as if it had the lock when only readers are in the way (they were judged before), because a box that can
 * make its own guard hang harms itself alone, and one that is stuck cannot act either.
 */
#include <linux/futex.h>
#include <time.h>
#include "guard/inside.h"

#define NAMES_WRITER 0x80000000u
#define LOCK_MS      5000

uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void wait_change(_Atomic uint32_t *word, uint32_t value)
{
    struct timespec t = {.tv_nsec = 50 * 1000 * 1000};
    (void)sys_call(SYS_futex, word, FUTEX_WAIT, value, &t, 0, 0);
}

static void wake(_Atomic uint32_t *word)
{
    (void)sys_call(SYS_futex, word, FUTEX_WAKE, INT_MAX, 0, 0, 0);
}

void names_lock(struct guard *g, bool exclusive)
{
    _Atomic uint32_t *word = &g->shared->names;
    uint64_t until = 0;
    for (;;) {
        uint32_t v = atomic_load(word);
        if (!(v & NAMES_WRITER) && atomic_compare_exchange_weak(word, &v, exclusive ? v | NAMES_WRITER : v + 1))
            break;
        if (!(v & NAMES_WRITER))
            continue;
        uint64_t now = now_ms();
        if (!until)
            until = now + LOCK_MS;
        else if (now > until && atomic_compare_exchange_strong(word, &v, v & ~NAMES_WRITER))
            until = 0; /* its holder hangs: the place is free again */
        wait_change(word, v);
    }
    g->names_held = exclusive ? 2 : 1;
    if (!exclusive)
        return;
    for (uint64_t end = 0;;) { /* readers that came before leave */
        uint32_t v = atomic_load(word);
        uint64_t now;
        if ((v & ~NAMES_WRITER) == 0 || (end && now_ms() > end))
            return;
        now = now_ms();
        if (!end)
            end = now + LOCK_MS;
        wait_change(word, v);
    }
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
