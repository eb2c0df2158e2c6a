/*
 * Waits for a box. One thread, one ppoll(2) per wake-up, over at most a dozen descriptors: pid 1's control socket, the
 * builder's socket, the builder's pidfd, the signalfd, an event of the control group, and existing relays. An event
 * library or epoll would add set-up calls to every run (epoll_create, one epoll_ctl each) and save nothing at this
 * size; libuv and libevent would also bring handlers and threads into a caller's process. Timers are deadlines, and the
 * nearest one is ppoll's timeout: without any, and without sampling, nothing wakes up while the command runs.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "supervisor/network/live.h"
#include "sys/fd.h"
#include "sys/poll.h"

#define ENDING_PATIENCE_US                                                                                             \
    10000000u /* for pid 1 to end before the builder is killed, on a machine that has no time for it */
#define REST_PATIENCE_US                                                                                               \
    40000000u /* then for what the guard still puts in place (guard_end): longer than it waits itself */
#define LAST_WORDS_MAX   (256u << 10) /* more than a terminal holds: what comes after it was not the command's */
#define BACKGROUND_US    1000000u     /* how often to look whether we have come to the foreground */
#define DEFAULT_GRACE_MS 2000u

/* What is killed reports no times: they are taken before. */
static void look_at_cpu(struct box *b)
{
    if (!b->result->status_known && !b->sessiond && b->result->cpu_us == 0)
        b->result->cpu_us = watcher_cpu(&b->means.watcher, &b->started);
}

void loop_end_box(struct box *b)
{
    if (b->stage >= STAGE_ENDING)
        return;
    struct frame f = {.kind = FRAME_END};
    look_at_cpu(b);
    limits_release(&b->means);
    fresh_end(b);
    box_send(b, &f);
    b->stage = STAGE_ENDING;
    b->deadline = now_us() + ENDING_PATIENCE_US;
}

void loop_limit(struct box *b, enum box_limit limit)
{
    if (b->hit.limit == BOX_LIMIT_NONE)
        b->hit.limit = limit;
    look_at_cpu(b);
    limits_kill(&b->means);
    loop_end_box(b);
}

/* --- frames ------------------------------------------------------------------------------------------------------- */

/* The box lives on, and what the command left in it may hold pipes open: what is there is read, no more is waited for. */
static void exec_ended(struct box *b)
{
    if (b->stage == STAGE_GONE)
        return;
    b->stage = STAGE_GONE;
    b->deadline = NEVER;
    b->stop_deadline = NEVER;
    io_box_gone(&b->io);
}

/* Nobody has read what the caller's signal was forwarded with, so nobody will act on it: the session daemon or pid 1 hangs. */
static void unheard(struct box *b)
{
    b->unheard_at = NEVER;
    if (b->stage == STAGE_GONE || b->started.control < 0 || !sys_unread(b->started.control))
        return;
    b->failed = err_say(b->err, ERR_SYSTEM,
                        "the session did not take the command, or the signal to it: process %d, which keeps the "
                        "session, or one below it is stopped or hangs",
                        b->exec->sessiond);
    (void)err_hint(b->err, b->failed, "try again, or end the session: pinfold session stop %s", b->exec->session);
    exec_ended(b);
}

static void verdict(struct box *b, const struct frame *f)
{
    if (b->failed == 0 && !b->result->status_known)
        b->failed = b->exec ? box_exec_verdict(f->a, (int)f->b, b->exec->cwd, b->err)
                            : engine_verdict(b->spec->start.plan, f->a, (int)f->b, b->err);
    if (b->failed >= 0 && !b->result->status_known)
        b->failed = -EIO;
    if (b->exec)
        exec_ended(b);
    loop_end_box(b);
}

static void command_ended(struct box *b, int status)
{
    struct box_result *r = b->result;
    if (!r->status_known) {
        r->status_known = true;
        r->by_signal = WIFSIGNALED(status);
        r->code = r->by_signal ? WTERMSIG(status) : WEXITSTATUS(status);
    }
    if (b->exec) {
        exec_ended(b);
    } else if (b->stage < STAGE_ENDING &&
               io_last_words(&b->io)) { /* the end of the box would take them along (runtime/init.c) */
        b->last_words = LAST_WORDS_MAX;
        b->deadline = NEVER; /* however slowly the caller's terminal takes them */
        question_drop_all(b, ANSWER_NOBODY);
    } else {
        loop_end_box(b);
    }
}

