/*
 * The native engine: pinfold's own processes (docs/INTERNALS.md, "One run").
 *
 *     native_start     in pinfold: the sockets, one clone3
 *     builder_main     in the builder (runtime/builder.h): forget the caller, id maps, BUILD steps, pid 1, guard
 *
 * The builder of a box with one command runs in this process's memory (CLONE_VM) on a stack of its own: to copy the
 * page tables, and then each page that either touches, was a quarter of a start where page faults are dear. Builder and
 * pid 1 are our own code and read nothing that a box wrote; the guard, which does, gets memory of its own before its
 * first byte (guard/supervise.c). While they share it, this process is not dumpable, so that no process of the box and none
 * of its user can look into pid 1 (ptrace(2), "Ptrace access mode checking"). One box at a time shares: to write its id
 * maps, its process must be dumpable for a moment. Sessions, whose daemon lives long, get a copy.
 *
 * Everything between clone and exec uses sys/ only: no libc state, and no allocation (memory is allocated before).
 * wait(2) does not report the builder without __WALL (its exit signal is 0): a library must not give its caller
 * children to wait for.
 */
#include "backends/engine.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "backends/native/native.h"
#include "backends/native/net_kept.h"
#include "backends/probe.h"
#include "backends/score.h"
#include "guard/guard.h"
#include "guard/supervise.h"
#include "runtime/builder.h"
#include "sys/fd.h"
#include "sys/file.h"
#include "sys/poll.h"
#include "sys/process.h"

/*
 * The builder's arguments, followed by its slots, environment and runtime directory, on one page unless the environment is long; then page
 * by page the names of its files and the stacks of builder, pid 1 and settler.
 */
struct birth {
    const struct start_request *ask; /* not for the builder */
    struct builder builder;
    uint32_t uid, gid;           /* of the caller, on the host */
    const struct net_kept *kept; /* namespaces to enter, or NULL */
    uint64_t others;             /* the namespaces to create in that case */
    size_t bytes;                /* of all */
    char *stack;
    bool shared;
    char masks[65];      /* builder.runner.kept's key */
    char *runtime;       /* builder.runner.kept's home */
    char (*names)[4096]; /* builder.names, of three */
};
enum { BUILDER_STACK = 256 << 10, PAGE = 4096 };

/* The memory of a box whose builder finish() did not wait for, and the builder's pidfd. */
static struct birth *left_behind;
static int left_pidfd = -1;

/* ---- in the builder ---- */

static _Noreturn void builder_main(void *arg)
{
    struct birth *birth = arg;
    struct builder *b = &birth->builder;
    if (!birth->shared) /* a copy of memory that others may not examine: for the id maps */
        (void)sys_prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    int e = birth->kept ? net_kept_enter(birth->kept, birth->others) : 0;
    if (e == 0)
        e = builder_forget(b);
    if (e < 0)
        builder_give_up(b, WHERE_CHILD, e);
    e = birth->kept ? 0 : b->plan->namespaces & CLONE_NEWUSER ? builder_map_ids(b, birth->uid, birth->gid) : 0;
    if (e < 0)
        builder_give_up(b, WHERE_MAPS, e);
    builder_run(b);
}

/* ---- in pinfold ---- */

int engine_stdio(int fd)
{
    return stdio_way(fd);
}

static int judge_stdio(const struct start_request *ask, struct builder *b, char (*names)[4096], struct err *e)
{
    for (int i = 0, judged = -1; i < 3; i++) {
        int fd = ask->stdio[i];
        b->job.stdio[i] = fd;
        if (fd < 0 || fd == judged) /* standard error that is standard output */
            continue;
        int way = stdio_way(fd);
        judged = way == STDIO_REOPEN ? -1 : fd;
        if (way < 0)
            return engine_stdio_error(i, fd, way, e);
        if (way != STDIO_REOPEN)
            continue;
        b->names = names;
        char link[32];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        long n = sys_readlinkat(AT_FDCWD, link, b->names[i], sizeof b->names[i] - 1);
        b->names[i][n > 0 ? n : 0] = 0; /* a pipe replaces a file without a name */
    }
    return 0;
}

