/*
 * An engine for tests: a builder, a pid 1 and a command by fork and exec alone, without any confinement. It speaks
 * the frames of protocol/control.h, and misbehaves on request (box_engine.h).
 */
#include "box_engine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include "protocol/control.h"

enum test_fault test_fault;

static int send_fd(int to, const void *p, size_t n, int fd)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec io = {(void *)(uintptr_t)p, n};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1};
    if (fd >= 0) {
        m.msg_control = &control;
        m.msg_controllen = sizeof control;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    return sendmsg(to, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* --- pid 1 -------------------------------------------------------------------------------------------------------- */

/* Sends `sig` to all descendants of `pid`; returns how many there were. */
static int signal_below(int pid, int sig)
{
    char path[64], text[4096], *rest = NULL;
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    int fd = open(path, O_RDONLY);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[got < 0 ? 0 : got] = 0;
    for (char *p = strtok_r(text, " ", &rest); p; p = strtok_r(NULL, " ", &rest)) {
        n += 1 + signal_below(atoi(p), sig);
        kill(atoi(p), sig);
    }
    return n;
}

struct init {
    int control, pid, master;
    bool tty;
};

static _Noreturn void leave(int status)
{
    while (signal_below((int)getpid(), SIGKILL) > 0)
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    _exit(status);
}

static void reap(const struct init *i)
{
    struct rusage u;
    int status, pid;
    while ((pid = wait4(-1, &status, WNOHANG | WUNTRACED, &u)) > 0) {
        if (pid != i->pid)
            continue;
        struct frame f = {.kind = FRAME_STOPPED, .b = 0, .stdin_at = -1};
        if (WIFSTOPPED(status)) {
            f.b = (uint32_t)WSTOPSIG(status);
            send_fd(i->control, &f, sizeof f, -1);
            continue;
        }
        f.kind = FRAME_EXIT;
        f.b = (uint32_t)status;
        f.utime_us = (uint64_t)u.ru_utime.tv_sec * 1000000 + (uint64_t)u.ru_utime.tv_usec;
        f.stime_us = (uint64_t)u.ru_stime.tv_sec * 1000000 + (uint64_t)u.ru_stime.tv_usec;
        f.maxrss_kib = (uint64_t)u.ru_maxrss;
        send_fd(i->control, &f, sizeof f, -1);
        leave(0);
    }
}

static void obey(const struct init *i, const struct frame *f)
{
    int group = 0;
    if (f->kind == FRAME_END)
        leave(0);
    if (f->kind != FRAME_SIGNAL)
        return;
    if (f->b == SIGNAL_EVERYONE)
        signal_below((int)getpid(), (int)f->a);
    else if (i->tty && ioctl(i->master, TIOCGPGRP, &group) == 0 && group > 0)
        kill(-group, (int)f->a);
    else
        kill(f->b == SIGNAL_FOREGROUND ? -i->pid : i->pid, (int)f->a);
}

static void on_child(int sig)
{
    (void)sig; /* interrupts recv */
}

static _Noreturn void command(const struct start_request *ask, int slave)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    if (slave >= 0)
        ioctl(slave, TIOCSCTTY, 0);
    int fds[3];
    for (int i = 0; i < 3; i++)
        fds[i] = fcntl(ask->stdio[i] < 0 ? slave : ask->stdio[i], F_DUPFD, 10);
    for (int i = 0; i < 3; i++)
        dup2(fds[i], i);
    syscall(SYS_close_range, 3, ~0u, 0);
    execvp(ask->argv[0], (char *const *)(uintptr_t)ask->argv);
    _exit(errno == ENOENT ? 127 : 126);
}

static _Noreturn void init_main(const struct start_request *ask, int control)
{
    struct init i = {.control = control, .master = -1, .tty = ask->tty};
    struct sigaction child = {.sa_handler = on_child};
    int slave = -1;
    sigset_t chld;

    for (int k = 0; k < ask->cgroup.n_v1; k++)
        if (write(ask->cgroup.v1_tasks[k], "0", 1) < 0)
            _exit(125);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    sigaction(SIGCHLD, &child, NULL);
    if (test_fault == TEST_VERDICT) {
        struct frame f = {.kind = FRAME_VERDICT, .a = 0, .b = ENOENT};
        send_fd(control, &f, sizeof f, -1);
        _exit(125);
    }
    if (ask->tty) {
        struct frame f = {.kind = FRAME_TTY};
        struct winsize size = {.ws_row = ask->rows, .ws_col = ask->columns};
        i.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        unlockpt(i.master);
        ioctl(i.master, TIOCSWINSZ, &size);
        slave = open(ptsname(i.master), O_RDWR | O_NOCTTY | O_CLOEXEC);
        send_fd(control, &f, sizeof f, i.master);
    }
    i.pid = fork();
    if (i.pid == 0)
        command(ask, slave);
    if (slave >= 0)
        close(slave);
    for (int k = 0; k < 3; k++)
        if (ask->stdio[k] > 2)
            close(ask->stdio[k]);
    for (int k = 0; k < 3; k++) /* or the box would hold its own pipes open */
        close(k);
    if (test_fault == TEST_INIT_DIES) {
        usleep(100000);
        leave(1);
    }
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    for (;;) {
        struct frame f;
        struct timeval often = {0, 5000}; /* a child's end between reap and recv is seen then */
        setsockopt(control, SOL_SOCKET, SO_RCVTIMEO, &often, sizeof often);
        reap(&i);
        ssize_t n = recv(control, &f, sizeof f, 0);
        if (n == 0)
            leave(0);
        if (n == (ssize_t)sizeof f && test_fault != TEST_DEAF)
            obey(&i, &f);
    }
}

/* --- the builder -------------------------------------------------------------------------------------------------- */

static void tell_denials(int builder)
{
    static const char *const targets[] = {"/w/.git/hooks/x", "/w/.git/hooks/x", "/w/.envrc", "/run/s.sock"};
    for (int i = 0; i < 4; i++) {
        struct denial_frame d = {.kind = FRAME_DENIAL,
                                 .action = i == 3 ? DENIAL_CONNECT : DENIAL_CREATE,
                                 .pid = 7,
                                 .origin = 0,
                                 .rule = UINT32_MAX};
        size_t n = strlen(targets[i]) + 1;
        memcpy(d.text, targets[i], n);
        memcpy(d.text + n, "guarded name", 13);
        d.n = (uint32_t)(n + 13);
        send_fd(builder, &d, offsetof(struct denial_frame, text) + d.n, -1);
    }
}

/* fork(2), straight into a control group when there is one. */
static int fork_into(int group)
{
    struct clone_args how = {.exit_signal = SIGCHLD};
    if (group < 0)
        return fork();
    how.flags = CLONE_INTO_CGROUP;
    how.cgroup = (uint64_t)group;
    return (int)syscall(SYS_clone3, &how, sizeof how);
}

static _Noreturn void builder_main(struct start_request *ask, int control, int builder)
{
    int status;
    setsid();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int s = 1; s < 32; s++)
        signal(s, SIG_DFL);
    /* Only what was given enters, as the native engine has it. */
    for (int fd = 3; fd < 1024; fd++) {
        bool keep = fd == control || fd == builder || fd == ask->cgroup.v2_dir;
        for (int i = 0; i < 3; i++)
            keep |= fd == ask->stdio[i];
        for (int i = 0; i < ask->cgroup.n_v1; i++)
            keep |= fd == ask->cgroup.v1_tasks[i];
        if (!keep)
            close(fd);
    }
    if (test_fault == TEST_STDIN_IS_PIPE) {
        struct frame f = {.kind = FRAME_PIPE, .a = 0};
        int ends[2];
        if (pipe(ends) < 0)
            _exit(125);
        send_fd(builder, &f, sizeof f, ends[1]);
        close(ends[1]);
        ask->stdio[0] = ends[0];
    }
    if (test_fault == TEST_DENIES)
        tell_denials(builder);
    int pid = fork_into(ask->cgroup.v2_dir);
    if (pid == 0) {
        close(builder);
        init_main(ask, control);
    }
    if (pid < 0) {
        struct frame f = {.kind = FRAME_VERDICT, .a = WHERE_CGROUP, .b = (uint32_t)errno};
        send_fd(builder, &f, sizeof f, -1);
        _exit(125);
    }
    close(control);
    for (int i = 0; i < 3; i++)
        if (ask->stdio[i] > 2)
            close(ask->stdio[i]);
    for (int i = 0; i < 3; i++)
        close(i);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    _exit(0);
}

