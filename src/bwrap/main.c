/*
 * pinfold-bwrap: makes the namespaces, waits for the child, and reports. See bwrap/bwrap.h.
 */
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "bwrap/bwrap.h"
#include "sys/caps.h"
#include "sys/fd.h"
#include "sys/mount.h"
#include "sys/poll.h"
#include "sys/process.h"

struct start {
    struct bw_line line;
    uint32_t uid, gid; /* of the caller */
    bool root;         /* it is the host's root */
    unsigned long kinds;
    int tell[2]; /* child to this process: how it ended */
    int go[2];   /* this process to the child: it may begin; -1: it need not wait */
    int parent;  /* a pidfd of this process, for --die-with-parent; -1 */
    int proc;    /* the host's /proc */
};

static void bring_up_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    own_fd int s = sys_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int e = s < 0 ? s : sys_ioctl(s, 0x8914 /* SIOCSIFFLAGS */, &request);
    if (e < 0)
        bw_die_sys(e, "loopback: Failed to bring it up");
}

/* Mounts of the sandbox never reach the host; the host's reach binds of shared mounts. */
static void stop_propagation(void)
{
    const struct sys_mount_attr attr = {.propagation = 1 << 19 /* MS_SLAVE */};
    int e = sys_mount_setattr(AT_FDCWD, "/", SYS_AT_RECURSIVE, &attr);
    if (e < 0)
        bw_die_sys(e, "Failed to make / slave");
}

/* Somebody else has mapped the ids of the namespace: become the user that the line names. */
static void switch_ids(const struct bw_line *l)
{
    const uint32_t uid = (uint32_t)l->uid, gid = (uint32_t)l->gid;
    int e = sys_prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
    if (e == 0 && l->gid >= 0)
        e = (int)sys_call(SYS_setresgid, gid, gid, gid, 0, 0, 0);
    if (e == 0 && l->uid >= 0)
        e = (int)sys_call(SYS_setresuid, uid, uid, uid, 0, 0, 0);
    if (e == 0)
        e = sys_caps_whole();
    if (e < 0)
        bw_die_sys(e, "unable to switch to uid %lld, gid %lld", (long long)l->uid, (long long)l->gid);
}

static void enter_cwd(const struct bw_line *l)
{
    char cwd[4096];
    const char *home = getenv("HOME");
    if (l->chdir) {
        int e = sys_chdir(l->chdir);
        if (e < 0)
            bw_die_sys(e, "Can't chdir to %s", l->chdir);
    } else if (!l->cwd || sys_chdir(l->cwd) < 0) {
        if (!home || sys_chdir(home) < 0)
            (void)sys_chdir("/");
    }
    if (getcwd(cwd, sizeof cwd))
        (void)setenv("PWD", cwd, 1);
}

/* Descriptors that are the line's business must not reach the command. */
static void line_fds(const struct bw_line *l, bool end)
{
    const int fds[] = {l->userns, l->userns2, l->pidns, l->block, l->userns_block, l->info, l->json};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        if (fds[i] > 2 && end)
            sys_shut(fds[i]);
        else if (fds[i] >= 0)
            (void)sys_fcntl(fds[i], F_SETFD, FD_CLOEXEC);
    }
}

static void wait_for(int fd)
{
    char byte;
    long n;
    do
        n = sys_read(fd, &byte, 1);
    while (n == -EINTR);
}

static _Noreturn void child(struct start *s)
{
    struct bw_line *l = &s->line;
    const bool own = s->kinds & CLONE_NEWUSER;
    const uint32_t uid = l->uid >= 0 ? (uint32_t)l->uid : s->uid, gid = l->gid >= 0 ? (uint32_t)l->gid : s->gid;
    sys_shut(s->tell[0]);
    bw_tell_failure_on(s->tell[1]);
    if (l->die_with_parent) {
        struct pollfd p = {.fd = s->parent, .events = POLLIN};
        bw_die_with_parent();
        if (sys_poll_ms(&p, 1, 0) != 0)
            sys_exit(1); /* it ended before this process could say so */
    }
    if (s->go[0] >= 0) {
        sys_shut(s->go[1]);
        wait_for(s->go[0]);
    }
    if (l->block >= 0)
        wait_for(l->block);
    if (own && l->userns_block < 0)
        bw_map_ids(s->proc, uid, s->uid, gid, s->gid);
    if (!own)
        stop_propagation();
    if (s->kinds & CLONE_NEWNET)
        bring_up_loopback();
    int e = l->hostname ? sys_sethostname(l->hostname, strlen(l->hostname)) : 0;
    if (e < 0)
        bw_die_sys(e, "Can't set hostname to %s", l->hostname);
    bw_build_root(l, s->proc, l->unshare_pid || l->pidns >= 0);
    bw_nest_users(l, s->proc, uid, gid);
    if ((l->userns >= 0 || l->userns_block >= 0) && (l->uid >= 0 || l->gid >= 0))
        switch_ids(l);
    if (l->assert_userns_disabled)
        bw_assert_no_users();
    e = l->new_session ? sys_setsid() : 0;
    if (e < 0 && e != -EPERM)
        bw_die_sys(e, "setsid");
    enter_cwd(l);
    bw_drop_caps(l, s->root, own || l->userns >= 0);
    if (l->die_with_parent)
        bw_die_with_parent(); /* a change of capabilities may have undone it */
    if ((l->unshare_pid && !l->as_pid_1) || l->n_locks || l->sync.n) {
        /* Before there is a command: it may look into the process that stays (/proc/1/fd) as soon as it runs. */
        const int own_fds[] = {s->proc, s->parent, s->go[0]};
        for (size_t i = 0; i < sizeof own_fds / sizeof *own_fds; i++)
            sys_shut(own_fds[i]);
        line_fds(l, true);
        bw_stay(l, s->tell[1]);
    }
    bw_become_command(l);
}

