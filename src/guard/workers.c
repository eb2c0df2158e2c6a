/*
 * Creates workers and passes the token on, for handlers whose call may block. The top of dispatch.c explains how
 * workers serve; it sets their loop in g->serve.
 */
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include "base/fd.h"
#include "guard/rules/rules.h"
#include "sys/process.h"

/* Calls: most commands that are over soon make fewer. A monitored box asks more often. */
#define APART_AFTER           512
#define APART_AFTER_MONITORED 64

/* To a worker that waits or was just created; the main worker is woken only if nobody else waits. */
void worker_hand_on(struct guard *g)
{
    uint64_t one = 1;
    install_leave(g);
    g->leader = false;
    atomic_store(&g->shared->busy_since, 0);
    bool summon = !g->main && atomic_load(&g->shared->idle) == 0 && atomic_load(&g->shared->main_idle) > 0;
    (void)sys_write(summon ? g->summon : g->token, &one, sizeof one);
}

/* Opens the descriptors and links of /proc that refer to the process itself. */
int worker_own(struct guard *g)
{
    g->self_fd = close_fd(g->self_fd);
    g->self_fd = sys_openat(g->host_proc, "self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (g->self_fd < 0)
        return g->self_fd;
    return sys_fchdir(g->self_fd);
}

_Noreturn void guard_leave(struct guard *g)
{
    atomic_fetch_sub(&g->shared->workers, 1);
    _exit(0);
}

/* A child registers itself while it cannot have been waited for, so the list never contains a reused pid. False: guard_end() has killed
   those in the list, and would wait for one that comes later for as long as its call blocks. */
static bool note_self(struct shared *s)
{
    int32_t pid = sys_getpid();
    table_lock(s);
    const bool late = s->ends;
    for (size_t i = 0; !late && i < WORKERS_MAX; i++) {
        if (s->pids[i] == 0) {
            s->pids[i] = pid;
            break;
        }
    }
    table_unlock(s);
    return !late;
}

static int child_of(struct guard *g, uint32_t most)
{
    struct shared *s = g->shared;
    if (atomic_fetch_add(&s->workers, 1) >= most) {
        atomic_fetch_sub(&s->workers, 1);
        return -EAGAIN;
    }
    /* All are children of the main worker, which notices when they end. */
    unsigned long flags = SIGCHLD | (g->main ? 0 : CLONE_PARENT);
    long pid = sys_call(SYS_clone, flags, 0, 0, 0, 0, 0);
    if (pid < 0)
        atomic_fetch_sub(&s->workers, 1);
    if (pid != 0)
        return pid < 0 ? (int)pid : 0;
    (void)sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    /* the parent died before PR_SET_PDEATHSIG took effect */
    if (!note_self(s) || sys_getppid() != g->main_pid)
        _exit(0);
    g->main = g->leader = false;
    g->names_held = 0;
    holds_forget(g);
    mounts_drop(g);
    install_leave(g);
    g->children = close_fd(g->children);
    if (worker_own(g) < 0)
        _exit(1);
    return 1;
}

int guard_child(struct guard *g)
{
    return child_of(g, WORKERS_MAX - 1);
}

int guard_child_kept(struct guard *g)
{
    return child_of(g, WORKERS_MAX);
}

/* A new worker that waits for the token, an eventfd, so that a token given early is not lost. The child never
   returns. */
static int worker_fork(struct guard *g)
{
    int no = guard_child(g);
    if (no == 1) {
        g->lent = close_fd(g->lent);
        g->serve(g);
        guard_leave(g);
    }
    return no;
}

/* Whether a worker waits for the token. */
static bool token_wanted(struct guard *g)
{
    return atomic_load(&g->shared->idle) > 0 || (!g->main && atomic_load(&g->shared->main_idle));
}

int guard_may_block(struct guard *g)
{
    if (g->main) { /* as leader or not, it must notice the end of the box */
        int no = guard_child(g);
        return no < 0 ? -EAGAIN : no == 0 ? GONE_ON : 0;
    }
    if (!g->leader)
        return 0;
    if (!token_wanted(g) && worker_fork(g) < 0)
        return -EAGAIN;
    worker_hand_on(g);
    return 0;
}

/* A worker that need not notice the end of the box can wait in the kernel for each call, without poll(2) before. */
void workers_apart(struct guard *g)
{
    const uint32_t after = g->plan->filter & FILTER_MONITOR ? APART_AFTER_MONITORED : APART_AFTER;
    if (g->main && g->leader && ++g->served == after && worker_fork(g) == 0)
        worker_hand_on(g);
}

void workers_share(struct guard *g)
{
    if (!g->parallel || !g->leader)
        return;
    if (token_wanted(g) || (atomic_load(&g->shared->workers) < g->processors && worker_fork(g) == 0))
        worker_hand_on(g);
}
