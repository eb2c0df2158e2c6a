/*
 * The builder (runtime/builder.h). Everything between clone and exec uses sys/ only: no libc state, and no allocation
 * (memory is allocated before).
 */
#include "runtime/builder.h"
#include "runtime/command.h"
#include "runtime/kept_masks.h"
#include "base/text.h"
#include "sys/caps.h"
#include "sys/fd.h"
#include "sys/poll.h"
#include "sys/process.h"
#include "sys/socket.h"

void builder_begin(struct builder *b, const struct plan_image *plan, int *slots)
{
    b->plan = plan;
    b->control = b->report = b->publish = b->group_dir = b->program = b->pass[0] = b->pass[1] = -1;
    runner_begin(&b->runner, plan, slots);
}

_Noreturn void builder_give_up(const struct builder *b, uint32_t where, int e)
{
    give_up(b->report, where, e);
}

static void must(const struct builder *b, uint32_t where, int e)
{
    or_give_up(b->report, where, e);
}

/* Drops everything of the caller's that could matter inside: descriptors, signal dispositions and mask, session,
   umask. */
int builder_forget(struct builder *b)
{
    int keep[17] = {b->control,   b->report,        b->job.stdio[0], b->job.stdio[1], b->job.stdio[2],
                    b->group_dir, b->runner.egress, b->publish,      b->program};
    int n = 9;
    for (int i = 0; i < b->n_group_tasks && i < 8; i++)
        keep[n++] = b->group_tasks[i];
    int e = close_others(keep, n);
    if (e < 0)
        return e;
    if (b->dies_with_parent)
        (void)sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    for (int s = 1; s < 32; s++) { /* otherwise ignored signals stay ignored across clone and exec */
        if (s != SIGKILL && s != SIGSTOP && !(b->not_ignored >> s & 1))
            (void)sys_signal_default(s);
    }
    (void)sys_sigmask(SIG_SETMASK, 0);
    (void)sys_umask(0);
    /* The terminal's signals are for pinfold, which forwards them. No new session: the scheduler would treat it as a
       new group and delay it. */
    e = sys_setpgid(0, 0);
    return e == -EPERM && b->foreign ? 0 : e; /* it already leads a session, and so a group */
}

static int write_file(const char *path, const char *text, size_t n)
{
    own_fd int fd = sys_openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    return fd < 0 ? fd : sys_write_all(fd, text, n);
}

static int write_map(const char *path, uint32_t inside, uint32_t outside)
{
    char text[32], *p = put_number(put_text(put_number(text, inside), " "), outside);
    p = put_text(p, " 1");
    return write_file(path, text, (size_t)(p - text));
}

int map_ids(uint32_t inside_uid, uint32_t inside_gid, uint32_t uid, uint32_t gid)
{
    int e = write_file("/proc/self/setgroups", "deny", 4);
    if (e == 0)
        e = write_map("/proc/self/uid_map", inside_uid, uid);
    return e < 0 ? e : write_map("/proc/self/gid_map", inside_gid, gid);
}

int builder_map_ids(const struct builder *b, uint32_t uid, uint32_t gid)
{
    return map_ids(b->plan->uid, b->plan->gid, uid, gid);
}

int send_files(int to, const char *const *names, int n)
{
    int e = 0;
    for (int i = 0; e >= 0 && i < n; i++) {
        own_fd int fd = sys_openat(AT_FDCWD, names[i], O_RDONLY | O_CLOEXEC, 0);
        e = fd < 0 ? fd : (int)sys_send_fd(to, "", 1, fd, 0);
    }
    return e < 0 ? e : 0;
}

/* The process of the published ports (supervisor/network/publish.c) enters the network namespace and the user's that owns it. */
static int give_namespaces(const struct builder *b)
{
    static const char *const names[] = {"/proc/self/ns/user", "/proc/self/ns/net"};
    int e = b->publish < 0 ? 0 : send_files(b->publish, names, 2);
    sys_shut(b->publish);
    return e;
}

/*
 * Under memory pressure the kernel should kill the command before pid 1 (proc_pid_oom_score_adj(5)). The command inherits pid 1's
 * score when it is cloned, so the score is raised before, and pid 1 lowers it (runtime/init.c) once the command runs; one write then
 * sets builder and pid 1, which share their memory. No descriptor is kept: an open writer keeps its mount from becoming read-only.
 */