static int start_child(struct start *s)
{
    const struct bw_line *l = &s->line;
    struct sys_clone how = {.flags = s->kinds, .exit_signal = SIGCHLD};
    int pid = sys_clone3(&how);
    if (pid < 0 && l->cgroup_try && !l->unshare_cgroup) {
        how.flags = s->kinds &= ~(unsigned long)SYS_CLONE_NEWCGROUP;
        pid = sys_clone3(&how);
    }
    if (pid < 0 && s->root && l->user_try && !l->unshare_user) {
        how.flags = s->kinds &= ~(unsigned long)CLONE_NEWUSER;
        pid = sys_clone3(&how);
    }
    if (pid == -EINVAL)
        bw_die("Creating new namespace failed, likely because the kernel does not support user namespaces.");
    if (pid == -EPERM && !s->root)
        bw_die("No permissions to create a new namespace, likely because the kernel does not allow non-privileged user "
               "namespaces.");
    if (pid == -ENOSPC)
        bw_die("Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)");
    if (pid < 0)
        bw_die_sys(pid, "Creating new namespace failed");
    if (pid == 0)
        child(s);
    return pid;
}

static unsigned long kinds_of(const struct start *s)
{
    const struct bw_line *l = &s->line;
    unsigned long kinds = CLONE_NEWNS;
    if (l->userns < 0 && (l->unshare_user || l->user_try || !s->root))
        kinds |= CLONE_NEWUSER;
    kinds |= l->unshare_pid ? CLONE_NEWPID : 0;
    kinds |= l->unshare_net ? CLONE_NEWNET : 0;
    kinds |= l->unshare_ipc ? CLONE_NEWIPC : 0;
    kinds |= l->unshare_uts ? CLONE_NEWUTS : 0;
    kinds |= l->unshare_cgroup || l->cgroup_try ? SYS_CLONE_NEWCGROUP : 0;
    return kinds;
}

static void join(const struct bw_line *l)
{
    int e = l->userns >= 0 ? sys_setns(l->userns, CLONE_NEWUSER) : 0;
    if (e < 0)
        bw_die_sys(e, "Joining specified user namespace failed");
    e = l->pidns >= 0 ? sys_setns(l->pidns, CLONE_NEWPID) : 0;
    if (e < 0)
        bw_die_sys(e, "Setting pidns failed");
}

/* Waits for the end of the command; the sandbox may go on without it, if it leaves other processes. */
static int outcome(const struct start *s, int pid)
{
    char told[64];
    int status, code;
    long n;
    do
        n = sys_read(s->tell[0], told, sizeof told);
    while (n == -EINTR);
    if (n > (long)sizeof code && told[0] == 'S') {
        memcpy(&code, told + 1, sizeof code);
        bw_tell_exit(&s->line, code);
        return code;
    }
    while (sys_wait4(pid, &status, 0, NULL) == -EINTR)
        ;
    if (n > 0)
        return 1; /* it has said why */
    code = bw_exit_code(status);
    bw_tell_exit(&s->line, code);
    return code;
}

static void begin(struct start *s)
{
    struct bw_line *l = &s->line;
    s->uid = (uint32_t)sys_call(SYS_getuid, 0, 0, 0, 0, 0, 0);
    s->gid = (uint32_t)sys_call(SYS_getgid, 0, 0, 0, 0, 0, 0);
    s->root = s->uid == 0;
    s->go[0] = s->go[1] = s->parent = -1;
    s->proc = sys_openat(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (s->proc < 0)
        bw_die_sys(s->proc, "Can't open /proc");
    int e = sys_pipe(s->tell, O_CLOEXEC);
    if (e == 0 && (l->info >= 0 || l->json >= 0 || l->userns_block >= 0))
        e = sys_pipe(s->go, O_CLOEXEC);
    if (e == 0 && l->die_with_parent)
        e = s->parent = sys_pidfd_open(sys_getpid(), 0);
    if (e < 0)
        bw_die_sys(e, "Can't create a pipe");
    (void)sys_signal_default(SIGCHLD); /* ignored, it would take the exit status away */
    line_fds(l, false);
    join(l);
    s->kinds = kinds_of(s);
}

int main(int argc, char **argv)
{
    static struct start s;
    static char cwd[4096];
    const int parent = sys_getppid();
    const char *guard = getenv("PINFOLD_BWRAP_GUARD");
    if (guard && same(guard, "1"))
        bw_die("PINFOLD_BWRAP_GUARD=1: a guard needs a policy: make one by pinfold policy convert --from bwrap -- "
               "OPTIONS, "
               "and use pinfold run --policy FILE");
    bw_read_line(&s.line, argc, argv);
    s.line.cwd = getcwd(cwd, sizeof cwd) && cwd[0] == '/' ? cwd : NULL;
    if (s.line.die_with_parent) {
        bw_die_with_parent();
        if (sys_getppid() != parent)
            sys_exit(1);
    }
    begin(&s);
    const int pid = start_child(&s);
    sys_shut(s.tell[1]);
    if (s.go[0] >= 0) {
        bw_tell_child(&s.line, pid, s.kinds);
        if (s.line.userns_block >= 0)
            wait_for(s.line.userns_block);
        (void)sys_write(s.go[1], "", 1);
    }
    int keep[] = {s.tell[0], s.line.json};
    bw_close_others(keep, 2);
    sys_exit(outcome(&s, pid));
}
