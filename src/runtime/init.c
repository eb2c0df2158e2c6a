/*
 * Pid 1 of a box. It runs the last steps, locks itself down, starts the command, and then only waits: for children that
 * exit (it reaps all orphans) and for frames of pinfold (signals, the terminal's size, the end). It runs no hostile
 * code and reads no hostile data. It exits when its command has ended, or when pinfold says so or is gone (`control`
 * closes); then the kernel kills every process of the box.
 *
 * A command without a terminal leads its own session. With one, a leader stands between: it leads the session whose
 * terminal is the box's pty, and the command is its child in a process group of its own, because the terminal cannot
 * stop an orphaned process group, one whose parents are all outside of its session (setpgid(2), POSIX 11.1.4).
 */
#include "runtime/command.h"
#include "sys/landlock.h"
#include "sys/poll.h"

struct init_box { /* pid 1's own state */
    struct runner *r;
    const struct job *job;
    int control, master, slave, signals;
    int oom; /* oom_score_adj, or -1 if there is nothing to lower */
    int pid; /* of the command, or of the leader of its session */
};

/* Opens the terminal of the box: a pty of its own devpts (without namespaces the builder's), whose master is sent
   out. */
static int open_own_terminal(struct init_box *b)
{
    int e = b->r->pty[0] < 0 ? terminal_open(b->r->pty) : 0;
    if (e < 0)
        return e;
    b->master = sys_taken(&b->r->pty[0]);
    b->slave = sys_taken(&b->r->pty[1]);
    return terminal_give(b->control, b->job, b->master);
}

