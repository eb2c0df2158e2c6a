/*
 * The last part of a command's start: from the clone to execve, in the memory of pid 1 (vfork), after everything is
 * locked down. The program is looked up like execvp(3): a name without a slash in each directory of the command's own
 * PATH; a file in an unknown format is given to /bin/sh.
 */
#include <sched.h>

#include "base/str.h"
#include "runtime/command.h"
#include "sys/landlock.h"

static const char *path_of(const char *const *envp)
{
    for (; *envp; envp++)
        if (str_starts(str_of(*envp), STR("PATH=")))
            return *envp + 5;
    return "/usr/local/bin:/usr/bin:/bin";
}

static int exec_file(const char *file, const struct job *job, struct outcome *o)
{
    int e = sys_execve(file, job->argv, job->envp);
    if (e != -ENOEXEC)
        return e;
    size_t n = 0;
    while (job->argv[n])
        n++;
    if (!o->script) { /* freed by pid 1, whose memory this is; one serves all names that are tried */
        o->script_bytes = (n + 3) * sizeof(char *);
        o->script = sys_pages(o->script_bytes);
    }
    const char **argv = o->script;
    if (!argv)
        return -ENOMEM;
    argv[0] = "/bin/sh";
    argv[1] = file;
    for (size_t i = 1; i <= n; i++)
        argv[i + 1] = job->argv[i];
    e = sys_execve("/bin/sh", argv, job->envp);
    return e == -ENOENT ? -ENOEXEC : e;
}

/* Each execve of a monitored box waits for the guard, so none is made for what is not there. */
static bool is_absent(const struct runner *r, const char *file)
{
    struct sys_stat st;
    return r->plan->filter & FILTER_MONITOR && sys_stat_at(AT_FDCWD, file, 0, SYS_STAT_BASIC, &st) == -ENOENT;
}

static int exec_found(const struct runner *r, const struct job *job, struct outcome *o)
{
    const char *name = job->argv[0];
    const size_t n = str_of(name).n;
    bool refused = false;
    if (n == 0)
        return -ENOENT;
    if (strchr(name, '/'))
        return exec_file(name, job, o);
    for (const char *p = path_of(job->envp);; p++) {
        char file[4096];
        size_t m = 0;
        for (; *p && *p != ':'; p++) {
            if (m < sizeof file)
                file[m++] = *p;
        }
        if (m == 0)
            file[m++] = '.'; /* an empty element is the working directory */
        if (m + n + 2 <= sizeof file) {
            file[m++] = '/';
            __builtin_memcpy(file + m, name, n + 1);
            int e = is_absent(r, file) ? -ENOENT : exec_file(file, job, o);
            struct sys_stat st; /* as in a shell: an unsearchable directory does not have the command */
            refused |= e == -EACCES && sys_stat_at(AT_FDCWD, file, 0, SYS_STAT_BASIC, &st) == 0;
            if (e != -ENOENT && e != -ENOTDIR && e != -EACCES && e != -ENAMETOOLONG && e != -ELOOP)
                return e;
        }
        if (!*p)
            return refused ? -EACCES : -ENOENT;
    }
}

static int place_stdio(const struct job *job, int slave)
{
    int fds[3];
    for (int i = 0; i < 3; i++) { /* first move them out of the way of 0, 1, 2 */
        fds[i] = job->stdio[i] < 0 ? slave : job->stdio[i];
        if (fds[i] < 3 && fds[i] != i)
            fds[i] = sys_fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
        if (fds[i] < 0)
            return fds[i];
    }
    for (int i = 0; i < 3; i++) {
        int e = fds[i] == i ? sys_fcntl(i, F_SETFD, 0) : sys_dup3(fds[i], i, 0);
        if (e < 0)
            return e;
    }
    return sys_close_range(3, ~0u);
}

/* Only lowers: a lower limit of the box stays. */
static int own_limit(const struct job_rlimit *l)
{
    struct sys_rlimit now, wanted = {l->value, l->value};
    int e = sys_prlimit((int)l->what, NULL, &now);
    if (e < 0 || now.hard <= l->value)
        return e;
    return sys_prlimit((int)l->what, &wanted, NULL);
}

static _Noreturn void fail(struct outcome *o, uint32_t where, int e)
{
    o->where = where;
    o->no = -e;
    sys_exit(where == WHERE_EXEC ? (e == -ENOENT || e == -ENOTDIR ? 127 : 126) : 125);
}

_Noreturn void command_child(const struct runner *r, const struct job *job, int slave, struct outcome *o)
{
    uint32_t failed = WHERE_CHILD;
    int e;
    if (job->tty) { /* a foreground group of its own below the leader: so stops are reported and can be ended */
        int group = 0;
        e = sys_setpgid(0, 0);
        group = sys_getpid();
        if (e == 0)
            e = sys_ioctl(slave, TIOCSPGRP, &group);
    } else {
        e = sys_setsid();
    }
    if (e < 0)
        fail(o, WHERE_CHILD, e);
    if (r->plan->tier)
        (void)sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (!(r->plan->namespaces & CLONE_NEWPID)) { /* pid 1 has other ids (builder.c); the command has only the user's */
        const long own = sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0);
        e = own == sys_call(SYS_getuid, 0, 0, 0, 0, 0, 0) ? 0 : (int)sys_call(SYS_setresuid, own, own, own, 0, 0, 0);
        if (e < 0)
            fail(o, WHERE_CHILD, e);
    }
    e = steps_run_command(r, job->cwd && job->cwd[0] == '/', &failed);
    if (e < 0)
        fail(o, failed, e);
    e = job->cwd ? sys_chdir(job->cwd) : 0;
    if (e < 0)
        fail(o, WHERE_CWD, e);
    for (uint32_t i = 0; e == 0 && i < job->n_rlimits; i++)
        e = own_limit(&job->rlimits[i]);
    if (e == 0 && job->own_umask)
        (void)sys_umask(job->umask);
    if (e == 0 && r->command_ruleset >= 0)
        e = sys_landlock_restrict(r->command_ruleset);
    if (e < 0)
        fail(o, WHERE_CHILD, e);
    e = place_stdio(job, slave);
    if (e < 0)
        fail(o, WHERE_STDIO, e);
    (void)sys_sigmask(SIG_SETMASK, 0);
    fail(o, WHERE_EXEC, exec_found(r, job, o));
}
