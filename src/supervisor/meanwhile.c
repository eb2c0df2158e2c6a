/*
 * What its caller does now and then while a box lives (run_spec.meanwhile), each time in a new process, because it may take long and the
 * loop must not wait for it. The first time is a quarter of a second after the start; from then on a change of what the caller watches makes
 * the next one due a twentieth of a second later, then after twice the time, up to twenty seconds, and each second as long as it finds
 * something new. It never takes more than a fiftieth of the processor. Where nothing can be watched (inotify has its limits), only the clock
 * says when.
 */
#include <errno.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "supervisor/parts.h"
#include "sys/fd.h"
#include "sys/process.h"

#define WATCH_US                                                                                                       \
    250000u /* of a box's life before anything is watched: a short command does not wait for the end of a watch */
#define FIRST_US  1000000u
#define SOON_US   50000u
#define SELDOM_US 20000000u
#define SHARE     50u
#define POLITE    10
#define NEWS      1 /* its exit status */

void meanwhile_begin(struct box *b)
{
    const struct run_spec *spec = b->spec;
    const bool wanted = spec && spec->meanwhile, watches = wanted && spec->meanwhile_watch;
    b->meanwhile = (struct meanwhile){.at = wanted ? b->began + (watches ? WATCH_US : FIRST_US) : NEVER,
                                      .every = FIRST_US,
                                      .watch = -1,
                                      .new = watches};
}

/* The kernel takes 20 ms to end a watch, in which nobody else can be told of the box's end: so there is none at first. */
static void begin_watch(struct box *b)
{
    const struct run_spec *spec = b->spec;
    b->meanwhile.new = false;
    b->meanwhile.watch = sys_inotify(IN_CLOEXEC | IN_NONBLOCK);
    if (b->meanwhile.watch >= 0)
        spec->meanwhile_watch(spec->meanwhile_ctx, b->meanwhile.watch, false);
}

/* Nothing of this process's but two descriptors goes along: not the layer's lock, and no pipe whose end somebody waits for. */
static _Noreturn void do_it(const struct run_spec *spec, int watch, int parent)
{
    const int keep = spec->meanwhile_fd, low = watch >= 0 && watch < keep ? watch : keep,
              high = watch > keep ? watch : keep;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    if (low > 0)
        (void)sys_close_range(0, (unsigned)low - 1);
    if (high > low + 1)
        (void)sys_close_range((unsigned)low + 1, (unsigned)high - 1);
    (void)sys_close_range((unsigned)high + 1, ~0u);
    (void)setpriority(PRIO_PROCESS, 0, POLITE);
    if (watch >= 0) /* before it looks, so that nothing that changes between is missed */
        spec->meanwhile_watch(spec->meanwhile_ctx, watch, true);
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
    if (WIFEXITED(status) && WEXITSTATUS(status) == NEWS && m->every > FIRST_US)
        m->every = FIRST_US;
    m->least = us * SHARE;
    if (m->least > m->every)
        m->every = m->least;
    m->pid = 0;
    return true;
}

/* What was told until now is what the look that begins will see. */
static void forget_told(struct meanwhile *m)
{
    char room[4096];
    while (m->told && sys_read(m->watch, room, sizeof room) > 0)
        ;
    m->told = false;
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
    if (m->new)
        begin_watch(b);
    const bool busy = m->pid > 0 && !has_ended(b, WNOHANG);
    m->at = now + m->every;
    if (!busy && m->began + m->least > now)
        m->at = m->began + m->least;
    if (busy || m->began + m->least > now)
        return;
    forget_told(m);
    /* As of a box's own processes: no signal, and no wait(2) of a library's caller sees it. */
    const struct sys_clone how = {.exit_signal = 0};
    const int parent = getpid(), pid = sys_clone3(&how);
    if (pid == 0)
        do_it(b->spec, m->watch, parent);
    m->pid = pid > 0 ? pid : 0;
    m->began = now;
    m->every = m->every < SELDOM_US / 2 ? m->every * 2 : m->every > SELDOM_US ? m->every : SELDOM_US;
}

static void look_after(struct meanwhile *m, uint64_t now, uint64_t us)
{
    const uint64_t wait = m->least > us ? m->least : us;
    const uint64_t next = m->began + wait > now ? m->began + wait : now;
    if (m->at == NEVER || next >= m->at)
        return;
    m->at = next;
    m->every = us;
}

/* Soon again, but not at once after the last one: something has happened. */
void meanwhile_soon(struct box *b, uint64_t now)
{
    if (b->meanwhile.pid == 0)
        look_after(&b->meanwhile, now, FIRST_US);
}

int meanwhile_poll(const struct box *b)
{
    return b->stage < STAGE_ENDING && !b->meanwhile.told ? b->meanwhile.watch : -1;
}

/* What is watched has changed. The rest of it is not listened to before the next look, which watches anew. */
void meanwhile_told(struct box *b, uint64_t now)
{
    struct meanwhile *m = &b->meanwhile;
    m->told = true;
    look_after(m, now, SOON_US);
    if (m->at == now) /* a change is often several: not the first of them alone */
        m->at += SOON_US / 10;
}

void meanwhile_end(struct box *b)
{
    struct meanwhile *m = &b->meanwhile;
    m->at = NEVER;
    sys_drop(&m->watch);
    if (m->pid <= 0)
        return;
    (void)kill(m->pid, SIGKILL);
    (void)has_ended(b, 0);
}
