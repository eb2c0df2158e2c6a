/*
 * Hidden files that are run as programs. execve(2) is not judged: its path lies in the caller's memory, and whoever can change
 * that runs what he likes. What counts is what came of it. Where reads are judged, a process whose program is a hidden file gets
 * no answer but EACCES to any call that the guard hears of, the opening of its libraries first (and of those that LD_PRELOAD names,
 * which would show it to the caller); and nobody looks into its memory: process_vm_readv(2) is shut, /proc/PID/mem is opened by the
 * guard, and ptrace(2) is judged each time. That goes on in the kernel, for its arguments are numbers, and whoever is being
 * looked into is stopped meanwhile and runs nothing else.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include "base/fd.h"
#include "guard/inside.h"

#define GONE " (deleted)" /* behind the path of what has lost its name (proc_pid_exe(5)) */

/* The rule that hides the program of a process, by its directory in a /proc; NULL: none, or it is pinfold's own. -ESRCH: gone. */
static int program_hidden(struct guard *g, int proc, const char *exe, const struct rule **ret, char path[PLACE_PATH])
{
    struct object o = {.fd = -1};
    struct sys_stat own;
    *ret = NULL;
    long n = sys_readlinkat(proc, exe, path, PATH_MAX);
    if (n < 0 || n == PATH_MAX)
        return n == -ENOENT || n == -ESRCH ? -ESRCH : -EACCES;
    path[n] = 0;
    int no = sys_stat_at(proc, exe, 0, SYS_STAT_BASIC | SYS_STAT_BORN, &o.st);
    if (no < 0)
        return no;
    if (sys_stat_at(g->host_proc, "self/exe", 0, SYS_STAT_BASIC, &own) == 0 && own.inode == o.st.inode &&
        own.major == o.st.major && own.minor == o.st.minor)
        return 0;
    struct str text = {path, (size_t)n};
    *ret = rules_hidden(&g->rules, text);
    if (!*ret && str_ends(text, STR(GONE)))
        *ret = rules_hidden(&g->rules, (struct str){path, (size_t)n - strlen(GONE)});
    if (!*ret)
        *ret = hidden_moved(g, &o);
    if (!*ret)
        *ret = hidden_around(g, text);
    return 0;
}

static bool is_judged(const struct guard *g)
{
    return g->plan->filter & FILTER_READS && g->rules.n_hidden;
}

int running_judge(struct guard *g)
{
    char path[PLACE_PATH];
    const struct rule *rule;
    if (!is_judged(g))
        return 0;
    int no = program_hidden(g, g->who->proc, "exe", &rule, path);
    return no == 0 && rule ? deny(g, DENIAL_READ, rule, str_of(path), "a hidden file that is run as a program") : no;
}

bool running_closed(struct guard *g, int process)
{
    char path[PLACE_PATH];
    const struct rule *rule;
    return is_judged(g) && (program_hidden(g, process, "exe", &rule, path) < 0 || rule);
}

long ptrace_call(struct guard *g, long request, pid_t pid)
{
    struct target *t = g->who;
    char path[PLACE_PATH], exe[32];
    const struct rule *rule;
    if (!is_judged(g) || request == PTRACE_TRACEME || request == PTRACE_DETACH || request == PTRACE_KILL)
        return CONTINUE;
    if (t->tgid == 0 && target_status(g, t) < 0)
        return -ESRCH;
    if (t->own_tid != t->box_tid)
        return -EPERM; /* in a pid namespace of its own numbers mean others */
    (void)snprintf(exe, sizeof exe, "/proc/%d/exe", pid);
    int no = program_hidden(g, AT_FDCWD, exe, &rule, path);
    if (no < 0)
        return no == -ESRCH ? no : -EPERM;
    return rule ? deny(g, DENIAL_READ, rule, str_of(path), "a hidden file that is run as a program") : CONTINUE;
}
