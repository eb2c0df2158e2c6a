/*
 * The end of the child: it becomes the command, or starts it and stays as the sandbox's first process. The second
 * where bubblewrap would, so that orphans are reaped and --sync-fd and locks live as long.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bwrap/bwrap.h"
#include "sys/fd.h"
#include "sys/process.h"

extern char **environ;

/* execve(2) of one file; what is no program and has no "#!" is a script for sh, as in execvp(3). */
static int execute(const char *path, char **argv)
{
    int e = sys_execve(path, (const char *const *)argv, (const char *const *)environ);
    if (e != -ENOEXEC)
        return e;
    size_t n = 0;
    while (argv[n])
        n++;
    const char **words = calloc(n + 2, sizeof *words);
    if (!words)
        return -ENOMEM;
    words[0] = "/bin/sh";
    words[1] = path;
    for (size_t i = 1; i < n; i++)
        words[i + 1] = argv[i];
    return sys_execve(words[0], words, (const char *const *)environ);
}

/* By PATH if `name` has no slash. Returns why not: refused counts more than not found. */
static int search(const char *name, char **argv)
{
    char path[4096];
    int worst = -ENOENT;
    const char *at = getenv("PATH");
    if (strchr(name, '/'))
        return execute(name, argv);
    for (at = at ? at : "/bin:/usr/bin"; *name; at++) {
        const size_t n = strcspn(at, ":");
        if ((size_t)snprintf(path, sizeof path, "%.*s%s%s", (int)n, at, n ? "/" : "", name) < sizeof path) {
            int e = execute(path, argv);
            if (e == -EACCES)
                worst = e;
            else if (e != -ENOENT && e != -ENOTDIR && e != -ESTALE && e != -ENODEV && e != -ETIMEDOUT)
                return e;
        }
        at += n;
        if (!*at)
            break;
    }
    return worst;
}

void bw_die_with_parent(void)
{
    int e = sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (e < 0)
        bw_die_sys(e, "prctl");
}

void bw_become_command(const struct bw_line *l)
{
    const char *name = l->command[0];
    if (l->die_with_parent)
        bw_die_with_parent();
    if (l->argv0)
        l->command[0] = (char *)(uintptr_t)l->argv0; // NOLINT(performance-no-int-to-ptr): the kernel does not write it
    bw_load_filters(l);
    int e = search(name, l->command);
    bw_die_sys(e, "execvp %s", name);
}

int bw_exit_code(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : 255;
}

void bw_close_others(int *keep, size_t n)
{
    unsigned next = 3;
    for (size_t i = 1; i < n; i++) { /* a handful: insertion sort */
        for (size_t k = i; k && keep[k - 1] > keep[k]; k--) {
            const int t = keep[k];
            keep[k] = keep[k - 1];
            keep[k - 1] = t;
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (keep[i] < (int)next)
            continue;
        if (keep[i] > (int)next)
            (void)sys_close_range(next, (unsigned)keep[i] - 1);
        next = (unsigned)keep[i] + 1;
    }
    (void)sys_close_range(next, ~0u);
}

static int lock(const char *path)
{
    const struct flock how = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    int fd = sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        bw_die_sys(fd, "Unable to open lock file %s", path);
    int e = sys_fcntl(fd, F_SETLK, (long)&how);
    if (e < 0)
        bw_die_sys(e, "Unable to lock file %s", path);
    return fd;
}

void bw_stay(const struct bw_line *l, int tell)
{
    struct {
        char kind, status[sizeof(int)];
    } told = {.kind = 'S'};
    int status, code = 1, *keep = calloc(l->n_locks + l->sync.n + 1, sizeof *keep);
    size_t n = 0;
    if (!keep)
        bw_die("Out of memory");
    keep[n++] = tell;
    for (size_t i = 0; i < l->sync.n; i++) {
        keep[n++] = l->sync.at[i];
        (void)sys_fcntl(l->sync.at[i], F_SETFD, FD_CLOEXEC);
    }
    for (size_t i = 0; i < l->n_locks; i++)
        keep[n++] = lock(l->locks[i]);
    const int command = sys_vfork();
    if (command == 0)
        bw_become_command(l);
    if (command < 0)
        bw_die_sys(command, "Can't fork for child");
    bw_close_others(keep, n);
    for (;;) {
        const int pid = sys_wait4(-1, &status, 0, NULL);
        if (pid == -EINTR)
            continue;
        if (pid < 0)
            break; /* nothing is left */
        if (pid != command)
            continue;
        code = bw_exit_code(status);
        memcpy(told.status, &code, sizeof code);
        (void)sys_write(tell, &told, sizeof told);
        sys_shut(tell);
    }
    sys_exit(code);
}