void builder_raise_score(struct builder *b)
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

/* Enters the control group by moving itself, a single thread, which takes no lock of the thread group (cgroup v1's
   `tasks`). */
static int join_cgroup(const struct builder *b)
{
    int e = 0;
    for (int i = 0; e >= 0 && i < b->n_group_tasks && i < 8; i++)
        e = (int)sys_write(b->group_tasks[i], "0", 1);
    if (e >= 0 && b->plan->namespaces & SYS_CLONE_NEWCGROUP)
        e = sys_unshare(SYS_CLONE_NEWCGROUP);
    for (int i = 0; i < b->n_group_tasks && i < 8; i++)
        sys_shut(b->group_tasks[i]);
    sys_shut(b->group_dir);
    return e < 0 ? e : 0;
}

enum { LOCK_FOLLOWS = 'l' };

/* To a pid 1 that began ahead of the first half of BUILD: what of it pid 1 needs. */
static int tell_root_made(const struct builder *b)
{
    const int lock = b->runner.kept.lock;
    const char word = lock >= 0 ? LOCK_FOLLOWS : 0;
    int e = (int)sys_send_fd(b->pass[0], &word, 1, b->runner.own, 0);
    return e < 0 || lock < 0 ? e : (int)sys_send_fd(b->pass[0], &word, 1, lock, 0);
}

/* In such a pid 1: waits for that. */
static int root_made(struct builder *b)
{
    char word = 0;
    long n = sys_recv_fd(b->pass[1], &word, 1, &b->runner.own, 0);
    if (n > 0 && word == LOCK_FOLLOWS)
        n = sys_recv_fd(b->pass[1], &word, 1, &b->runner.kept.lock, 0);
    b->runner.denied = b->runner.own >= 0;
    const bool whole = b->runner.own >= 0 && (word != LOCK_FOLLOWS || b->runner.kept.lock >= 0);
    return n < 0 ? (int)n : whole ? 0 : -ECONNRESET;
}

/* Pid 1 shares the builder's memory: copying it would cost 50 us and a set of page tables per box. It gets a stack
   and a copy of what both would write to; neither touches the other's afterwards, and pid 1 uses no libc state. */
static _Noreturn void init_child(void *birth)
{
    struct builder *b = birth;
    int e = sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (e < 0)
        sys_exit(125);
    if (!b->beside) { /* otherwise close_others() */
        sys_shut(b->report);
        sys_shut(b->pass[0]);
        sys_shut(b->runner.host_proc);
        overlays_settle(&b->runner, false);
        sys_shut(b->runner.kept.dir);
        sys_shut(b->runner.kept.keep_in);
    }
    e = b->joins ? join_cgroup(b) : 0;
    if (e < 0)
        give_up(b->control, WHERE_CGROUP, e);
    if (b->beside) { /* this process does not need the trees that the builder is about to attach */
        int keep[] = {b->control,      b->pass[1],    b->job.stdio[0],    b->job.stdio[1],
                      b->job.stdio[2], b->runner.own, b->runner.kept.lock};
        e = close_others(keep, 7);
        b->runner.n_done = b->runner.n_works = 0;
        b->runner.denying[0] = b->runner.denying[1] = -1;
        if (e == 0)
            e = room_back(&b->runner);
        if (e < 0)
            sys_exit(125);
    }
    if (b->beside && b->late_net) {
        own_fd int net = net_begin(&b->runner);
        if (net < 0)
            give_up(b->control, WHERE_NET, net);
        if (sys_send_fd(b->pass[1], "", 1, net, 0) < 0)
            sys_exit(125); /* the builder failed, and has reported why */
        done_with(&b->runner, &net);
    }
    if (b->ahead && root_made(b) < 0)
        sys_exit(125); /* the builder failed, and has reported why */
    init_main(&b->runner, &b->job, b->control, b->pass[1], b->beside);
}

enum { INIT_STACK = 128 << 10, SETTLER_STACK = 64 << 10, PAGE = 4096 };
#define INIT_AT                                                                                                        \
    (INIT_STACK - (sizeof(struct builder) + 63) / 64 * 64) /* its arguments, on one page with its first frames */
