/*
 * Attacks on processes: other people's, pid 1, pinfold's own; and staying alive. Each operation returns 0 when it got
 * through, or -errno (attack.h).
 */
#include "attack.h"
#include <dirent.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define OP(name) static int name(int n __attribute__((unused)), char **args __attribute__((unused)))

/* "1", a number, or "parent". */
static pid_t pid_of(const char *text)
{
    return strcmp(text, "parent") == 0 ? getppid() : (pid_t)atoi(text);
}
OP(op_kill)
{
    return done(kill(pid_of(args[0]), atoi(args[1])));
}
OP(op_pidfd_kill)
{
    int fd = (int)syscall(SYS_pidfd_open, pid_of(args[0]), 0);
    if (fd < 0)
        return -errno;
    return done(syscall(SYS_pidfd_send_signal, fd, atoi(args[1]), NULL, 0));
}
OP(op_sigqueue)
{
    siginfo_t info = {.si_signo = atoi(args[1]), .si_code = SI_QUEUE};
    return done(syscall(SYS_rt_sigqueueinfo, pid_of(args[0]), atoi(args[1]), &info));
}
OP(op_pidfd_getfd)
{
    int fd = (int)syscall(SYS_pidfd_open, pid_of(args[0]), 0);
    if (fd < 0)
        return -errno;
    int result = -EBADF;
    for (int i = 0; i < 16 && result != 0; i++)
        result = done_fd((int)syscall(SYS_pidfd_getfd, fd, i, 0));
    return result;
}
OP(op_ptrace)
{
    pid_t pid = pid_of(args[0]);
    if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) < 0)
        return -errno;
    (void)waitpid(pid, NULL, __WALL);
    (void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
    return 0;
}
OP(op_ptrace_seize)
{
    pid_t pid = pid_of(args[0]);
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
        return -errno;
    return 0; /* let go by ending */
}
/* The start of the first mapping of a process, 0 when it cannot be known. */
static unsigned long first_mapping(pid_t pid)
{
    char path[64], line[512];
    unsigned long at = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && at == 0 && fgets(line, sizeof line, f)) {
        char flags[8] = "";
        unsigned long from = 0, to = 0;
        if (sscanf(line, "%lx-%lx %7s", &from, &to, flags) == 3 && flags[0] == 'r')
            at = from;
    }
    if (f)
        fclose(f);
    return at;
}
OP(op_vm_read)
{
    pid_t pid = pid_of(args[0]);
    char bytes[16];
    struct iovec here = {bytes, sizeof bytes};
    struct iovec there = {(void *)first_mapping(pid), sizeof bytes}; /* unknown: address 0, refused or EFAULT */
    return done(process_vm_readv(pid, &here, 1, &there, 1, 0));
}
OP(op_vm_write)
{
    pid_t pid = pid_of(args[0]);
    char byte = 0;
    struct iovec here = {&byte, 1}, there = {(void *)first_mapping(pid), 1}; /* not writable: EFAULT is "found" */
    return done(process_vm_writev(pid, &here, 1, &there, 1, 0));
}
OP(op_mem_read)
{
    char path[64], bytes[16];
    pid_t pid = pid_of(args[0]);
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return -errno;
    return done(pread(fd, bytes, sizeof bytes, (off_t)first_mapping(pid)));
}
OP(op_mem_open_write)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid_of(args[0]));
    return done_fd(open(path, O_RDWR));
}
/* The program a process runs, overwritten (the class of CVE-2019-5736). */
OP(op_exe_write)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid_of(args[0]));
    int fd = open(path, O_WRONLY);
    return done_fd(fd);
}
/* The same through a descriptor kept until the program is no longer busy. */
OP(op_exe_read)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid_of(args[0]));
    return done_fd(open(path, O_RDONLY));
}
OP(op_setns)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid_of(args[0]), args[1]);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return -errno;
    return done(setns(fd, 0));
}
OP(op_setns_pidfd)
{
    int fd = (int)syscall(SYS_pidfd_open, pid_of(args[0]), 0);
    if (fd < 0)
        return -errno;
    return done(setns(fd, CLONE_NEWNS | CLONE_NEWNET));
}
OP(op_prlimit)
{
    struct rlimit old;
    return done(prlimit(pid_of(args[0]), RLIMIT_CORE, NULL, &old));
}
OP(op_affinity)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    return done(sched_setaffinity(pid_of(args[0]), sizeof set, &set));
}
OP(op_priority)
{
    return done(setpriority(PRIO_PROCESS, (id_t)pid_of(args[0]), 10));
}
OP(op_kcmp)
{
    long r = syscall(SYS_kcmp, getpid(), pid_of(args[0]), 0 /* KCMP_FILE */, 0, 0);
    return r < 0 ? -errno : 0;
}
OP(op_process_madvise)
{
    pid_t pid = pid_of(args[0]);
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return -errno;
    struct iovec v = {(void *)first_mapping(pid), 4096};
    return done(syscall(SYS_process_madvise, fd, &v, 1, MADV_COLD, 0));
}
/* How many processes can be seen that are no descendants of this box's first: through when more than `args[0]`. */
OP(op_count_processes)
{
    int seen = 0;
    DIR *proc = opendir("/proc");
    for (struct dirent *p; proc && (p = readdir(proc));)
        seen += atoi(p->d_name) > 0;
    if (proc)
        closedir(proc);
    fprintf(stderr, "leak: %d processes\n", seen);
    return seen > atoi(args[0]) ? 0 : -ESRCH;
}
/* In every process one can see: its environment. Through when the text is in one of them. */
OP(op_hunt_environ)
{
    static const char *const files[] = {"environ", "cmdline"};
    static char text[1 << 18];
    char secret[256];
    int result = -ENOENT;
    /* In two parts, so that our own arguments (and those of who started us) are not found. */
    snprintf(secret, sizeof secret, "%s%s", args[0], args[1]);
    DIR *proc = opendir("/proc");
    for (struct dirent *p; proc && (p = readdir(proc));) {
        for (int i = 0; i < 2 && atoi(p->d_name) > 0 && atoi(p->d_name) != getpid(); i++) {
            char path[300];
            snprintf(path, sizeof path, "/proc/%s/%s", p->d_name, files[i]);
            int fd = open(path, O_RDONLY);
            ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text);
            if (fd >= 0)
                close(fd);
            if (got > 0 && memmem(text, (size_t)got, secret, strlen(secret)))
                result = 0;
        }
    }
    if (proc)
        closedir(proc);
    return result;
}
/* A variable of our own. */
OP(op_variable)
{
    const char *value = getenv(args[0]);
    if (!value)
        return -ENOENT;
    fprintf(stderr, "leak: %s\n", value);
    return 0;
}
/*
 * Outlives its parent in every way it knows, and makes a file as soon as the driver, which has seen the end, makes another.
 * Through when it got away; the driver looks for the file.
 */
