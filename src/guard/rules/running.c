/*
 * Hidden files run as programs. execve(2) is not judged, because its path is in the caller's memory, where other
 * threads can change it. Its result counts instead. Where reads are judged, every notified call of a process whose
 * program is a hidden file fails with EACCES, beginning with the opening of its libraries (and of those in LD_PRELOAD,
 * which could print it). And nobody may read its memory: process_vm_readv(2) is refused, the guard opens /proc/PID/mem,
 * in whatever proc file system, and judges the process once that is open, because an open file stays with the memory of
 * its moment; and ptrace(2) is judged each time. ptrace continues in the kernel, because its arguments are numbers, and
 * the tracee, which the caller must have stopped before, runs nothing else meanwhile.
 *
 * A program can be in memory without being /proc/PID/exe: the interpreter that a program names (PT_INTERP), which the
 * kernel maps without a notified call. So for a tracee everything that is mapped is judged. Paths are those of the
 * process's own mounts, where a nested namespace may have bound a hidden file to another name: there the place in the
 * box counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include "base/fd.h"
#include "guard/rules/rules.h"

#define NEWLINE "\\012"      /* as maps(5) has it in a path */
#define GONE    " (deleted)" /* appended to the path of a file that has no name any more (proc_pid_exe(5)) */

/* Judges the place in the box of something in a mount of the process's own; `fd` is that, or -errno. -EACCES: unknown.
   0: it is not hidden, or *ret is the rule. */
static int bound_hidden(struct guard *g, int proc, int fd, struct sys_stat *st, const struct rule **ret)
{
    struct target *const who = g->who, of = {.proc = proc, .pidfd = -1, .process = -1};
    char path[PLACE_PATH];
    size_t n;
    if (fd < 0 || sys_stat_fd(fd, SYS_STAT_BASIC | SYS_STAT_MOUNT, st) < 0)
        return -EACCES;
    g->who = &of; /* its mounts differ from the caller's */
    int no = nested_path(g, fd, st, path, &n);
    g->who = who;
    if (no == 0)
        *ret = rules_hidden(&g->rules, (struct str){path, n});
    return no < 0 ? -EACCES : 0;
}

/* The rule for a file at the kernel's path `path`. */
static const struct rule *text_hidden(struct guard *g, const struct object *o, struct str path)
{
    const struct rule *rule = rules_hidden(&g->rules, path);
    if (!rule && str_ends(path, STR(GONE)))
        rule = rules_hidden(&g->rules, (struct str){path.p, path.n - strlen(GONE)});
    if (!rule && o)
        rule = hidden_moved(g, o);
    return rule ? rule : hidden_around(g, path);
}

/* The rule that hides the program of a process, by its directory in a /proc; NULL: none, or it is pinfold's own.
   -ESRCH: gone. */
static int program_hidden(struct guard *g, int proc, const struct rule **ret, char path[PLACE_PATH])
{
    struct object o = {.fd = -1};
    struct sys_stat own;
    *ret = NULL;
    long n = sys_readlinkat(proc, "exe", path, PATH_MAX);
    if (n < 0 || n == PATH_MAX)
        return n == -ENOENT || n == -ESRCH ? -ESRCH : -EACCES;
    path[n] = 0;
    int no = born_stat(proc, "exe", 0, &o.st);
    if (no < 0)
        return no;
    if (sys_stat_at(g->host_proc, "self/exe", 0, SYS_STAT_BASIC, &own) == 0 && sys_same(&own, &o.st))
        return 0;
    *ret = text_hidden(g, &o, (struct str){path, (size_t)n});
    if (*ret || !g->nested || mount_ours(g, o.st.mount))
        return 0;
    auto_fd int fd = sys_openat(proc, "exe", O_PATH | O_CLOEXEC, 0);
    const struct sys_stat st = o.st;
    no = bound_hidden(g, proc, fd, &o.st, ret);
    if (no == 0 && !*ret)
        hidden_not(g, &st);
    return no == -EACCES && hidden_was_not(g, &st) ? 0 : no;
}

