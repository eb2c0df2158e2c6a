/*
 * Runs a command in a persistent shell: the text is sent as one quoted word of `eval`, with standard input from
 * /dev/null. Its status comes back on the shell's own standard input, a socket that no child of the shell has. Output
 * is drained once the status has arrived. The session daemon only handles signals and the end (sessiond/shell.c).
 */
#include "session/shell.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "supervisor/parts.h"
#include "session/ask.h"
#include "sys/fd.h"
#include "sys/poll.h"
#include "protocol/job.h"

#define MAX_TEXT      (2u << 20)
#define DEFAULT_GRACE 2000u /* milliseconds */
#define LAST_GRACE_US                                                                                                  \
    3000000u /* for a shell whose children are dead to say so, or it is ended: all it remembers is lost then */
#define END_US         10000000u /* for its session daemon to say that it has ended */
#define SLOW_CALLER_US 20000u

struct stream {
    int from; /* our end of the shell's pipe */
    int to;   /* the caller's descriptor, or -1: captured */
    struct buf *capture;
    size_t max;
    bool *truncated;
    bool broken;
};

enum shell_stage { RUNNING, TERM_SENT, KILL_SENT, END_SENT };

struct run {
    const struct pinfold_exec_options *o;
    struct box_result *result;
    struct buf text;
    size_t sent;
    int conn, commands, signals;
    struct stream streams[2];
    char status[16];
    size_t status_n;
    bool done, shell_ended, timed_out;
    enum shell_stage stage;
    uint64_t deadline, unheard_at, grace_us;
};

static void compose_line(struct buf *b, const struct pinfold_exec_options *o)
{
    for (const char *const *v = o->env; v && *v; v++) {
        const char *equals = strchr(*v, '=');
        buf_text(b, "export ");
        buf_put(b, *v, (size_t)(equals - *v + 1));
        buf_shell_word(b, str_of(equals + 1));
        buf_text(b, "; ");
    }
    if (o->cwd) {
        buf_text(b, "cd -- ");
        buf_shell_word(b, str_of(o->cwd));
        buf_text(b, " && ");
    }
    buf_text(b, "command eval ");
    buf_shell_word(b, str_of(o->argv[0]));
    buf_text(b, " </dev/null; command printf '%s\\n' \"$?\" >&0\n");
}

/* What the shell is, for when there is none of this name: 8-byte aligned behind the name. */
static int ask_for_shell(const struct pinfold_exec_options *o, int conn, struct err *e)
{
    static const char *const argv[] = {
        "/bin/sh", "-c", "if command -v bash >/dev/null 2>&1; then exec bash --noprofile --norc; else exec sh; fi",
        NULL};
    auto_buf struct buf image = BUF(JOB_MAX_BYTES), both = BUF(JOB_MAX_BYTES + 128);
    const struct pinfold_exec_options shell = {.argv = argv};
    int r = exec_image(&shell, 0, 0, 0, 022, &image, e);
    if (r < 0)
        return r;
    buf_text(&both, o->shell);
    do
        buf_char(&both, 0);
    while (both.n % 8);
    buf_put(&both, image.p, image.n);
    if (!buf_ok(&both))
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read the command");
    return ask_send(conn, (struct keep_request){.op = KEEP_SHELL}, buf_view(&both), NULL, 0, e);
}

static int take_ends(struct run *r, uint32_t *ret_how, uint32_t *ret_shell, struct err *e)
{
    struct {
        struct frame f;
        char text[sizeof e->text];
    } m;
    int fds[3];
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof fds)];
    } c;
    struct iovec v = {&m, sizeof m};
    struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    ssize_t n;
    do
        n = recvmsg(r->conn, &h, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < (ssize_t)sizeof m.f) {
        (void)err_say(e, ERR_SYSTEM, "the session ended before it answered");
        return -ESTALE;
    }
    if (m.f.kind == FRAME_REFUSED) {
        (void)err_say(e, m.f.a <= ERR_BUG ? (enum err_kind)m.f.a : ERR_BUG, "%.*s", (int)((size_t)n - sizeof m.f),
                      m.text);
        return m.f.b > 0 && m.f.b < 4096 ? -(int)m.f.b : -EIO;
    }
    struct cmsghdr *first = CMSG_FIRSTHDR(&h);
    if (m.f.kind != FRAME_ANSWER || !first || first->cmsg_len != CMSG_LEN(sizeof fds))
        return err_say(e, ERR_BUG, "cannot read the session's answer");
    memcpy(fds, CMSG_DATA(first), sizeof fds);
    r->commands = fds[0];
    r->streams[0].from = fds[1];
    r->streams[1].from = fds[2];
    *ret_how = m.f.c;
    *ret_shell = m.f.b;
    return 0;
}

