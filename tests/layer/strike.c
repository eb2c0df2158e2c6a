/*
 * Runs a program and stops it before its Nth call that changes files:
 *
 *     strike count PROGRAM...           prints the number of such calls on descriptor 2, last line
 *     strike kill N PROGRAM...          SIGKILL before the Nth; status 99
 *     strike do N COMMAND PROGRAM...    runs the shell command COMMAND before the Nth, then goes on
 *     strike count-any PROGRAM...       the same of all calls from the first one on that makes a file
 *     strike kill-any N PROGRAM...      SIGKILL before the Nth of these; its name on descriptor 2
 *     strike count-steps PROGRAM...     and kill-steps N: the same, and before calls that begin or end a process, or reach one
 *     strike count-locks PROGRAM...     and do-locks N COMMAND: calls by which locks are taken and given back
 *     strike no ERRNO CALL PROGRAM...   each renameat2 with flags fails with ERRNO (CALL: exchange)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static const long changing[] = {SYS_write,     SYS_pwrite64, SYS_ftruncate, SYS_fchmod,    SYS_fchmodat,
                                SYS_fchown,    SYS_fchownat, SYS_utimensat, SYS_fsetxattr, SYS_fremovexattr,
                                SYS_mkdirat,   SYS_mknodat,  SYS_symlinkat, SYS_linkat,    SYS_unlinkat,
                                SYS_renameat2, SYS_ioctl,    SYS_fsync,     SYS_syncfs};

static bool changes(const struct __ptrace_syscall_info *info)
{
    if (info->entry.nr == SYS_openat || info->entry.nr == SYS_openat2)
        return info->entry.nr == SYS_openat && info->entry.args[2] & 0100; /* O_CREAT */
    if (info->entry.nr == SYS_write && info->entry.args[0] <= 2)
        return false;
    for (size_t i = 0; i < sizeof changing / sizeof *changing; i++) {
        if ((long)info->entry.nr == changing[i])
            return true;
    }
    return false;
}

/* Steps of a program that starts and ends others; musl has the old calls for names. */
static bool is_step(const struct __ptrace_syscall_info *info)
{
    static const long steps[] = {SYS_mkdir,
                                 SYS_rmdir,
                                 SYS_unlink,
                                 SYS_rename,
                                 SYS_symlink,
                                 SYS_link,
                                 SYS_chmod,
                                 SYS_flock,
                                 SYS_fork,
                                 SYS_vfork,
                                 SYS_clone,
                                 SYS_clone3,
                                 SYS_wait4,
                                 SYS_connect,
                                 SYS_bind,
                                 SYS_listen,
                                 SYS_sendmsg,
                                 SYS_recvmsg,
                                 SYS_kill,
                                 SYS_pipe2,
                                 SYS_poll,
                                 SYS_ppoll,
                                 SYS_pidfd_send_signal};
    if (info->entry.nr == SYS_open)
        return info->entry.args[1] & 0100; /* O_CREAT */
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if ((long)info->entry.nr == steps[i])
            return true;
    }
    return changes(info);
}

static bool is_lock(const struct __ptrace_syscall_info *info)
{
    return info->entry.nr == SYS_flock || info->entry.nr == SYS_fcntl || info->entry.nr == SYS_close;
}

/* Of calls that move bytes; the others are told apart by number. */
static const char *name_of(long nr)
{
    static const struct {
        long nr;
        const char *name;
    } names[] = {{SYS_read, "read"},
                 {SYS_write, "write"},
                 {SYS_recvfrom, "recvfrom"},
                 {SYS_recvmsg, "recvmsg"},
                 {SYS_sendto, "sendto"},
                 {SYS_poll, "poll"},
                 {SYS_ppoll, "ppoll"},
                 {SYS_fcntl, "fcntl"},
                 {SYS_utimensat, "utimensat"},
                 {SYS_getpid, "getpid"},
                 {SYS_rt_sigaction, "rt_sigaction"},
                 {SYS_openat, "openat"},
                 {SYS_close, "close"},
                 {SYS_fsync, "fsync"},
                 {SYS_fdatasync, "fdatasync"},
                 {SYS_pread64, "pread64"},
                 {SYS_renameat2, "renameat2"}};
    static char room[32];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].nr == nr)
            return names[i].name;
    }
    snprintf(room, sizeof room, "call-%ld", nr);
    return room;
}

static int ended(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    const bool any = strstr(what, "-any") != NULL, by_step = strstr(what, "-steps") != NULL,
               kill_it = !strncmp(what, "kill", 4), do_it = !strncmp(what, "do", 2),
               by_lock = strstr(what, "-locks") != NULL, refuse = !strcmp(what, "no");
    const int skip = kill_it ? 3 : do_it || refuse ? 4 : 2;
    const long when = kill_it || do_it ? atol(argv[2]) : 0;
    long seen = 0;
    int status;
    if (argc <= skip)
        return 2;
    pid_t pid = fork();
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execvp(argv[skip], argv + skip);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    bool failing = false;
    for (int pass = 0;;) {
        if (ptrace(PTRACE_SYSCALL, pid, 0, pass) < 0)
            return 126;
        pass = 0;
        waitpid(pid, &status, 0);
        if (WIFEXITED(status) || WIFSIGNALED(status))
            break;
        if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
            pass = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
            continue;
        }
        struct __ptrace_syscall_info info;
        ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info);
        if (info.op == PTRACE_SYSCALL_INFO_EXIT && failing) {
            struct user_regs_struct regs;
            ptrace(PTRACE_GETREGS, pid, 0, &regs);
            regs.rax = (unsigned long long)-atol(argv[2]);
            ptrace(PTRACE_SETREGS, pid, 0, &regs);
            failing = false;
        }
        if (info.op != PTRACE_SYSCALL_INFO_ENTRY || !((any && seen) || (by_lock   ? is_lock(&info)
                                                                        : by_step ? is_step(&info)
                                                                                  : changes(&info))))
            continue;
        seen++;
        if (refuse && info.entry.nr == SYS_renameat2 && info.entry.args[4]) {
            struct user_regs_struct regs;
            ptrace(PTRACE_GETREGS, pid, 0, &regs);
            regs.orig_rax = (unsigned long long)-1;
            ptrace(PTRACE_SETREGS, pid, 0, &regs);
            failing = true;
        }
        if (seen == when && kill_it) {
            if (any || by_step)
                fprintf(stderr, "%s\n", name_of((long)info.entry.nr));
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            return 99;
        }
        if (seen == when && do_it && system(argv[3]) != 0)
            return 98;
    }
    if (!strncmp(what, "count", 5))
        fprintf(stderr, "%ld\n", seen);
    return ended(status);
}