/* Passes the arguments of start() to the builder. */
static void builder_ask(struct builder *b, const struct start_request *ask)
{
    const struct cgroup_join *c = &ask->cgroup;
    b->job = (struct job){.argv = ask->argv,
                          .envp = (const char *const *)ask->plan->env,
                          .tty = ask->tty,
                          .rows = ask->rows,
                          .columns = ask->columns,
                          .umask = ask->umask,
                          .stdin_at = -1};
    b->runner.egress = ask->egress;
    b->runner.spare = ask->spare;
    b->runner.n_spare = ask->n_spare;
    b->publish = ask->publish;
    b->dies_with_parent = ask->parent_death_signal;
    b->joins = c->kind != CGROUP_NONE;
    b->group_dir = c->v2_dir;
    for (int i = 0; i < c->n_v1 && i < 8; i++)
        b->group_tasks[b->n_group_tasks++] = c->v1_tasks[i];
    b->supervise = guard_supervise;
    b->not_ignored = ask->not_ignored;
    b->judged = true; /* judge_stdio() */
    const struct facts *f = ask->plan->facts;
    b->recent = f && (f->kernel_major > 6 || (f->kernel_major == 6 && f->kernel_minor >= 15));
}

static const char *runtime_of(const struct plan *plan)
{
    return plan->facts ? plan->facts->runtime : NULL;
}

/* Of the plan only the image stays where it is as long as the box (plan_settle_down()). */
static size_t env_bytes(const char *const *env)
{
    size_t n = sizeof *env;
    for (; *env; env++)
        n += sizeof *env + strlen(*env) + 1;
    return n;
}

static const char *const *env_copy(const char *const *env, char *to)
{
    const char **list = (const char **)to; // NOLINT(bugprone-casting-through-void): aligned by birth_new()
    size_t n = 0;
    while (env[n])
        n++;
    char *text = (char *)(list + n + 1);
    for (size_t i = 0; i < n; i++) {
        list[i] = text;
        text = (char *)memcpy(text, env[i], strlen(env[i]) + 1) + strlen(env[i]) + 1;
    }
    return list;
}

/* Where layers of masks are kept for the next box like this one. Kept layers are files of the host's, and whoever removes them
   (an old /tmp is swept) shows what they hide to boxes that use them. So a box that may last for days makes its own. */
static void keep_masks(struct birth *b, const struct start_request *ask)
{
    const struct plan *plan = ask->plan;
    const char *runtime = runtime_of(plan);
    const bool lasts = !ask->argv || ask->tty;
    struct sys_stat st;
    if (lasts || !runtime)
        return;
    int e = sys_stat_at(AT_FDCWD, runtime, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st);
    if (e == -ENOENT && sys_mkdirat(AT_FDCWD, runtime, 0700) == 0)
        e = sys_stat_at(AT_FDCWD, runtime, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st);
    if (e < 0 || st.mode != (S_IFDIR | 0700) || st.uid != b->uid)
        return;
    plan_masks_digest(plan, b->masks);
    b->masks[32] = 0;
    b->builder.runner.kept.home = strcpy(b->runtime, runtime);
    b->builder.runner.kept.key = b->masks;
}

static void birth_free(struct birth *b)
{
    if (b)
        sys_unmap(b, b->bytes);
}