#define SETTLER_ROOM ((SETTLER_STACK + sizeof(struct runner) + PAGE - 1) / PAGE * PAGE)
#define KEEPER_AT    (INIT_STACK + SETTLER_ROOM) /* another of that size */
#define KEPT_AT      (KEEPER_AT + SETTLER_ROOM)

size_t builder_stacks(void)
{
    return KEPT_AT + KEPT_ROOM;
}

void builder_populate(const struct builder *b, char *stack_end)
{
    sys_populate(stack_end - 3 * PAGE, 3 * PAGE);
    sys_populate(b->stacks + INIT_STACK - 3 * PAGE, 3 * PAGE);
}

static int clone_init(struct builder *b, int *ret_pidfd)
{
    char *memory = b->stacks ? b->stacks : sys_pages(INIT_STACK);
    if (!memory)
        return -ENOMEM;
    struct builder *theirs = (void *)(memory + INIT_AT);
    *theirs = *b;
    theirs->runner.stack = memory;
    struct sys_clone how = {.flags =
                                CLONE_VM | SYS_CLONE_PIDFD | (b->plan->namespaces & ~b->plan->outer & CLONE_NEWPID),
                            .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
                            .exit_signal = SIGCHLD,
                            .stack = (uint64_t)(uintptr_t)memory,
                            .stack_size = INIT_AT};
    if (b->joins && b->group_dir >= 0) {
        how.flags |= SYS_CLONE_INTO_CGROUP;
        how.cgroup = (uint64_t)b->group_dir;
    }
    return sys_clone3_run(&how, init_child, theirs);
}

static bool drops_capabilities(const struct builder *b)
{
    return b->plan->namespaces & CLONE_NEWUSER || b->foreign || b->plan->tier;
}

/* Drops the builder's capabilities except that for reading memory of the box's processes, which another program that
   it executes as the guard keeps. */
static int become_guard(const struct builder *b)
{
    const uint64_t keep = supervised(b->plan) ? 1ull << CAP_SYS_PTRACE : 0;
    if (!drops_capabilities(b))
        return 0;
    int e = b->program >= 0 ? sys_caps_bequeath(keep) : sys_caps_keep(keep);
    /* Another program may have given fewer; an ordinary caller has none without a user namespace. */
    return e == -EPERM && (b->foreign || b->plan->tier) ? sys_caps_keep(0) : e;
}

/* Without a pid namespace between, a command could kill pid 1 and the guard's helpers: kill(2) checks the real and the
   saved uid of the target. So these two become nobody's, and each command takes its own uid back before it begins. */
static int stand_apart(const struct builder *b)
{
    enum { NOBODY = 65534 };
    if (b->plan->namespaces & CLONE_NEWPID)
        return (int)sys_call(SYS_setresuid, b->plan->uid, b->plan->uid, b->plan->uid, 0, 0, 0);
    return (int)sys_call(SYS_setresuid, NOBODY, b->plan->uid, NOBODY, 0, 0, 0);
}

/* If another program started this one as a user of its own (a container's root), builder and box become the plan's user
   here. So the guard, too, opens files for a command with that user's rights. */
static int become_user(struct builder *b)
{
    if (!b->foreign)
        return 0;
    const int uid = (int)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0), gid = (int)sys_call(SYS_getegid, 0, 0, 0, 0, 0, 0);
    if ((uint32_t)uid == b->plan->uid && (uint32_t)gid == b->plan->gid) {
        (void)stand_apart(b); /* without the capability it stays as it is */
        return 0;
    }
    int e = sys_prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
    if (e == 0)
        e = (int)sys_call(SYS_setgroups, b->n_groups, b->groups, 0, 0, 0, 0);
    if (e == -EINVAL && b->n_groups) /* a user namespace that does not map all of them has none */
        e = (int)sys_call(SYS_setgroups, 0, NULL, 0, 0, 0, 0);
    if (e == 0)
        e = (int)sys_call(SYS_setresgid, b->plan->gid, b->plan->gid, b->plan->gid, 0, 0, 0);
    if (e == 0)
        e = stand_apart(b);
    if (e == -EPERM || e == -EINVAL) /* a user namespace without this id */
        e = (int)sys_call(SYS_setresuid, b->plan->uid, b->plan->uid, b->plan->uid, 0, 0, 0);
    if (e == 0) /* the effective ones went with the uid; the step NO_CAPS, in pid 1, needs them */
        e = sys_caps_whole();
    return e;
}

