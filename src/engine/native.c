/*
 * The native engine: pinfold's own processes (docs/INTERNALS.md, "One run").
 *
 *     native_start     in pinfold: the sockets, one clone3
 *     builder_main     in the builder: forget the caller, id maps, BUILD steps, clone pid 1, become the guard
 *     init_child       in pid 1, on its way to inner/init.c
 *
 * Everything between clone and exec uses sys/ only: no libc state, no allocation (what is needed is allocated before).
 * The builder is no child in the sense of wait(2) without __WALL (its exit signal is 0): a library must not make a child
 * of its caller's known to its caller.
 */
#include "engine/engine.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "engine/native.h"
#include "guard/guard.h"
#include "inner/inner.h"
#include "sys/caps.h"
#include "sys/fd.h"
#include "sys/poll.h"

/* What the builder finds in its copy of pinfold's memory. */
struct birth {
    const struct start_request *ask;
    const struct plan_image *plan;
    struct runner runner;
    struct job job;
    char (*names)[4096]; /* host paths of regular files among stdio: three, or NULL when there are none */
    uint32_t uid, gid;   /* of the caller, outside */
    int control, builder;
    int pass[2];   /* the filter's listener comes from pid 1 to the builder; the word that all is built goes back */
    int settler;   /* process that settles overlays, or 0 */
    bool late_net; /* the network namespace is pid 1's to make, which takes as long as the rest of BUILD */
    bool beside;   /* pid 1 runs beside the second half of BUILD, and waits for that word before its command */
};

/* ---- in the builder ---- */

static _Noreturn void give_up(const struct birth *b, uint32_t where, int e)
{
    const struct frame f = {.kind = FRAME_VERDICT, .a = where, .b = (uint32_t)-e};
    (void)sys_send_fd(b->builder, &f, sizeof f, -1, 0);
    sys_exit(125);
}

/* Closes every descriptor that is not in `keep` (negative ones are no descriptors). */
static int close_others(int *keep, int n)
{
    unsigned next = 0;
    for (int i = 1; i < n; i++) { /* insertion sort: there are ten or so */
        int v = keep[i], j = i;
        for (; j > 0 && keep[j - 1] > v; j--)
            keep[j] = keep[j - 1];
        keep[j] = v;
    }
    for (int i = 0; i < n; i++) {
        if (keep[i] < 0)
            continue;
        int e = (unsigned)keep[i] > next ? sys_close_range(next, (unsigned)keep[i] - 1) : 0;
        if (e < 0)
            return e;
        if ((unsigned)keep[i] >= next)
            next = (unsigned)keep[i] + 1;
    }
    return sys_close_range(next, ~0u);
}

/* Nothing of the caller's that could matter inside: descriptors, signal dispositions and mask, session, umask. */
static int forget_caller(const struct birth *b)
{
    const struct cgroup_join *c = &b->ask->cgroup;
    int keep[16] = {b->control,      b->builder, b->job.stdio[0],  b->job.stdio[1],
                    b->job.stdio[2], c->v2_dir,  b->runner.egress, b->ask->publish};
    int n = 8;
    for (int i = 0; i < c->n_v1 && i < 8; i++)
        keep[n++] = c->v1_tasks[i];
    int e = close_others(keep, n);
    if (e < 0)
        return e;
    if (b->ask->parent_death_signal)
        (void)sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    for (int s = 1; s < 32; s++) { /* ignored ones stay ignored across clone and exec otherwise */
        if (s != SIGKILL && s != SIGSTOP)
            (void)sys_signal_default(s);
    }
    (void)sys_sigmask(SIG_SETMASK, 0);
    (void)sys_umask(0);
    /* The terminal's signals are for pinfold, which forwards them. No session: a busy scheduler makes a newcomer wait. */
    return sys_setpgid(0, 0);
}

static char *put_number(char *to, uint32_t v)
{
    char digits[12];
    int n = 0;
    do
        digits[n++] = (char)('0' + v % 10);
    while (v /= 10);
    while (n)
        *to++ = digits[--n];
    return to;
}

