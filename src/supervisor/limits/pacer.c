/*
 * The pacer: holds `limits.cpus` where no control group can. It stops all processes of the box (SIGSTOP) whenever they
 * have used more processor time than they earned, and continues them (SIGCONT) once the time that has passed has paid
 * for it. So over a second the limit holds; within a slice of some 5 to 50 ms the box has all processors.
 *
 * Parents are stopped before their children and continued after them, and each is seen to stop before its children are
 * looked for. So no shell inside, and not pid 1 of the box, ever waits for a child that is stopped while it runs itself:
 * wait(2) reports a stop only as long as it lasts, and nobody takes it for Ctrl-Z. Only what was stopped here is
 * continued: a job that somebody stopped inside stays so.
 *
 * What is approximate: a process that ended within a slice and that nobody waited for is not counted; one that is
 * created in the moment of the stop may run on; a tracer (gdb, strace) sees the signals, and full-screen programs draw
 * again. Processor time is from proc_pid_stat(5), in clock ticks.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "supervisor/parts.h"
#include "sys/process.h"

#define SLICE_MAX_US 50000u
#define SLICE_MIN_US 5000u
#define BURST_US     100000u /* what a box that was idle may use beyond its limit: the limit's worth of this time */
#define STOPS_IN_US                                                                                                    \
    2000u /* a process that is inside a guarded call stops when that ends; it is not waited for longer */

struct paced {
    int pid;
    uint64_t born; /* clock ticks since the machine's start: a pid may be used again */
};

struct paced_look {
    char state;
    int parent;
    uint64_t born;
};

/* proc_pid_stat(5): fields 3, 4 and 22. */
static bool pace_look(int pid, struct paced_look *ret)
{
    char path[48], text[PROC_TEXT];
    unsigned long long born = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const char *p = watcher_read(path, text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
    if (!p || sscanf(p, ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &ret->state,
                     &ret->parent, &born) != 3)
        return false;
    ret->born = born;
    return true;
}

static bool has_stopped(char state)
{
    return state == 'T' || state == 't' || state == 'Z' || state == 'X';
}

/* One step of the walk: stops `pid`, a child of `parent`, and waits until it stands still. */
static void pace_stop(void *ctx, int pid, int parent)
{
    struct limit_pacer *p = ctx;
    const struct timespec pause = {.tv_nsec = 50000};
    struct paced_look look;
    auto_fd int fd = sys_pidfd_open(pid, 0);
    if (fd < 0 || p->n == p->room || !pace_look(pid, &look) || look.parent != parent || has_stopped(look.state) ||
        sys_pidfd_kill(fd, SIGSTOP) < 0)
        return;
    p->stopped[p->n++] = (struct paced){.pid = pid, .born = look.born};
    for (uint64_t until = now_us() + STOPS_IN_US;
         now_us() < until && pace_look(pid, &look) && !has_stopped(look.state);)
        (void)nanosleep(&pause, NULL);
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

void pacer_begin(struct limit_pacer *p, uint64_t now)
{
    p->looked_us = now;
    p->idle_us = p->slice_us;
    p->next_us = now + p->slice_us;
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
    p->credit_us += (int64_t)((now - p->looked_us) * p->quota / 1000);
    if (p->credit_us > most)
        p->credit_us = most;
    p->looked_us = now;
    if (p->n == 0) {
        const uint64_t sum = watcher_cpu(box, &(struct started){.pid = box->builder});
        used = sum > p->seen_us ? sum - p->seen_us : 0;
        p->seen_us = sum;
        p->credit_us -= (int64_t)used;
        if (p->credit_us < 0)
            watcher_walk(box, pace_stop, p);
    } else if (p->credit_us >= 0) {
        pacer_release(p);
    }
    p->idle_us = used || p->n ? p->slice_us : p->idle_us < 4u * p->slice_us ? 2 * p->idle_us : p->idle_us;
    p->next_us = now + (p->n ? pays_in(p) : p->idle_us);
}

void pacer_end(struct limit_pacer *p)
{
    pacer_release(p);
    free(p->stopped);
    *p = (struct limit_pacer){.quota = 0};
}
