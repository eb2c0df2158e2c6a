/*
 * Files of proc file systems. Two things make them dangerous to open on behalf of another process.
 *
 * The kernel lets a process examine its own memory without further checks, and compares the memory, not the process
 * (mm_access() in kernel/fork.c). Where the guard has no process of its own (guard/supervise.c), its main worker shares
 * its memory with pid 1, and briefly with every command before it execs. And the guard has CAP_SYS_PTRACE, and owns the user namespaces that the box creates.
 *
 * So only three kinds of files are opened here: those that show the same to everybody (a list; all others, also future
 * ones, count as private), the caller's own, and the memory of the caller's tracees. Everything else is opened by a new
 * process that shares its memory with nobody, has entered the caller's user namespace and has the caller's
 * capabilities: the kernel then decides as for the caller. It is created after the object was found, so the object
 * cannot be its own.
 *
 * The path tells whose a file is only in the box's /proc, identified by its file system (a copy of that mount in
 * another namespace shows the same numbers). Elsewhere the caller may have made the path with bind mounts; there it can
 * at most mean the caller itself, and then the file is opened in the guard's own directory of the caller.
 */
#include <errno.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/fd.h"
#include "guard/rules/rules.h"
#include "match/proctext.h"
#include "sys/caps.h"
#include "sys/fd.h"
#include "sys/process.h"

/* ---- a separate process for one open ---- */

struct apart {
    const struct guard *g;
    int user;      /* the caller's user namespace, or -1 */
    bool whole;    /* keeps the capabilities it has in there; otherwise `caps` */
    uint64_t caps; /* the caller's */
    int object;    /* reopen this; or -1: `name` in `dir` */
    int dir;
    const char *name;
    int flags, into; /* into: the descriptor that the opened file replaces */
    /* Or reads the text of the link `name` into the pipe; its path is as seen from `root`, or (-1) from our root. */
    bool reads;
    int root, pipe;
};

static int apart_read(const struct apart *a)
{
    static char text[PATH_MAX];
    long n = sys_readlinkat(a->dir, a->name, text, sizeof text);
    return n < 0 ? (int)n : sys_write(a->pipe, text, (size_t)n) == n ? 0 : -EIO;
}

static void apart_run(void *arg)
{
    struct apart *a = arg;
    char path[32] = "self/fd/", room[12];
    int no = a->user < 0 ? 0 : sys_setns(a->user, CLONE_NEWUSER);
    if (no == 0 && a->reads && a->root >= 0) {
        no = sys_fchdir(a->root);
        no = no < 0 ? no : (int)sys_call(SYS_chroot, ".", 0, 0, 0, 0, 0);
    }
    if (no == 0 && !a->whole)
        no = sys_caps_keep(a->caps);
    if (no == 0 && a->reads)
        sys_exit(-apart_read(a));
    if (no == 0 && a->object >= 0) {
        strcpy(path + 8, decimal(room, a->object));
        no = sys_openat(a->g->host_proc, path, a->flags, 0);
    } else if (no == 0) {
        no = sys_openat(a->dir, a->name, a->flags, 0);
    }
    if (no >= 0) { /* the descriptor table outlives this process: nothing may stay in it */
        const int fd = no;
        no = sys_dup3(fd, a->into, O_CLOEXEC);
        (void)sys_close(fd);
    }
    sys_exit(no < 0 ? -no : 0);
}

/* Without CLONE_VM, on purpose. The descriptor table is shared; its other user waits. */
int apart_wait(void (*run)(void *), void *arg, char *stack, size_t room)
{
    int status = SIGKILL; /* of one that is not there to be waited for */
    const struct sys_clone how = {
        .flags = CLONE_VFORK | CLONE_FILES, .stack = (uint64_t)(uintptr_t)stack, .stack_size = room};
    int pid = sys_clone3_run(&how, run, arg);
    if (pid < 0)
        return pid;
    while (sys_wait4(pid, &status, (int)__WALL, NULL) == -EINTR)
        ;
    return WIFEXITED(status) ? -WEXITSTATUS(status) : -EACCES;
}

static int apart_begin(struct apart *a)
{
    static _Alignas(16) char stack[16 << 10];
    return apart_wait(apart_run, a, stack, sizeof stack);
}

static int apart_open(struct apart *a)
{
    auto_fd int into = sys_fcntl(a->g->self_fd, F_DUPFD_CLOEXEC, 0);
    if (into < 0)
        return into;
    a->into = into;
    int no = apart_begin(a);
    return no < 0 ? no : take_fd(&into);
}

int space_of(struct guard *g, const char *name, int *ret)
{
    char theirs[16], ours[24];
    struct sys_stat a, b;
    (void)snprintf(theirs, sizeof theirs, "ns/%s", name);
    (void)snprintf(ours, sizeof ours, "self/ns/%s", name);
    *ret = -1;
    auto_fd int fd = sys_openat(g->who->proc, theirs, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0 || sys_stat_fd(fd, SYS_STAT_BASIC, &a) < 0 || sys_stat_at(g->host_proc, ours, 0, SYS_STAT_BASIC, &b) < 0)
        return -EACCES;
    if (a.inode != b.inode)
        *ret = take_fd(&fd);
    return 0;
}