static int test_start(const struct start_request *ask, struct started *ret, struct err *e)
{
    int control[2], builder[2];
    struct start_request mine = *ask;

    if (test_fault == TEST_START_FAILS)
        return err_sys(e, ERR_SYSTEM, EAGAIN, "clone");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, builder) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "socketpair");
    int pid = fork();
    if (pid < 0)
        return err_sys(e, ERR_SYSTEM, errno, "fork");
    if (pid == 0)
        builder_main(&mine, control[1], builder[1]);
    close(control[1]);
    close(builder[1]);
    *ret = (struct started){
        .pid = pid, .pidfd = (int)syscall(SYS_pidfd_open, pid, 0), .control = control[0], .builder = builder[0]};
    return 0;
}

static void test_finish(struct started *s)
{
    if (s->pidfd >= 0) {
        syscall(SYS_pidfd_send_signal, s->pidfd, SIGKILL, NULL, 0);
        waitpid(s->pid, NULL, 0);
        close(s->pidfd);
    }
    if (s->control >= 0)
        close(s->control);
    if (s->builder >= 0)
        close(s->builder);
    *s = (struct started){-1, -1, -1, -1};
    if (test_fault == TEST_ENDS_LATE)
        usleep(500000);
}

const struct engine engine_test = {.name = "test", .start = test_start, .finish = test_finish};