static void box_begun(struct box *b)
{
    const struct box_sessiond *k = b->sessiond;
    int r = k->begun(k->ctx, &b->started, b->err);
    b->begun = r == 0;
    if (r < 0)
        b->failed = r;
    if (r < 0)
        loop_end_box(b);
}

/* A command with limits of its own in somebody else's box. */
static void watch_command(struct box *b, int inside)
{
    struct limit_watcher *w = &b->means.watcher;
    w->memory = b->limits->memory.value;
    w->processes = b->limits->processes.value;
    w->command = watcher_find(b->exec->sessiond, inside);
    if (w->command < 0) {
        (void)err_say(b->err, ERR_CANNOT,
                      "the command's own limits cannot be enforced: its processes are not visible from outside");
        b->failed = -EOPNOTSUPP;
        exec_ended(b);
        return;
    }
    if (w->command == 0) /* the news of its end are under way */
        return;
    w->hard = w->on = true;
    watcher_start(w, &b->started, now_us());
}

static void control_frame(struct box *b, const struct frame *f)
{
    struct box_result *r = b->result;
    switch (f->kind) {
    case FRAME_VERDICT:
        verdict(b, f);
        break;
    case FRAME_EXEC_FAILED:
        r->exec_errno = (int)f->b;
        command_ended(b, (f->b == ENOENT || f->b == ENOTDIR ? 127 : 126) << 8);
        break;
    case FRAME_STOPPED:
        if (now_us() < b->stop_report_late)
            b->stop_report_late = 0;
        else if (b->command->foreground && b->stage == STAGE_RUNNING)
            signals_stop_self(b);
        break;
    case FRAME_EXIT:
        if (f->utime_us + f->stime_us > r->cpu_us) /* or it was looked at before the time was up */
            r->cpu_us = f->utime_us + f->stime_us;
        r->peak_bytes = f->maxrss_kib << 10;
        r->read_bytes = f->inblock * 512; /* getrusage(2): blocks of 512 bytes */
        r->written_bytes = f->oublock * 512;
        r->command = f->a;
        io_stdin_at(&b->io, f->stdin_at);
        limits_look(&b->means);
        if (f->c == EXIT_MEMORY && b->hit.limit == BOX_LIMIT_NONE)
            b->hit.limit = BOX_LIMIT_MEMORY;
        if (f->c == EXIT_OFFLINE) {
            box_keep_hear(b); /* what it tried has been sent, but perhaps not read */
            denial_offline(b, pending_has_network(b->result));
        }
        command_ended(b, (int)f->b);
        break;
    case FRAME_READY:
        if (b->sessiond && !b->begun)
            box_begun(b);
        break;
    case FRAME_STARTED:
        if (b->exec)
            watch_command(b, (int)f->a);
        break;
    case FRAME_IDLE:
        fresh_idle(b, f->a);
        break;
    default:
        break;
    }
}

/* The session daemon did not pass the command on. */
static void start_refused(struct box *b, const struct frame *f, const char *text, size_t n)
{
    enum err_kind kind = f->a > ERR_NONE && f->a <= ERR_BUG ? (enum err_kind)f->a : ERR_BUG;
    (void)err_say(b->err, kind, "%.*s", (int)n, text);
    b->err->no = (int)f->b;
    b->failed = f->b > 0 && f->b < 4096 ? -(int)f->b : -EIO;
    exec_ended(b);
}

/* The descriptor that came with a message, or -1; more than one is closed. */
static int passed_fd(struct msghdr *m)
{
    int found = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (found < 0)
                found = fd;
            else
                (void)close(fd);
        }
    }
    return found;
}

/* One message without waiting, with the descriptor that came with it (-1: none); like recvmsg(2), but -errno. */
static ssize_t receive_frame(int from, void *p, size_t room, int *ret_fd)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec io = {p, room};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n;
    /* A peer that ended with frames of ours unread leaves ECONNRESET, once, in front of what it had still sent. */
    do
        n = recvmsg(from, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    *ret_fd = n < 0 ? -1 : passed_fd(&m);
    return n < 0 ? -errno : n;
}

static void take_master(struct box *b, int master)
{
    io_master(&b->io, master);
    term_answered(&b->io.term);
    box_resize(b); /* it may have changed since the start */
}

