/*
 * Sets the caller's terminal to raw mode and restores it, whatever happens.
 *
 * While a command has its own pty, the caller's terminal only passes data: raw mode. It is restored on every path out
 * of this process. Against SIGKILL (and a crash) there is a watcher: a forked child in its own session, so that signals
 * to our process group and the terminal's job control do not affect it. It waits on our pidfd and restores the modes
 * only if the terminal still has exactly the raw modes that we set, so that a shell that has already set its own is not
 * disturbed. It is the only process that may outlive pinfold, for one ioctl. It is started when raw mode is first
 * entered, so runs without a terminal do not pay for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "supervisor/parts.h"
#include "sys/poll.h"
#include "sys/process.h"

struct term_shared { /* between us and the watcher */
    struct termios before, raw;
    volatile bool is_raw;
};

bool term_is_foreground(const struct term *t)
{
    int group = sys_tty_foreground(t->fd);
    /* Not our controlling terminal: there is no job control between us and it. */
    return group == -ENOTTY || group == getpgrp();
}

const struct termios *term_before(const struct term *t)
{
    return &t->shared->before;
}

static void make_raw(struct termios *t, bool keys_only, bool signals)
{
    t->c_iflag &= ~(tcflag_t)(IGNBRK | BRKINT | PARMRK | ISTRIP | INLCR | IGNCR | ICRNL | IXON);
    if (!keys_only)
        t->c_oflag &= ~(tcflag_t)OPOST;
    t->c_lflag &= ~(tcflag_t)(ECHO | ECHONL | ICANON | (signals ? 0u : ISIG) | IEXTEN);
    t->c_cflag = (t->c_cflag & ~(tcflag_t)(CSIZE | PARENB)) | CS8;
    t->c_cc[VMIN] = 1;
    t->c_cc[VTIME] = 0;
}

static void put_back(int fd, struct term_shared *s)
{
    struct termios now = {0};
    if (s->is_raw && sys_tty_modes(fd, &now) == 0 && sys_tty_modes_equal(&now, &s->raw))
        (void)sys_tty_set_modes(fd, &s->before);
    s->is_raw = false;
}

/* The watcher's whole life. `done` is readable (end of file or a byte) when it is no longer needed. */
static _Noreturn void watch_terminal(int fd, int parent, int done, struct term_shared *s)
{
    struct pollfd p[2] = {{.fd = parent, .events = POLLIN}, {.fd = done, .events = POLLIN}};
    (void)setsid();
    (void)prctl(PR_SET_NAME, "pinfold-term", 0, 0, 0);
    /* Nothing but these three may be held open: a pipe kept here would keep somebody's reader waiting. */
    int keep[3] = {fd, parent, done};
    for (int i = 0; i < 3; i++)
        keep[i] = fcntl(keep[i], F_DUPFD, 3);
    for (int i = 0; i < 3; i++)
        (void)dup2(keep[i], i);
    (void)sys_call(SYS_close_range, 3, ~0u, 0, 0, 0, 0);
    fd = 0;
    p[0].fd = 1;
    p[1].fd = 2;
    for (;;) {
        int r = sys_poll(p, 2, NULL);
        if (r == -EINTR)
            continue;
        if (!(p[1].revents & POLLIN))
            put_back(fd, s); /* not told that all is well: the parent is gone, or poll failed */
        _exit(0);
    }
}

static int watcher_begin(struct term *t, struct err *e)
{
    int ends[2];
    sigset_t all, before;
    auto_fd int self = sys_pidfd_open((int)getpid(), 0);

    if (self < 0)
        return err_sys(e, ERR_SYSTEM, -self, "terminal: pidfd_open");
    t->shared = mmap(NULL, sizeof *t->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (t->shared == MAP_FAILED) {
        t->shared = NULL;
        return err_sys(e, ERR_SYSTEM, errno, "terminal: mmap");
    }
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "terminal: pipe");
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before); /* also in the watcher, for its whole life */
    t->watcher_pid = fork();
    if (t->watcher_pid == 0) {
        (void)close(ends[1]);
        watch_terminal(t->fd, self, ends[0], t->shared);
    }
    int no = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    (void)close(ends[0]);
    t->watcher_pipe = ends[1];
    if (t->watcher_pid < 0) {
        t->watcher_pid = 0;
        return err_sys(e, ERR_SYSTEM, no, "terminal: fork");
    }
    return 0;
}

int term_raw(struct term *t, struct err *e)
{
    if (!t->may_raw || t->raw)
        return 0;
    t->background = !term_is_foreground(t);
    if (t->background)
        return 0;
    if (!t->shared) {
        int r = watcher_begin(t, e);
        if (r < 0)
            return r;
    }
    int r = sys_tty_modes(t->fd, &t->shared->before);
    if (r < 0)
        return err_sys(e, ERR_SYSTEM, -r, "cannot read the terminal's modes");
    t->shared->raw = t->shared->before;
    make_raw(&t->shared->raw, t->keys_only, t->signals);
    t->shared->is_raw = true;
    r = sys_tty_set_modes(t->fd, &t->shared->raw);
    if (r < 0) {
        t->shared->is_raw = false;
        return err_sys(e, ERR_SYSTEM, -r, "cannot set the terminal to raw mode");
    }
    /* Some drivers do not take every bit: remember what the terminal really has, to recognise it later. */
    (void)sys_tty_modes(t->fd, &t->shared->raw);
    t->raw = true;
    return 0;
}

void term_answered(struct term *t)
{
    const bool change = t->signals && t->raw && term_is_foreground(t);
    t->signals = false;
    if (!change)
        return;
    t->shared->raw.c_lflag &= ~(tcflag_t)ISIG;
    (void)sys_tty_set_modes(t->fd, &t->shared->raw);
    (void)sys_tty_modes(t->fd, &t->shared->raw);
}

void term_restore(struct term *t)
{
    if (!t->raw)
        return;
    t->raw = false;
    if (term_is_foreground(t))
        put_back(t->fd, t->shared);
    else
        t->shared->is_raw = false;
}

void term_end(struct term *t)
{
    term_restore(t);
    if (t->watcher_pid > 0) {
        ssize_t n;
        do
            n = write(t->watcher_pipe, "", 1);
        while (n < 0 && errno == EINTR);
        while (waitpid(t->watcher_pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    t->watcher_pid = 0;
    t->watcher_pipe = close_fd(t->watcher_pipe);
    if (t->shared)
        munmap(t->shared, sizeof *t->shared);
    t->shared = NULL;
}