static int open_apart(struct guard *g, struct apart a)
{
    auto_fd int user = -1;
    const int no = g->nested ? space_of(g, "user", &user) : 0;
    if (no < 0 || (a.whole && user < 0))
        return no < 0 ? no : -ENOENT;
    if (user >= 0 && !a.whole && target_caps(g, &a.caps) < 0)
        return -EACCES;
    a.g = g;
    a.user = user;
    return a.reads ? apart_begin(&a) : apart_open(&a);
}

int proc_open_whole(struct guard *g, const struct object *o, int flags)
{
    return open_apart(g, (struct apart){.whole = true, .object = o->fd, .flags = flags});
}

/* ---- owners of files ---- */

/* The device of the box's /proc; 0: it has none. */
static uint64_t box_proc(struct guard *g)
{
    struct sys_stat st;
    struct statfs fs;
    if (g->proc_known)
        return g->proc_device;
    auto_fd int fd = sys_openat(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd >= 0 && sys_fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC &&
        sys_stat_fd(fd, SYS_STAT_BASIC, &st) == 0)
        g->proc_device = sys_stat_device(&st);
    g->proc_known = true;
    return g->proc_device;
}

bool proc_is_box(struct guard *g, const struct sys_stat *st)
{
    return box_proc(g) == sys_stat_device(st);
}

static bool is_callers(struct guard *g, int box_number)
{
    struct target *t = g->who;
    if (g->ours || (t->tgid == 0 && target_status(g, t) < 0))
        return false;
    return box_number == t->box_tgid || box_number == t->box_tid;
}

/* Whether a path that others may have made names the caller; only used to open the caller's own files. */
static bool may_be_caller(struct guard *g, const char *path)
{
    struct target *t = g->who;
    char own[16];
    if (!g->nested || g->ours || (t->tgid == 0 && target_status(g, t) < 0))
        return false;
    const int ids[] = {t->own_tgid, t->own_tid};
    for (int i = 0; i < 2; i++) {
        int n = snprintf(own, sizeof own, "/%d", ids[i]);
        for (const char *p = path; (p = strstr(p, own)); p++)
            if (p[n] == '/' || p[n] == 0)
                return true;
    }
    return false;
}

/* Numbers of the box's /proc that are pinfold's own: pid 1, and the guard if there is no pid namespace between. */
static bool is_pinfold(const struct guard *g, int number)
{
    return number == 1 || number == g->init_pid || (g->proc_has_us && number == sys_getpid());
}

/* Whether the caller traces the process of this directory, according to the directory itself, in the box's numbers. */
static bool is_traced(struct guard *g, int dir)
{
    bool stopped;
    const struct target *t = g->who;
    const int32_t number = stopped_by(dir, &stopped);
    return number > 0 && (number == t->box_tgid || number == t->box_tid) && !running_closed(g, dir);
}

enum proc_way proc_way(struct guard *g, const struct place *p, const struct object *o, int flags)
{
    const bool writes = (flags & O_ACCMODE) != O_RDONLY, named = object_is_named(o, p->dir);
    struct str name = named ? (struct str){p->name, p->name_n} : (struct str){0}, rest;
    if (!proc_is_box(g, &o->st) || !(o->placed || mount_ours(g, o->st.mount)))
        return S_ISDIR(o->st.mode) || (!writes && proc_is_public(name)) ? PROC_HERE : PROC_APART;
    struct str path = object_path(o);
    int number = proc_path_number(path, &rest);
    if (!number)
        return str_starts(path, STR("/proc/")) || str_is(path, "/proc") ? PROC_HERE : PROC_APART;
    if (is_callers(g, number))
        return PROC_OWN;
    struct str first = str_until(&rest, '/');
    if (str_is(first, "task") && rest.n) { /* the same again for a thread */
        (void)str_until(&rest, '/');
        first = str_until(&rest, '/');
    }
    if (!first.n || proc_is_public(first))
        return is_pinfold(g, number) && writes ? PROC_APART : PROC_HERE;
    if (str_is(first, "mem")) /* for its tracer; the guard is an ancestor of all */
        return named && str_is(name, "mem") && is_traced(g, p->dir) ? PROC_HERE : PROC_CLOSED;
    return is_pinfold(g, number) ? PROC_CLOSED : PROC_APART;
}

int proc_open(struct guard *g, const struct object *o, enum proc_way way, int flags)
{
    if (way == PROC_CLOSED)
        return -EACCES;
    if (way == PROC_APART)
        return open_apart(g, (struct apart){.object = o->fd, .flags = flags});
    ptrace_hide(g, way != PROC_OWN);
    int fd = own_reopen(g, o->fd, flags);
    ptrace_hide(g, false);
    return fd;
}

/* ---- magic links ---- */