/* Reads what there is from pid 1; false at the end of file. */
static bool read_control(struct box *b)
{
    for (;;) {
        struct {
            struct frame f;
            char text[sizeof b->err->text];
        } m;
        auto_fd int fd = -1;
        ssize_t n = receive_frame(b->started.control, &m, sizeof m, &fd);
        if (n == -EAGAIN)
            return true;
        if (n <= 0)
            return false;
        if (n == sizeof m.f && m.f.kind == FRAME_TTY && fd >= 0)
            take_master(b, take_fd(&fd));
        else if (n == sizeof m.f && m.f.kind == FRAME_CALLER && fd >= 0 && b->sessiond)
            b->sessiond->back(b->sessiond->ctx, take_fd(&fd), m.f.b);
        else if (n == sizeof m.f)
            control_frame(b, &m.f);
        else if (b->exec && n > (ssize_t)sizeof m.f && m.f.kind == FRAME_REFUSED)
            start_refused(b, &m.f, m.text, (size_t)n - sizeof m.f);
    }
}

/* To the checker; without one nobody has the other end, which is a no. */
static void pass_moves(const struct box *b, int asker)
{
    const struct frame f = {.kind = FRAME_MOVES};
    if (b->spec && b->spec->moves > 0)
        (void)sys_send_fd(b->spec->moves, &f, sizeof f, asker, MSG_DONTWAIT);
}

static bool read_builder(struct box *b)
{
    for (;;) {
        union {
            struct frame frame;
            struct denial_frame denial;
        } f;
        auto_fd int fd = -1;
        ssize_t n = receive_frame(b->started.builder, &f, sizeof f, &fd);
        if (n == -EAGAIN)
            return true;
        if (n <= 0)
            return false;
        if ((size_t)n >= offsetof(struct denial_frame, text) && f.denial.kind == FRAME_DENIAL)
            denial_frame(b, &f.denial, (size_t)n);
        else if ((size_t)n >= offsetof(struct denial_frame, text) && f.denial.kind == FRAME_TOLD)
            told_frame(b, &f.denial, (size_t)n);
        else if ((size_t)n >= offsetof(struct denial_frame, text) && f.denial.kind == FRAME_BUILT)
            built_frame(b, &f.denial, (size_t)n);
        else if ((size_t)n >= offsetof(struct denial_frame, text) && f.denial.kind == FRAME_SEEN)
            seen_frame(b, &f.denial, (size_t)n);
        else if (n == sizeof f.frame && f.frame.kind == FRAME_VERDICT)
            verdict(b, &f.frame);
        else if (n == sizeof f.frame && f.frame.kind == FRAME_GONE)
            b->all_gone = true;
        else if (n == sizeof f.frame && f.frame.kind == FRAME_PIPE && fd >= 0)
            io_pipe(&b->io, f.frame.a, take_fd(&fd));
        else if (n == sizeof f.frame && f.frame.kind == FRAME_GRANT && fd >= 0)
            grant_frame(b, fd);
        else if (n == sizeof f.frame && f.frame.kind == FRAME_INQUIRY && fd >= 0)
            inquiry_take(b, take_fd(&fd));
        else if (n == sizeof f.frame && f.frame.kind == FRAME_MOVES && fd >= 0)
            pass_moves(b, fd);
        else if (n == sizeof f.frame && f.frame.kind == FRAME_FRESH && fd >= 0)
            fresh_take(b, take_fd(&fd), f.frame.a != 0);
    }
}

void box_keep_hear(struct box *b)
{
    if (b->started.builder >= 0)
        (void)read_builder(b); /* its end is seen again by the loop */
}

/* --- one wake ----------------------------------------------------------------------------------------------------- */

enum slot {
    SLOT_CONTROL,
    SLOT_BUILDER,
    SLOT_PIDFD,
    SLOT_SIGNALS,
    SLOT_EVENT,
    SLOT_EGRESS,
    SLOT_SSH,
    SLOT_GPG,
    SLOT_CALLER,
    SLOT_PROMPT,
    SLOT_FEED,
    SLOT_MEANWHILE,
    SLOT_KEEPER, /* or the caller's word that a command is to end */
    SLOT_INQUIRY,
    SLOT_RELAYS = SLOT_INQUIRY + INQUIRIES_MAX
};
#define SLOTS (SLOT_RELAYS + 4)

static bool bytes_left(const struct box *b)
{
    for (unsigned i = 0; i < b->io.n_relays; i++) {
        if (!relay_done(&b->io.relays[i]))
            return true;
    }
    return false;
}

