/*
 * Attaches the caller to a job of a session: prints its output and passes on what is typed. Two keys leave it, and
 * the job goes on.
 */
#include "session/session.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "supervisor/parts.h"
#include "sessiond/sessiond.h"
#include "session/ask.h"
#include "sys/poll.h"

enum { CTRL_C = 3, CTRL_P = 16, CTRL_Q = 17 };

struct attach {
    int fd, signals;
    bool tty, keys; /* the job has a terminal, and gets what is typed; keys: what is typed is read at all */
    bool half;      /* Ctrl-P was typed */
    struct term term;
    bool stdin_ended;
};

static int say_size(const struct attach *a)
{
    struct winsize size;
    if (!a->tty || sys_tty_size(1, &size) < 0)
        return 0;
    const struct frame f = {.kind = FRAME_WINSIZE, .a = (uint32_t)size.ws_row << 16 | size.ws_col};
    return send(a->fd, &f, sizeof f, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* What is typed, but for the two keys that leave. A job without a terminal gets none of it, and Ctrl-C leaves it, too. */
static int type(struct attach *a)
{
    struct {
        struct frame f;
        char bytes[1024];
    } m = {.f = {.kind = FRAME_DATA}};
    char typed[512];
    size_t n = 0;
    ssize_t k = read(0, typed, sizeof typed);
    a->stdin_ended = k == 0 || (k < 0 && errno != EINTR && errno != EAGAIN);
    for (ssize_t i = 0; i < k; i++) {
        if ((a->half && typed[i] == CTRL_Q) || (!a->tty && typed[i] == CTRL_C))
            return -EINTR;
        if (a->half)
            m.bytes[n++] = CTRL_P;
        a->half = typed[i] == CTRL_P;
        if (!a->half)
            m.bytes[n++] = typed[i];
    }
    m.f.a = (uint32_t)n;
    return a->tty && n && send(a->fd, &m, sizeof m.f + n, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* 1: it goes on. */
static int hear_job(const struct attach *a, int *ret_status, struct err *e)
{
    struct {
        struct frame f;
        char bytes[KEEP_DATA];
    } m;
    ssize_t n = recv(a->fd, &m, sizeof m, 0);
    if (n < 0 && errno == EINTR)
        return 1;
    if (n < (ssize_t)sizeof m.f) {
        (void)err_say(e, ERR_SYSTEM, "the session ended");
        return -ESTALE;
    }
    if (m.f.kind == FRAME_EXIT) {
        *ret_status = (int)m.f.c;
        return 0;
    }
    int r = m.f.kind == FRAME_DATA ? fd_write_all(1, m.bytes, (size_t)n - sizeof m.f) : 0;
    return r < 0 ? err_sys(e, ERR_SYSTEM, -r, "cannot write the job's output") : 1;
}

static int follow_job(struct attach *a, int *ret_status, struct err *e)
{
    int r = say_size(a);
    for (int more = 1; r == 0 && more == 1;) {
        struct pollfd p[3] = {{.fd = a->fd, .events = POLLIN},
                              {.fd = a->keys && !a->stdin_ended ? 0 : -1, .events = POLLIN},
                              {.fd = a->signals, .events = POLLIN}};
        int n = sys_poll(p, 3, NULL);
        if (n < 0 && n != -EINTR)
            return err_sys(e, ERR_SYSTEM, -n, "cannot wait for the job");
        if (n > 0 && p[2].revents) {
            struct signalfd_siginfo i;
            (void)!read(a->signals, &i, sizeof i);
            r = say_size(a);
        }
        if (r == 0 && n > 0 && p[1].revents)
            r = type(a);
        if (r == 0 && n > 0 && p[0].revents) {
            more = hear_job(a, ret_status, e);
            r = more < 0 ? more : 0;
        }
    }
    return r;
}

static void note_line(void *ctx, enum pinfold_say what, const char *sentence)
{
    if (what == PINFOLD_SAY_NOTE)
        buf_printf(ctx, "%s\n", sentence);
}

/* What was denied to a job that has ended, as after a command that was waited for. */
static char *denied_to(struct pinfold_session *s, uint32_t job)
{
    const struct keep_request q = {.op = KEEP_DENIALS, .job = job, .b = KEEP_OF_JOB};
    auto_buf struct buf notes = BUF(1u << 20), said = BUF(KEEP_MAX);
    const char *const argv[] = {"job", NULL};
    const struct pinfold_run_options say = {.size = sizeof say, .argv = argv, .say = note_line, .say_ctx = &notes};
    struct pinfold_result result = {.terms.limits = &s->limits, .box.end = BOX_EXITED};
    result.terms.net = s->record.net;
    result.terms.start_name = s->record.scope && s->record.scope[0] ? NULL : s->record.name;
    struct err ignored = {0};
    auto_fd int fd = place_connect(&s->place);
    if (fd < 0 || ask_send(fd, q, STR(""), NULL, 0, &ignored) < 0 || ask_answer(fd, NULL, &said, &ignored) < 0)
        return NULL;
    denied_read(&result.box, &said, true);
    say_notes(&say, &result);
    box_result_free(&result.box);
    return notes.n ? buf_take(&notes) : NULL;
}

int pinfold_job_attach(struct pinfold_session *s, const struct pinfold_attach_options *options, char **ret_notes,
                       struct pinfold_error *error)
{
    struct pinfold_attach_options o;
    struct attach a = {.signals = -1, .term = {.fd = 0, .watcher_pipe = -1}};
    auto_buf struct buf out = BUF(KEEP_MESSAGE);
    struct keep_answer answer = {0};
    struct err e = {0};
    sigset_t set;
    auto_fd int fd = -1;
    int status = 125;
    struct session_limit over;
    int r = take_options(&o, sizeof o, options, options ? options->size : 0, &e);
    if (ret_notes)
        *ret_notes = NULL;
    if (r == 0)
        r = session_connect(&s->place, s->mem, &fd, &e);
    if (r == 0)
        r = ask_send(fd, (struct keep_request){.op = KEEP_ATTACH, .job = o.job, .number = o.from}, STR(""), NULL, 0,
                     &e);
    if (r == 0)
        r = ask_answer(fd, &answer, &out, &e);
    a.fd = fd;
    a.keys = r == 0 && !o.watch_only && sys_is_tty(0);
    a.tty = a.keys && answer.c;
    a.term.may_raw = a.keys && (sys_is_tty(1) || !a.tty);
    a.term.keys_only = !a.tty;
    if (a.keys) {
        sigemptyset(&set);
        sigaddset(&set, SIGWINCH);
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
        a.signals = sys_signalfd(&set, SFD_CLOEXEC | SFD_NONBLOCK);
        r = term_raw(&a.term, &e);
    }
    if (r == 0)
        r = follow_job(&a, &status, &e);
    term_end(&a.term);
    (void)close_fd(a.signals);
    if (r == -EINTR)
        return r;
    if (r == -ESTALE && session_over(&s->place, s->mem, &over) && over.limit != BOX_LIMIT_NONE) {
        (void)err_say(&e, ERR_SYSTEM, "%s: the session exceeded its limit and was stopped, with this job",
                      box_limit_name(over.limit));
        (void)tell(error, &e, r);
        return 137;
    }
    if (r == 0 && status != 0 && ret_notes)
        *ret_notes = denied_to(s, o.job);
    return r < 0 ? tell(error, &e, r) : status;
}
