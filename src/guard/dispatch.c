/*
 * Receives notifications and distributes them over worker processes (workers.c), which share the listener. One of them,
 * the leader, holds the token and receives; the others wait for the token. Before a call that may block on something
 * the box controls (the other end of a FIFO, a full backlog), a worker passes the token on. The main worker, the
 * process that built the box, never blocks like that: it forks, and the child continues the call. So there is one
 * process while nothing blocks, never more than WORKERS_MAX, and always one that notices the end of the box. While
 * others are idle the main worker does not lead, so it need not fork for each blocking call either.
 *
 * When calls queue up and there is another processor, the leader passes the token on before it performs a call, and
 * answers no longer wake the caller on the leader's processor. When the queue is gone this is reversed: for a single
 * caller one leader and synchronous wake-ups are fastest.
 *
 * A leader that hangs in a dead file system is deposed by a waiting worker after HUNG_MS. All workers end with pid 1 of
 * the box, and the box ends with the main worker (pid 1 asked for that). If a worker dies everything ends, because
 * calls would be lost.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <linux/capability.h>
#include "base/fd.h"
#include "guard/calls/table.h"
#include "guard/calls/calls.h"
#include "sys/caps.h"
#include "sys/fd.h"
#include "sys/poll.h"
#include "sys/process.h"
#include "sys/socket.h"

#define IDLE_MAX  2 /* workers that wait for the token; more would be woken in vain */
#define HUNG_MS   10000
#define WAIT_MS   2000
#define REST_MS   30000 /* for watchers, who wait for locks themselves (names_lock.c, hold.c) */
#define ASK_EVERY 4     /* calls of one leader, until it asks whether others wait: each time costs a system call */
#define RULES_MAX (16u << 20) /* bytes of compiled rules */

/* ---- one call ---- */

static long serve_call(struct guard *g)
{
    const __u64 *a = g->n.data.args;
    switch (g->n.data.nr) {
#define X(call, perform, dir, path, action, expects)                                                                   \
    case SYS_##call:                                                                                                   \
        return perform;
        GUARD_CALLS(X)
#undef X
#define X(call, perform)                                                                                               \
    case SYS_##call:                                                                                                   \
        return perform;
        GUARD_OTHER_CALLS(X)
#undef X
    default:
        return -ENOSYS;
    }
}

/* Whether the first that the call's handler does with the caller, once it has read its texts, is to find a place (place_from()) or to take a descriptor (target_fd()). */
static bool finds_caller(const struct guard *g)
{
    if (g->plan->filter & FILTER_READS) /* running_judge() */
        return false;
    switch (g->n.data.nr) {
#define X(call, perform, dir, path, action, expects)                                                                   \
    case SYS_##call:                                                                                                   \
        return expects;
        GUARD_CALLS(X)
#undef X
    default:
        return false;
    }
}

