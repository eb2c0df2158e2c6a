/*
 * What the native engine can do on this machine. The quick probe makes four system calls, or six, and assumes the rest
 * (engine.h, "Optimistic facts"). The thorough one creates the namespaces in a child, tries what a box needs in them,
 * and reads the settings that explain a refusal.
 *
 * It runs in pinfold, before a start. A wrong answer is no hole: what it says the machine can do a box's builder does, or the start
 * fails; what it says the machine cannot do is an error, or a loss that the policy permits by name.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#include "base/fd.h"
#include "backends/native/native.h"
#include "backends/probe.h"
#include "plan/trial.h"
#include "protocol/step.h"
#include "runtime/builder.h"
#include "survey/refused.h"
#include "sys/caps.h"
#include "sys/fd.h"
#include "sys/file.h"
#include "sys/landlock.h"
#include "sys/mount.h"
#include "sys/process.h"

#define ALL_NAMESPACES                                                                                                 \
    (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWPID | SYS_CLONE_NEWCGROUP)

static void kernel_version(struct facts *f)
{
    struct utsname u;
    if (uname(&u) == 0)
        (void)sscanf(u.release, "%u.%u", &f->kernel_major, &f->kernel_minor);
}

static bool has_notify(void)
{
    const uint32_t action = SECCOMP_RET_USER_NOTIF;
    return sys_call(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action, 0, 0, 0) == 0;
}

/* The kernel permits only one listener in a process's filters: in a supervised box there can be no other. */
static bool is_supervised(void)
{
    if (sys_prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0) /* no filter at all */
        return false;
    struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    const struct sys_clone how = {.exit_signal = SIGCHLD};
    int status = 0, pid = sys_clone3(&how);
    if (pid == 0) {
        (void)sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        sys_exit(sys_seccomp_filter(&allow, 1, SECCOMP_FILTER_FLAG_NEW_LISTENER) == -EBUSY);
    }
    while (pid > 0 && sys_wait4(pid, &status, 0, NULL) == -EINTR)
        ;
    return pid > 0 && status != 0;
}

/* ---- the trial ---- */

static int try_mounts(void)
{
    struct sys_mount_attr attr = {.set = SYS_MOUNT_RDONLY | SYS_MOUNT_NOSUID, .propagation = SYS_PROPAGATION_PRIVATE};
    own_fd int tree = sys_open_tree(AT_FDCWD, "/", SYS_TREE_CLONE | SYS_TREE_CLOEXEC | SYS_AT_RECURSIVE);
    return tree < 0 ? tree : sys_mount_setattr(tree, "", SYS_AT_EMPTY_PATH | SYS_AT_RECURSIVE, &attr);
}

/* A new instance of `type` as a detached mount, or -errno. */
static int try_fs(const char *type)
{
    own_fd int fs = sys_fsopen(type);
    int e = fs < 0 ? fs : sys_fsconfig(fs, SYS_FS_CREATE, NULL, NULL, 0);
    return e < 0 ? e : sys_fsmount(fs, SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV | SYS_MOUNT_NOEXEC);
}

/* A file over one of the new /proc's, as a box has it over process 1's command line: SELinux has a rule for it. Both get places in a tmpfs
   that has its own. */
static int try_over_proc(int tmpfs, int proc)
{
    int e = sys_mkdirat(tmpfs, "p", 0755);
    if (e == 0)
        e = sys_mknodat(tmpfs, "f", S_IFREG, 0);
    if (e == 0)
        e = sys_move_mount(proc, "", tmpfs, "p", SYS_MOVE_FROM_EMPTY);
    own_fd int file = e < 0 ? e : sys_open_tree(tmpfs, "f", SYS_TREE_CLONE | SYS_TREE_CLOEXEC);
    return file < 0 ? file : sys_move_mount(file, "", proc, "1/cmdline", SYS_MOVE_FROM_EMPTY);
}