/* Stdin of a terminal in our background belongs to the foreground. */
static bool relay_waits(const struct box *b, unsigned i)
{
    const struct relay *r = &b->io.relays[i];
    if (r->kind != RELAY_CAPTURE && b->stage < STAGE_ENDING && prompt_shown(b))
        return true; /* while a person is asked the terminal shows nothing of the box, and types nothing to it */
    return r->kind == RELAY_IN && b->io.term.fd >= 0 && (r->pty || r->line_mode) && b->io.term.background;
}

/* Where the box has an egress: its caller, the person, the host's resolver. */
static void fill_live(const struct box *b, struct pollfd p[SLOTS], uint64_t *wake)
{
    p[SLOT_CALLER] = p[SLOT_PROMPT] = p[SLOT_FEED] = (struct pollfd){.fd = -1};
    if (!b->live || b->stage >= STAGE_ENDING)
        return;
    control_poll(b, &p[SLOT_CALLER]);
    prompt_poll(b, &p[SLOT_PROMPT]);
    p[SLOT_FEED] = (struct pollfd){.fd = b->live->feed.notify, .events = POLLIN};
    uint64_t next = question_next(b);
    if (b->live->feed.begins_at < next)
        next = b->live->feed.begins_at;
    if (next < *wake)
        *wake = next;
}

static void serve_live(struct box *b, const struct pollfd p[SLOTS], uint64_t now)
{
    if (b->stage >= STAGE_ENDING) {
        question_drop_all(b, ANSWER_NOBODY);
        return;
    }
    if (p[SLOT_CALLER].revents)
        control_ready(b);
    if (p[SLOT_PROMPT].revents && prompt_shown(b))
        prompt_ready(b);
    if (p[SLOT_FEED].revents)
        feed_ready(b);
    feed_due(b, now);
    question_due(b, now);
}

static uint64_t fill_slots(struct box *b, struct pollfd p[SLOTS], uint64_t now)
{
    uint64_t wake = b->deadline < b->stop_deadline ? b->deadline : b->stop_deadline;
    wake = b->unheard_at < wake ? b->unheard_at : wake;
    uint64_t sample = b->stage < STAGE_ENDING ? limits_next(&b->means) : NEVER;

    p[SLOT_CONTROL] = (struct pollfd){.fd = b->started.control, .events = POLLIN};
    p[SLOT_BUILDER] = (struct pollfd){.fd = b->started.builder, .events = POLLIN};
    p[SLOT_PIDFD] = (struct pollfd){.fd = b->stage == STAGE_GONE ? -1 : b->started.pidfd, .events = POLLIN};
    p[SLOT_SIGNALS] = (struct pollfd){.fd = b->signals.fd, .events = POLLIN};
    p[SLOT_EVENT] = (struct pollfd){.fd = b->stage < STAGE_ENDING ? b->means.oom_event : -1, .events = POLLIN};
    p[SLOT_EGRESS] = (struct pollfd){.fd = b->stage < STAGE_ENDING ? b->egress.events : -1, .events = POLLIN};
    for (int kind = 0; kind < FILTERS; kind++)
        p[SLOT_SSH + kind] =
            (struct pollfd){.fd = b->stage < STAGE_ENDING ? b->filters[kind].events : -1, .events = POLLIN};
    p[SLOT_MEANWHILE] = (struct pollfd){.fd = meanwhile_poll(b), .events = POLLIN};
    if (sample < wake)
        wake = sample;
    if (b->lasting_at < wake)
        wake = b->lasting_at;
    if (b->meanwhile.at < wake)
        wake = b->meanwhile.at;
    if (b->idle_look < wake)
        wake = b->idle_look;
    p[SLOT_KEEPER] = (struct pollfd){.fd = -1};
    if (b->begun && b->stage < STAGE_ENDING) {
        const struct box_sessiond *k = b->sessiond;
        uint64_t next = k->next(k->ctx);
        p[SLOT_KEEPER] = (struct pollfd){.fd = k->fd, .events = POLLIN};
        wake = next < wake ? next : wake;
    }
    if (b->exec && b->stage == STAGE_RUNNING)
        p[SLOT_KEEPER] = (struct pollfd){.fd = b->exec->cancel_fd, .events = POLLIN};
    fill_live(b, p, &wake);
    inquiry_poll(b, p + SLOT_INQUIRY);
    for (unsigned i = 0; i < 4; i++) {
        p[SLOT_RELAYS + i] = (struct pollfd){.fd = -1};
        if (i >= b->io.n_relays)
            continue;
        const struct relay *r = &b->io.relays[i];
        if (relay_waits(b, i) || !relay_poll(r, now, &p[SLOT_RELAYS + i], &wake))
            continue;
        if (r->drain && p[SLOT_RELAYS + i].fd == r->from)
            wake = 0; /* what is not there now will not come */
    }
    if (b->io.term.background && b->stage < STAGE_ENDING && now + BACKGROUND_US < wake)
        wake = now + BACKGROUND_US;
    return wake;
}