/* Nothing of the box is left, so others may examine this process again: it may become a session's daemon. */
static void stop_sharing(void)
{
    (void)sys_prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

/* The processes that shared the memory have ended. */
static void take_memory_back(struct birth *b)
{
    native_lend(false);
    birth_free(b);
}

/* Before the next box the caller has waited for the builder (pinfold.h, `leave`). */
static void take_left_back(void)
{
    struct pollfd ended = {.fd = left_pidfd, .events = POLLIN};
    if (!left_behind || sys_poll_ms(&ended, 1, 0) != 1)
        return;
    left_pidfd = sys_shut(left_pidfd);
    take_memory_back(left_behind);
    left_behind = NULL;
}

static struct birth *birth_new(const struct start_request *ask, struct err *e)
{
    take_left_back();
    const struct plan_image *plan = ask->plan->image;
    const size_t slots = (runner_room(plan) * sizeof(int) + 7) & ~(size_t)7,
                 env = env_bytes((const char *const *)ask->plan->env),
                 runtime = runtime_of(ask->plan) ? strlen(runtime_of(ask->plan)) + 1 : 0;
    const size_t first = (sizeof(struct birth) + slots + env + runtime + PAGE - 1) / PAGE * PAGE;
    const size_t names = 3 * sizeof *((struct birth *)NULL)->names;
    const size_t bytes = first + names + BUILDER_STACK + builder_stacks();
    struct birth *b = sys_pages(bytes);
    if (!b) {
        (void)err_sys(e, ERR_SYSTEM, ENOMEM, "cannot start the box");
        return NULL;
    }
    b->ask = ask;
    b->bytes = bytes;
    b->runtime = (char *)(b + 1) + slots + env;
    b->names = (char(*)[4096])((char *)b + first);
    b->stack = (char *)b + first + names;
    const struct facts *known = ask->plan->facts; /* as native_probe() has seen them */
    b->uid = known ? known->uid : sys_geteuid();
    b->gid = known ? known->gid : (uint32_t)sys_call(SYS_getegid, 0, 0, 0, 0, 0, 0);
    builder_begin(&b->builder, plan, (int *)(b + 1));
    builder_ask(&b->builder, ask);
    if (native_has_main() &&
        !plan->tier) /* there pid 1 finds processes by paths of its own, which the guard must read */
        b->builder.program = sys_openat(AT_FDCWD, "/proc/self/exe", O_PATH | O_CLOEXEC, 0);
    /* With memory.oom.group the kernel ends all of the group, pid 1 too, and with it whoever shares its memory. */
    const bool ends_by_group = ask->cgroup.v2_dir >= 0;
    b->shared = ask->argv && !plan->tier && !native_lends() && !ends_by_group && b->builder.program >= 0 &&
                sys_prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1;
    b->builder.stacks = b->stack + BUILDER_STACK;
    keep_masks(b, ask);
    if (!b->shared) {
        score_back();
    } else {
        score_raise(&b->builder);
        b->builder.runner.n_spare = 0; /* it is ours */
        b->builder.job.envp = env_copy((const char *const *)ask->plan->env, (char *)(b + 1) + slots);
    }
    return b;
}

/* Creating a network namespace takes as long as the rest of a start, so pid 1 does it while the builder works. Not
   with published ports: their process needs the namespace first of all. */
static bool can_wait_for_net(const struct builder *b)
{
    return (plan_has(b->plan, STEP_LOOPBACK) || plan_has(b->plan, STEP_CATCH)) && b->publish < 0 && !b->names &&
           b->plan->namespaces & CLONE_NEWNET && b->plan->namespaces & CLONE_NEWUSER;
}

static int clone_builder(struct birth *birth, int *ret_pidfd)
{
    struct builder *b = &birth->builder;
    uint64_t namespaces = b->plan->namespaces & ~(uint64_t)CLONE_NEWPID;
    if (birth->ask->net_kept && b->publish < 0 && b->runner.egress < 0 &&
        net_kept_ready(birth->ask->net_kept, b->plan)) {
        birth->kept = birth->ask->net_kept;
        b->runner.kept_net = true;
    }
    b->late_net = b->runner.late_net = !birth->kept && can_wait_for_net(b);
    if (b->late_net)
        namespaces &= ~(uint64_t)CLONE_NEWNET;
    if (b->joins)
        namespaces &=
            ~(uint64_t)SYS_CLONE_NEWCGROUP; /* created once pid 1 is in its group, which is then the root it sees */
    birth->others = namespaces;
    if (birth->kept)
        namespaces = 0;
    const struct sys_clone how = {.flags = namespaces | SYS_CLONE_PIDFD | SYS_CLONE_CLEAR_SIGHAND,
                                  .pidfd = (uint64_t)(uintptr_t)ret_pidfd};
    if (birth->shared) {
        struct sys_clone here = how;
        builder_populate(&birth->builder, birth->stack + BUILDER_STACK);
        here.flags |= CLONE_VM;
        birth->builder.runner.stack = birth->stack;
        here.stack = (uint64_t)(uintptr_t)birth->stack;
        here.stack_size = BUILDER_STACK;
        int pid = sys_clone3_run(&here, builder_main, birth);
        native_lend(pid > 0);
        return pid;
    }
    int pid = sys_clone3(&how);
    if (pid == 0)
        builder_main(birth);
    return pid;
}

static int clone_failed(const struct plan_image *plan, int no, struct err *e)
{
    (void)err_no_process(e, err_sys(e, ERR_CANNOT, no, "cannot create the box's namespaces"));
    bool forbidden = no == EPERM || no == EACCES || no == ENOSPC || no == EUSERS || no == EINVAL || no == ENOSYS;
    return plan->namespaces && forbidden ? -ENGINE_STALE : -no;
}

static int native_start(const struct start_request *ask, struct started *ret, struct err *e)
{
    int control[2] = {-1, -1}, builder[2] = {-1, -1}, pidfd = -1;
    struct birth *b = birth_new(ask, e);
    if (!b)
        return -ENOMEM;
    int r = judge_stdio(ask, &b->builder, b->names, e);
    if (r == 0) {
        r = sys_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control);
        if (r == 0)
            r = sys_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, builder);
        if (r < 0)
            (void)err_sys(e, ERR_SYSTEM, -r, "cannot create a socket pair to the box");
    }
    if (r == 0) {
        b->builder.control = control[1];
        b->builder.report = builder[1];
        r = clone_builder(b, &pidfd);
        if (r < 0)
            r = clone_failed(ask->plan->image, -r, e);
    }
    if (r < 0)
        score_back();
    sys_shut(control[1]);
    sys_shut(builder[1]);
    sys_shut(b->builder.program);
    const bool shared = r > 0 && b->shared;
    if (!shared)
        birth_free(b);
    if (r < 0) {
        sys_shut(control[0]);
        sys_shut(builder[0]);
        return r;
    }
    *ret = (struct started){
        .pid = r, .pidfd = pidfd, .control = control[0], .builder = builder[0], .memory = shared ? b : NULL};
    return 0;
}

