/*
 * flock(2) of the box. Guards lock directories with it (hold.c), and any process that may read a directory could lock
 * it too, for as long as it likes: every box that needs that lock would be refused meanwhile. So locks on directories
 * that others see are refused. All other locks are made on a duplicate of the caller's descriptor, which shares its
 * open file description: the lock belongs to the caller. Unlocking needs no guard.
 *
 * To wait for a lock, another process of the guard retries: the kernel's queue would keep that process waiting even if
 * the caller has gone, and then get a lock without an owner. A signal that the caller would see ends the wait.
 *
 * The first LOCKS_OWN callers that wait have a process each. All others share one, the queue, which gets their
 * descriptors through a socket and tries all locks in turn; so waiting callers never use up the workers, and a file
 * system that hangs delays only those in the queue. It spends at most a tenth of its time on that.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include "base/fd.h"
#include "guard/calls/calls.h"
#include "sys/fd.h"
#include "sys/poll.h"
#include "sys/process.h"

#define PAUSE_MOST  20 /* ms */
#define LOCKS_OWN   16
#define LOCKS_MAX   65536 /* in the queue, if the limit of descriptors is not lower */
#define QUEUE_SPARE 128   /* descriptors for other use */
#define FULL_MS     10000 /* how long a full queue is waited for */

/* A call in the queue. */
struct waiting {
    uint64_t id;
    uint32_t tid;
    int operation, fd;
};

static int is_refused(struct guard *g, int fd, const struct sys_stat *st)
{
    char path[PLACE_PATH];
    size_t n;
    if (!S_ISDIR(st->mode))
        return 0;
    /* In a mount made by the caller the path was chosen by it: the place in the box counts. */
    int no = mount_ours(g, st->mount) ? path_of(g, fd, path, &n) : nested_path(g, fd, st, path, &n);
    if (no == 0 && n && rules_private(&g->rules, (struct str){path, n}))
        return 0;
    return deny(g, DENIAL_CHANGE, NULL, no == 0 ? (struct str){n ? path : "/", n ? n : 1} : STR("a directory"),
                GUARD_WHY_LOCK);
}

/* Only fatal signals interrupt a caller whose call is being performed (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV), so others are looked for. */
static int try_lock(int fd, int operation)
{
    return sys_flock(fd, operation | LOCK_NB);
}

static int wait_lock(struct guard *g, int fd, int operation)
{
    struct pollfd end = {.fd = g->init_pidfd, .events = POLLIN};
    int no = -EWOULDBLOCK;
    for (int pause = 1; no == -EWOULDBLOCK; pause = pause < PAUSE_MOST ? 2 * pause : PAUSE_MOST) {
        if (sys_poll_ms(&end, 1, pause) > 0)
            return -EINTR;
        no = target_valid(g);
        if (no == 0)
            no = signals_waiting(g->who->proc, "status") ? -EINTR : try_lock(fd, operation);
    }
    return no;
}

/* ---- the queue ---- */

static bool queue_try(struct guard *g, const struct waiting *w)
{
    char name[32];
    int no = sys_notify_valid(g->notify, w->id);
    if (no == 0) {
        (void)snprintf(name, sizeof name, "%u/status", w->tid);
        no = signals_waiting(g->host_proc, name) ? -EINTR : try_lock(w->fd, w->operation);
    }
    if (no == -EWOULDBLOCK)
        return false;
    (void)sys_close(w->fd); /* before the answer: the caller may end and others expect its lock to end with it */
    (void)sys_notify_answer(g->notify, w->id, 0, no, 0);
    return true;
}

/* How many calls fit: each needs a descriptor. */
static size_t queue_room(void)
{
    struct sys_rlimit limit;
    if (sys_prlimit(RLIMIT_NOFILE, NULL, &limit) < 0)
        return 0;
    limit.soft = limit.hard < LOCKS_MAX ? limit.hard : LOCKS_MAX;
    if (sys_prlimit(RLIMIT_NOFILE, &limit, NULL) < 0)
        return 0;
    return limit.soft > QUEUE_SPARE ? limit.soft - QUEUE_SPARE : 0;
}