/* ---- everything that is mapped ---- */

struct mapped {
    unsigned major, minor;
    unsigned long inode;
    const char *path;
};

/* Named memory without a file cannot be hidden. A file may have such a name, at the top of a container or bound to it in a
   nested namespace; but the box shows no internal file system of the kernel. */
static bool is_nameless(struct guard *g, const struct mapped *m)
{
    static const char begins[][12] = {"/memfd:", "/dev/zero", "/SYSV", "/drm", "/dmabuf"};
    bool yes = m->path[0] != '/';
    for (size_t i = 0; !yes && i < sizeof begins / sizeof *begins; i++)
        yes = strncmp(m->path, begins[i], strlen(begins[i])) == 0;
    return yes && !nested_shows(g, m->major, m->minor);
}

/* Puts the newlines back that the kernel has written as \012, which a name may have in it as well. */
static void put_newlines(char *path)
{
    char *to = path;
    for (const char *p = path; *p; to++) {
        const bool escaped = strncmp(p, NEWLINE, strlen(NEWLINE)) == 0;
        *to = escaped ? '\n' : *p;
        p += escaped ? strlen(NEWLINE) : 1;
    }
    *to = 0;
}

/* 0 or -EACCES; *ret as above. `root` is the process's root, or ours. */
static int place_hidden(struct guard *g, int proc, int root, const struct mapped *m, bool *ret_found,
                        const struct rule **ret)
{
    struct object o = {.fd = -1};
    const char *path = m->path[0] == '/' && m->path[1] ? m->path + 1 : ".";
    const bool found = born_stat(root, path, AT_SYMLINK_NOFOLLOW, &o.st) == 0 && o.st.inode == m->inode;
    *ret_found |= found;
    *ret = text_hidden(g, found ? &o : NULL, str_of(m->path));
    if (*ret || !g->nested || (found && mount_ours(g, o.st.mount)))
        return 0;
    auto_fd int fd = sys_openat2(root, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS);
    int no = bound_hidden(g, proc, fd, &o.st, ret);
    return no == 0 && o.st.inode != m->inode ? -EACCES : no;
}

/* The same of a name that may have newlines in it. What is at neither of the two names may have both in it. */
static int map_hidden(struct guard *g, int proc, int root, struct mapped m, const struct rule **ret)
{
    char plain[PLACE_PATH];
    bool found = false;
    if (is_nameless(g, &m))
        return 0;
    int no = place_hidden(g, proc, root, &m, &found, ret);
    if (no < 0 || *ret || !strstr(m.path, NEWLINE))
        return no;
    if (!str_copy(str_of(m.path), plain, sizeof plain))
        return -EACCES;
    put_newlines(plain);
    m.path = plain;
    no = place_hidden(g, proc, root, &m, &found, ret);
    return no == 0 && !*ret && !found ? -EACCES : no;
}

/* Judges one line of maps(5), unless it has the same file as the line before. */
static int line_hidden(struct guard *g, int proc, int root, const char *line, struct mapped *last,
                       const struct rule **ret)
{
    struct mapped m = {0};
    int at = 0;
    if (sscanf(line, "%*x-%*x %*s %*x %x:%x %lu %n", &m.major, &m.minor, &m.inode, &at) != 3 || !at)
        return -EACCES;
    if (!m.inode || (m.inode == last->inode && m.major == last->major && m.minor == last->minor))
        return 0;
    m.path = line + at;
    *last = m;
    return map_hidden(g, proc, root, m, ret);
}