static void say_to(const struct run *r, uint32_t kind, uint32_t a, uint32_t b)
{
    const struct frame f = {.kind = kind, .a = a, .b = b};
    (void)send(r->conn, &f, sizeof f, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* ---- bytes ---- */

static void deliver(struct run *r, int which, const char *p, size_t n)
{
    struct stream *s = &r->streams[which];
    if (s->to < 0) {
        size_t room = s->max > s->capture->n ? s->max - s->capture->n : 0, kept = n < room ? n : room;
        buf_put(s->capture, p, kept);
        *s->truncated = *s->truncated || kept < n;
        if (r->o->output)
            r->o->output(r->o->ctx, which + 1, p, n);
        return;
    }
    while (n && !s->broken) {
        ssize_t k = write(s->to, p, n);
        if (k < 0 && errno == EAGAIN) {
            const struct timespec moment = {0, SLOW_CALLER_US * 1000};
            struct pollfd w = {.fd = s->to, .events = POLLOUT};
            (void)sys_poll(&w, 1, &moment);
        } else if (k < 0 && errno != EINTR) {
            s->broken = true;
            if (errno != EPIPE)
                r->result->output_errno = errno;
        } else if (k > 0) {
            p += k;
            n -= (size_t)k;
        }
    }
}

/* Reads what is there now. */
static void drain(struct run *r, int which)
{
    char bytes[16384];
    for (;;) {
        ssize_t n = r->streams[which].from < 0 ? 0 : read(r->streams[which].from, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            if (n == 0)
                r->streams[which].from = close_fd(r->streams[which].from);
            return;
        }
        deliver(r, which, bytes, (size_t)n);
    }
}

static void send_text(struct run *r)
{
    while (r->sent < r->text.n) {
        ssize_t n = send(r->commands, r->text.p + r->sent, r->text.n - r->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            if (errno != EAGAIN)
                r->sent = r->text.n; /* the shell is gone; its session daemon says how */
            return;
        }
        r->sent += (size_t)n;
    }
}

static void take_status(struct run *r)
{
    ssize_t n = recv(r->commands, r->status + r->status_n, sizeof r->status - 1 - r->status_n, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        r->commands = close_fd(r->commands);
        return;
    }
    r->status_n += (size_t)n;
    r->status[r->status_n] = 0;
    if (!strchr(r->status, '\n') && r->status_n < sizeof r->status - 1)
        return;
    int code = atoi(r->status);
    r->result->status_known = true;
    r->result->by_signal = false;
    r->result->code = code & 255;
    r->done = true;
}

/* The session daemon's word that the shell itself has ended. */
static void hear_run(struct run *r)
{
    struct frame f;
    ssize_t n = recv(r->conn, &f, sizeof f, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == (ssize_t)sizeof f && f.kind == FRAME_EXIT) {
        r->result->status_known = true;
        r->result->by_signal = WIFSIGNALED((int)f.b);
        r->result->code = r->result->by_signal ? WTERMSIG((int)f.b) : WEXITSTATUS((int)f.b);
        r->result->cpu_us = f.utime_us + f.stime_us;
        r->result->peak_bytes = f.maxrss_kib << 10;
    }
    if (n == (ssize_t)sizeof f && f.kind == FRAME_EXEC_FAILED) {
        r->result->status_known = true;
        r->result->code = 127;
        r->result->exec_errno = (int)f.b;
    }
    r->done = r->shell_ended = true;
}

/* ---- waiting ---- */

static void due(struct run *r, uint64_t now)
{
    switch (r->stage) {
    case RUNNING:
        say_to(r, FRAME_SIGNAL, SIGTERM, SIGNAL_CHILDREN);
        say_to(r, FRAME_SIGNAL, SIGCONT, SIGNAL_CHILDREN);
        r->deadline = now + r->grace_us;
        r->stage = TERM_SENT;
        break;
    case TERM_SENT:
        say_to(r, FRAME_SIGNAL, SIGKILL, SIGNAL_CHILDREN);
        r->deadline = now + LAST_GRACE_US;
        r->stage = KILL_SENT;
        break;
    case KILL_SENT: /* the shell itself is what goes on */
        say_to(r, FRAME_END, 0, 0);
        r->deadline = now + END_US;
        r->stage = END_SENT;
        break;
    case END_SENT:
        r->done = r->shell_ended = true;
    }
}

static void pass_signals(struct run *r)
{
    struct signalfd_siginfo i;
    while (read(r->signals, &i, sizeof i) == (ssize_t)sizeof i) {
        const int sig = (int)i.ssi_signo;
        say_to(r, FRAME_SIGNAL, i.ssi_signo, SIGNAL_CHILDREN);
        if (r->unheard_at == NEVER && (sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT))
            r->unheard_at = now_us() + UNHEARD_US;
    }
}

/* As of a command without a shell (supervisor/loop.c). */
static int check_heard(struct run *r, uint64_t now, struct err *e)
{
    if (r->unheard_at > now)
        return 0;
    r->unheard_at = NEVER;
    return sys_unread(r->conn)
               ? err_say(e, ERR_SYSTEM,
                         "the session did not take the signal: the process that keeps it is stopped or hangs")
               : 0;
}

static int follow_run(struct run *r, struct err *e)
{
    while (!r->done) {
        struct pollfd p[6] = {
            {.fd = r->conn, .events = POLLIN},
            {.fd = r->commands, .events = (short)(POLLIN | (r->sent < r->text.n ? POLLOUT : 0))},
            {.fd = r->streams[0].from, .events = POLLIN},
            {.fd = r->streams[1].from, .events = POLLIN},
            {.fd = r->signals, .events = POLLIN},
            {.fd = r->stage == RUNNING && r->o->cancel_fd > 0 ? r->o->cancel_fd : -1, .events = POLLIN}};
        const uint64_t now = now_us(), next = r->deadline < r->unheard_at ? r->deadline : r->unheard_at;
        const uint64_t left = next > now ? next - now : 0;
        const struct timespec wait = {(time_t)(left / 1000000), (long)(left % 1000000) * 1000};
        int n = sys_poll(p, 6, next == NEVER ? NULL : &wait);
        if (n < 0 && n != -EINTR)
            return err_sys(e, ERR_SYSTEM, -n, "cannot wait for the shell");
        if (n > 0 && p[4].revents)
            pass_signals(r);
        if (check_heard(r, now_us(), e) < 0)
            return -EIO;
        if (n > 0 && p[1].revents & POLLOUT)
            send_text(r);
        for (int i = 0; i < 2; i++) {
            if (n > 0 && p[2 + i].revents)
                drain(r, i);
        }
        if (n > 0 && p[1].revents & (POLLIN | POLLHUP))
            take_status(r);
        if (n > 0 && p[0].revents && !r->done)
            hear_run(r);
        bool cancelled = n > 0 && p[5].revents && r->stage == RUNNING;
        if (!r->done && (cancelled || r->deadline <= now_us())) {
            r->timed_out = r->timed_out || (r->stage == RUNNING && !cancelled);
            due(r, now_us());
        }
    }
    drain(r, 0); /* what was written before the status */
    drain(r, 1);
    return 0;
}

static void conclude(struct run *r)
{
    struct box_result *result = r->result;
    if (r->timed_out) {
        result->end = BOX_TIMED_OUT;
        result->limit = BOX_LIMIT_TIMEOUT;
    } else {
        result->end = !result->status_known ? BOX_LOST : result->by_signal ? BOX_SIGNALED : BOX_EXITED;
    }
    result->limits_by = "the session's";
    result->peak_is_largest_process = true;
}

int shell_exec(struct pinfold_session *s, const struct pinfold_exec_options *o, const struct limits *limits,
               const int stdio[3], struct box_result *ret, const char **ret_note, uint32_t *ret_shell, struct err *e)
{
    const size_t max = o->capture_max ? o->capture_max : DEFAULT_CAPTURE;
    struct run r = {.o = o,
                    .result = ret,
                    .text = BUF(MAX_TEXT),
                    .signals = -1,
                    .conn = -1,
                    .commands = -1,
                    .deadline = NEVER,
                    .unheard_at = NEVER};
    struct signals signals = {.fd = -1};
    uint32_t how = 0;
    *ret = (struct box_result){.out = BUF(max + 1), .err = BUF(max + 1)};
    r.streams[0] = (struct stream){-1, o->capture ? -1 : stdio[1], &ret->out, max, &ret->out_truncated, false};
    r.streams[1] = (struct stream){-1, o->capture ? -1 : stdio[2], &ret->err, max, &ret->err_truncated, false};
    r.grace_us = (limits->grace.value == LIMIT_NONE ? DEFAULT_GRACE : limits->grace.value) * 1000;
    compose_line(&r.text, o);
    int no = buf_ok(&r.text) ? 0 : err_sys(e, ERR_POLICY, E2BIG, "cannot read the command");
    if (no == 0)
        no = session_connect(&s->place, s->mem, &r.conn, e);
    if (no == 0)
        no = ask_for_shell(o, r.conn, e);
    if (no == 0)
        no = take_ends(&r, &how, ret_shell, e); /* a signal ends the caller at once: nothing has begun */
    if (no == 0)
        no = signals_begin(&signals, o->foreground != 0, e);
    r.signals = signals.fd;
    const uint64_t began = now_us();
    if (limits->timeout.value < NEVER / 2000)
        r.deadline = began + limits->timeout.value * 1000;
    if (no == 0)
        send_text(&r);
    if (no == 0)
        no = follow_run(&r, e);
    if (no == 0 && !r.shell_ended)
        say_to(&r, FRAME_END, 1, 0);
    ret->wall_us = now_us() - began;
    if (no == 0)
        conclude(&r);
    signals_end(&signals);
    (void)close_fd(r.conn);
    (void)close_fd(r.commands);
    (void)close_fd(r.streams[0].from);
    (void)close_fd(r.streams[1].from);
    buf_free(&r.text);
    *ret_note = r.shell_ended && no == 0
                    ? "the command ended the shell: the next command starts a new shell, without its state"
                : how & 2 ? "the previous shell had ended: this command ran in a new shell, without its state"
                          : NULL;
    if (no < 0)
        box_result_free(ret);
    return no;
}