static void serve_one(struct guard *g)
{
    const bool seen = monitor_only(g);
    g->quick = seen && quiet_call(g);
    if (g->quick) {
        (void)sys_notify_answer(g->notify, g->n.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
        return;
    }
    workers_share(g);
    install_next(g);
    g->last.used = false;
    if (!seen && atomic_load(&g->shared->watching))
        git_modules_settle(g);
    g->unread = false;
    long r = !seen && finds_caller(g) ? target_expect(g) : target_find(g);
    g->told = false;
    if (seen)
        r = monitor_look(g);
    else if (r == 0)
        r = running_judge(g);
    if (!seen && r == 0)
        r = serve_call(g);
    if (g->unread && r == -EPERM)
        (void)deny(g, DENIAL_READ, NULL, STR(GUARD_UNREAD), GUARD_WHY_MEMORY);
    if (!seen)
        monitor_result(g, r);
    if (r == ANSWERED || r == GONE_ON)
        return;
    if (r == CONTINUE)
        (void)sys_notify_answer(g->notify, g->n.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
    else
        (void)sys_notify_answer(g->notify, g->n.id, r < 0 ? 0 : r, r < 0 ? (int)r : 0, 0);
}

/* ---- workers ---- */

/* True if the worker exited normally, having had nothing to do. */
static bool reap_worker(struct guard *g, const siginfo_t *info)
{
    siginfo_t gone;
    if (info->si_code != CLD_EXITED || info->si_status != 0 ||
        sys_waitid(P_PID, info->si_pid, &gone, WEXITED | WNOHANG) < 0)
        return false;
    table_lock(g->shared);
    for (size_t i = 0; i < WORKERS_MAX; i++)
        if (g->shared->pids[i] == info->si_pid)
            g->shared->pids[i] = 0;
    table_unlock(g->shared);
    return true;
}

/* Whether the box, or one of us, has ended. Only the main worker can wait for the others. */
static bool over(struct guard *g)
{
    struct pollfd p = {.fd = g->init_pidfd, .events = POLLIN};
    if (sys_poll_ms(&p, 1, 0) > 0)
        return true;
    for (;;) {
        siginfo_t info = {0};
        if (!g->main || sys_waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
            return false;
        if (sys_poll_ms(&p, 1, 0) > 0 || !reap_worker(g, &info))
            return true;
    }
}

/* Signals are merged, so waitid tells what happened. */
static void children_read(struct guard *g)
{
    struct signalfd_siginfo info;
    (void)sys_read(g->children, &info, sizeof info);
}

/* The socket on which pinfold sends to the guard: only to its main worker. */
static int orders(const struct guard *g)
{
    return g->main && !g->deaf ? g->report : -1;
}

/* Receives a socket on which pinfold wants the file API. */
static void orders_read(struct guard *g)
{
    struct frame f;
    int fd = -1;
    long n = sys_recv_fd(g->report, &f, sizeof f, &fd, MSG_DONTWAIT);
    auto_fd int socket = fd;
    if (n == 0 || (n < 0 && n != -EAGAIN && n != -EINTR)) {
        g->deaf = true; /* pinfold has gone, so the box will end */
        return;
    }
    if (n < (long)sizeof f.kind || f.kind != FRAME_FILES || socket < 0 || !g->files)
        return;
    int no = atomic_fetch_add(&g->shared->files, 1) < FILES_MAX ? guard_child(g) : -EAGAIN;
    if (no == 1) {
        g->files(g, socket);
        atomic_fetch_sub(&g->shared->files, 1);
        guard_leave(g);
    }
    if (no < 0)
        atomic_fetch_sub(&g->shared->files, 1);
}

/* Waits for the token; false if everything ends, or enough others wait. */
static bool token_wait(struct guard *g)
{
    struct shared *s = g->shared;
    _Atomic uint32_t *waiting = g->main ? &s->main_idle : &s->idle;
    int token = g->main ? g->summon : g->token;
    if (atomic_fetch_add(waiting, 1) >= IDLE_MAX) {
        atomic_fetch_sub(waiting, 1);
        return false;
    }
    for (;;) {
        struct pollfd p[] = {{.fd = token, .events = POLLIN},
                             {.fd = g->main ? g->children : g->init_pidfd, .events = POLLIN},
                             {.fd = orders(g), .events = POLLIN}};
        int n = sys_poll_ms(p, 3, WAIT_MS);
        if (n > 0 && p[2].revents)
            orders_read(g);
        if (n > 0 && p[1].revents) {
            if (g->main)
                children_read(g);
            if (over(g))
                return false;
        }
        uint64_t one;
        if (n > 0 && p[0].revents && sys_read(token, &one, sizeof one) == sizeof one)
            break;
        uint64_t busy = atomic_load(&s->busy_since);
        if (n == 0 && busy && now_ms() - busy > HUNG_MS && atomic_compare_exchange_strong(&s->busy_since, &busy, 0)) {
            atomic_fetch_add(&s->epoch, 1); /* depose the hanging leader, which compares epochs */
            break;
        }
    }
    atomic_fetch_sub(waiting, 1);
    g->leader = true;
    g->epoch = atomic_load(&s->epoch);
    return true;
}

/* Waits for a notification; 1: there is one, 0: none after all, -1: the end. `ret_queued`, or NULL: whether it had
   come before. */
static int notification_wait(struct guard *g, bool *ret_queued)
{
    struct pollfd p[] = {{.fd = g->notify, .events = POLLIN},
                         {.fd = g->main ? g->children : g->init_pidfd, .events = POLLIN},
                         {.fd = orders(g), .events = POLLIN}};
    int n = ret_queued ? sys_poll_ms(p, 1, 0) : 0; /* the others' revents stay 0 */
    if (ret_queued)
        *ret_queued = n != 0;
    if (n == 0 && !g->main && !g->alone)
        return 1; /* it waits by receiving; the main worker ends it with the box */
    if (n == 0)
        n = sys_poll_ms(p, 3, -1);
    if (n <= 0)
        return 0;
    if (p[2].revents)
        orders_read(g);
    if (p[0].revents & POLLIN)
        return 1;
    /* POLLHUP: no process with the filter is left; only the end of pid 1 remains to wait for. */
    if (p[0].revents && !p[1].revents && sys_poll_ms(p + 1, 1, -1) <= 0)
        return 0;
    if (g->main)
        children_read(g);
    return over(g) ? -1 : 0;
}

static void wake_on_same_processor(struct guard *g, bool on)
{
    /* Linux 6.6; without it answers may cross processors, which only costs time. */
    (void)sys_notify_flags(g->notify, on ? SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP : 0);
}

/* If more calls wait than the leader serves at a time, others join in. */
static void queue_grew(struct guard *g, bool queued, unsigned *score)
{
    const unsigned step = g->parallel ? 1 : ASK_EVERY;
    if (queued && *score < 16)
        *score += step;
    else if (!queued)
        *score -= *score < step ? *score : step;
    if (!g->parallel && *score > 8) {
        g->parallel = true;
        wake_on_same_processor(g, false);
    } else if (g->parallel && *score == 0) {
        g->parallel = false;
        wake_on_same_processor(g, true);
    }
}

static void workers_serve(struct guard *g)
{
    struct shared *s = g->shared;
    unsigned score = 0, calls = 0;
    const bool handed = g->handed;
    g->handed = false;
    if (handed)
        serve_one(g);
    for (;;) {
        if (!g->leader && !token_wait(g))
            return;
        const bool ask = g->parallel || (!g->quick && ++calls % ASK_EVERY == 0);
        bool queued = false;
        int n = notification_wait(g, ask ? &queued : NULL);
        if (n < 0)
            return;
        if (n == 0)
            continue;
        memset(&g->n, 0, sizeof g->n);
        g->alone = sys_notify_receive(g->notify, &g->n) < 0;
        if (g->alone)
            continue; /* the caller died, or a signal came */
        atomic_store_explicit(&s->busy_since, now_ms(), memory_order_relaxed);
        /* A caller that was woken may come again before this worker runs again: that alone is no queue. */
        const bool other = atomic_exchange_explicit(&s->last, g->n.pid, memory_order_relaxed) != g->n.pid;
        if (ask)
            queue_grew(g, queued && other, &score);
        serve_one(g);
        workers_apart(g);
        if (g->leader && g->epoch != atomic_load(&s->epoch))
            g->leader = false; /* deposed while it hung */
        else if (g->leader && g->main && atomic_load(&s->idle) > 0)
            worker_hand_on(g);
        else if (g->leader)
            atomic_store_explicit(&s->busy_since, 0, memory_order_relaxed);
    }
}

/* ---- beginning and end ---- */

static int wait_status(const siginfo_t *info)
{
    if (info->si_code == CLD_EXITED)
        return info->si_status << 8;
    return info->si_status | (info->si_code == CLD_DUMPED ? 0x80 : 0);
}

int guard_end_of_init(int init_pidfd)
{
    siginfo_t info = {0};
    int no = sys_waitid(SYS_OF_PIDFD, init_pidfd, &info, WEXITED | __WALL);
    return no < 0 ? no : wait_status(&info);
}

/* Pid 1, which has ended, is not looked at here: it is waited for at the end. */
static bool worker_was_killed(struct guard *g)
{
    for (size_t i = 0; i < WORKERS_MAX; i++) {
        const int32_t pid = g->shared->pids[i];
        siginfo_t info = {0};
        if (pid && sys_waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid &&
            !reap_worker(g, &info))
            return true;
    }
    return false;
}

/* Pid 1 has ended. What a command wrote and closed is still to be judged and put in place (gitdir.c), however long that
   takes on a busy machine; watchers leave by themselves, and whoever was killed may have been one. */
static void watchers_finish(struct guard *g)
{
    const uint64_t until = now_ms() + REST_MS;
    while (atomic_load(&g->shared->watched) && now_ms() < until && !worker_was_killed(g)) {
        struct pollfd p = {.fd = g->children, .events = POLLIN};
        if (sys_poll_ms(&p, 1, WAIT_MS) > 0)
            children_read(g);
    }
}

/* Ends the workers, waits for pid 1. */
static int guard_end(struct guard *g)
{
    struct shared *s = g->shared;
    struct pollfd p = {.fd = g->init_pidfd, .events = POLLIN};
    siginfo_t info = {0};
    if (sys_poll_ms(&p, 1, 0) > 0) {
        watchers_finish(g);
        (void)names_lock(g, true); /* who is between an act and the judgement that may undo it comes to its end */
    }
    table_lock(s);
    s->ends = true;
    for (size_t i = 0; i < WORKERS_MAX; i++)
        if (s->pids[i]) /* not waited for yet, so the pid is still ours */
            (void)sys_kill(s->pids[i], SIGKILL);
    table_unlock(s);
    /* A worker died: closing the listener makes every call fail, and pid 1 ends with us. */
    g->notify = close_fd(g->notify);
    if (sys_poll_ms(&p, 1, 0) == 0)
        (void)sys_pidfd_kill(g->init_pidfd, SIGKILL);
    int no = guard_end_of_init(g->init_pidfd);
    for (size_t i = 0; i < WORKERS_MAX; i++)
        if (s->pids[i])
            (void)sys_waitid(P_PID, s->pids[i], &info, WEXITED | __WALL);
    return no;
}

static int guard_open(struct guard *g, const struct guard_ask *ask, struct arena *mem)
{
    const struct plan_image *plan = ask->plan;
    /* Assign field by field: the struct is zero, and most of its pages should stay untouched until used. */
    g->plan = plan;
    g->notify = ask->notify;
    g->host_proc = ask->host_proc;
    g->report = ask->report;
    g->files = ask->files;
    g->serve = workers_serve;
    g->n = ask->first;
    g->handed = ask->first.id != 0;
    g->init_pidfd = ask->init_pidfd;
    g->own_text = ask->text ? ask->text : guard_text();
    g->self_fd = g->token = g->summon = g->children = g->lent = g->mounts_fd = -1;
    g->main = g->leader = true;
    g->main_pid = sys_getpid();
    static const struct guard_table nothing = {.mode = GUARD_OFF};
    const struct guard_table *table = (const void *)((const char *)plan + plan->guard_at);
    bool some = plan->guard_bytes >= sizeof *table;
    int no = rules_load(&g->rules, some ? table : &nothing, some ? plan->guard_bytes : sizeof nothing,
                        (const char *)plan + plan->strings_at, plan->strings_bytes, mem);
    if (no < 0)
        return no;
    arena_trim(mem); /* kept as long as the box */
    g->shared = sys_pages_shared(sizeof *g->shared);
    if (!g->shared)
        return -ENOMEM;
    atomic_store(&g->shared->workers, 1);
    g->token = sys_eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    g->summon = sys_eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    (void)sys_sigmask(SIG_BLOCK, SYS_SIGNAL_BIT(SIGCHLD));
    g->children = sys_signalfd(&set, SFD_CLOEXEC | SFD_NONBLOCK);
    no = sys_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, g->locks);
    if (no < 0 || g->token < 0 || g->summon < 0 || g->children < 0)
        return -EMFILE;
    no = worker_own(g);
    if (no < 0)
        return no;
    g->has_ptrace = sys_caps_has(CAP_SYS_PTRACE);
    g->nested = g->plan->filter & FILTER_USERNS;
    const unsigned processors = sys_processors();
    g->processors = processors > 4 ? 4 : processors;
    char text[16];
    g->proc_has_us = sys_readlinkat(AT_FDCWD, "/proc/self", text, sizeof text) > 0;
    g->init_pid = g->proc_has_us ? pid_of_init(g) : 1;
    g->umask = 077;
    (void)sys_umask(077);
    wake_on_same_processor(g, true);
    return 0;
}

/* Waits until there is something to do: many short commands end without a notified call, so the rules are loaded and
   the shared memory is created for the first one. False: the box has ended. */
bool guard_asked(const struct guard_ask *ask, char *stack)
{
    enum { LASTING_MS = 1000 };
    struct pollfd p[] = {{.fd = ask->init_pidfd, .events = POLLIN},
                         {.fd = ask->notify, .events = POLLIN},
                         {.fd = ask->report, .events = POLLIN}};
    for (;;) {
        int n = sys_poll_ms(p, 3, stack ? LASTING_MS : -1);
        if (n == 0) {
            sys_stack_back(stack);
            stack = NULL;
        }
        if (n == 0 || n == -EINTR)
            continue;
        if (n >= 0 && p[0].revents)
            return false;
        if (n < 0 || p[1].revents & POLLIN || p[2].revents)
            return true;
        p[1].fd = -1; /* no process with the filter is left: pid 1 is about to end */
    }
}

int guard_serve(const struct guard_ask *ask)
{
    static struct guard g; /* large, and one per process */
    (void)sys_prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    g.plan = ask->plan;
    if (ask->plan->filter & FILTER_READS)
        hidden_begin(&g, (const void *)((const char *)ask->plan + ask->plan->guard_at), ask->plan->guard_bytes);
    if (ask->begun >= 0) {
        (void)sys_send_fd(ask->begun, "", 1, -1, 0);
        (void)sys_close(ask->begun);
    }
    if (!ask->first.id && !guard_asked(ask, NULL))
        return guard_end_of_init(ask->init_pidfd);
    auto_arena struct arena *mem = arena_new(RULES_MAX);
    if (!mem)
        return -ENOMEM;
    (void)sys_signal_ignore(SIGXFSZ);
    (void)sys_signal_ignore(SIGPIPE);
    (void)sys_signal_ignore(SIGIO); /* sent for a lease, before its watcher owns it (gitdir.c) */
    int no = guard_open(&g, ask, mem);
    if (no < 0)
        return no;
    if (!over(&g))
        workers_serve(&g);
    if (!g.main)
        guard_leave(&g); /* a child that continued a call of the main worker */
    no = guard_end(&g);
    monitor_end(&g);
    points_end(&g);
    told_end(&g);
    /* This process ends next, which frees everything. */
    return no;
}
