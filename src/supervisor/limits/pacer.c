/*
 * The pacer: holds `limits.cpus` where no control group can. It stops all processes of the box (SIGSTOP) whenever they
 * have used more processor time than they earned, and continues them (SIGCONT) once the time that has passed has paid
 * for it. So over a second the limit holds; within a slice of some 5 to 50 ms the box has all processors.
 *
 * Parents are stopped before their children and continued after them, and each is seen to stop before its children are
 * looked for. So no shell inside, and not pid 1 of the box, ever waits for a child that is stopped while it runs itself:
 * wait(2) reports a stop only as long as it lasts, and nobody takes it for Ctrl-Z. A parent that a busy machine gives no
 * processor may be in wait(2), which looks at its children once more before the parent stops: until it has, all that is
 * below it runs, which the box pays for later, and the next look comes soon. Only what was stopped here is continued: a job that somebody stopped inside stays so.
 *
 * Processor time is from proc_pid_stat(5), in clock ticks, with that of children that somebody waited for. Where nobody
 * does (SIGCHLD ignored) a child's time is lost with it. So what runs at a look and was not there at the one before counts
 * as if it, or others like it, had run ever since; the greater of both holds.
 *
 * What is approximate: a process that is created in the moment of the stop may run on; where a machine is busy, short
 * processes are charged for time that they waited; a tracer (gdb, strace) sees the signals, and full-screen programs
 * draw again.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "supervisor/parts.h"
#include "sys/fd.h"
#include "sys/process.h"

#define SLICE_MAX_US 50000u
#define SLICE_MIN_US 5000u
#define BURST_US     100000u /* what a box that was idle may use beyond its limit: the limit's worth of this time */
#define PASSES_MAX   16u     /* over the tree, until nothing is found that still runs */
#define STOPS_IN_US                                                                                                    \
    2000u /* a process that is inside a guarded call stops when that ends; it is not waited for longer */
/* One that waits for a processor of a busy machine is waited for so long at once, all of a box together. */
#define PATIENCE_US 50000u
#define AGAIN_US    5000u /* until it, and what is below it, is looked at again */
#define LATE_US                                                                                                        \
    5000000u /* what is late for longer does not keep others running: a box can starve a process of its own */

struct paced {
    int pid;
    uint64_t born; /* clock ticks since the machine's start: a pid may be used again */
};

struct paced_look {
    char state;
    int parent;
    uint64_t ticks, born; /* ticks: used, by it and by children that it waited for */
};

struct paced_sum {
    uint64_t ticks, running, since; /* running: processes that are, and that were created at `since` or later */
};

/* proc_pid_stat(5): fields 3, 4, 14 to 17 and 22. */
static bool pace_look(int pid, struct paced_look *ret)
{
    char path[48], text[PROC_TEXT];
    unsigned long long user = 0, kernel = 0, born = 0;
    long long waited_user = 0, waited_kernel = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const char *p = sys_read_text(AT_FDCWD, path, text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
    if (!p || sscanf(p, ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld %*d %*d %*d %*d %llu",
                     &ret->state, &ret->parent, &user, &kernel, &waited_user, &waited_kernel, &born) != 7)
        return false;
    ret->ticks = user + kernel + (uint64_t)waited_user + (uint64_t)waited_kernel;
    ret->born = born;
    return true;
}

static bool has_stopped(char state)
{
    return state == 'T' || state == 't' || state == 'Z' || state == 'X';
}

static bool is_paced(const struct limit_pacer *p, int pid, uint64_t born)
{
    for (unsigned i = 0; i < p->n; i++)
        if (p->stopped[i].pid == pid && p->stopped[i].born == born)
            return true;
    return false;
}

/* Whether what was told to stop waits for a processor to do so; it shows as sleeping if it lost that on the way to sleep. */
static bool is_late(const struct paced_look *look)
{
    return !has_stopped(look->state) && look->state != 'D';
}

/*
 * Whether `parent` cannot be in wait(2) now, nor come there: it has stopped, or will when its guarded call ends. One that was left out,
 * because it is below a late one itself, runs.
 */
static bool stands(const struct limit_pacer *p, int parent)
{
    struct paced_look look;
    return p->late_us >= LATE_US || parent == p->builder ||
           (pace_look(parent, &look) &&
            (has_stopped(look.state) || (!is_late(&look) && is_paced(p, parent, look.born))));
}

/* Waits until it stands still; false if it waits for a processor longer. */
static bool pace_wait(struct limit_pacer *p, int pid)
{
    const struct timespec pause = {.tv_nsec = 50000};
    const uint64_t began = now_us();
    struct paced_look look;
    uint64_t waited = 0;
    bool runs;
    while ((runs = pace_look(pid, &look) && !has_stopped(look.state)) &&
           (waited <= STOPS_IN_US || (is_late(&look) && p->waited_us + waited <= PATIENCE_US))) {
        (void)nanosleep(&pause, NULL);
        waited = now_us() - began;
    }
    p->waited_us += waited;
    return !runs || !is_late(&look);
}

/* One step of the walk: stops `pid`, a child of `parent`. */
static void pace_stop(void *ctx, int pid, int parent)
{
    struct limit_pacer *p = ctx;
    struct paced_look look;
    auto_fd int fd = sys_pidfd_open(pid, 0);
    if (fd < 0 || !pace_look(pid, &look) || look.parent != parent || has_stopped(look.state))
        return;
    if (!stands(p, parent)) {
        p->late = true;
        return;
    }
    if (!is_paced(p, pid, look.born)) {
        if (p->n == p->room || sys_pidfd_kill(fd, SIGSTOP) < 0)
            return;
        p->stopped[p->n++] = (struct paced){.pid = pid, .born = look.born};
    }
    if (!pace_wait(p, pid))
        p->late = true;
}

void pacer_release(struct limit_pacer *p)
{
    while (p->n > 0) {
        const struct paced *it = &p->stopped[--p->n];
        struct paced_look look;
        auto_fd int fd = sys_pidfd_open(it->pid, 0);
        if (fd >= 0 && pace_look(it->pid, &look) && look.born == it->born)
            (void)sys_pidfd_kill(fd, SIGCONT);
    }
}

int pacer_start(struct limit_pacer *p, uint64_t thousandths)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const uint64_t slice = thousandths * 200 / (uint64_t)(processors > 0 ? processors : 1);
    p->room = PACED_MAX;
    p->stopped = calloc(p->room, sizeof *p->stopped);
    if (!p->stopped)
        return -ENOMEM;
    p->quota = thousandths > 0 ? thousandths : 1;
    p->slice_us = slice < SLICE_MIN_US ? SLICE_MIN_US : slice > SLICE_MAX_US ? SLICE_MAX_US : slice;
    return 0;
}

