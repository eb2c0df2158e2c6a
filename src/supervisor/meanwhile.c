/*
 * What its caller does now and then while a box lives (run_spec.meanwhile), each time in a new process, for it may take long and nothing
 * else of the loop may wait for it. The first time is a second after the start. As long as it finds something new it is called each second,
 * otherwise after twice the time, up to twenty seconds; never before fifty times what the last one took of the processor have gone by.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "supervisor/parts.h"
#include "sys/fd.h"
#include "sys/process.h"

#define FIRST_US  1000000u
#define SELDOM_US 20000000u
#define SHARE     50u
#define POLITE    10
#define NEWS      1 /* its exit status */

void meanwhile_begin(struct box *b)
{
    const bool wanted = b->spec && b->spec->meanwhile;
    b->meanwhile = (struct meanwhile){.at = wanted ? b->began + FIRST_US : NEVER, .every = FIRST_US};
}

/* Nothing of this process's but the one descriptor goes along: not the layer's lock, and no pipe whose end somebody waits for. */
static _Noreturn void do_it(const struct run_spec *spec, int parent)
{
    const unsigned keep = (unsigned)spec->meanwhile_fd;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    if (keep > 0)
        (void)sys_close_range(0, keep - 1);
    (void)sys_close_range(keep + 1, ~0u);
    (void)setpriority(PRIO_PROCESS, 0, POLITE);
    _exit(spec->meanwhile(spec->meanwhile_ctx) ? NEWS : 0);
}

/* Whether it has ended; what it took says how long to wait for the next one. */
static bool has_ended(struct box *b, int flags)
{
    struct meanwhile *m = &b->meanwhile;
    struct rusage used = {0};
    int status = 0, r;
    do
        r = sys_wait4(m->pid, &status, flags | __WALL, &used);
    while (r == -EINTR);
    if (r == 0)
        return false;
    const uint64_t us = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000u +
                        (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NEWS)
        m->every = FIRST_US;
    if (us * SHARE > m->every)
        m->every = us * SHARE;
    m->pid = 0;
    return true;
}

void meanwhile_due(struct box *b, uint64_t now)
{
    struct meanwhile *m = &b->meanwhile;
    if (m->at > now)
        return;
    if (b->stage >= STAGE_ENDING) {
        m->at = NEVER;
        return;
    }
    const bool busy = m->pid > 0 && !has_ended(b, WNOHANG);
    m->at = now + m->every;
    if (busy)
        return;
    /* As of a box's own processes: no signal, and no wait(2) of a library's caller sees it. */
    const struct sys_clone how = {.exit_signal = 0};
    const int parent = getpid(), pid = sys_clone3(&how);
    if (pid == 0)
        do_it(b->spec, parent);
    m->pid = pid > 0 ? pid : 0;
    m->began = now;
    m->every = m->every < SELDOM_US / 2 ? m->every * 2 : m->every > SELDOM_US ? m->every : SELDOM_US;
}

/* Soon again, but not at once after the last one: something has happened. */
void meanwhile_soon(struct box *b, uint64_t now)
{
    struct meanwhile *m = &b->meanwhile;
    const uint64_t next = m->began + FIRST_US > now ? m->began + FIRST_US : now;
    if (m->at != NEVER && m->pid == 0 && next < m->at) {
        m->at = next;
        m->every = FIRST_US;
    }
}

void meanwhile_end(struct box *b)
{
    struct meanwhile *m = &b->meanwhile;
    m->at = NEVER;
    if (m->pid <= 0)
        return;
    (void)kill(m->pid, SIGKILL);
    (void)has_ended(b, 0);
}