static size_t queue_receive(struct guard *g, struct waiting *all, size_t n, size_t room)
{
    while (n < room) {
        int fd = -1;
        long got = sys_recv_fd(g->locks[0], &all[n], sizeof all[n], &fd, MSG_DONTWAIT);
        if (got < 0)
            break;
        all[n].fd = fd;
        if (fd >= 0)
            n++;
        else /* no descriptor was free */
            (void)sys_notify_answer(g->notify, all[n].id, 0, -ENOLCK, 0);
    }
    return n;
}

/* Until the box ends. */
static void queue_serve(struct guard *g)
{
    size_t n = 0, room = queue_room();
    struct waiting *all = sys_pages(LOCKS_MAX * sizeof *all);
    uint64_t due = 0;
    if (!all)
        room = 0;
    for (;;) {
        struct pollfd p[] = {{.fd = g->init_pidfd, .events = POLLIN},
                             {.fd = n < room ? g->locks[0] : -1, .events = POLLIN}};
        uint64_t now = now_ms();
        (void)sys_poll_ms(p, 2, n == 0 ? -1 : due > now ? (int)(due - now) : 0);
        if (p[0].revents)
            return;
        if (p[1].revents)
            n = queue_receive(g, all, n, room);
        now = now_ms();
        if (now < due)
            continue;
        for (size_t i = 0; i < n;) {
            if (!queue_try(g, &all[i])) {
                i++;
                continue;
            }
            all[i] = all[--n];
        }
        uint64_t took = now_ms() - now;
        due = now + took + (took * 9 > PAUSE_MOST ? took * 9 : PAUSE_MOST);
    }
}

/* The process is created for the first that needs it, and has a place of its own among the workers. */
static int queue_begin(struct guard *g)
{
    uint32_t none = 0;
    if (!atomic_compare_exchange_strong(&g->shared->lock_queue, &none, 1))
        return 0;
    int no = guard_child_kept(g);
    if (no == 1) {
        g->lent = close_fd(g->lent);
        targets_drop(g);
        queue_serve(g);
        guard_leave(g);
    }
    if (no < 0)
        atomic_store(&g->shared->lock_queue, 0);
    return no;
}

static long queue_add(struct guard *g, int fd, int operation)
{
    struct waiting w = {.id = g->n.id, .tid = g->n.pid, .operation = operation};
    if (queue_begin(g) < 0)
        return -ENOLCK;
    long n = sys_send_fd(g->locks[1], &w, sizeof w, fd, MSG_DONTWAIT);
    if (n == -EAGAIN) {
        struct pollfd p = {.fd = g->locks[1], .events = POLLOUT};
        (void)sys_poll_ms(&p, 1, FULL_MS);
        n = sys_send_fd(g->locks[1], &w, sizeof w, fd, MSG_DONTWAIT);
    }
    return n < 0 ? -ENOLCK : ANSWERED;
}

static long wait_somewhere(struct guard *g, int fd, int operation)
{
    _Atomic uint32_t *own = &g->shared->locks_own;
    int no = atomic_fetch_add(own, 1) < LOCKS_OWN ? guard_may_block(g) : -EAGAIN;
    if (no == GONE_ON) /* the child counts */
        return ANSWERED;
    long r = no == 0 ? wait_lock(g, fd, operation) : 0;
    atomic_fetch_sub(own, 1);
    return no == 0 ? r : queue_add(g, fd, operation);
}

long flock_call(struct guard *g, int fd, int operation)
{
    struct sys_stat st;
    auto_fd int own = target_fd(g, fd);
    int no = own < 0 ? own : sys_stat_fd(own, SYS_STAT_BASIC | SYS_STAT_MOUNT, &st);
    if (no == 0)
        no = is_refused(g, own, &st);
    if (no == 0)
        no = target_valid(g);
    if (no < 0)
        return no;
    /* Only the caller's own open file can hold its lock. A thread that exchanges the descriptor now could lock a directory,
       which delays other boxes' changes there until they are refused, and allows none. */
    if (g->again)
        return CONTINUE;
    no = try_lock(own, operation);
    if (no != -EWOULDBLOCK || (operation & LOCK_NB))
        return no;
    g->lent = own;
    long r = wait_somewhere(g, own, operation);
    g->lent = -1;
    return r;
}
