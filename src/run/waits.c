/*
 * A thread that looks at what the first thread waits for. No signal handler could do that: where the kernel waits for a
 * file system it lets only fatal signals through, so that Ctrl-C ends pinfold as long as nothing handles it. The thread
 * has the first one's thread-local storage, so it uses nothing of libc but what works on memory; and its calls are not
 * among those that fail in a test build.
 */
#include "run/waits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/str.h"
#include "sys/fd.h"
#include "sys/file.h"
#include "sys/process.h"
#include "sys/stat.h"

enum {
    FIRST_LOOK_S = 2,
    NEXT_LOOK_S = 1,
    SAID_LOOK_S = 5,
    NAME_ROOM = 4096,
    TEXT_ROOM = NAME_ROOM + 512,
    STACK_ROOM = 3072,
    PAGE = 4096
};

/* `state` is a futex. Whoever says something holds it meanwhile, so that the descriptor is closed only afterwards. */
enum { WATCHING, OVER, SAYING };
/* A page of its own, given back once the thread has ended. What the thread needs for longer texts is elsewhere. */
static struct {
    _Alignas(PAGE) uint32_t state;
    uint32_t
        alive; /* 0: the thread has ended, and uses no stack any more; the kernel writes that (CLONE_CHILD_CLEARTID) */
    int say_on, pipe_end;
    bool begun;
    char stack[STACK_ROOM] __attribute__((aligned(16)));
} waits;

struct wait_line {
    char p[TEXT_ROOM];
    size_t n;
};

/* What the first thread is in: a call about a file, with its name; a lock; neither. */
enum wait_kind { COMPUTES, WAITS_OTHERWISE, WAITS_FOR_FILE, WAITS_FOR_LOCK };

static void put_waiting(struct wait_line *t, const char *s, size_t n)
{
    n = n < sizeof t->p - t->n ? n : sizeof t->p - t->n;
    memcpy(t->p + t->n, s, n);
    t->n += n;
}
static void put_text(struct wait_line *t, const char *s)
{
    put_waiting(t, s, strlen(s));
}
static void put_number(struct wait_line *t, uint64_t v)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + v % 10);
    while (v /= 10);
    put_waiting(t, digits + at, sizeof digits - at);
}
/* A name may hold what a terminal takes for orders: control characters, those of Latin-1 in UTF-8 too. */
static void put_name(struct wait_line *t, const char *s)
{
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s, next = (unsigned char)s[1];
        put_waiting(t, c < 0x20 || c == 0x7f || (c == 0xc2 && next >= 0x80 && next < 0xa0) ? "?" : s, 1);
    }
}