/* In a tmpfs that has its place. */
static int try_overlay(int tmpfs)
{
    int e = sys_mkdirat(tmpfs, "a", 0755);
    if (e == 0)
        e = sys_mkdirat(tmpfs, "b", 0755);
    if (e == 0)
        e = sys_fchdir(tmpfs);
    own_fd int fs = e < 0 ? e : sys_fsopen("overlay");
    if (fs < 0)
        return fs;
    e = sys_fsconfig(fs, SYS_FS_STRING, "lowerdir", "a:b", 0);
    return e < 0 ? e : sys_fsconfig(fs, SYS_FS_CREATE, NULL, NULL, 0);
}

/* Tries the ways to redirect connections, the best first, each in its own network namespace, until one works. */
static void try_catch(int no[])
{
    for (int way = CATCH_TPROXY; way <= CATCH_LOOPBACK; way++) {
        bool v6;
        no[way] = way == CATCH_TPROXY ? 0 : (int)sys_call(SYS_unshare, CLONE_NEWNET, 0, 0, 0, 0, 0);
        if (no[way] == 0)
            no[way] = catch_prepare((enum catch_way)way, &v6);
        if (no[way] == 0)
            return;
    }
}

struct trying {
    int report;
    uint32_t uid, gid;
    bool boxed, catches, shared; /* nested; try_catch(), too; in the parent's memory, on the stack below */
};

static _Noreturn void trial(void *arg)
{
    const struct trying *ask = arg;
    struct tried t = {0};
    if (!ask->shared)
        (void)sys_prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* after a run this is a copy of what others may not examine */
    t.no[TRIAL_MAPS] = map_ids(ask->uid, ask->gid, ask->uid, ask->gid);
    t.no[TRIAL_MOUNTS] = try_mounts();
    const int proc = try_fs("proc"), fd = try_fs("tmpfs");
    t.no[TRIAL_PROC] = proc < 0 ? proc : 0;
    t.no[TRIAL_TMPFS] = fd < 0 ? fd : 0;
    /* No box's guard mounts an overlay, and it would tell of the trial. */
    t.no[TRIAL_OVERLAY] = -EPERM;
    if (!ask->boxed && fd >= 0) {
        t.no[TRIAL_ATTACH] = sys_move_mount(fd, "", AT_FDCWD, "/", SYS_MOVE_FROM_EMPTY);
        if (t.no[TRIAL_ATTACH] == 0 && proc >= 0)
            t.no[TRIAL_PROC] = try_over_proc(fd, proc);
        t.no[TRIAL_OVERLAY] = t.no[TRIAL_ATTACH] ? t.no[TRIAL_ATTACH] : try_overlay(fd);
    }
    if (ask->catches)
        try_catch(t.no + TRIAL_CATCH);
    (void)sys_write(ask->report, &t, sizeof t);
    sys_exit(0);
}

#define TRIAL_STACK (256u << 10)

/* To copy the memory of a process takes longer than the trial: where it may, the child runs in it, on a stack of its own. */
static int trial_begin(struct trying *ask, int *ret_pidfd, char **ret_stack)
{
    struct sys_clone how = {.flags = ALL_NAMESPACES | SYS_CLONE_PIDFD | SYS_CLONE_CLEAR_SIGHAND,
                            .pidfd = (uint64_t)(uintptr_t)ret_pidfd};
    *ret_stack = native_may_share() ? sys_pages(TRIAL_STACK) : NULL;
    if (*ret_stack) {
        ask->shared = true;
        how.flags |= CLONE_VM;
        how.stack = (uint64_t)(uintptr_t)*ret_stack;
        how.stack_size = TRIAL_STACK;
        return sys_clone3_run(&how, trial, ask);
    }
    int pid = sys_clone3(&how);
    if (pid == 0)
        trial(ask);
    return pid;
}