/* --- the plan ----------------------------------------------------------------------------------------------------- */

struct test_plan *test_plan(void)
{
    static struct test_plan t;
    static struct origin built_in = {.layer = LAYER_BUILTIN};

    memset(&t, 0, sizeof t);
    for (struct limit *l = t.policy.limits.each; l < t.policy.limits.each + N_LIMITS; l++)
        *l = (struct limit){.value = LIMIT_NONE};
    t.policy.origins = &built_in;
    t.policy.n_origins = 1;
    t.facts.engine = "test";
    t.facts.tier = TIER_NAMESPACES;
    t.facts.uid = (uint32_t)geteuid();
    t.plan.policy = &t.policy;
    t.plan.facts = &t.facts;
    t.enforced[0] = (struct enforcement){FEATURE_SECCOMP, "nothing, this is a test"};
    t.plan.enforced = t.enforced;
    t.plan.n_enforced = 1;
    t.plan.lost = F(FRESH_PROC);
    strcpy(t.plan.digest, "d1");
    strcpy(t.plan.policy_digest, "d2");
    test_fault = TEST_SOUND;
    return &t;
}

/*
 * What the engine and the policy say in words, for as long as only this engine is linked: weak, so the real ones win.
 */
__attribute__((weak)) int engine_verdict(const struct plan *p, uint32_t where, int no, struct err *e)
{
    (void)p;
    return err_sys(e, ERR_SYSTEM, no, "step %u", where);
}
__attribute__((weak)) const char *policy_origin(const struct policy *p, uint32_t origin, char *text, size_t n)
{
    (void)p, (void)origin;
    snprintf(text, n, "built in");
    return text;
}