struct builder_end builder_end(const struct builder *b)
{
    return (struct builder_end){.report = b->report,
                                .settler = b->settler,
                                .keeper = b->keeper,
                                .tier = b->plan->tier,
                                .parent_death_signal = b->dies_with_parent,
                                .drops = drops_capabilities(b),
                                .ptrace = supervised(b->plan)};
}

int builder_resume(const struct builder_end *end)
{
    int e = sys_prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    /* exec keeps it, unless it takes the ambient capability for a gain */
    if (e == 0 && end->parent_death_signal)
        e = sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (e == 0 && end->drops)
        e = sys_caps_keep(end->ptrace ? 1ull << CAP_SYS_PTRACE : 0);
    return e == -EPERM ? sys_caps_keep(0) : e;
}

/* Everything has been reported, and pid 1, with everything else in the box, has been waited for. `r` or NULL: what is left to do,
   for which nobody waits. */
static _Noreturn void leave(const struct builder_end *end, struct runner *r, int status)
{
    enum { PATIENCE_MS = 100 };
    const struct frame f = {.kind = FRAME_GONE};
    int keeper = end->keeper, ignored;
    if (end->settler > 0) /* before the next box finds what it is removing */
        (void)sys_wait4(end->settler, &ignored, __WALL, NULL);
    /* mostly it has ended soon, and then the next start finds what it has kept */
    for (int ms = 0; keeper > 0 && ms < PATIENCE_MS; ms++) {
        if (sys_wait4(keeper, &ignored, WNOHANG | __WALL, NULL) != 0)
            keeper = 0;
        else
            (void)sys_poll_ms(NULL, 0, 1);
    }
    /* pinfold may end as soon as it is told; this process ends by itself, and does not stop half way */
    if ((r && r->n_works) || keeper > 0)
        (void)sys_prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
    (void)sys_send_fd(end->report, &f, sizeof f, -1, 0);
    if (r)
        overlays_settle(r, true);
    if (keeper > 0) /* it works in memory of the caller's, who takes that back when this process has ended */
        (void)sys_wait4(keeper, &ignored, __WALL, NULL);
    sys_exit(status);
}

_Noreturn void builder_finish(const struct builder_end *end, int status)
{
    static const struct runner everything; /* not in a scope: finds the descendants by /proc */
    if (end->tier)
        hunt_down(&everything);
    if (status < 0) {
        const struct builder b = {.report = end->report};
        builder_give_up(&b, WHERE_GUARD, status);
    }
    leave(end, NULL, exit_status(status));
}

void builder_settle_in_time(struct builder *b, int notify, int init)
{
    const struct timespec moment = {.tv_nsec = 250000000};
    struct pollfd p[] = {
        {.fd = init, .events = POLLIN}, {.fd = notify, .events = POLLIN}, {.fd = b->report, .events = POLLIN}};
    if (!b->late || sys_poll(p, 3, &moment) != 0)
        return;
    overlays_settle(&b->runner, true);
    sys_stack_back(b->runner.stack);
    b->late = false;
    must(b, WHERE_GUARD, become_guard(b));
}

static _Noreturn void watch_box(struct builder *b, int init)
{
    siginfo_t info = {0};
    char ready;
    int status = 0, notify = -1;
    if (supervised(b->plan) && sys_recv_fd(b->pass[0], &ready, 1, &notify, 0) > 0 && notify >= 0) {
        if (!(b->plan->filter & FILTER_READS)) /* no call waits for the guard */
            sys_drop(&b->pass[0]);
        builder_settle_in_time(b, notify, init);
        status = b->supervise(b, notify, sys_taken(&b->runner.host_proc), init);
        const struct builder_end end = builder_end(b);
        if (b->plan->tier || status < 0)
            builder_finish(&end, status);
        leave(&end, &b->runner, exit_status(status));
    }
    int e;
    builder_settle_in_time(b, -1, init);
    do
        e = sys_waitid(SYS_OF_PIDFD, init, &info, WEXITED | __WALL);
    while (e == -EINTR);
    if (b->plan->tier)
        hunt_down(&b->runner); /* of a pid 1 that was killed */
    must(b, WHERE_CHILD, e);
    const struct builder_end end = builder_end(b);
    leave(&end, &b->runner, info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status);
}

