/*
 * The attacks of `pinfold doctor --verify`: each tries one thing that a box must prevent. verify.c starts a box of
 * them; an attack that gets through says which promise this machine does not keep.
 */
#include "doctor/attack.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* Puts dir/name into a buffer that the next call overwrites. */
static const char *at(const struct attack_stage *s, const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", s->dir, name);
    return path;
}

static int opens(const char *path, int flags)
{
    auto_fd int fd = open(path, flags | O_CLOEXEC | O_NOCTTY, 0600);
    return fd < 0 ? errno : 0;
}

static int status(int r)
{
    return r < 0 ? errno : 0;
}

static int write_outside(const struct attack_stage *s)
{
    return opens(at(s, "outside/new"), O_WRONLY | O_CREAT);
}
static int append_outside(const struct attack_stage *s)
{
    return opens(at(s, "outside/secret"), O_WRONLY | O_APPEND);
}
static int remove_outside(const struct attack_stage *s)
{
    return status(unlink(at(s, "outside/victim")));
}
static int write_through_link(const struct attack_stage *s)
{
    char target[PATH_MAX];
    snprintf(target, sizeof target, "%s/outside/secret", s->dir);
    (void)unlink(at(s, "work/link"));
    if (symlink(target, at(s, "work/link")) < 0)
        return errno;
    return opens(at(s, "work/link"), O_WRONLY | O_APPEND);
}
static int hard_link_in(const struct attack_stage *s)
{
    char target[PATH_MAX];
    snprintf(target, sizeof target, "%s/outside/secret", s->dir);
    (void)unlink(at(s, "work/hard"));
    return status(link(target, at(s, "work/hard")));
}
static int read_hidden(const struct attack_stage *s)
{
    return opens(at(s, "hidden/secret"), O_RDONLY);
}
static int list_hidden(const struct attack_stage *s)
{
    DIR *d = opendir(at(s, "hidden"));
    if (!d)
        return errno;
    int found = 0;
    for (struct dirent *e; (e = readdir(d));)
        found += same(e->d_name, "secret");
    closedir(d);
    return found ? 0 : ENOENT;
}
static int read_hidden_by_proc(const struct attack_stage *s)
{
    char path[PATH_MAX];
    int r = ENOENT;
    static const char *const roots[] = {"/proc/self/root", "/proc/1/root", "/proc/1/cwd/../../../../../.."};
    for (size_t i = 0; r != 0 && i < COUNT(roots); i++) {
        snprintf(path, sizeof path, "%s%s/hidden/secret", roots[i], s->dir);
        r = opens(path, O_RDONLY);
    }
    return r;
}
static int write_own_state(const struct attack_stage *s)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/verify-%d", s->state, (int)getpid());
    int r = opens(path, O_WRONLY | O_CREAT);
    (void)unlink(path);
    return r;
}
static int see_process(const struct attack_stage *s)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/status", s->victim);
    return opens(path, O_RDONLY);
}
static int signal_process(const struct attack_stage *s)
{
    return status(kill(s->victim, SIGCONT));
}
static int trace_process(const struct attack_stage *s)
{
    if (ptrace(PTRACE_SEIZE, s->victim, 0, 0) < 0)
        return errno;
    (void)ptrace(PTRACE_DETACH, s->victim, 0, 0);
    return 0;
}
static int trace_pid1(const struct attack_stage *s)
{
    (void)s;
    if (ptrace(PTRACE_SEIZE, 1, 0, 0) < 0)
        return errno;
    (void)ptrace(PTRACE_DETACH, 1, 0, 0);
    return 0;
}
static int read_pid1(const struct attack_stage *s)
{
    static const char *const names[] = {"/proc/1/mem", "/proc/1/environ", "/proc/1/maps", "/proc/1/fd/0"};
    int r = EACCES;
    (void)s;
    for (size_t i = 0; r != 0 && i < COUNT(names); i++)
        r = opens(names[i], O_RDONLY);
    return r;
}
static int connect_tcp(const struct attack_stage *s)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)};
    auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0)
        return errno;
    return status(connect(fd, (struct sockaddr *)&to, sizeof to));
}
static int connect_unix(const char *name, size_t n)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    if (n > sizeof to.sun_path)
        return ENAMETOOLONG;
    memcpy(to.sun_path, name, n);
    return status(connect(fd, (struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)));
}
static int connect_path(const struct attack_stage *s)
{
    const char *path = at(s, "outside/socket");
    return connect_unix(path, strlen(path) + 1);
}
static int connect_abstract(const struct attack_stage *s)
{
    char name[64] = {0};
    int n = snprintf(name + 1, sizeof name - 1, "%s", s->abstract);
    return connect_unix(name, (size_t)n + 1);
}
static int guarded_create(const struct attack_stage *s)
{
    if (mkdir(at(s, "work/.git"), 0700) < 0 && errno != EEXIST)
        return errno;
    if (mkdir(at(s, "work/.git/hooks"), 0700) < 0 && errno != EEXIST)
        return errno;
    return opens(at(s, "work/.git/hooks/pre-commit"), O_WRONLY | O_CREAT);
}
static int guarded_rename(const struct attack_stage *s)
{
    char to[PATH_MAX];
    int r = opens(at(s, "work/prepared"), O_WRONLY | O_CREAT);
    if (r)
        return r;
    snprintf(to, sizeof to, "%s/work/.envrc", s->dir);
    return status(rename(at(s, "work/prepared"), to));
}
static int guarded_directory(const struct attack_stage *s)
{
    char to[PATH_MAX];
    if ((mkdir(at(s, "work/made"), 0700) < 0 && errno != EEXIST) ||
        opens(at(s, "work/made/settings.json"), O_WRONLY | O_CREAT))
        return EIO;
    snprintf(to, sizeof to, "%s/work/.claude", s->dir);
    if (rename(at(s, "work/made"), to) < 0)
        return errno;
    return opens(at(s, "work/.claude/settings.json"), O_RDONLY);
}
static int guarded_link(const struct attack_stage *s)
{
    char to[PATH_MAX];
    int r = opens(at(s, "work/plain"), O_WRONLY | O_CREAT);
    if (r)
        return r;
    snprintf(to, sizeof to, "%s/work/.mcp.json", s->dir);
    return status(link(at(s, "work/plain"), to));
}
static int make_user_namespace(const struct attack_stage *s)
{
    (void)s;
    return status(unshare(CLONE_NEWUSER));
}
/* mount(2) and umount(2): <sys/mount.h> conflicts with <linux/io_uring.h> (glibc 2.35). */
enum { REMOUNT = 32, BIND = 4096, DETACH = 2 };
static int remount_root(const struct attack_stage *s)
{
    (void)s;
    return status((int)syscall(SYS_mount, NULL, "/", NULL, (unsigned long)(REMOUNT | BIND), NULL));
}
static int mount_something(const struct attack_stage *s)
{
    return status((int)syscall(SYS_mount, "none", at(s, "work"), "tmpfs", 0ul, NULL));
}
static int unmount_hidden(const struct attack_stage *s)
{
    return status((int)syscall(SYS_umount2, at(s, "hidden"), DETACH));
}
static int make_device(const struct attack_stage *s)
{
    return status(mknod(at(s, "work/disk"), S_IFBLK | 0600, makedev(8, 0)));
}
static int push_input(const struct attack_stage *s)
{
    (void)s;
    /* A pty created inside, so that the filter must refuse it, whoever owns the terminal. */
    auto_fd int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0)
        return errno;
    if (grantpt(master) < 0 || unlockpt(master) < 0)
        return errno;
    (void)setsid();
    (void)signal(SIGHUP, SIG_IGN); /* the master is closed below */
    auto_fd int slave = open(ptsname(master), O_RDWR | O_CLOEXEC);
    if (slave < 0)
        return errno;
    (void)ioctl(slave, TIOCSCTTY, 0);
    return status(ioctl(slave, TIOCSTI, "x"));
}
static int use_leaked(const struct attack_stage *s)
{
    return status(faccessat(s->leaked, "secret", R_OK, 0));
}
static int reopen_stdin(const struct attack_stage *s)
{
    (void)s;
    struct stat st;
    if (fstat(0, &st) < 0 || !S_ISREG(st.st_mode))
        return EBADF; /* it was replaced by a pipe: nothing to reopen */
    return opens("/proc/self/fd/0", O_RDWR);
}
static int have_capabilities(const struct attack_stage *s)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    (void)s;
    if (syscall(SYS_capget, &head, data) < 0)
        return errno;
    return data[0].effective | data[1].effective | data[0].permitted | data[1].permitted ? 0 : EPERM;
}
static int gain_privileges(const struct attack_stage *s)
{
    (void)s;
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? EPERM : 0;
}
static int use_io_uring(const struct attack_stage *s)
{
    struct io_uring_params p = {0};
    (void)s;
    auto_fd int fd = (int)syscall(SYS_io_uring_setup, 1, &p);
    return fd < 0 ? errno : 0;
}
static int use_keyring(const struct attack_stage *s)
{
    (void)s;
    return status((int)syscall(SYS_keyctl, 0 /* KEYCTL_GET_KEYRING_ID */, -3 /* session keyring */, 1));
}
static int use_bpf(const struct attack_stage *s)
{
    char attributes[128] = {0};
    (void)s;
    long r = syscall(SYS_bpf, 0 /* BPF_MAP_CREATE */, attributes, sizeof attributes);
    return r < 0 ? errno == EINVAL ? 0 : errno : 0; /* EINVAL: the kernel has checked the arguments */
}
static int use_vsock(const struct attack_stage *s)
{
    (void)s;
    auto_fd int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? errno : 0;
}
static int attach_shared_memory(const struct attack_stage *s)
{
    void *p = shmat(s->shm, NULL, SHM_RDONLY);
    if (p == (void *)-1)
        return errno;
    (void)shmdt(p);
    return 0;
}
static int write_kernel_settings(const struct attack_stage *s)
{
    static const char *const names[] = {"/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
                                        "/sys/kernel/uevent_helper"};
    int r = EACCES;
    (void)s;
    for (size_t i = 0; r != 0 && i < COUNT(names); i++)
        r = opens(names[i], O_WRONLY);
    return r;
}
static int read_environment(const struct attack_stage *s)
{
    (void)s;
    return getenv("PINFOLD_VERIFY_SECRET") ? 0 : ENOENT;
}
static int drop_in_tmp(const struct attack_stage *s)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/tmp/%s", s->abstract);
    return opens(path, O_WRONLY | O_CREAT);
}
static int after_tmp(const struct attack_stage *s)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/tmp/%s", s->abstract);
    return unlink(path) == 0 ? 0 : ENOENT;
}
/* Holds a lock for as long as it lives, or until somebody removes the file. */
static _Noreturn void survivor(int fd, int ready)
{
    const struct timespec moment = {.tv_nsec = 20000000};
    struct stat st;
    (void)flock(fd, LOCK_EX);
    (void)close(ready);
    for (int i = 0; i < 3000 && fstat(fd, &st) == 0 && st.st_nlink; i++)
        (void)nanosleep(&moment, NULL);
    _exit(0);
}
static int survive(const struct attack_stage *s)
{
    int ready[2], fd = open(at(s, "work/survived"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    char end;
    if (fd < 0 || pipe2(ready, O_CLOEXEC) < 0)
        return errno;
    if (fork() != 0) {
        (void)close(ready[1]);
        (void)!read(ready[0], &end, 1);
        return 0;
    }
    (void)setsid();
    for (int n = 1; n < 32; n++)
        (void)signal(n, SIG_IGN);
    if (fork() != 0)
        _exit(0);
    for (int i = 0; i < 3; i++)
        (void)close(i);
    survivor(fd, ready[1]);
}
static int after_survive(const struct attack_stage *s)
{
    auto_fd int fd = open(at(s, "work/survived"), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    (void)unlink(at(s, "work/survived"));
    return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK ? 0 : ENOENT;
}

const struct attack attacks[] = {
    {"write-outside", "a new file is made outside the workspace", FEATURE_FILES, true, write_outside, NULL},
    {"append-outside", "a file outside is opened for writing", FEATURE_FILES, true, append_outside, NULL},
    {"remove-outside", "a file outside is removed", FEATURE_FILES, true, remove_outside, NULL},
    {"write-through-link", "a file outside is written through a link", FEATURE_FILES, true, write_through_link, NULL},
    {"hard-link-in", "a file outside is linked into the workspace", FEATURE_FILES, true, hard_link_in, NULL},
    {"read-hidden", "a hidden file is read", FEATURE_HIDES, true, read_hidden, NULL},
    {"list-hidden", "a hidden directory is listed", FEATURE_HIDES, true, list_hidden, NULL},
    {"read-hidden-by-proc", "a hidden file is read through /proc", FEATURE_HIDES, true, read_hidden_by_proc, NULL},
    {"write-own-state", "pinfold's own state is written", FEATURE_FILES, true, write_own_state, NULL},
    {"see-process", "a process outside is seen in /proc", FEATURE_FRESH_PROC, true, see_process, NULL},
    {"signal-process", "a process outside is signalled", FEATURE_SIGNALS, true, signal_process, NULL},
    {"trace-process", "a process outside is traced", FEATURE_SECCOMP, true, trace_process, NULL},
    {"trace-pid1", "pid 1 of the box is traced", FEATURE_SECCOMP, false, trace_pid1, NULL},
    {"read-pid1", "memory or environment of pid 1 is read", FEATURE_SECCOMP, false, read_pid1, NULL},
    {"connect-tcp", "a server on the host's loopback is reached", FEATURE_NETWORK, true, connect_tcp, NULL},
    {"connect-path", "a socket with a path outside is connected to", FEATURE_UNIX_SOCKETS, true, connect_path, NULL},
    {"connect-abstract", "an abstract socket outside is connected to", FEATURE_ABSTRACT_SOCKETS, true, connect_abstract,
     NULL},
    {"guarded-create", ".git/hooks/pre-commit is created", FEATURE_GUARD, true, guarded_create, NULL},
    {"guarded-rename", ".envrc is made by renaming", FEATURE_GUARD, true, guarded_rename, NULL},
    {"guarded-directory", ".claude is made by moving a prepared directory", FEATURE_GUARD, true, guarded_directory,
     NULL},
    {"guarded-link", ".mcp.json is made by linking", FEATURE_GUARD, true, guarded_link, NULL},
    {"user-namespace", "a user namespace is made", FEATURE_NESTED_USERNS, true, make_user_namespace, NULL},
    {"remount-root", "the root is made writable again", FEATURE_SECCOMP, false, remount_root, NULL},
    {"mount", "a file system is mounted", FEATURE_SECCOMP, false, mount_something, NULL},
    {"unmount-hidden", "what hides a directory is unmounted", FEATURE_SECCOMP, false, unmount_hidden, NULL},
    {"make-device", "a block device node is made", FEATURE_FILES, false, make_device, NULL},
    {"push-input", "input is pushed into a terminal (TIOCSTI)", FEATURE_SECCOMP, false, push_input, NULL},
    {"leaked-descriptor", "a descriptor of the caller is used", FEATURE_FILES, true, use_leaked, NULL},
    {"reopen-stdin", "a read-only standard input is reopened for writing", FEATURE_FILES, true, reopen_stdin, NULL},
    {"capabilities", "the command has capabilities", FEATURE_FILES, false, have_capabilities, NULL},
    {"gain-privileges", "a set-user-id program gives privileges", FEATURE_FILES, true, gain_privileges, NULL},
    {"io-uring", "io_uring is used", FEATURE_SECCOMP, false, use_io_uring, NULL},
    {"keyring", "the session keyring is used", FEATURE_SECCOMP, true, use_keyring, NULL},
    {"bpf", "bpf is used", FEATURE_SECCOMP, false, use_bpf, NULL},
    {"vsock", "a socket to the hypervisor is made", FEATURE_SECCOMP, false, use_vsock, NULL},
    {"shared-memory", "shared memory of the host is attached", FEATURE_PRIVATE_IPC, true, attach_shared_memory, NULL},
    {"kernel-settings", "settings of the kernel are opened for writing", FEATURE_FILES, false, write_kernel_settings,
     NULL},
    {"environment", "a variable that is not passed is read", FEATURE_FILES, true, read_environment, NULL},
    {"private-tmp", "a file in /tmp is seen outside", FEATURE_PRIVATE_TMP, true, drop_in_tmp, after_tmp},
    {"survive", "a process outlives the box", FEATURE_NO_SURVIVORS, true, survive, after_survive},
#define NET FEATURE_NETWORK
    {"net-allowed", "a service that is allowed is reached", NET, true, net_allowed, NULL, .net = true, .must = true},
    {"net-other-service", "a service that is not allowed is reached", NET, true, net_other_service, NULL, .net = true},
    {"net-by-proxy", "the same through the box's proxy", NET, false, net_by_proxy, NULL, .net = true},
    {"net-other-address", "an address that is not allowed is reached", NET, false, net_other_address, NULL,
     .net = true},
    {"net-other-name", "a name that is not allowed is resolved", NET, false, net_other_name, NULL, .net = true},
    {"net-datagram", "a datagram leaves", NET, false, net_datagram, NULL, .net = true},
#undef NET
};
const size_t n_attacks = COUNT(attacks);

void stage_print(const struct attack_stage *s, char room[STAGE_ARGUMENTS][256])
{
    snprintf(room[0], 256, "%s", s->dir);
    snprintf(room[1], 256, "%d", s->victim);
    snprintf(room[2], 256, "%d", s->port);
    snprintf(room[3], 256, "%s", s->abstract);
    snprintf(room[4], 256, "%d", s->shm);
    snprintf(room[5], 256, "%d", s->leaked);
    snprintf(room[6], 256, "%s", s->state);
    snprintf(room[7], 256, "%d", s->service);
}

int attack_main(int argc, char **argv)
{
    if (argc == 2 && same(argv[0], ATTACK_MAKE)) {
        const int fd = open(argv[1], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0 && close(fd) == 0 && unlink(argv[1]) == 0)
            return ATTACK_NONE;
        printf("%s", strerror(errno));
        fflush(stdout);
        return ATTACK_REFUSED;
    }
    if (argc != 1 + STAGE_ARGUMENTS)
        return 2;
    struct attack_stage s = {.dir = argv[1],
                             .victim = atoi(argv[2]),
                             .port = atoi(argv[3]),
                             .abstract = argv[4],
                             .shm = atoi(argv[5]),
                             .leaked = atoi(argv[6]),
                             .state = argv[7],
                             .service = atoi(argv[8])};
    for (size_t i = 0; i < n_attacks; i++) {
        if (!same(attacks[i].name, argv[0]))
            continue;
        int no = attacks[i].run(&s);
        if (no == 0)
            return ATTACK_SUCCEEDED;
        printf("%s", strerror(no));
        fflush(stdout);
        return ATTACK_REFUSED;
    }
    return 2;
}