/* One relay's turn. The byte that goes over the output limit is not read: that it is there is enough. */
static void turn_relay(struct box *b, struct relay *r, const struct pollfd *p, uint64_t now)
{
    bool counted = r->kind != RELAY_IN && b->limits->output.value != LIMIT_NONE;
    uint64_t room = counted ? b->limits->output.value - b->io.out_bytes : SIZE_MAX;

    if (p->fd < 0)
        return;
    if (!p->revents) {
        if (r->drain && p->fd == r->from)
            relay_stop(r); /* somebody outside the box holds its end open: no reason to wait */
        return;
    }
    if (room == 0 && p->fd == r->from && (p->revents & POLLIN)) {
        b->hit.seen = b->io.out_bytes + 1;
        loop_limit(b, BOX_LIMIT_OUTPUT);
        relay_stop(r);
        return;
    }
    if (room == 0 && p->fd == r->from)
        room = 1; /* the end of file, to be read as such */
    size_t k = relay_step(r, room > SIZE_MAX ? SIZE_MAX : (size_t)room, now);
    if (counted)
        b->io.out_bytes += k;
    if (b->last_words && r == &b->io.relays[b->io.tty_out]) {
        b->last_words -= k < b->last_words ? k : b->last_words - 1;
        if (b->last_words == 1)
            relay_stop(r);
    }
}

static void move_bytes(struct box *b, const struct pollfd *p, uint64_t now)
{
    struct io *io = &b->io;

    for (unsigned i = 0; i < io->n_relays; i++) {
        if (!relay_waits(b, i)) /* not either if the question came in this turn, behind what poll(2) saw */
            turn_relay(b, &io->relays[i], &p[i], now);
    }
    if (b->stage < STAGE_ENDING && io_hung_up(io)) {
        /* Pid 1 may hold the pty open, too, so the kernel would tell nobody. */
        box_signal(b, SIGHUP, SIGNAL_FOREGROUND);
        box_signal(b, SIGCONT, SIGNAL_FOREGROUND);
        io_hang_up(io);
    }
}

static void gone(struct box *b)
{
    if (b->started.control >= 0)
        (void)read_control(b);
    if (b->started.builder >= 0)
        (void)read_builder(b);
    fresh_end(b);
    b->stage = STAGE_GONE;
    b->deadline = NEVER;
    b->stop_deadline = NEVER;
    io_box_gone(&b->io);
}

/* What is due by the clock. */
static void box_due(struct box *b, uint64_t now)
{
    if (b->stop_deadline <= now)
        signals_stop_due(b);
    if (b->unheard_at <= now)
        unheard(b);
    if (b->lasting_at <= now) {
        b->lasting_at = NEVER;
        b->spec->lasting(b->spec->lasting_ctx);
    }
    meanwhile_due(b, now);
    if (b->io.term.background && b->stage < STAGE_ENDING && term_is_foreground(&b->io.term)) {
        struct err ignored;
        b->io.term.background = false;
        (void)term_raw(&b->io.term, &ignored);
    }
    if (b->stage < STAGE_ENDING && limits_next(&b->means) <= now) {
        enum box_limit limit = limits_tick(&b->means, now, &b->hit);
        if (limit != BOX_LIMIT_NONE)
            loop_limit(b, limit);
    }
    if (b->last_words && (b->give_up_output || b->io.relays[b->io.tty_out].from < 0)) {
        b->last_words = 0;
        loop_end_box(b);
    }
    if (b->deadline > now)
        return;
    uint64_t grace = b->limits->grace.value == LIMIT_NONE ? DEFAULT_GRACE_MS : b->limits->grace.value;
    switch (b->stage) {
    case STAGE_RUNNING:
        b->timed_out = !b->cancelled;
        look_at_cpu(b); /* what ends now without being waited for is not in the command's own account */
        box_signal(b, SIGTERM, SIGNAL_EVERYONE);
        box_signal(b, SIGCONT, SIGNAL_EVERYONE); /* what is stopped could not act on it */
        b->stage = STAGE_GRACE;
        b->deadline = now + grace * 1000;
        break;
    case STAGE_GRACE:
        limits_kill(&b->means);
        loop_end_box(b);
        break;
    default:           /* pid 1 did not manage in time: the kernel does it by the builder's end */
        if (b->exec) { /* in a box of somebody else's there is nothing more to do */
            gone(b);
            break;
        }
        limits_kill(&b->means);
        engine_kill(&b->started);
        b->deadline = NEVER;
    }
}