static int write_file(int dir, const char *name, const char *text, size_t n)
{
    own_fd int fd = sys_openat(dir, name, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    long wrote = sys_write(fd, text, n);
    return wrote < 0 ? (int)wrote : 0;
}

static int write_map(int dir, const char *name, uint32_t inside, uint32_t outside)
{
    char text[32], *p = put_number(text, inside);
    *p++ = ' ';
    p = put_number(p, outside);
    *p++ = ' ';
    *p++ = '1';
    return write_file(dir, name, text, (size_t)(p - text));
}

/* One identity each: that of the caller, under the name the plan gives it (user_namespaces(7)). */
static int map_ids(const struct birth *b)
{
    own_fd int self = sys_openat(AT_FDCWD, "/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (self < 0)
        return self;
    int e = write_file(self, "setgroups", "deny", 4);
    if (e == 0)
        e = write_map(self, "uid_map", b->plan->uid, b->uid);
    return e < 0 ? e : write_map(self, "gid_map", b->plan->gid, b->gid);
}

/* The process of the published ports (box/publish.c) enters these two: the network, and the user namespace that owns it. */
static int give_namespaces(const struct birth *b)
{
    static const char *const names[] = {"/proc/self/ns/user", "/proc/self/ns/net"};
    int e = 0;
    for (int i = 0; e >= 0 && i < 2 && b->ask->publish >= 0; i++) {
        own_fd int fd = sys_openat(AT_FDCWD, names[i], O_RDONLY | O_CLOEXEC, 0);
        e = fd < 0 ? fd : (int)sys_send_fd(b->ask->publish, "", 1, fd, 0);
    }
    sys_shut(b->ask->publish);
    return e < 0 ? e : 0;
}

/*
 * Under memory pressure the kernel shall take the command before pid 1 (proc_pid_oom_score_adj(5)). The command inherits
 * what pid 1 has when it is cloned, so the score is raised before and lowered by pid 1 (inner/init.c) once the command
 * runs; there, one write sets builder and pid 1, for they share their memory. No descriptor is kept: an open writer would
 * keep its mount from becoming read-only.
 */
static void raise_oom_score(struct birth *b)
{
    char text[sizeof b->runner.oom_text], raised[16], *end = raised;
    own_fd int fd = sys_openat(AT_FDCWD, "/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC, 0);
    long n = fd < 0 ? fd : sys_read(fd, text, sizeof text);
    if (n <= 0)
        return;
    int score = 0;
    for (long i = text[0] == '-'; i < n && text[i] >= '0' && text[i] <= '9'; i++)
        score = score * 10 + text[i] - '0';
    score = (text[0] == '-' ? -score : score) + 100;
    if (score < 0)
        *end++ = '-';
    end = put_number(end, (uint32_t)(score < 0 ? -score : score > 1000 ? 1000 : score));
    if (sys_write(fd, raised, (size_t)(end - raised)) > 0) {
        memcpy(b->runner.oom_text, text, (size_t)n);
        b->runner.oom_bytes = (uint8_t)n;
    }
}

static bool supervised(const struct plan_image *plan)
{
    return plan->filter & (FILTER_GUARD | FILTER_READS);
}

/* Into the control group by moving itself, one thread with no lock of the thread group (cgroup v1's `tasks`). */
static int join_cgroup(const struct birth *b)
{
    const struct cgroup_join *c = &b->ask->cgroup;
    int e = 0;
    for (int i = 0; e >= 0 && i < c->n_v1 && i < 8; i++)
        e = (int)sys_write(c->v1_tasks[i], "0", 1);
    if (e >= 0 && b->plan->namespaces & SYS_CLONE_NEWCGROUP)
        e = sys_unshare(SYS_CLONE_NEWCGROUP);
    for (int i = 0; i < c->n_v1 && i < 8; i++)
        sys_shut(c->v1_tasks[i]);
    sys_shut(c->v2_dir);
    return e < 0 ? e : 0;
}

/*
 * Pid 1 shares the builder's memory: copying it would cost 50 us and a set of page tables per box. It gets a stack and a
 * copy of what both would write to; neither touches the other's afterwards, and no libc's state is used by it.
 */
static _Noreturn void init_child(void *birth)
{
    struct birth *b = birth;
    int e = sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    sys_shut(b->builder);
    sys_shut(b->pass[0]);
    sys_shut(b->runner.host_proc);
    overlays_settle(&b->runner, false);
    if (e == 0 && b->ask->cgroup.kind != CGROUP_NONE) {
        e = join_cgroup(b);
        if (e < 0) {
            const struct frame f = {.kind = FRAME_VERDICT, .a = WHERE_CGROUP, .b = (uint32_t)-e};
            (void)sys_send_fd(b->control, &f, sizeof f, -1, 0);
            sys_exit(125);
        }
    }
    if (e == 0 && b->beside) { /* the trees that the builder is about to attach are no business of this process */
        int keep[] = {b->control, b->pass[1], b->job.stdio[0], b->job.stdio[1], b->job.stdio[2], b->runner.own};
        e = close_others(keep, 6);
        if (e == 0)
            e = room_back(&b->runner);
    }
    if (e < 0)
        sys_exit(125);
    own_fd int net = b->beside && b->late_net ? net_begin(&b->runner) : -1;
    e = b->beside && b->late_net ? net : 0;
    if (net >= 0 && sys_send_fd(b->pass[1], "", 1, net, 0) < 0)
        sys_exit(125); /* the builder gave up, and has said why */
    e = e < 0 ? e : 0;
    if (e < 0) {
        const struct frame f = {.kind = FRAME_VERDICT, .a = WHERE_NET, .b = (uint32_t)-e};
        (void)sys_send_fd(b->control, &f, sizeof f, -1, 0);
        sys_exit(125);
    }
    sys_drop(&net);
    init_main(&b->runner, &b->job, b->control, b->pass[1], b->beside);
}

static void init_entry(void *birth)
{
    init_child(birth);
}

static int clone_init(struct birth *b, int *ret_pidfd)
{
    enum { STACK = 128 << 10 };
    char *memory = sys_pages(STACK + sizeof *b);
    if (!memory)
        return -ENOMEM;
    struct birth *theirs = (void *)(memory + STACK);
    *theirs = *b;
    struct sys_clone how = {.flags = CLONE_VM | SYS_CLONE_PIDFD | (b->plan->namespaces & CLONE_NEWPID),
                            .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
                            .exit_signal = SIGCHLD,
                            .stack = (uint64_t)(uintptr_t)memory,
                            .stack_size = STACK};
    if (b->ask->cgroup.kind != CGROUP_NONE && b->ask->cgroup.v2_dir >= 0) {
        how.flags |= SYS_CLONE_INTO_CGROUP;
        how.cgroup = (uint64_t)b->ask->cgroup.v2_dir;
    }
    return sys_clone3_run(&how, init_entry, theirs);
}

/* The builder's powers end here: it reads the memory of the box's processes, and nothing else a capability gives. */
static int become_guard(const struct birth *b)
{
    if (b->plan->namespaces & CLONE_NEWUSER)
        return sys_caps_keep(supervised(b->plan) ? 1ull << CAP_SYS_PTRACE : 0);
    return 0;
}

static int mirror(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Everything that was to be said has been said, and pid 1, with whatever else was in the box, has been waited for. */
static _Noreturn void leave(const struct birth *b, int status)
{
    const struct frame f = {.kind = FRAME_GONE};
    int ignored;
    if (b->settler > 0) /* before the next box finds what it is tidying up */
        (void)sys_wait4(b->settler, &ignored, __WALL, NULL);
    (void)sys_send_fd(b->builder, &f, sizeof f, -1, 0);
    sys_exit(status);
}

static _Noreturn void watch(struct birth *b, int init)
{
    struct guard_ask ask = {.plan = b->plan, .notify = -1, .report = b->builder, .init_pidfd = init};
    siginfo_t info = {0};
    char ready;
    int status = 0;
    if (supervised(b->plan) && sys_recv_fd(b->pass[0], &ready, 1, &ask.notify, 0) > 0 && ask.notify >= 0) {
        sys_drop(&b->pass[0]);
        ask.host_proc = sys_taken(&b->runner.host_proc);
        status = guard_serve(&ask);
        if (b->plan->tier)
            hunt_down(&b->runner);
        if (status < 0)
            give_up(b, WHERE_GUARD, status);
        leave(b, mirror(status));
    }
    int e;
    do
        e = sys_waitid(3 /* P_PIDFD */, init, &info, WEXITED | __WALL);
    while (e == -EINTR);
    if (b->plan->tier)
        hunt_down(&b->runner); /* of a pid 1 that was killed */
    if (e < 0)
        give_up(b, WHERE_CHILD, e);
    leave(b, info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status);
}

/* Into the network namespace that pid 1 has made: the first thing it sends. */
static int enter_net(const struct birth *b)
{
    char word;
    own_fd int net = -1;
    long n = sys_recv_fd(b->pass[0], &word, 1, &net, 0);
    return n < 0 ? (int)n : net < 0 ? -ECONNRESET : sys_setns(net, CLONE_NEWNET);
}

static void settle_entry(void *runner)
{
    overlays_settle(runner, true);
    sys_exit(0);
}

/*
 * Removing directories on a disk can take longer than a short command, whose end this process must not be late for; and
 * the powers it takes are not the guard's. So a process of its own does it, in this memory, while the command runs.
 */
static void settle_beside(struct birth *b)
{
    enum { STACK = 16 << 10 };
    char *memory = b->runner.n_works ? sys_pages(STACK + sizeof b->runner) : NULL;
    if (!memory) {
        overlays_settle(&b->runner, true);
        return;
    }
    struct runner *theirs = (void *)(memory + STACK);
    *theirs = b->runner;
    const struct sys_clone how = {.flags = CLONE_VM, .stack = (uint64_t)(uintptr_t)memory, .stack_size = STACK};
    b->settler = sys_clone3_run(&how, settle_entry, theirs);
    overlays_settle(&b->runner, b->settler < 0);
}

static _Noreturn void builder_main(struct birth *b)
{
    int init = -1;
    int e = forget_caller(b);
    if (e < 0)
        give_up(b, WHERE_CHILD, e);
    e = b->plan->namespaces & CLONE_NEWUSER ? map_ids(b) : 0;
    if (e < 0)
        give_up(b, WHERE_MAPS, e);
    raise_oom_score(b);
    e = give_namespaces(b);
    if (e < 0)
        give_up(b, WHERE_CHILD, e);
    e = sys_chdir("/"); /* the caller's directory may lie in what the box does not see */
    if (e < 0)
        give_up(b, WHERE_CHILD, e);
    if (supervised(b->plan))
        e = b->runner.host_proc = sys_openat(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (e >= 0)
        e = sys_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, b->pass);
    if (e < 0)
        give_up(b, WHERE_GUARD, e);
    e = b->plan->tier && b->job.tty ? terminal_open(b->runner.pty) : 0;
    if (e < 0)
        give_up(b, WHERE_PTY, e);
    e = steps_build_first(&b->runner, !b->names, &b->beside); /* files of stdio are opened in the finished box */
    if (e < 0)
        give_up(b, b->runner.failed, e);
    e = b->late_net && !b->beside ? net_begin(&b->runner) : -1;
    if (e < -1)
        give_up(b, WHERE_NET, e);
    sys_shut(e);
    e = stdio_enter(&b->job, b->names, b->builder);
    if (e < 0)
        give_up(b, WHERE_STDIO, e);
    if (b->plan->tier) /* what pid 1 leaves when it is killed becomes a child of this process */
        (void)sys_prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    e = clone_init(b, &init);
    if (e < 0)
        give_up(b, WHERE_CLONE, e);
    b->pass[1] = sys_shut(b->pass[1]); /* pid 1's end: that it is gone must be seen */
    e = b->beside ? steps_build_rest(&b->runner) : 0;
    if (e < 0)
        give_up(b, b->runner.failed, e); /* and pid 1 with it, by its parent-death signal */
    e = b->beside ? (int)sys_write(b->pass[0], "", 1) : 0;
    if (e >= 0 && b->beside && b->late_net)
        e = enter_net(b);
    settle_beside(b);
    /* Detached mounts are kept: letting one go is waited for by the kernel, which can be done at the end. */
    int keep[] = {b->builder,          b->pass[0],          b->runner.host_proc, init, b->beside ? b->runner.own : -1,
                  b->runner.layer_dir, b->runner.layer_tree};
    if (e >= 0)
        e = close_others(keep, 7); /* pid 1's end of the control stream above all: its end must be seen */
    if (e == 0)
        e = become_guard(b);
    if (e < 0)
        give_up(b, WHERE_GUARD, e);
    watch(b, init);
}

/* ---- in pinfold ---- */

int engine_stdio(int fd)
{
    return stdio_way(fd);
}

static int judge_stdio(struct birth *b, struct err *e)
{
    static const char *const names[] = {"standard input", "standard output", "standard error"};
    for (int i = 0; i < 3; i++) {
        int fd = b->ask->stdio[i];
        b->job.stdio[i] = fd;
        if (fd < 0)
            continue;
        int way = stdio_way(fd);
        if (way == -EINVAL)
            return err_say(e, ERR_REFUSED,
                           "%s is a directory, a block device or a handle of the kernel, which would give "
                           "the box more than its bytes; redirect it from a file or /dev/null",
                           names[i]);
        if (way < 0)
            return err_sys(e, ERR_SYSTEM, -way, "%s (descriptor %d)", names[i], fd);
        if (way != STDIO_REOPEN)
            continue;
        if (!b->names && !(b->names = calloc(3, sizeof *b->names)))
            return err_sys(e, ERR_SYSTEM, ENOMEM, "starting the box");
        char link[32];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        long n = sys_readlinkat(AT_FDCWD, link, b->names[i], sizeof b->names[i] - 1);
        b->names[i][n > 0 ? n : 0] = 0; /* without a name a pipe stands for it */
    }
    return 0;
}

static struct birth *birth_new(const struct start_request *ask, struct err *e)
{
    const struct plan_image *plan = ask->plan->image;
    struct birth *b = calloc(1, sizeof *b + runner_room(plan) * sizeof(int));
    if (!b) {
        (void)err_sys(e, ERR_SYSTEM, ENOMEM, "starting the box");
        return NULL;
    }
    b->ask = ask;
    b->plan = plan;
    b->control = b->builder = b->pass[0] = b->pass[1] = -1;
    b->uid = (uint32_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0);
    b->gid = (uint32_t)sys_call(SYS_getegid, 0, 0, 0, 0, 0, 0);
    b->job = (struct job){.argv = ask->argv,
                          .envp = (const char *const *)ask->plan->env,
                          .tty = ask->tty,
                          .rows = ask->rows,
                          .columns = ask->columns,
                          .umask = ask->umask,
                          .stdin_at = -1};
    runner_begin(&b->runner, plan, (int *)(b + 1));
    b->runner.egress = ask->egress;
    return b;
}

/*
 * Making a network namespace takes as long as everything else of a start, so that pid 1 does it while the builder builds.
 * Not where the egress shall catch what happens in it: that is a part of BUILD. Nor where ports are published: the process
 * that does is given the namespace first of all.
 */
static bool can_wait_for_net(const struct birth *b)
{
    const struct step *s = plan_steps(b->plan);
    bool loopback = false;
    for (uint32_t i = 0; i < b->plan->n_steps; i++) {
        if (s[i].kind == STEP_CATCH)
            return false;
        loopback |= s[i].kind == STEP_LOOPBACK;
    }
    return loopback && b->ask->publish < 0 && !b->names && b->plan->namespaces & CLONE_NEWNET &&
           b->plan->namespaces & CLONE_NEWUSER;
}

static int clone_builder(struct birth *b, int *ret_pidfd)
{
    uint64_t namespaces = b->plan->namespaces & ~(uint64_t)CLONE_NEWPID;
    b->late_net = b->runner.late_net = can_wait_for_net(b);
    if (b->late_net)
        namespaces &= ~(uint64_t)CLONE_NEWNET;
    if (b->ask->cgroup.kind != CGROUP_NONE)
        namespaces &=
            ~(uint64_t)SYS_CLONE_NEWCGROUP; /* made when pid 1 is in its group, which is then the root it sees */
    const struct sys_clone how = {.flags = namespaces | SYS_CLONE_PIDFD | SYS_CLONE_CLEAR_SIGHAND,
                                  .pidfd = (uint64_t)(uintptr_t)ret_pidfd};
    int pid = sys_clone3(&how);
    if (pid == 0)
        builder_main(b);
    return pid;
}

static int clone_failed(const struct plan_image *plan, int no, struct err *e)
{
    (void)err_sys(e, ERR_CANNOT, no, "making the box's namespaces");
    bool forbidden = no == EPERM || no == EACCES || no == ENOSPC || no == EUSERS || no == EINVAL || no == ENOSYS;
    return plan->namespaces && forbidden ? -ENGINE_STALE : -no;
}

static int native_start(const struct start_request *ask, struct started *ret, struct err *e)
{
    int control[2] = {-1, -1}, builder[2] = {-1, -1}, pidfd = -1;
    struct birth *b = birth_new(ask, e);
    if (!b)
        return -ENOMEM;
    int r = judge_stdio(b, e);
    if (r == 0) {
        r = sys_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control);
        if (r == 0)
            r = sys_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, builder);
        if (r < 0)
            (void)err_sys(e, ERR_SYSTEM, -r, "a socket pair to the box");
    }
    if (r == 0) {
        b->control = control[1];
        b->builder = builder[1];
        r = clone_builder(b, &pidfd);
        if (r < 0)
            r = clone_failed(b->plan, -r, e);
    }
    sys_shut(control[1]);
    sys_shut(builder[1]);
    free(b->names);
    free(b);
    if (r < 0) {
        sys_shut(control[0]);
        sys_shut(builder[0]);
        return r;
    }
    *ret = (struct started){.pid = r, .pidfd = pidfd, .control = control[0], .builder = builder[0]};
    return 0;
}

/*
 * Pid 1 sees the end of its control stream, ends, and the builder ends after it: so that when this returns nothing is
 * left. Only a builder that does not end by itself is killed (pid 1 then dies by its parent-death signal). One that is to
 * be left has said that it is on its way out: whoever takes care of pinfold's orphans reaps it.
 */
static void native_finish(struct started *s)
{
    enum { PATIENCE_MS = 2000 };
    struct pollfd p = {.fd = s->pidfd, .events = POLLIN};
    struct timespec patience = {PATIENCE_MS / 1000, 0};
    siginfo_t info;
    s->control = sys_shut(s->control);
    if (s->pidfd >= 0 && !s->leave_builder) {
        int n;
        do
            n = sys_poll(&p, 1, &patience);
        while (n == -EINTR);
        if (n != 1)
            (void)sys_pidfd_kill(s->pidfd, SIGKILL);
        for (int tries = 0; tries < 3; tries++) {
            int e = sys_waitid(3 /* P_PIDFD */, s->pidfd, &info, WEXITED | __WALL);
            if (e == 0 || e == -ECHILD)
                break;
            tries -= e == -EINTR;
        }
    }
    s->builder = sys_shut(s->builder);
    s->pidfd = sys_shut(s->pidfd);
    s->pid = 0;
}

const struct engine engine_native = {
    .name = "native", .probe = native_probe, .start = native_start, .finish = native_finish};