static long read_small(const char *path, char *to, size_t room)
{
    long n = 0, got = 0;
    const int fd = (int)sys_raw(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return fd;
    while ((size_t)n < room - 1 && (got = sys_raw(SYS_read, fd, (long)(to + n), (long)(room - 1) - n, 0, 0, 0)) > 0)
        n += got;
    (void)sys_raw(SYS_close, fd, 0, 0, 0, 0, 0);
    to[n] = 0;
    return got < 0 ? got : n;
}

static bool cut_number(const char **at, unsigned base, uint64_t *ret)
{
    const char *p = *at;
    while (*p == ' ' || *p == ':')
        p++;
    if (base == 16 && p[0] == '0' && p[1] == 'x')
        p += 2;
    const char *first = p;
    for (*ret = 0;; p++) {
        const unsigned c = (unsigned char)*p, digit = c - '0' < 10 ? c - '0' : c - 'a' < 6 ? c - 'a' + 10 : 99;
        if (digit >= base)
            break;
        *ret = *ret * base + digit;
    }
    *at = p;
    return p != first;
}

/* The name of an open file, without asking its file system. */
static bool name_of_fd(int fd, char ret[NAME_ROOM])
{
    static struct wait_line path;
    path.n = 0;
    put_text(&path, fd == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/");
    if (fd != AT_FDCWD)
        put_number(&path, (uint32_t)fd);
    put_waiting(&path, "", 1);
    const long n = sys_raw(SYS_readlinkat, AT_FDCWD, (long)path.p, (long)ret, NAME_ROOM - 1, 0, 0);
    ret[n > 0 ? n : 0] = 0;
    return n > 0 && ret[0] == '/';
}

/* Calls about files: which argument is the directory's descriptor, or the file's, and which the path; -1: none. */
static const struct path_call {
    short nr;
    signed char fd, path;
} path_calls[] = {
    {SYS_statx, 0, 1},       {SYS_openat, 0, 1},     {SYS_openat2, 0, 1},    {SYS_newfstatat, 0, 1},
    {SYS_readlinkat, 0, 1},  {SYS_faccessat, 0, 1},  {SYS_faccessat2, 0, 1}, {SYS_open_tree, 0, 1},
    {SYS_mkdirat, 0, 1},     {SYS_unlinkat, 0, 1},   {SYS_renameat2, 0, 1},  {SYS_renameat, 0, 1},
    {SYS_linkat, 0, 1},      {SYS_statfs, -1, 0},    {SYS_chdir, -1, 0},     {SYS_getxattr, -1, 0},
    {SYS_lgetxattr, -1, 0},  {SYS_listxattr, -1, 0}, {SYS_truncate, -1, 0},  {SYS_name_to_handle_at, 0, 1},
    {SYS_getdents64, 0, -1}, {SYS_read, 0, -1},      {SYS_pread64, 0, -1},   {SYS_fstat, 0, -1},
    {SYS_fstatfs, 0, -1},    {SYS_fgetxattr, 0, -1}, {SYS_fchdir, 0, -1},
#ifdef SYS_open /* x86-64 */
    {SYS_open, -1, 0},       {SYS_stat, -1, 0},      {SYS_lstat, -1, 0},     {SYS_access, -1, 0},
    {SYS_readlink, -1, 0},   {SYS_mkdir, -1, 0},     {SYS_rmdir, -1, 0},     {SYS_unlink, -1, 0},
    {SYS_rename, -1, 0},     {SYS_link, -1, 0},
#endif
};

/* For these the process waits as it is meant to, for as long as it takes. */
static bool waits_otherwise(long nr)
{
    static const short calls[] = {
        SYS_ppoll, SYS_pselect6, SYS_epoll_pwait, SYS_wait4, SYS_waitid, SYS_rt_sigtimedwait, SYS_rt_sigsuspend,
#ifdef SYS_poll
        SYS_poll,  SYS_select,   SYS_epoll_wait,  SYS_pause,
#endif
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (calls[i] == nr)
            return true;
    }
    return false;
}

/* The path is in this process's memory: the first thread does not return from its call with it, and so does not change it. */
static bool name_of_call(const struct path_call *call, const uint64_t args[6], char ret[NAME_ROOM])
{
    const char *path = call->path < 0 ? "" : (const char *)(uintptr_t)args[(int)call->path];
    size_t n = 0;
    if (path[0] != '/') {
        if (!name_of_fd(call->fd < 0 ? AT_FDCWD : (int)(uint32_t)args[(int)call->fd], ret))
            return false;
        n = strlen(ret);
        if (path[0] && n < NAME_ROOM - 1)
            ret[n++] = '/';
    }
    for (; *path && n < NAME_ROOM - 1; path++)
        ret[n++] = *path;
    ret[n] = 0;
    /* A terminal and the kernel's own files: somebody is asked there, or it is done soon. */
    return call->nr != SYS_read || (strncmp(ret, "/dev/", 5) != 0 && strncmp(ret, "/proc/", 6) != 0);
}

static enum wait_kind what_is_waited_for(char ret[NAME_ROOM])
{
    static struct wait_line path;
    path.n = 0;
    char said[512];
    const char *at = said;
    uint64_t nr, args[6];
    put_text(&path, "/proc/self/task/"); /* the first thread has the process's number */
    put_number(&path, (uint64_t)sys_raw(SYS_getpid, 0, 0, 0, 0, 0, 0));
    put_text(&path, "/syscall");
    put_waiting(&path, "", 1);
    if (read_small(path.p, said, sizeof said) <= 0)
        return WAITS_OTHERWISE;
    if (!cut_number(&at, 10, &nr)) /* "running", or "-1" between calls */
        return COMPUTES;
    for (size_t i = 0; i < 6; i++) {
        if (!cut_number(&at, 16, &args[i]))
            return COMPUTES;
    }
    if (nr == SYS_flock)
        return name_of_fd((int)(uint32_t)args[0], ret) ? WAITS_FOR_LOCK : COMPUTES;
    for (size_t i = 0; i < sizeof path_calls / sizeof *path_calls; i++) {
        if ((uint64_t)path_calls[i].nr == nr)
            return name_of_call(&path_calls[i], args, ret) ? WAITS_FOR_FILE : COMPUTES;
    }
    return waits_otherwise((long)nr) ? WAITS_OTHERWISE : COMPUTES;
}

/* The process that holds the lock of `path`, by its file's number; 0: not found. "1: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF" */
static uint64_t holder_of(const char *path)
{
    static char locks[65536];
    struct sys_stat st;
    if (sys_raw(SYS_statx, AT_FDCWD, (long)path, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, (long)&st, 0) < 0 ||
        read_small("/proc/locks", locks, sizeof locks) <= 0)
        return 0;
    for (const char *line = locks, *end; *line; line = *end ? end + 1 : end) {
        uint64_t pid, major, minor, inode;
        end = line + strcspn(line, "\n");
        const char *at = line + strcspn(line, " \n");
        const struct str rest = {at, (size_t)(end - at)};
        const char *kind = str_starts(rest, STR(" FLOCK  ADVISORY  ")) ? at + 18 : NULL;
        if (!kind)
            continue;
        kind += strcspn(kind, " \n");
        if (cut_number(&kind, 10, &pid) && cut_number(&kind, 16, &major) && cut_number(&kind, 16, &minor) &&
            cut_number(&kind, 10, &inode) && inode == st.inode && major == st.major && minor == st.minor)
            return pid;
    }
    return 0;
}

static void say_wait(enum wait_kind kind, const char *name)
{
    static struct wait_line line;
    line.n = 0;
    const uint64_t pid = kind == WAITS_FOR_LOCK ? holder_of(name) : 0;
    put_text(&line, "pinfold: still waiting for ");
    put_text(&line, kind == WAITS_FOR_LOCK ? "the lock of '" : "'");
    put_name(&line, name);
    if (kind == WAITS_FOR_FILE) {
        put_text(&line, "': the file system there does not answer; Ctrl-C ends this; it goes on once its server "
                        "answers or ends, or "
                        "after sudo umount -f of the directory that it is mounted on\n");
    } else {
        put_text(&line, "', which another pinfold holds");
        put_text(&line, pid ? " (process " : "");
        if (pid)
            put_number(&line, pid);
        put_text(&line, pid ? ")" : "");
        put_text(&line, "; Ctrl-C ends this; it goes on when that one has started its box, or has ended\n");
    }
    uint32_t was = WATCHING;
    if (!__atomic_compare_exchange_n(&waits.state, &was, SAYING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return;
    (void)sys_raw(SYS_write, waits.say_on, (long)line.p, (long)line.n, 0, 0, 0);
    __atomic_store_n(&waits.state, WATCHING, __ATOMIC_RELEASE);
    (void)sys_raw(SYS_futex, (long)&waits.state, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

static void pause_for(long seconds)
{
    const int64_t t[2] = {seconds, 0};
    (void)sys_raw(SYS_futex, (long)&waits.state, FUTEX_WAIT_PRIVATE, WATCHING, (long)t, 0, 0);
}

/* Whoever waited for this process has ended (Ctrl-C): what was asked of it is not wanted any more. */
static bool is_unheard(void)
{
    struct pollfd p = {.fd = waits.pipe_end};
    const int64_t now[2] = {0, 0};
    return waits.pipe_end >= 0 && sys_raw(SYS_ppoll, (long)&p, 1, (long)now, 0, 0, 0) == 1 && p.revents & POLLERR;
}

static void waits_watch(void *unused)
{
    static char name[NAME_ROOM], before[NAME_ROOM], told[NAME_ROOM];
    enum wait_kind kind, last = COMPUTES;
    (void)unused;
    for (pause_for(FIRST_LOOK_S); __atomic_load_n(&waits.state, __ATOMIC_ACQUIRE) != OVER;
         pause_for(kind == COMPUTES ? SAID_LOOK_S : NEXT_LOOK_S)) {
        if (is_unheard())
            (void)sys_raw(SYS_exit_group, 125, 0, 0, 0, 0, 0);
        kind = what_is_waited_for(name);
        if (kind == WAITS_OTHERWISE)
            break;
        if (kind == last && kind != COMPUTES && strcmp(name, before) == 0 && strcmp(name, told) != 0) {
            say_wait(kind, name);
            memcpy(told, name, sizeof told);
        }
        last = kind;
        memcpy(before, name, sizeof before);
    }
    for (;;)
        (void)sys_raw(SYS_exit, 0, 0, 0, 0, 0, 0);
}

void waits_begin(int fd, int ends_with)
{
    const uint64_t all = ~0ull;
    uint64_t mask;
    const struct sys_clone how = {.flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                                           CLONE_SYSVSEM | CLONE_CHILD_CLEARTID,
                                  .child_tid = (uint64_t)(uintptr_t)&waits.alive,
                                  .stack = (uint64_t)(uintptr_t)waits.stack,
                                  .stack_size = sizeof waits.stack};
    waits.state = WATCHING;
    waits.alive = 1;
    waits.say_on = fd;
    waits.pipe_end = ends_with;
    /* It must not take a signal that is meant for the first thread, which will block or handle it. */
    (void)sys_raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&mask, sizeof mask, 0, 0);
    long r = sys_clone_onto(SYS_clone3, (long)&how, sizeof how, 0, waits_watch, NULL);
    if (r == -ENOSYS)
        r = sys_clone_onto(SYS_clone, (long)how.flags & ~CLONE_CHILD_CLEARTID, (long)(how.stack + how.stack_size), 0,
                           waits_watch, NULL);
    waits.begun = r > 0;
    if (r < 0 && fd > 2)
        (void)sys_shut(fd);
    (void)sys_raw(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof mask, 0, 0);
}

void waits_end(void)
{
    uint32_t was = WATCHING;
    if (!waits.begun)
        return;
    waits.begun = false;
    while (!__atomic_compare_exchange_n(&waits.state, &was, OVER, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        (void)sys_raw(SYS_futex, (long)&waits.state, FUTEX_WAIT_PRIVATE, SAYING, 0, 0, 0);
        was = WATCHING;
    }
    (void)sys_raw(SYS_futex, (long)&waits.state, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    if (waits.say_on > 2)
        (void)sys_shut(waits.say_on);
}

void waits_forget(void)
{
    if (!waits.begun && !__atomic_load_n(&waits.alive, __ATOMIC_ACQUIRE))
        (void)sys_raw(SYS_madvise, (long)&waits, sizeof waits, 4 /* MADV_DONTNEED */, 0, 0, 0);
}
