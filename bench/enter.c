/*
 * What a command in a living box costs at least: enter PID COMMAND [ARG...] opens the process that is pid 1 of the box, enters its
 * namespaces with one setns(2), and starts the command in them as `pinfold exec` does: a session and a process of its own, without
 * capabilities or a way to new ones. The exit status is the command's. It loads no filter and no Landlock rules, limits and tells nothing.
 */
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* setns(2) refuses to enter a user namespace that we are in. */
static int namespaces(const char *pid)
{
    char path[64];
    struct stat own, theirs;
    snprintf(path, sizeof path, "/proc/%s/ns/user", pid);
    if (stat("/proc/self/ns/user", &own) < 0 || stat(path, &theirs) < 0)
        return -1;
    return CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP |
           (own.st_ino != theirs.st_ino ? CLONE_NEWUSER : 0);
}

static int begin(char **command)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    const struct __user_cap_data_struct none[2] = {{0}};
    prctl(PR_SET_SECUREBITS, 0xef); /* no capabilities for root, locked */
    for (int i = 0; i <= 40; i++)
        prctl(PR_CAPBSET_DROP, i);
    if (setsid() < 0 || syscall(SYS_capset, &header, none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return 125;
    execv(command[0], command);
    return 127;
}

int main(int argc, char **argv)
{
    char *where = getcwd(NULL, 0);
    const int pidfd = argc < 3 ? -1 : (int)syscall(SYS_pidfd_open, atoi(argv[1]), 0);
    int status = 0;
    if (pidfd < 0 || setns(pidfd, namespaces(argv[1])) < 0 || !where || chdir(where) < 0) {
        perror("enter");
        return 125;
    }
    const pid_t child = vfork(); /* NOLINT: what the child does before it executes is its own */
    if (child == 0)
        _exit(begin(argv + 2));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}
