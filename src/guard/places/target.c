/*
 * The caller: the thread behind a notification, identified by a descriptor of its /proc directory. Once the thread has
 * ended, everything below that descriptor is gone, even if its number is reused. Descriptors are kept for the next
 * call. What is read from /proc/TID/status is not used for decisions, only for modes of new files (Umask) and for the
 * meaning of /proc/self (NSpid).
 */
#include <errno.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/uio.h>
#include "base/fd.h"
#include "guard/places/places.h"
#include "match/proctext.h"
#include "sys/fd.h"
#include "sys/process.h"

#define MOST_PATHS  256 /* bytes that hold most of them */
#define STATUS_ROOM 4096

static void target_drop(struct target *t)
{
    t->proc = close_fd(t->proc);
    t->pidfd = close_fd(t->pidfd);
    t->process = close_fd(t->process);
    t->tid = t->tgid = 0;
}

void targets_drop(struct guard *g)
{
    for (size_t i = 0; i < TARGETS; i++)
        if (g->targets[i].tid)
            target_drop(&g->targets[i]);
}

static bool target_alive(const struct target *t)
{
    if (t->pidfd >= 0)
        return sys_pidfd_kill(t->pidfd, 0) == 0;
    struct sys_stat st;
    return sys_stat_at(t->proc, "comm", AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) == 0;
}

int target_find(struct guard *g)
{
    pid_t tid = (pid_t)g->n.pid;
    struct target *t = &g->targets[(unsigned)tid % TARGETS];
    g->who = t;
    g->sure = true;
    if (t->tid == tid && target_alive(t))
        return 0;
    if (t->tid)
        target_drop(t);
    const int proc = task_of(g, tid);
    if (proc < 0)
        return -ENOENT;
    *t = (struct target){.tid = tid, .proc = proc, .pidfd = sys_pidfd_open(tid, PIDFD_THREAD), .process = -1};
    return target_valid(g); /* otherwise the number may already have been reused */
}

int target_expect(struct guard *g)
{
    struct target *t = &g->targets[(unsigned)g->n.pid % TARGETS];
    if (t->tid != (pid_t)g->n.pid)
        return target_find(g);
    g->who = t;
    g->sure = false;
    return 0;
}

int target_sure(struct guard *g)
{
    return g->ours || g->sure ? 0 : target_find(g);
}

void target_likely(struct guard *g)
{
    g->who = &g->targets[(unsigned)g->n.pid % TARGETS];
    g->sure = true; /* for what is thrown away */
    if (g->who->tid == (pid_t)g->n.pid)
        return;
    g->passing = (struct target){.tid = (pid_t)g->n.pid, .proc = -1, .pidfd = -1, .process = -1};
    g->who = &g->passing;
    if (g->memory_files)
        (void)target_find(g);
}

int target_valid(struct guard *g)
{
    if (g->ours)
        return 0;
    return sys_notify_valid(g->notify, g->n.id);
}

/*
 * The beginning of a process's status without the list of its groups, which may have 65,536 and stands before most of what is asked.
 * "" where it cannot be read. Its length, or -errno.
 */
static long status_read(int fd, char text[STATUS_ROOM])
{
    static const char groups[] = "\nGroups:";
    size_t have = 0;
    bool within = false;
    for (;;) {
        const size_t room = STATUS_ROOM - 1 - have, before = have;
        const long n = fd < 0 ? fd : sys_read(fd, text + have, room);
        have = n < 0 ? 0 : have + (size_t)n;
        text[have] = 0;
        if (n <= 0)
            return n < 0 ? n : (long)have;
        char *from = within ? text + before : strstr(text, groups);
        if (from) {
            from += !within;
            const char *end = strchr(from, '\n');
            const char *rest = end ? end + 1 : text + have;
            within = !end;
            memmove(from, rest, (size_t)(text + have - rest) + 1);
            have -= (size_t)(rest - from);
        }
        if ((size_t)n < room || have == STATUS_ROOM - 1)
            return (long)have;
    }
}

