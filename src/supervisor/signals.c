/*
 * Signals to a command line's process: each is forwarded into the box exactly once.
 *
 * The box has its own session, so signals that the terminal or a shell sends to our process group do not reach it. We
 * forward what we receive: a signal from a key of the terminal (si_code SI_KERNEL) to the command's foreground group,
 * as the terminal would; a signal from a process only to the command, as it would have reached the bare command. There
 * is no escalation: a second SIGINT is a second SIGINT. To force the end, send SIGKILL to pinfold, which ends the box.
 *
 * They are received through a signalfd, that is, blocked: no handler is installed, and the command must be started with
 * them unblocked (the engine resets signals before exec). A signal that our caller ignores (nohup; a background job of
 * a script) is left alone: blocked signals are queued even if ignored, so it would wrongly be forwarded.
 *
 * A library call receives none; it only blocks SIGPIPE in its thread, and removes one that it may have caused.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "supervisor/parts.h"
#include "sys/fd.h"
#include "sys/poll.h"

#define STOP_PATIENCE_US 50000u /* for the command to stop by itself at SIGTSTP */

#define REPORT_LATE_US 200000u /* how long after being continued a report of the stop before is an old one */

static const int forwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};

/*
 * Bits (1 << number) of the signals that this process ignores, of the first 31, by three calls instead of one for each: proc_pid_stat(5).
 * The command line ignores SIGXFSZ from its start. If that one is missing the text is not the kernel's, and 0 is returned.
 */
static uint32_t all_ignored(void)
{
    enum { NAME = 2, IGNORED = 33 };
    char text[1024];
    const char *at = sys_read_text(AT_FDCWD, "/proc/self/stat", text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
    for (int field = NAME; at && field < IGNORED; field++)
        at = strchr(at + 1, ' ');
    const uint32_t found = at ? (uint32_t)strtoul(at + 1, NULL, 10) << 1 : 0;
    return found >> SIGXFSZ & 1 ? found : 0;
}

static bool is_ignored(struct signals *s, uint32_t all, int sig)
{
    struct sigaction a;
    if (all)
        return all >> sig & 1;
    bool known = sigaction(sig, NULL, &a) == 0, ignored = known && a.sa_handler == SIG_IGN;
    s->not_ignored |= known && !ignored ? 1u << sig : 0;
    return ignored;
}

int signals_begin(struct signals *s, bool foreground, struct err *e)
{
    sigset_t pending;

    *s = (struct signals){.fd = -1};
    sigemptyset(&s->taken);
    sigaddset(&s->taken, SIGPIPE);
    sigpending(&pending);
    s->pipe_was_pending = sigismember(&pending, SIGPIPE) == 1;
    if (foreground) {
        sigset_t read;
        const uint32_t all = all_ignored();
        s->not_ignored = all ? ~all : 0;
        sigemptyset(&read);
        for (unsigned i = 0; i < sizeof forwarded / sizeof *forwarded; i++) {
            if (is_ignored(s, all, forwarded[i]))
                continue;
            sigaddset(&read, forwarded[i]);
            sigaddset(&s->taken, forwarded[i]);
        }
        s->fd = sys_signalfd(&read, SFD_CLOEXEC | SFD_NONBLOCK);
        if (s->fd < 0)
            return err_sys(e, ERR_SYSTEM, -s->fd, "signalfd");
    }
    pthread_sigmask(SIG_BLOCK, &s->taken, &s->before);
    s->on = true;
    return 0;
}

void signals_end(struct signals *s)
{
    if (!s->on)
        return;
    s->on = false;
    s->fd = close_fd(s->fd);
    if (!s->pipe_was_pending) {
        sigset_t pipe;
        struct timespec none = {0, 0};
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        while (sigtimedwait(&pipe, NULL, &none) < 0 && errno == EINTR)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &s->before, NULL);
}

/* Stops this process as SIGTSTP would have, and returns when it is continued. */
static void stop_here(void)
{
    struct sigaction old, plain = {.sa_handler = SIG_DFL};
    sigset_t tstp, before;

    sigemptyset(&tstp);
    sigaddset(&tstp, SIGTSTP);
    sigaction(SIGTSTP, &plain, &old);
    (void)kill(getpid(), SIGTSTP);
    /* Unblocking delivers it here; in an orphaned process group the kernel drops it and we go on. */
    sigprocmask(SIG_UNBLOCK, &tstp, &before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    sigaction(SIGTSTP, &old, NULL);
}

void signals_stop_self(struct box *b)
{
    bool ours = b->stop != STOP_NONE || b->io.term.raw;
    struct err ignored; /* the terminal may be gone by then: nothing to make raw */
    sigset_t pending;

    b->stop = STOP_NONE;
    b->stop_deadline = NEVER;
    term_restore(&b->io.term);
    stop_here();
    (void)term_raw(&b->io.term, &ignored);
    box_resize(b);
    /* A continued process has SIGCONT pending, which is forwarded. Without one we were not stopped at all: nobody
     * would wake what we have put to sleep. */
    if (ours && (sigpending(&pending) < 0 || sigismember(&pending, SIGCONT) != 1))
        box_signal(b, SIGCONT, SIGNAL_EVERYONE);
}

/* The command is told first (editors tidy up); what has not stopped soon after is stopped. */
static void stop_box(struct box *b)
{
    box_signal(b, SIGTSTP, SIGNAL_FOREGROUND);
    b->stop = STOP_ASKED;
    b->stop_deadline = now_us() + STOP_PATIENCE_US;
}

void signals_stop_due(struct box *b)
{
    if (b->stop == STOP_ASKED) {
        box_signal(b, SIGSTOP, SIGNAL_EVERYONE);
        b->stop = STOP_FORCED;
        b->stop_deadline = now_us() + STOP_PATIENCE_US;
        return;
    }
    signals_stop_self(b);
    b->stop_report_late = now_us() + REPORT_LATE_US;
}

static void take_signal(struct box *b, const struct signalfd_siginfo *i)
{
    int sig = (int)i->ssi_signo;
    bool key = i->ssi_code == SI_KERNEL;
    struct err ignored;

    if (key && (sig == SIGINT || sig == SIGQUIT))
        b->signals.terminal_signal = sig;
    if (b->stage == STAGE_GONE || b->last_words) {
        b->give_up_output |= sig == SIGINT || sig == SIGTERM || sig == SIGHUP || sig == SIGQUIT;
        return;
    }
    switch (sig) {
    case SIGTSTP:
        stop_box(b);
        return;
    case SIGCONT: /* somebody stopped us with SIGSTOP, or we were put into the foreground */
        (void)term_raw(&b->io.term, &ignored);
        box_resize(b);
        box_signal(b, SIGCONT, SIGNAL_EVERYONE);
        return;
    case SIGWINCH:
        if (b->io.tty)
            box_resize(b); /* the kernel tells the box's foreground group */
        else
            box_signal(b, SIGWINCH, SIGNAL_FOREGROUND);
        return;
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT:
        if (b->exec && b->unheard_at == NEVER)
            b->unheard_at = now_us() + UNHEARD_US;
        __attribute__((fallthrough));
    default:
        box_signal(b, sig, key ? SIGNAL_FOREGROUND : SIGNAL_COMMAND);
    }
}

void signals_read(struct box *b)
{
    struct signalfd_siginfo i[8];
    for (;;) {
        ssize_t n = read(b->signals.fd, i, sizeof i);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        for (size_t k = 0; k < (size_t)n / sizeof *i; k++)
            take_signal(b, &i[k]);
    }
}
