/*
 * The session daemon's life: starts the box, listens, handles events until the box or the daemon ends. One process,
 * one loop (supervisor/loop.c), whose callbacks are here.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include "sessiond/parts.h"
#include "sys/poll.h"

#define LOOK_US 60000000u /* how often it checks whether it can still be found */

void sessiond_report(int *report, int r, const struct err *e)
{
    struct keep_report m = {.r = r};
    if (e)
        m.err = *e;
    if (*report >= 0)
        (void)!write(*report, &m, sizeof m);
    *report = close_fd(*report);
}

/* By descriptor, so that neither the length of the path nor a link in it matters. */
static int make_listener(struct sessiond *k, struct err *e)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    auto_fd int dir = open(k->ask->run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    auto_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/" KEEP_SOCKET, dir);
    (void)unlinkat(dir, KEEP_SOCKET, 0);
    mode_t mask = umask(0177);
    const int credentials = k->ask->nested;
    if (credentials) {
        (void)setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &credentials, sizeof credentials);
        (void)setsockopt(fd, SOL_SOCKET, PASS_PIDFD, &credentials, sizeof credentials);
    }
    int r = dir < 0 || fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 1024) < 0 ? -errno : 0;
    (void)umask(mask);
    if (r == 0)
        r = sessiond_watch(k, fd, EPOLLIN, TICKET(SOURCE_LISTEN, 0));
    if (r < 0)
        return err_sys(e, ERR_SYSTEM, -r, "cannot create the session's socket in '%s'", k->ask->run);
    while (k->listener >= 0 && ask_accept(k)) /* serve clients that are connected to the old one */
        ;
    (void)close_fd(k->listener);
    k->listener = take_fd(&fd);
    return 0;
}

static int begin_daemon(struct sessiond *k, struct err *e)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    k->epoll = epoll_create1(EPOLL_CLOEXEC);
    k->signals = sys_signalfd(&set, SFD_CLOEXEC | SFD_NONBLOCK);
    int r = k->epoll < 0 ? -errno : k->signals < 0 ? k->signals : 0;
    if (r == 0)
        r = sessiond_watch(k, k->signals, EPOLLIN, TICKET(SOURCE_SIGNALS, 0));
    if (r < 0)
        return err_sys(e, ERR_SYSTEM, -r, "cannot start the session daemon");
    ask_begin(k);
    jobs_begin();
    shells_begin();
    return 0;
}

/* ---- callbacks of supervisor/ ---- */

static int begun(void *ctx, const struct started *s, struct err *e)
{
    struct sessiond *k = ctx;
    k->control = s->control;
    k->builder = s->pid;
    k->passes = command_may_pass(k);
    k->began = sessiond_now();
    k->look_at = k->began + LOOK_US;
    (void)sessiond_has_record(k);
    int r = make_listener(k, e);
    /* If the starter was killed, this process has the lock: nobody else starts a session of this name meanwhile. */
    if (r == 0 && k->ask->lock >= 0) {
        (void)flock(k->ask->lock, LOCK_UN);
        (void)close(k->ask->lock);
    }
    if (r == 0)
        sessiond_report(&k->report, 0, NULL);
    return r;
}

static void take_signals(struct sessiond *k)
{
    struct signalfd_siginfo i;
    struct err ignored;
    while (read(k->signals, &i, sizeof i) == (ssize_t)sizeof i) {
        if (i.ssi_signo == SIGUSR1) {
            if (!k->told && !sessiond_is_found(k))
                (void)make_listener(k, &ignored);
        } else if (k->box) {
            k->told = true;
            box_keep_end(k->box);
            sessiond_leave(k);
        }
    }
}

/* Stored files wait for the next session of this name; a limit that ended it is reported to callers of commands
   (session/session.c). */