/* Enters the network namespace that pid 1 has created; its descriptor is the first thing pid 1 sends. */
static int enter_net(struct builder *b)
{
    char word;
    own_fd int net = -1;
    long n = sys_recv_fd(b->pass[0], &word, 1, &net, 0);
    int e = n < 0 ? (int)n : net < 0 ? -ECONNRESET : sys_setns(net, CLONE_NEWNET);
    done_with(&b->runner, &net);
    return e;
}

static void settle_entry(void *runner)
{
    (void)sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    overlays_settle(runner, true);
    sys_exit(0);
}

/* It may go on when pinfold has ended, so it holds nothing that somebody waits for to be closed. */
static void keep_entry(void *runner)
{
    struct runner *r = runner;
    int used[] = {r->kept.keep_in, r->own};
    (void)sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (close_others(used, 2) == 0)
        kept_store(r);
    sys_exit(0);
}

/* In this memory, `at` that of the builder's caller, or new. A pid, 0 without memory, or -errno. */
static int run_beside(struct builder *b, size_t at, void (*entry)(void *))
{
    char *memory = b->stacks ? b->stacks + at : sys_pages(SETTLER_ROOM);
    if (!memory)
        return 0;
    struct runner *theirs = (void *)(memory + SETTLER_STACK);
    *theirs = b->runner;
    const struct sys_clone how = {.flags = CLONE_VM, .stack = (uint64_t)(uintptr_t)memory, .stack_size = SETTLER_STACK};
    return sys_clone3_run(&how, entry, theirs);
}

/*
 * Removing directories on disk can take longer than a short command, whose end must not be delayed, and needs capabilities that the guard
 * must not have. So a separate process does it while the command runs. Masks are kept by another one: that waits for the disk, on a busy
 * machine for half a minute, and nobody but the next start has anything of it.
 */
static void settle_beside(struct builder *b)
{
    if (b->runner.kept.noting)
        b->keeper = run_beside(b, KEEPER_AT, keep_entry);
    if (b->runner.n_works)
        b->settler = run_beside(b, INIT_STACK, settle_entry);
    overlays_settle(&b->runner, b->settler <= 0);
}

/* Creating a network namespace takes longer than all of the first half of BUILD, and needs nothing of it. */
static bool begins_ahead(const struct builder *b)
{
    return b->recent && b->late_net && !b->names && !b->foreign && steps_split(&b->runner, true);
}

static void begin_init(struct builder *b, int *ret_pidfd)
{
    must(b, WHERE_STDIO, b->judged && !b->names ? 0 : stdio_enter(&b->job, b->names, b->report));
    b->beside |= b->ahead;
    if (b->plan->tier) /* children of a killed pid 1 are reparented to this process */
        (void)sys_prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    must(b, WHERE_CLONE, clone_init(b, ret_pidfd));
    b->pass[1] = sys_shut(b->pass[1]); /* pid 1's end: its closing must be noticed */
}

/*
 * Whether the marks of the box's layers are removed after a short command, by the builder itself, and no process is made for that.
 * Until then, at most builder_settle_in_time(), it keeps its capabilities: safe, for it executes nothing, reads of the box only the numbers
 * of calls (guard/begin.c), and cannot be examined. Not if it becomes the guard for certain, or there is a process for kept masks anyway.
 */
static bool settles_late(const struct builder *b)
{
    const struct runner *r = &b->runner;
    const bool becomes = b->plan->filter & FILTER_READS || (supervised(b->plan) && b->program < 0);
    return r->n_works && r->n_works == r->n_locked && r->n_works <= 2 && !r->kept.noting && !becomes && !b->plan->tier;
}

int builder_yield(struct builder *b)
{
    if (!b->late)
        return 0;
    settle_beside(b);
    return become_guard(b);
}

/*
 * To pinfold, and none stays: a copy in pid 1 would reach the box. It could do nothing with one, for fsconfig(2) asks for CAP_SYS_ADMIN
 * in the user namespace that mounted the file system, which in the box nobody has; outside its owner has it, who is pinfold's user.
 */