/* The rule that hides something the process has mapped. */
static int memory_hidden(struct guard *g, int proc, const struct rule **ret, char path[PLACE_PATH])
{
    size_t have = 0;
    struct mapped last = {0};
    auto_fd int fd = sys_openat(proc, "maps", O_RDONLY | O_CLOEXEC, 0);
    auto_fd int root = g->nested ? sys_openat(proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC, 0)
                                 : sys_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0 || root < 0)
        return -EACCES;
    for (;;) {
        long n = sys_read(fd, g->bytes + have, sizeof g->bytes - 1 - have);
        if (n <= 0)
            return n == 0 && have == 0 ? 0 : -EACCES;
        have += (size_t)n;
        g->bytes[have] = 0;
        char *line = g->bytes;
        for (char *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            int no = line_hidden(g, proc, root, line, &last, ret);
            if (no < 0 || *ret) {
                (void)snprintf(path, PLACE_PATH, "%s", strchr(line, '/') ? strchr(line, '/') : "");
                return no;
            }
        }
        have -= (size_t)(line - g->bytes);
        memmove(g->bytes, line, have);
    }
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
    int no = program_hidden(g, g->who->proc, &rule, path);
    if (no == -EACCES && !g->init_tid)
        g->init_tid = pid_of_init(g);
    if (no == -EACCES && g->who->tid == g->init_tid)
        return 0; /* pid 1 is not dumpable; it is pinfold's own */
    return no == 0 && rule ? deny(g, DENIAL_READ, rule, str_of(path), "a hidden file that is run as a program") : no;
}

bool running_closed(struct guard *g, int process)
{
    char path[PLACE_PATH];
    const struct rule *rule;
    return is_judged(g) &&
           (program_hidden(g, process, &rule, path) < 0 || rule || memory_hidden(g, process, &rule, path) < 0 || rule);
}

int running_memory(struct guard *g, const struct place *p, const struct object *o)
{
    /* No other file of a process has this mode, and the kernel lets nobody change it. */
    if (!is_judged(g) || !o->proc || !S_ISREG(o->st.mode) || (o->st.mode & 07777) != 0600)
        return -ENOENT;
    const int seen = place_seen(p);
    /* Of another mount than its directory the name is somebody's choice. */
    if (!object_is_named(o, seen))
        return -EACCES;
    return str_is((struct str){p->name, p->name_n}, "mem") ? sys_fcntl(seen, F_DUPFD_CLOEXEC, 0) : -ENOENT;
}

/* False for requests that neither show nor change memory or registers. */
static bool looks_inside(long request)
{
    static const int others[] = {PTRACE_CONT,       PTRACE_SYSCALL,     PTRACE_ATTACH,
                                 PTRACE_SEIZE,      PTRACE_INTERRUPT,   PTRACE_LISTEN,
                                 PTRACE_SETOPTIONS, PTRACE_GETEVENTMSG, PTRACE_GETSIGINFO};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (request == others[i])
            return false;
    return true;
}

/* Whether the caller has stopped the process of this directory. Otherwise it could execute something else between the
   judgement and the call. Nobody else can let it go on, and the caller is waiting for us. */
static bool is_stopped(struct guard *g, int proc)
{
    bool stopped;
    return stopped_by(proc, &stopped) == g->who->box_tid && stopped;
}

long ptrace_call(struct guard *g, long request, pid_t pid)
{
    struct target *t = g->who;
    char path[PLACE_PATH], directory[32];
    const struct rule *rule;
    if (!is_judged(g) || request == PTRACE_TRACEME || request == PTRACE_DETACH || request == PTRACE_KILL)
        return CONTINUE;
    if (t->tgid == 0 && target_status(g, t) < 0)
        return -ESRCH;
    if (t->own_tid != t->box_tid)
        return -EPERM; /* its pid namespace numbers processes differently */
    (void)snprintf(directory, sizeof directory, "/proc/%d", pid);
    auto_fd int proc = sys_openat(AT_FDCWD, directory, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    const bool looks = looks_inside(request);
    if (proc < 0 || (looks && !is_stopped(g, proc)))
        return -ESRCH;
    int no = program_hidden(g, proc, &rule, path);
    if (no == 0 && !rule && looks)
        no = memory_hidden(g, proc, &rule, path);
    if (no < 0)
        return no == -ESRCH ? no : -EPERM;
    return rule ? deny(g, DENIAL_READ, rule, str_of(path), "a hidden file that is run as a program") : CONTINUE;
}