static int try_namespaces(struct trying ask, struct tried *ret)
{
    auto_fd int in = -1;
    auto_fd int out = -1;
    int ends[2], pidfd = -1;
    siginfo_t info;
    int e = sys_pipe(ends, O_CLOEXEC);
    if (e < 0)
        return e;
    in = ends[0];
    out = ends[1];
    char *stack;
    ask.report = out;
    int pid = trial_begin(&ask, &pidfd, &stack);
    memset(ret, 0, sizeof *ret);
    if (pid < 0) {
        ret->clone = pid;
        if (stack)
            sys_unmap(stack, TRIAL_STACK);
        return 0;
    }
    out = close_fd(out);
    long n = sys_read(in, ret, sizeof *ret);
    while (sys_waitid(SYS_OF_PIDFD, pidfd, &info, WEXITED | __WALL) == -EINTR)
        ;
    sys_shut(pidfd);
    if (stack)
        sys_unmap(stack, TRIAL_STACK);
    return n == (long)sizeof *ret ? 0 : -EIO;
}

#define ALL_FEATURES (((features)1 << FEATURE_COUNT) - 1)
/* Judged elsewhere: by the creation of control groups, and by the plan from the policy alone. */
#define LIMIT_FEATURES (F(CGROUP_LIMITS) | F(LIMIT_MEMORY) | F(LIMIT_CPU) | F(LIMIT_PROCESSES) | F(LIMIT_DISK))

/* Containers' filters refuse it, even for a process's own memory. */
static bool memory_calls_refused(void)
{
    char from = 0, to = 0;
    const struct iovec here = {&from, 1}, there = {&to, 1};
    return sys_call(SYS_process_vm_writev, sys_getpid(), &here, 1, &there, 1, 0) != 1;
}

/*
 * Remedies are found by planning again, with one option more, and a monitored box has them found while it runs: what was tried a
 * moment ago by this thread is believed, so that this takes no process.
 */
#define KEPT_NS 2000000000

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int try_or_keep(const struct facts *f, struct tried *ret, bool *ret_supervised)
{
    static _Thread_local struct {
        int64_t at;
        uint32_t uid, gid;
        bool supervised, catches;
        struct tried t;
    } kept;
    /* Only a box with an egress proxy redirects connections; that takes longer than all else here. */
    const bool catches = !f->policy || f->redirects || f->policy->net == NET_ALLOW;
    if (!kept.at || now_ns() - kept.at > KEPT_NS || kept.uid != f->uid || kept.gid != f->gid ||
        (catches && !kept.catches)) {
        kept.at = 0;
        kept.supervised = is_supervised();
        const struct trying ask = {
            .uid = f->uid, .gid = f->gid, .boxed = f->nested && kept.supervised, .catches = catches};
        int r = try_namespaces(ask, &kept.t);
        if (r < 0)
            return r;
        kept.at = now_ns();
        kept.uid = f->uid;
        kept.gid = f->gid;
        kept.catches = catches;
    }
    *ret = kept.t;
    *ret_supervised = kept.supervised;
    return 0;
}

static int probe_thoroughly(struct facts *f, struct arena *mem, bool *ret_supervised, struct err *e)
{
    struct tried t;
    int r = try_or_keep(f, &t, ret_supervised);
    if (r < 0)
        return err_sys(e, ERR_SYSTEM, -r, "cannot test namespaces");
    if (t.clone || t.no[TRIAL_MAPS] || t.no[TRIAL_MOUNTS] || t.no[TRIAL_TMPFS] || t.no[TRIAL_ATTACH]) {
        facts_without_namespaces(f, mem, memory_calls_refused(), refused_namespaces(mem, &t));
        return 0;
    }
    f->overlay = t.no[TRIAL_OVERLAY] == 0;
    f->layers &= f->overlay;
    if (!f->overlay)
        facts_lack(f, F(CACHES),
                   (struct reason){trial_clause(mem, "overlayfs in a user namespace", -t.no[TRIAL_OVERLAY]), NULL});
    facts_of_catch(f, mem, &t);
    if (t.no[TRIAL_PROC])
        facts_lack(f, F(FRESH_PROC), refused_proc(mem, &t));
    return 0;
}

/* Overlays can be stacked only twice (FILESYSTEM_MAX_STACK_DEPTH). */
static bool is_stacked(const char *path)
{
    struct statfs fs;
    return !path || sys_call(SYS_statfs, path, &fs, 0, 0, 0, 0) < 0 || fs.f_type == SYS_OVERLAYFS ||
           fs.f_type == SYS_ECRYPTFS;
}