static long status_text(int dir, const char *name, char text[STATUS_ROOM])
{
    auto_fd int fd = sys_openat(dir, name, O_RDONLY | O_CLOEXEC, 0);
    return status_read(fd, text);
}

int target_status(struct guard *g, struct target *t)
{
    char text[STATUS_ROOM];
    table_lock(g->shared);
    uint64_t when = g->shared->clock;
    table_unlock(g->shared);
    if (status_text(t->proc, "status", text) <= 0)
        return -ESRCH;
    const long tgid = proc_number(text, "\nTgid:\t", 10), mask = proc_number(text, "\nUmask:\t", 8);
    if (tgid <= 0)
        return -ESRCH;
    t->tgid = (pid_t)tgid;
    t->umask = mask < 0 ? 022 : (uint32_t)mask;
    t->umask_when = when;
    t->tracer = (pid_t)proc_number(text, "\nTracerPid:\t", 10);
    t->box_tid = (pid_t)(g->proc_has_us ? t->tid : proc_second_number(text, "\nNSpid:\t"));
    t->box_tgid = (pid_t)(g->proc_has_us ? t->tgid : proc_second_number(text, "\nNStgid:\t"));
    t->own_tid = (pid_t)proc_last_number(text, "\nNSpid:\t");
    t->own_tgid = (pid_t)proc_last_number(text, "\nNStgid:\t");
    return 0;
}