OP(op_survive)
{
    for (int s = 1; s < 65; s++)
        (void)signal(s, SIG_IGN);
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid > 0) {
        (void)waitpid(pid, NULL, 0);
        return 0;
    }
    (void)setsid();
    if (fork() != 0)
        _exit(0);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, 0);
    (void)prctl(PR_SET_DUMPABLE, 0);
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    (void)open("/dev/null", O_RDWR);
    for (int i = 0; i < 3000 && access(args[1], F_OK) < 0; i++)
        usleep(10000);
    if (access(args[1], F_OK) < 0)
        _exit(1);
    _exit(mark_fd(open(args[0], O_WRONLY | O_CREAT, 0644)) == 0 ? 0 : 1);
}
/* Makes the file after a while, in the foreground. */
OP(op_later)
{
    usleep((useconds_t)atoi(args[1]) * 1000);
    return mark_fd(open(args[0], O_WRONLY | O_CREAT, 0644));
}
/* A program that gains a user id by its file. */
OP(op_exec_gain)
{
    int report[2];
    if (pipe(report) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(report[1], 1);
        execl(args[0], args[0], "whoami", (char *)NULL);
        _exit(127);
    }
    close(report[1]);
    char text[64] = "";
    ssize_t r = read(report[0], text, sizeof text - 1);
    int status = 0;
    (void)waitpid(pid, &status, 0);
    if (r <= 0)
        return -EACCES;
    fprintf(stderr, "leak: %s", text);
    return strncmp(text, "gained", 6) == 0 ? 0 : -EPERM;
}
/* What the program above says: its effective user is not its real one, or it may what CAP_SYS_CHROOT allows. */
OP(op_whoami)
{
    bool capable = false;
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    unsigned long long caps = 0;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "CapEff: %llx", &caps) == 1)
            capable = caps & (1ull << 18);
    }
    if (f)
        fclose(f);
    printf("%s\n", geteuid() != getuid() || (capable && getuid() != 0) ? "gained" : "same");
    return 0;
}
OP(op_setuid)
{
    return done(syscall(SYS_setresuid, atoi(args[0]), atoi(args[0]), atoi(args[0])));
}
OP(op_setgroups)
{
    gid_t group = 0;
    return done(syscall(SYS_setgroups, 1, &group));
}

const struct entry process_entries[] = {
    {"kill", 2, op_kill},
    {"pidfd-kill", 2, op_pidfd_kill},
    {"sigqueue", 2, op_sigqueue},
    {"pidfd-getfd", 1, op_pidfd_getfd},
    {"ptrace", 1, op_ptrace},
    {"ptrace-seize", 1, op_ptrace_seize},
    {"vm-read", 1, op_vm_read},
    {"vm-write", 1, op_vm_write},
    {"mem-read", 1, op_mem_read},
    {"mem-open-write", 1, op_mem_open_write},
    {"exe-write", 1, op_exe_write},
    {"exe-read", 1, op_exe_read},
    {"setns", 2, op_setns},
    {"setns-pidfd", 1, op_setns_pidfd},
    {"prlimit", 1, op_prlimit},
    {"affinity", 1, op_affinity},
    {"priority", 1, op_priority},
    {"kcmp", 1, op_kcmp},
    {"process-madvise", 1, op_process_madvise},
    {"count-processes", 1, op_count_processes},
    {"hunt-environ", 2, op_hunt_environ},
    {"variable", 1, op_variable},
    {"survive", 2, op_survive},
    {"later", 2, op_later},
    {"exec-gain", 1, op_exec_gain},
    {"whoami", 0, op_whoami},
    {"setuid", 1, op_setuid},
    {"setgroups", 0, op_setgroups},
    {NULL, 0, NULL},
};