/*
 * The guard reads the arguments of calls in memory of the box's, which Yama may keep from it: at 3 from everybody, at 2 from whoever has
 * no CAP_SYS_PTRACE over the box. Where there are namespaces the guard has that; without them it has the caller's. A box that started
 * all the same would see each of its calls fail with EFAULT. SELinux may keep it from everybody, too.
 */
const char *native_unreadable(const struct facts *f, const char **ret_remedy)
{
    const long scope = machine_switch("/proc/sys/kernel/yama/ptrace_scope");
    if (scope > 2) {
        *ret_remedy = "set it to 2 or less in /etc/sysctl.d, and restart the machine, which keeps a 3 until then";
        return "kernel.yama.ptrace_scope is 3, so that nobody may read the arguments of system calls";
    }
    if (scope == 2 && f->tier == TIER_LANDLOCK && !sys_caps_has(CAP_SYS_PTRACE)) {
        *ret_remedy = "sudo sysctl -w kernel.yama.ptrace_scope=1";
        return "kernel.yama.ptrace_scope is 2, so that without namespaces only root may read the arguments of system "
               "calls";
    }
    /* Of Fedora's policy, for instance: then SELinux lets nobody read another process's memory, whatever its capabilities. */
    if (machine_switch("/sys/fs/selinux/booleans/deny_ptrace") == 1 && machine_switch("/sys/fs/selinux/enforce") == 1) {
        *ret_remedy = "sudo setsebool -P deny_ptrace off";
        return "SELinux's boolean deny_ptrace is on, so that nobody may read the arguments of system calls";
    }
    return NULL;
}

/*
 * A container with CAP_SYS_ADMIN alone may make namespaces, but its filter refuses the calls by which the guard hands a connection on.
 * Looked at where there are connections: the rest of a box starts, and asking costs each start a call.
 */
static bool no_connections(const struct facts *f)
{
    return !f->nested && f->policy && f->policy->net == NET_ALLOW && memory_calls_refused();
}

int native_probe(struct facts *f, struct arena *mem, bool thorough, struct err *e)
{
    int abi = sys_landlock_abi();
    f->engine = "native";
    f->tier = TIER_NAMESPACES;
    f->can = ALL_FEATURES & ~LIMIT_FEATURES;
    f->landlock_abi = abi > 0 ? abi : 0;
    bool supervised = false;
    f->notify = has_notify();
    kernel_version(f);
    f->overlay = f->kernel_major > 5 || (f->kernel_major == 5 && f->kernel_minor >= 11);
    f->layers =
        f->overlay && (f->kernel_major > 6 || (f->kernel_major == 6 && f->kernel_minor >= 15)) && !is_stacked(f->home);
    if (f->kernel_major < 5 || (f->kernel_major == 5 && f->kernel_minor < 12)) {
        supervised = thorough && is_supervised();
        facts_without_namespaces(f, mem, memory_calls_refused(),
                                 (struct reason){"the kernel lacks the required mount calls (Linux 5.12)", NULL});
    } else if (thorough && f->around && !(f->around->filter & FILTER_USERNS)) {
        /* Its guard has told its rules. A trial would be told to whoever started it, as if the command had tried. */
        supervised = true;
        facts_without_namespaces(f, mem, memory_calls_refused(),
                                 (struct reason){"the box around this one does not allow user namespaces",
                                                 "start that one with --allow-nested-userns"});
    } else if (thorough) {
        int r = probe_thoroughly(f, mem, &supervised, e);
        if (r < 0)
            return r;
    }
    if (f->tier == TIER_NAMESPACES && no_connections(f))
        facts_without_namespaces(f, mem, true,
                                 (struct reason){"a container's filter of system calls refuses process_vm_writev(2), "
                                                 "without which no connection can be handed on",
                                                 "start the container with --security-opt seccomp=unconfined"});
    struct reason unread = {NULL, NULL};
    unread.why = f->notify ? native_unreadable(f, &unread.remedy) : NULL;
    f->notify &= !supervised && !unread.why;
    facts_of_kernel(f, supervised, unread);
    return 0;
}