static void mark_stopped(struct sessiond *k, const struct box_result *result)
{
    const struct limits *l = &k->ask->box.start.plan->policy->limits;
    const char *limit = k->told ? NULL : box_limit_name(result->limit);
    uint64_t value = result->limit == BOX_LIMIT_MEMORY      ? l->memory.value
                     : result->limit == BOX_LIMIT_PROCESSES ? l->processes.value
                                                            : l->disk.value;
    auto_buf struct buf text = BUF(16384);
    if ((!limit && !k->told) || !sessiond_has_record(k))
        return;
    if (limit)
        buf_printf(&text, "%s %" PRIu64 "\n", limit, value);
    for (size_t i = 0; limit && i < result->n_denials; i++) {
        const struct denial *d = &result->denials[i];
        if (same(d->kind, "limit"))
            buf_printf(&text, "%s\n%s\n", d->target, d->origin);
    }
    auto_fd int fd = open(k->ask->stopped, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && limit)
        (void)!write(fd, buf_cstr(&text), text.n);
}

static void ready(void *ctx)
{
    struct sessiond *k = ctx;
    struct epoll_event events[32];
    int n = epoll_wait(k->epoll, events, 32, 0);
    for (int i = 0; i < n; i++) {
        unsigned which = (uint32_t)events[i].data.u64;
        switch ((enum command_source)(events[i].data.u64 >> 32)) {
        case SOURCE_LISTEN:
            (void)ask_accept(k);
            break;
        case SOURCE_SIGNALS:
            take_signals(k);
            break;
        case SOURCE_CONNECTION:
            ask_ready(k, which);
            break;
        case SOURCE_JOB:
            jobs_frame(k, which);
            break;
        case SOURCE_JOB_OUT:
            jobs_bytes(k, which);
            break;
        case SOURCE_SHELL:
            shells_frame(k, which);
            break;
        case SOURCE_SHELL_CALLER:
            shells_heard(k, which);
            break;
        case SOURCE_ATTACHED:
            jobs_heard(k, which);
            break;
        default:
            break;
        }
    }
}

static uint64_t next_wake(void *ctx)
{
    const struct sessiond *k = ctx;
    uint64_t a = ask_next(ctx), b = jobs_next(), least = a < b ? a : b;
    return k->look_at < least ? k->look_at : least;
}

static void daemon_due(void *ctx, uint64_t now)
{
    struct sessiond *k = ctx;
    ask_due(k, now);
    jobs_due(k, now);
    if (k->look_at > now)
        return;
    k->look_at = now + LOOK_US;
    if (!sessiond_has_record(k) && k->box)
        box_keep_end(k->box);
}

static void sessiond_end(struct sessiond *k)
{
    sessiond_leave(k);
    k->epoll = close_fd(k->epoll);
    k->signals = close_fd(k->signals);
    buf_free(&k->image);
    free(k->list);
}

static void take_denial(void *ctx, const struct denial *d)
{
    if (d->session && !d->soft)
        jobs_denied(ctx, d);
    denied_keep(d);
}

int sessiond_run(const struct keep_ask *ask, struct err *e)
{
    static struct sessiond k; /* the only one of its process */
    k = (struct sessiond){.ask = ask,
                          .report = ask->report,
                          .epoll = -1,
                          .listener = -1,
                          .signals = -1,
                          .control = -1,
                          .image = BUF(JOB_MAX_BYTES + 1)};
    struct box_result result = {0};
    int r = begin_daemon(&k, e);
    const struct box_sessiond calls = {.ctx = &k,
                                       .begun = begun,
                                       .fd = k.epoll,
                                       .ready = ready,
                                       .next = next_wake,
                                       .due = daemon_due,
                                       .denied = take_denial,
                                       .back = ask_back};
    if (r == 0)
        r = box_keep(&ask->box, &calls, &k.box, &result, e);
    if (r == 0 && k.report >= 0)
        r = err_say(e, ERR_SYSTEM, "the session's box ended before it could serve");
    else if (r == 0)
        mark_stopped(&k, &result);
    if (r != -ENGINE_STALE) /* the caller plans again with what the machine really has */
        sessiond_report(&k.report, r, e);
    sessiond_end(&k);
    box_result_free(&result);
    return r;
}