static uint64_t ticks_now(void)
{
    const uint64_t second = (uint64_t)sysconf(_SC_CLK_TCK);
    struct timespec t;
    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * second + (uint64_t)t.tv_nsec * second / 1000000000u;
}

void pacer_begin(struct limit_pacer *p, uint64_t now)
{
    p->looked_us = now;
    p->looked_ticks = ticks_now();
    p->idle_us = p->slice_us;
    p->next_us = now + p->slice_us;
}

/* One step of the walk. */
static void pace_count(void *ctx, int pid, int parent)
{
    struct paced_sum *sum = ctx;
    struct paced_look look;
    (void)parent;
    if (!pace_look(pid, &look))
        return;
    sum->ticks += look.ticks;
    sum->running += look.state == 'R' && look.born >= sum->since;
}

/* Microseconds of processor time since the last look, `passed` microseconds ago. */
static uint64_t pace_used(struct limit_pacer *p, const struct limit_watcher *box, uint64_t passed)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const uint64_t processors = online > 0 ? (uint64_t)online : 1;
    struct paced_sum sum = {.since = p->looked_ticks};
    watcher_walk(box, pace_count, &sum);
    const uint64_t now = sum.ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
    const uint64_t counted = now > p->last_us ? now - p->last_us : 0;
    const uint64_t guessed = (sum.running < processors ? sum.running : processors) * passed;
    const uint64_t used = counted > guessed ? counted : guessed;
    p->last_us = now;
    p->used_us += counted;
    return used;
}

static void pace_all(struct limit_pacer *p, const struct limit_watcher *box)
{
    unsigned before = UINT_MAX;
    p->waited_us = 0;
    p->late = false;
    p->builder = box->builder;
    for (unsigned pass = 0; pass < PASSES_MAX && before != p->n; pass++) {
        before = p->n;
        watcher_walk(box, pace_stop, p);
    }
}

/* How long the box has to stand still for what it owes. */
static uint64_t pays_in(const struct limit_pacer *p)
{
    return p->credit_us < 0 ? (uint64_t)-p->credit_us * 1000 / p->quota + 1 : 0;
}

void pacer_tick(struct limit_pacer *p, const struct limit_watcher *box, uint64_t now)
{
    const int64_t most = (int64_t)(p->quota * BURST_US / 1000);
    uint64_t used = 0;
    const uint64_t passed = now - p->looked_us;
    p->credit_us += (int64_t)(passed * p->quota / 1000);
    if (p->credit_us > most)
        p->credit_us = most;
    p->looked_us = now;
    p->late_us = p->n && p->late ? p->late_us + passed : 0;
    if (p->n == 0 || p->late) {
        used = pace_used(p, box, passed);
        p->credit_us -= (int64_t)used;
    }
    if (p->n == 0 ? p->credit_us < 0 : p->credit_us < 0 && p->late)
        pace_all(p, box);
    else if (p->n && p->credit_us >= 0)
        pacer_release(p);
    p->looked_ticks = ticks_now();
    p->idle_us = used || p->n ? p->slice_us : p->idle_us < 4u * p->slice_us ? 2 * p->idle_us : p->idle_us;
    const uint64_t owes = pays_in(p);
    p->next_us = now + (!p->n ? p->idle_us : p->late && owes > AGAIN_US ? AGAIN_US : owes);
}

void pacer_end(struct limit_pacer *p)
{
    pacer_release(p);
    free(p->stopped);
    *p = (struct limit_pacer){.quota = 0};
}