static void serve_ready(struct box *b, const struct pollfd p[SLOTS])
{
    const uint64_t now = b->woken = now_us();
    if (p[SLOT_SIGNALS].revents)
        signals_read(b);
    if (p[SLOT_CONTROL].revents && !read_control(b)) {
        b->started.control = close_fd(b->started.control);
        loop_end_box(b); /* pid 1 has ended; the builder follows, or is made to */
        if (b->deadline != NEVER)
            b->deadline = now + REST_PATIENCE_US;
        if (b->exec && b->stage != STAGE_GONE)
            gone(b);
    }
    if (p[SLOT_BUILDER].revents && !read_builder(b))
        b->started.builder = close_fd(b->started.builder);
    if (p[SLOT_EGRESS].revents && !egress_read(b))
        egress_end(b);
    for (int kind = 0; kind < FILTERS; kind++) {
        if (p[SLOT_SSH + kind].revents && !filter_read(b, (enum filter_kind)kind))
            filter_end(b, (enum filter_kind)kind);
    }
    if (p[SLOT_EVENT].revents && limits_event(&b->means))
        loop_limit(b, BOX_LIMIT_MEMORY);
    if (b->live)
        serve_live(b, p, now);
    if (p[SLOT_KEEPER].revents && b->exec && b->stage == STAGE_RUNNING) {
        b->cancelled = true;
        b->deadline = now;
    } else if (b->begun && b->stage < STAGE_ENDING) {
        const struct box_sessiond *k = b->sessiond;
        if (p[SLOT_KEEPER].revents)
            k->ready(k->ctx);
        if (b->stage < STAGE_ENDING && k->next(k->ctx) <= now)
            k->due(k->ctx, now);
    }
    if (p[SLOT_MEANWHILE].revents)
        meanwhile_told(b, now);
    inquiry_ready(b, p + SLOT_INQUIRY, now);
    move_bytes(b, p + SLOT_RELAYS, now);
    if (b->stage != STAGE_GONE && (b->all_gone || p[SLOT_PIDFD].revents))
        gone(b);
    box_due(b, now);
    fresh_idle_due(b, now);
    fresh_awake(b, now);
}

static void idle(struct box *b)
{
    if (b->stage >= STAGE_ENDING || b->idle_at > now_us())
        return;
    const uint64_t us = b->spec->idle(b->spec->idle_ctx);
    b->idle_at = us == RUN_IDLE_NEVER ? NEVER : now_us() + us;
}

int loop(struct box *b)
{
    while (b->stage != STAGE_GONE || (bytes_left(b) && !b->give_up_output)) {
        struct pollfd p[SLOTS];
        uint64_t now = now_us(), wake = fill_slots(b, p, now);
        struct timespec wait;
        if (b->stage < STAGE_ENDING && b->idle_at < wake)
            wake = b->idle_at;
        if (wake != NEVER) {
            uint64_t us = wake > now ? wake - now : 0;
            wait = (struct timespec){(time_t)(us / 1000000u), (long)(us % 1000000u) * 1000};
        }
        int r = sys_poll(p, SLOTS, wake == NEVER ? NULL : &wait);
        if (r == -EINTR)
            continue;
        if (r == -EINVAL) /* poll(2): more entries than RLIMIT_NOFILE */
            return err_say(b->err, ERR_SYSTEM, "too few files may be open here (ulimit -n): a box needs %d",
                           SLOTS + 12);
        if (r < 0)
            return err_sys(b->err, ERR_BUG, -r, "cannot wait for the box");
        if (r == 0)
            idle(b);
        serve_ready(b, p);
    }
    return 0;
}