uint32_t target_line(struct guard *g, char to[DENIAL_ARGV])
{
    auto_fd int fd = sys_openat(g->who->proc, "cmdline", O_RDONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? fd : sys_read(fd, to, DENIAL_ARGV - 1);
    return n > 0 ? (uint32_t)n : 0;
}

uint32_t target_session(struct guard *g)
{
    char text[STATUS_ROOM];
    (void)status_text(g->who->proc, "status", text);
    /* pid 1 is in a pid namespace that the builder created */
    bool below = g->plan->namespaces & ~g->plan->outer & CLONE_NEWPID;
    long id = below ? proc_second_number(text, "\nNSsid:\t") : proc_number(text, "\nNSsid:\t", 10);
    return id > 0 ? (uint32_t)id : 0;
}

#define CAPABILITIES "\nCapEff:\t"

int target_caps(struct guard *g, uint64_t *ret)
{
    char text[STATUS_ROOM];
    (void)status_text(g->who->proc, "status", text);
    *ret = proc_set(text, CAPABILITIES);
    return strstr(text, CAPABILITIES) ? 0 : -ESRCH;
}

uint64_t signals_waiting(int dir, const char *status)
{
    char text[STATUS_ROOM];
    if (status_text(dir, status, text) <= 0)
        return ~0ull;
    return (proc_set(text, "\nSigPnd:\t") | proc_set(text, "\nShdPnd:\t")) & ~proc_set(text, "\nSigBlk:\t");
}

int32_t stopped_by(int proc, bool *ret_stopped)
{
    char text[STATUS_ROOM];
    /* Nothing that somebody has mounted over it. */
    const uint64_t own = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS;
    own_fd int fd = sys_openat2(proc, "status", O_RDONLY | O_CLOEXEC, 0, own);
    if (fd == -ENOSYS) /* in another box, whose guard has none */
        fd = sys_openat(proc, "status", O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    (void)status_read(fd, text);
    *ret_stopped = strstr(text, "\nState:\tt");
    return (int32_t)proc_number(text, "\nTracerPid:\t", 10);
}

/* The slot of a process's umask, used or free. */
static struct mask *mask_slot(struct shared *s, pid_t tgid)
{
    return &s->masks[(unsigned)tgid % MASKS];
}

void target_mask_set(struct guard *g, uint32_t value)
{
    struct target *t = g->who;
    struct shared *s = g->shared;
    if (t->tgid == 0 && target_status(g, t) < 0)
        return;
    table_lock(s);
    /* All others read theirs again: one may have the same mask (CLONE_FS without CLONE_THREAD), or rely on what this slot held. */
    const uint64_t when = s->masks_dropped = ++s->clock;
    *mask_slot(s, t->tgid) = (struct mask){.tgid = t->tgid, .value = value & 0777, .when = when};
    table_unlock(s);
}

int target_umask(struct guard *g)
{
    const bool gone = target_sure(g) < 0;
    struct target *t = g->who;
    struct shared *s = g->shared;
    if (gone)
        return -ESRCH;
    if (g->ours) {
        (void)sys_umask(g->umask = 0); /* modes are used unchanged */
        return 0;
    }
    /* In a layered box nobody tells of a new mask. */
    if ((t->tgid == 0 || g->plan->filter & FILTER_LAYERED) && target_status(g, t) < 0)
        return -ESRCH;
    table_lock(s);
    struct mask m = *mask_slot(s, t->tgid);
    const uint64_t dropped = s->masks_dropped;
    table_unlock(s);
    if (m.tgid == t->tgid && m.when > t->umask_when && m.when >= dropped) {
        t->umask = m.value;
        t->umask_when = m.when;
    } else if (t->umask_when < dropped && target_status(g, t) < 0) {
        return -ESRCH;
    }
    if (t->umask != g->umask) {
        (void)sys_umask(t->umask);
        g->umask = t->umask;
    }
    return 0;
}

int pid_of_init(const struct guard *g)
{
    char name[40], text[512];
    (void)snprintf(name, sizeof name, "self/fdinfo/%d", g->init_pidfd);
    (void)sys_read_text(g->host_proc, name, text, sizeof text);
    const long pid = proc_number(text, "\nPid:\t", 10);
    return strstr(text, "\nPid:\t") ? (int)pid : 1;
}

extern const char __executable_start, _end; /* of this program, set by the linker */

uint64_t guard_text(void)
{
    return (uint64_t)(uintptr_t)&__executable_start;
}

/* No unprivileged process outside can examine pid 1, which is not dumpable. Its texts are constants of this program,
   which both have, at addresses that differ by where each was loaded. */
static bool is_own_text(struct guard *g, uint64_t at, size_t *n)
{
    const uint64_t all = (uint64_t)(uintptr_t)&_end - guard_text();
    if (at < g->own_text || at - g->own_text >= all)
        return false;
    if (*n > all - (at - g->own_text))
        *n = all - (at - g->own_text);
    if (!g->init_tid)
        g->init_tid = pid_of_init(g);
    return g->who->tid == g->init_tid;
}

static bool filter_refuses(long result)
{
    return result == -EPERM || result == -EACCES || result == -ENOSYS;
}

/* The caller's memory as a file. The kernel judges its opener as it does who asks by process_vm_readv(2), which
   containers' filters refuse (containerd before 1.7, docker before 23 on kernels it does not know). */
static int memory_file(struct guard *g, int flags)
{
    const int no = target_sure(g);
    return no < 0 ? no : sys_openat(g->who->proc, "mem", flags | O_CLOEXEC, 0);
}

static long memory_read(struct guard *g, uint64_t at, void *to, size_t n)
{
    long got = g->memory_files ? -EPERM : sys_memory_read(g->who->tid, at, to, n);
    if (!filter_refuses(got))
        return got;
    if (is_own_text(g, at, &n)) {
        memcpy(to, &__executable_start + (at - g->own_text), n);
        return (long)n;
    }
    auto_fd int file = memory_file(g, O_RDONLY);
    if (file < 0)
        return got;
    got = sys_pread(file, to, n, at);
    g->memory_files |= got > 0;
    return got == -EIO || got == 0 ? -EFAULT : got;
}

/* No address is wrong if nothing may be read at all: that is said, since the program would only tell of a bad address. */
static int unread(struct guard *g, long got)
{
    if (!filter_refuses(got))
        return got == -ESRCH ? -ESRCH : -EFAULT;
    g->unread = true;
    return -EPERM;
}

int target_bytes(struct guard *g, uint64_t at, void *bytes, size_t n)
{
    if (n == 0)
        return 0;
    if (g->ours)
        return -EFAULT;
    const long got = memory_read(g, at, bytes, n);
    return got == (long)n ? 0 : got < 0 && got != -ESRCH ? unread(g, got) : -EFAULT;
}

int target_write(struct guard *g, uint64_t at, const void *bytes, size_t n)
{
    if (n == 0)
        return 0;
    /* Do not write into a process that has reused the number. */
    int no = g->ours ? -EFAULT : target_valid(g);
    if (no < 0)
        return no;
    const struct iovec from = {(void *)(uintptr_t)bytes, n}; // NOLINT(performance-no-int-to-ptr)
    const struct iovec to = {(void *)(uintptr_t)at, n};      // NOLINT(performance-no-int-to-ptr)
    long put = sys_call(SYS_process_vm_writev, g->who->tid, &from, 1, &to, 1, 0);
    auto_fd int file = filter_refuses(put) ? memory_file(g, O_WRONLY) : -1;
    if (file >= 0)
        put = sys_pwrite(file, bytes, n, at);
    return put == (long)n ? 0 : -EFAULT;
}

int target_string(struct guard *g, uint64_t at, char text[PATH_MAX])
{
    size_t have = 0;
    if (g->ours) {                                      /* checked on arrival */
        const char *said = (const void *)(uintptr_t)at; // NOLINT(performance-no-int-to-ptr)
        have = strlen(said);
        if (have >= PATH_MAX)
            return -ENAMETOOLONG;
        memcpy(text, said, have + 1);
        return (int)have;
    }
    while (have < PATH_MAX) {
        size_t n = 4096 - ((at + have) & 4095); /* the end of the page: the next one may not be mapped */
        if (have == 0 && n > MOST_PATHS)
            n = MOST_PATHS;
        if (n > PATH_MAX - have)
            n = PATH_MAX - have;
        long got = memory_read(g, at + have, text + have, n);
        if (got <= 0)
            return unread(g, got);
        char *end = memchr(text + have, 0, (size_t)got);
        if (end)
            return (int)(end - text);
        have += (size_t)got;
    }
    return -ENAMETOOLONG;
}

int target_fd(struct guard *g, int fd)
{
    if (fd < 0 || g->ours)
        return -EBADF;
    /* A thread that has ended has none, and while it lives nobody else has its number. */
    if (!g->sure && !g->again && g->who->pidfd >= 0) {
        const int at_once = sys_pidfd_getfd(g->who->pidfd, fd);
        g->sure = at_once >= 0;
        if (g->sure)
            return at_once;
    }
    if (target_sure(g) < 0)
        return -EBADF;
    struct target *t = g->who;
    if (t->pidfd < 0 && t->process < 0) { /* the process, whose threads share a descriptor table */
        if (t->tgid == 0 && target_status(g, t) < 0)
            return -EBADF;
        t->process = sys_pidfd_open(t->tgid, 0);
        if (t->process < 0)
            return -EBADF;
    }
    int own = g->again ? -EPERM : sys_pidfd_getfd(t->pidfd >= 0 ? t->pidfd : t->process, fd);
    if (!filter_refuses(own))
        return own;
    int other = again_fd(g, fd);
    g->again |= other >= 0;
    return other >= 0 || other == -EBADF ? other : own;
}

int target_dir(struct guard *g, int fd)
{
    char link[16] = "cwd", room[12];
    if (g->ours)
        return -EBADF; /* its paths are absolute */
    if (fd != AT_FDCWD) {
        if (fd < 0)
            return -EBADF;
        memcpy(link, "fd/", 3);
        strcpy(link + 3, decimal(room, fd));
    }
    int dir = sys_openat(g->who->proc, link, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (dir < 0 && !g->sure) { /* of a thread that has ended, or there is none */
        if (target_sure(g) < 0)
            return -ENOENT;
        dir = sys_openat(g->who->proc, link, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    }
    g->sure = true;
    if (dir == -EACCES && fd != AT_FDCWD) { /* the fd directory of a non-dumpable process belongs to root */
        auto_fd int own = target_fd(g, fd);
        return own < 0 ? own : own_reopen(g, own, O_PATH | O_DIRECTORY);
    }
    return dir == -ENOENT && fd != AT_FDCWD ? -EBADF : dir;
}