static int start_box(struct init_box *b)
{
    struct outcome o = {0};
    if (!b->job->tty) {
        b->pid = command_start(b->r, b->job, -1, &o);
        if (b->pid > 0 && o.no)
            command_failed(b->control, &o);
        return b->pid < 0 ? b->pid : 0;
    }
    int pid = (int)sys_call(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
    if (pid == 0)
        leader_main(b->r, b->job, b->slave, b->control);
    b->slave = sys_shut(b->slave);
    b->pid = pid;
    return pid < 0 ? pid : 0;
}

static void reap_children(const struct init_box *b)
{
    struct rusage usage;
    int status;
    for (;;) {
        int pid = sys_wait4(-1, &status, WNOHANG | WUNTRACED | __WALL, &usage);
        if (pid == 0 || pid == -ECHILD)
            return;
        if (pid != b->pid)
            continue;
        if (WIFSTOPPED(status)) {
            if (!b->job->tty) /* a leader stopped from inside does not concern the caller */
                report_stop(b->control, status);
            continue;
        }
        /* The leader has reported how the command ended, unless it was killed first, or could not. */
        const bool leader = b->job->tty && WIFEXITED(status);
        if (leader && status != 0) {
            const struct frame f = {.kind = FRAME_VERDICT, .a = WHERE_CHILD, .b = EIO};
            (void)send_frame(b->control, &f, -1);
            init_leave(b->r, 125);
        }
        if (!leader && report_exit(b->control, b->job, status, &usage) < 0)
            init_leave(b->r, 125); /* do not claim success without its report */
        init_leave(b->r, exit_status(status));
    }
}

static void signal_command(const struct init_box *b, int signal, uint32_t target)
{
    if (target == SIGNAL_EVERYONE && b->r->plan->tier)
        (void)hunt(b->r, signal);
    else if (target == SIGNAL_EVERYONE)
        (void)sys_kill(-1, signal);
    else if (b->job->tty)
        signal_foreground(b->master, signal);
    else
        (void)sys_kill(target == SIGNAL_FOREGROUND ? -b->pid : b->pid, signal);
}

static void obey_frame(const struct init_box *b)
{
    struct frame f;
    int fd = -1;
    long n = sys_recv_fd(b->control, &f, sizeof f, &fd, MSG_DONTWAIT);
    if (n == -EAGAIN || n == -EINTR)
        return;
    sys_drop(&fd);
    if (n != (long)sizeof f || f.kind == FRAME_END)
        init_leave(b->r, 128 + SIGKILL);
    if (f.kind == FRAME_SIGNAL && f.a > 0 && f.a <= 64)
        signal_command(b, (int)f.a, f.b);
    if (f.kind == FRAME_WINSIZE && b->master >= 0)
        terminal_resize(b->master, &f);
}

/*
 * Restores the oom score once the command is certainly past its exec: until then it shares this memory, and a write to
 * oom_score_adj sets all processes that do (vfork returns before exec has released the memory). For the same reason the
 * parts of pinfold's memory that nobody here needs are unmapped only now.
 */
static void settle_down(struct init_box *b)
{
    if (b->oom >= 0)
        (void)sys_write(b->oom, b->r->oom_text, b->r->oom_bytes);
    sys_drop(&b->oom);
    for (size_t i = 0; i < b->r->n_spare; i++)
        sys_unmap(b->r->spare[i].at, b->r->spare[i].bytes);
    b->r->n_spare = 0;
    sys_stack_back(b->r->stack);
}

static _Noreturn void serve_box(struct init_box *b)
{
    const struct timespec past_exec = {.tv_nsec = 50000000};
    struct pollfd p[2] = {{.fd = b->control, .events = POLLIN}, {.fd = b->signals, .events = POLLIN}};
    for (;;) {
        reap_children(b);
        int n = sys_poll(p, 2, b->oom >= 0 || b->r->n_spare ? &past_exec : NULL);
        if (n == 0)
            settle_down(b);
        if (n < 0 && n != -EINTR)
            init_leave(b->r, 125);
        if (p[1].revents) {
            char ignored[sizeof(struct signalfd_siginfo)];
            (void)sys_read(b->signals, ignored, sizeof ignored);
        }
        if (p[0].revents)
            obey_frame(b);
    }
}

/* Sends the filter's listener to the builder, which is the guard from then on. */
static int hand_over(struct runner *r, int pass)
{
    char ready = 0;
    if (r->notify < 0)
        return 0;
    long n = sys_send_fd(pass, &ready, 1, r->notify, 0);
    sys_drop(&r->notify);
    return n < 0 ? (int)n : 0;
}

/* Waits for the builder's message that the box is complete; false if it failed. */
static bool builder_is_done(int pass)
{
    char word;
    long n;
    do
        n = sys_read(pass, &word, 1);
    while (n == -EINTR);
    return n == 1;
}

_Noreturn void init_main(struct runner *r, const struct job *job, int control, int pass, bool beside)
{
    struct init_box b = {.r = r, .job = job, .control = control, .master = -1, .slave = -1, .signals = -1, .oom = -1};
    sigset_t child;
    int proc = -1, e = sys_sigmask(SIG_SETMASK, ~0ull);
    or_give_up(control, WHERE_CHILD, e);
    e = steps_run(r, PHASE_INSIDE);
    or_give_up(control, r->failed, e);
    if (!job->argv) /* later commands inherit the raised score, so it stays */
        proc = sys_openat(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    else if (r->oom_bytes)
        b.oom = sys_openat(AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC, 0);
    or_give_up(control, WHERE_PTY, job->tty ? open_own_terminal(&b) : 0);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    e = b.signals = sys_signalfd(&child, SFD_CLOEXEC | SFD_NONBLOCK);
    /* Otherwise orphans would go to the guard where that is a container's pid 1, and it takes each of its children for one of its own. */
    if (e >= 0 && (r->plan->tier || !(r->plan->namespaces & ~r->plan->outer & CLONE_NEWPID)))
        e = sys_prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    or_give_up(control, WHERE_CHILD, e);
    sys_umask(job->umask); /* for the command to inherit; with the filter in place the guard would have to handle it */
    e = steps_run(r, PHASE_LOCK);
    or_give_up(control, r->failed, e);
    if (r->command_ruleset >= 0) {
        or_give_up(control, WHERE_CHILD, sys_landlock_restrict(r->command_ruleset));
        r->scoped = r->scoping;
    }
    (void)sys_prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* whatever the plan says, because the builder shares this memory */
    const bool reads = r->notify >= 0 && r->plan->filter & FILTER_READS;
    e = hand_over(r, pass);
    if (e < 0 && !beside)
        give_up(control, WHERE_GUARD, e);
    if (beside && !builder_is_done(pass))
        sys_exit(125); /* it has reported why */
    e = rulesets_of_trees(r);
    or_give_up(control, r->failed, e);
    /* The guard must know what is at hidden names before a command, or the host, can move it (guard/rules/hidden.c). */
    if (reads && !builder_is_done(pass))
        sys_exit(125);
    sys_shut(pass);
    if (!job->argv)
        serve_main(r, control, b.signals, proc, job->umask);
    or_give_up(control, WHERE_CHILD, start_box(&b));
    serve_box(&b);
}