/*
 * Pid 1 exits when its control stream closes, and the builder after it, so that nothing is left when this returns. Only
 * a builder that does not exit is killed, and pid 1 by its parent-death signal. A builder with leave_builder has
 * reported that it exits: whoever adopts pinfold's orphans reaps it.
 */
static void native_finish(struct started *s)
{
    enum { BUILD_PATIENCE_MS = 10000 };
    struct pollfd p = {.fd = s->pidfd, .events = POLLIN};
    struct timespec patience = {BUILD_PATIENCE_MS / 1000, 0};
    siginfo_t info;
    s->control = sys_shut(s->control);
    if (s->pidfd >= 0 && !s->leave_builder) {
        int n;
        do
            n = sys_poll(&p, 1, &patience);
        while (n == -EINTR);
        bool ended = n == 1;
        if (!ended)
            engine_kill(s);
        for (int tries = 0; tries < 3; tries++) {
            int e = sys_waitid(SYS_OF_PIDFD, s->pidfd, &info, WEXITED | __WALL);
            if (e == 0 || e == -ECHILD)
                break;
            tries -= e == -EINTR;
        }
        if (s->memory &&
            ended) { /* otherwise one that was killed may still be about to end: the next box gets a copy */
            stop_sharing();
            take_memory_back(s->memory);
            if (!s->exits)
                score_back();
        }
    }
    if (s->memory && s->leave_builder) {
        if (!s->exits)
            stop_sharing();
        left_behind = s->memory;
        left_pidfd = sys_taken(&s->pidfd);
    }
    s->memory = NULL;
    s->builder = sys_shut(s->builder);
    s->pidfd = sys_shut(s->pidfd);
    s->pid = 0;
}

const struct engine engine_native = {
    .name = "native", .probe = native_probe, .start = native_start, .finish = native_finish};