static void give_fresh(struct builder *b)
{
    struct runner *r = &b->runner;
    for (uint32_t i = 0; i < r->n_fresh; i++) {
        const struct frame f = {.kind = FRAME_FRESH, .a = r->fresh[i] & FRESH_READ_ONLY ? 1 : 0};
        const int fs = r->fresh[i] & ~FRESH_READ_ONLY;
        const long e = sys_send_fd(b->report, &f, sizeof f, fs, 0);
        sys_shut(fs);
        must(b, WHERE_CHILD, (int)e);
    }
    r->n_fresh = 0;
}

static void begin_runner(struct builder *b)
{
    if (b->stacks)
        b->runner.kept.index = (void *)(b->stacks + KEPT_AT);
    if (!b->job.argv || b->job.tty) /* a session, or what lasts long, and whose terminal often wakes pinfold */
        runner_freshens(&b->runner, !b->job.argv);
    if (!b->runner.oom_bytes)
        builder_raise_score(b);
}

_Noreturn void builder_run(struct builder *b)
{
    int init = -1, e;
    begin_runner(b);
    must(b, WHERE_CHILD, give_namespaces(b));
    e = sys_chdir("/"); /* the caller's directory may not be visible in the box */
    must(b, WHERE_CHILD, e);
    if (supervised(b->plan))
        e = b->runner.host_proc = sys_openat(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (e >= 0)
        e = sys_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, b->pass);
    must(b, WHERE_GUARD, e);
    must(b, WHERE_PTY, b->plan->tier && b->job.tty ? terminal_open(b->runner.pty) : 0);
    b->ahead = begins_ahead(b);
    must(b, WHERE_CHILD, b->ahead ? steps_room(&b->runner) : 0);
    if (b->ahead)
        begin_init(b, &init);
    e = steps_build_first(&b->runner, !b->names, &b->beside); /* stdio files are opened in the finished box */
    if (e == 0 && b->ahead && !b->beside)                     /* it is not recent after all */
        e = -EOPNOTSUPP;
    must(b, b->runner.failed, e);
    e = b->ahead ? tell_root_made(b) : 0;
    if (e == -EPIPE || e == -ECONNRESET)
        sys_exit(125); /* pid 1 failed, and has reported why */
    must(b, WHERE_CHILD, e);
    give_fresh(b);
    if (b->late_net && !b->beside) {
        e = net_begin(&b->runner);
        must(b, WHERE_NET, e);
        sys_shut(e);
        e = steps_catch(&b->runner);
        must(b, b->runner.failed, e);
    }
    must(b, WHERE_USER, become_user(b));
    if (!b->ahead)
        begin_init(b, &init);
    e = b->beside ? steps_build_rest(&b->runner) : 0;
    must(b, b->runner.failed, e); /* and pid 1 ends with it, by its parent-death signal */
    give_fresh(b);                /* of the second half */
    /* no command may start before its connections are redirected */
    const bool first = b->beside && b->late_net && b->runner.egress >= 0;
    must(b, WHERE_NET, first ? enter_net(b) : 0);
    e = first ? steps_catch(&b->runner) : 0;
    must(b, b->runner.failed, e);
    e = b->beside ? (int)sys_write(b->pass[0], "", 1) : 0;
    if (e >= 0 && b->beside && b->late_net && !first)
        e = enter_net(b);
    b->late = settles_late(b);
    if (!b->late)
        settle_beside(b);
    /* Detached mounts are kept: dropping one makes the kernel wait, which can be done at the end. */
    int keep[] = {b->report,
                  b->pass[0],
                  b->runner.host_proc,
                  init,
                  b->beside ? b->runner.own : -1,
                  b->program,
                  b->runner.layer_dir,
                  b->runner.layer_tree,
                  b->runner.apart,
                  b->late ? b->runner.works[0] : -1,
                  b->late && b->runner.n_works > 1 ? b->runner.works[1] : -1};
    if (e >= 0)
        e = close_others(keep, 11); /* above all pid 1's end of the control stream, whose closing must be noticed */
    if (e == 0 && !b->late)
        e = become_guard(b);
    must(b, WHERE_GUARD, e);
    watch_box(b, init);
}