/* Duplicates the caller's descriptor of that number. */
static int numbered(struct guard *g, const char *name)
{
    char *end;
    long number = strtol(name, &end, 10);
    if (*end || end == name || number < 0 || number > INT_MAX)
        return -ENOENT;
    int own = target_fd(g, (int)number);
    return own == -EBADF ? -ENOENT : own;
}

/* Opens one of the caller's descriptors again, as the link would. */
static int own_descriptor(struct guard *g, const char *name, int flags, bool *ret_writes)
{
    auto_fd int own = numbered(g, name);
    if (own < 0)
        return own;
    int mode = sys_fcntl(own, F_GETFL, 0);
    *ret_writes = mode >= 0 && !(mode & O_PATH) && (mode & O_ACCMODE) != O_RDONLY;
    return own_reopen(g, own, flags);
}

/* To whom a directory of a /proc belongs. */
struct whose {
    char path[PLACE_PATH];
    size_t n;
    int number; /* of the process, in the box's numbers; 0: unknown */
    bool ours;  /* the directory is in one of the box's own mounts */
    bool same;  /* it is in the box's /proc */
    bool own;   /* it is the caller's */
};

static int whose_directory(struct guard *g, int dir, struct whose *w)
{
    struct sys_stat st;
    struct str rest;
    int no = g->ours ? -EACCES : sys_stat_fd(dir, SYS_STAT_BASIC | SYS_STAT_MOUNT, &st);
    if (no < 0 || path_of(g, dir, w->path, &w->n) < 0)
        return -EACCES;
    w->ours = mount_ours(g, st.mount);
    w->same = proc_is_box(g, &st);
    /* a copy of the mount: its numbers are the box's, too */
    if (!w->ours && w->same && nested_path(g, dir, &st, w->path, &w->n) < 0)
        return -EACCES;
    w->path[w->n] = 0;
    w->number = w->same ? proc_path_number((struct str){w->path, w->n}, &rest) : 0;
    w->own = w->same ? w->number && is_callers(g, w->number) : may_be_caller(g, w->path);
    return 0;
}

int magic_open(struct guard *g, int dir, const char *name, int flags, bool *ret_writes)
{
    char link[NAME_MAX + 8];
    struct whose w;
    *ret_writes = false;
    int no = whose_directory(g, dir, &w);
    if (no < 0)
        return no;
    const struct str at = {w.path, w.n};
    if (w.own && str_ends(at, STR("/fd")))
        return own_descriptor(g, name, flags, ret_writes);
    const bool ns = str_ends(at, STR("/ns"));
    if (w.own && (ns || !strcmp(name, "cwd") || !strcmp(name, "root") || !strcmp(name, "exe"))) {
        (void)snprintf(link, sizeof link, "%s%s", ns ? "ns/" : "", name);
        return sys_openat(g->who->proc, link, flags, 0);
    }
    if (w.number && !w.own && is_pinfold(g, w.number))
        return -EACCES;
    return open_apart(g, (struct apart){.object = -1, .dir = dir, .name = name, .flags = flags});
}

long link_apart(struct guard *g, int dir, const char *name, char text[PATH_MAX])
{
    int ends[2], no = sys_pipe(ends, O_CLOEXEC | O_NONBLOCK);
    if (no < 0)
        return no;
    auto_fd int from = ends[0];
    auto_fd int to = ends[1];
    auto_fd int root = nested_root(g);
    no = open_apart(g, (struct apart){.reads = true, .root = root, .pipe = to, .object = -1, .dir = dir, .name = name});
    return no < 0 ? no : sys_read(from, text, PATH_MAX);
}

/*
 * A process may always read its own links. The guard reads them with its capability, because the caller may be
 * non-dumpable; only if nobody can have mounted another's links over them, and the caller sees paths from the box's
 * root.
 */
long magic_read(struct guard *g, int dir, const char *name, char text[PATH_MAX])
{
    struct whose w;
    int no = whose_directory(g, dir, &w);
    if (no < 0)
        return no;
    auto_fd int root = nested_root(g);
    if (w.own && w.same && w.ours && root < 0)
        return sys_readlinkat(dir, name, text, PATH_MAX);
    if (w.number && !w.own && is_pinfold(g, w.number))
        return -EACCES;
    return link_apart(g, dir, name, text);
}

long descriptor_read(struct guard *g, const struct place *p, char text[PATH_MAX])
{
    char room[12];
    struct whose w;
    struct sys_stat st;
    if (p->slash || sys_stat_fd(place_seen(p), SYS_STAT_BASIC, &st) < 0 ||
        file_system_of(g, place_seen(p), &st) != FS_PROC || whose_directory(g, place_seen(p), &w) < 0)
        return -EACCES;
    auto_fd int root = nested_root(g);
    if (!w.own || !w.same || !w.ours || root >= 0 || !str_ends((struct str){w.path, w.n}, STR("/fd")))
        return -EACCES;
    auto_fd int own = numbered(g, p->name);
    return own < 0 ? own : sys_readlinkat(g->self_fd, decimal(room, own), text, PATH_MAX);
}
