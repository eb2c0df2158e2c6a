/*
 * The owner's own directory: the lock that makes it the only one, and the answer of an endpoint from its first byte until the login
 * has it. And the agents' own locks, which their processes on this machine hold while they renew: directories or files that are
 * there while they are held, and stale when nobody has touched them for a minute.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/fd.h"
#include "login/login.h"

enum {
    WAIT_MS = 60000,
    AGENT_WAIT_MS = 20000,
    STEP_MS = 50,
    STALE_S = 60,
    SUM_LINE = HASH_TEXT
}; /* a line: the digits and a newline */

static void nap(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
}

int own_lock(const struct login_ask *a, struct err *e)
{
    int fd = openat(LOGIN_KEPT, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600), no;
    for (int waited = 0; (no = fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 ? errno : 0) == EWOULDBLOCK; nap()) {
        if ((waited += STEP_MS) > WAIT_MS)
            return login_later(e, "the login in %s is being renewed by another pinfold for a minute", a->shown);
    }
    return no ? err_sys(e, ERR_SYSTEM, no, "cannot lock the login in %s", a->shown) : 0;
}

/* ---- the agents' locks ---- */

struct agent_lock {
    int dir; /* owned */
    char name[300];
    bool is_dir, ours;
};
static struct agent_lock agents[LOCKS_MAX];

/* "{dir}/x": in the login's directory; "{dir}.x": beside it. A "/" at the end: a directory. */
static bool place_of(const char *lock, struct agent_lock *ret)
{
    char here[4096];
    const char *rest = strncmp(lock, "{dir}", 5) == 0 ? lock + 5 : NULL;
    ssize_t n = readlink("/proc/self/fd/4", here, sizeof here - 1);
    if (!rest || n <= 0)
        return false;
    here[n] = 0;
    const char *base = strrchr(here, '/');
    snprintf(ret->name, sizeof ret->name, "%.150s%.100s", rest[0] == '/' || !base ? "" : base + 1,
             rest + (rest[0] == '/'));
    size_t length = strlen(ret->name);
    ret->is_dir = length && ret->name[length - 1] == '/';
    if (ret->is_dir)
        ret->name[--length] = 0;
    ret->dir = openat(LOGIN_HOST, rest[0] == '/' ? "." : "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return ret->dir >= 0 && length && !strchr(ret->name, '/');
}

static void unmake(const struct agent_lock *l)
{
    (void)unlinkat(l->dir, l->name, l->is_dir ? AT_REMOVEDIR : 0);
}

#define LOCK_TO_BE ".pinfold-lock"

static void note_path(size_t i, char ret[16])
{
    snprintf(ret, 16, "held%zu", i);
}

/* When the lock was made: tells one of ours from the next one of that name. */
static bool birth_of(const struct agent_lock *l, const char *name, char ret[80])
{
    struct statx st;
    if (statx(l->dir, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME | STATX_INO, &st) < 0 || !(st.stx_mask & STATX_BTIME))
        return false;
    snprintf(ret, 80, "%llu %lld.%09u\n", (unsigned long long)st.stx_ino, (long long)st.stx_btime.tv_sec,
             st.stx_btime.tv_nsec);
    return true;
}

/* What an owner that was killed has left: only it can have been the holder, since we have its lock. */
static void sweep(size_t i, const struct agent_lock *l)
{
    char path[16], noted[80] = "", now[80];
    note_path(i, path);
    auto_fd int fd = openat(LOGIN_KEPT, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && read(fd, noted, sizeof noted - 1) > 0 && birth_of(l, l->name, now) && strcmp(noted, now) == 0)
        unmake(l);
    (void)unlinkat(l->dir, LOCK_TO_BE, 0);
    (void)unlinkat(l->dir, LOCK_TO_BE, AT_REMOVEDIR);
    (void)unlinkat(LOGIN_KEPT, path, 0);
}

void own_sweep_agents(const struct login_ask *a)
{
    for (size_t i = 0; i < a->n_locks; i++) {
        struct agent_lock l = {.dir = -1};
        if (place_of(a->locks[i], &l))
            sweep(i, &l);
        l.dir = close_fd(l.dir);
    }
}

static int make_at(const struct agent_lock *l, const char *name)
{
    if (l->is_dir)
        return mkdirat(l->dir, name, 0700) < 0 ? -errno : 0;
    int fd = openat(l->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : close(fd);
}

/* Noted before it has its name: at no moment is there a lock of ours of which the next owner does not know. */
static int prepare(size_t i, const struct agent_lock *l)
{
    char path[16], now[80];
    note_path(i, path);
    int no = make_at(l, LOCK_TO_BE);
    auto_fd int fd = openat(LOGIN_KEPT, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (no == 0 && fd >= 0 && birth_of(l, LOCK_TO_BE, now))
        (void)fd_write_all(fd, now, strlen(now));
    return no;
}

/* Where renameat2(2) cannot leave an existing one alone, the lock is made under its name. */
static int make(const struct agent_lock *l)
{
    if (renameat2(l->dir, LOCK_TO_BE, l->dir, l->name, RENAME_NOREPLACE) == 0)
        return 0;
    return errno == EINVAL ? make_at(l, l->name) : -errno;
}

static bool is_stale(const struct agent_lock *l)
{
    struct stat st;
    return fstatat(l->dir, l->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mtime < time(NULL) - STALE_S;
}

int own_take_agents(const struct login_ask *a, struct err *e)
{
    for (size_t i = 0; i < a->n_locks; i++) {
        struct agent_lock *l = &agents[i];
        *l = (struct agent_lock){.dir = -1};
        if (!place_of(a->locks[i], l))
            return err_say(e, ERR_POLICY, "the lock '%s' of the login in %s is not a name in or beside its directory",
                           a->locks[i], a->shown);
        int no = prepare(i, l);
        if (no == 0)
            no = make(l);
        for (int waited = 0; no == -EEXIST; no = make(l)) {
            if (is_stale(l)) {
                unmake(l);
                continue;
            }
            if ((waited += STEP_MS) > AGENT_WAIT_MS) {
                own_drop_agents(a);
                return login_later(e, "the agent itself is renewing the login in %s", a->shown);
            }
            nap();
        }
        l->ours = no == 0;
    }
    return 0; /* where none can be made, the agent cannot either */
}

void own_touch_agents(const struct login_ask *a)
{
    for (size_t i = 0; i < a->n_locks; i++) {
        if (agents[i].ours)
            (void)utimensat(agents[i].dir, agents[i].name, NULL, AT_SYMLINK_NOFOLLOW);
    }
}

void own_drop_agents(const struct login_ask *a)
{
    char path[16];
    for (size_t i = 0; i < a->n_locks; i++) {
        if (agents[i].dir <= 0)
            continue; /* not come to */
        if (agents[i].ours)
            unmake(&agents[i]);
        agents[i].ours = false;
        note_path(i, path);
        (void)unlinkat(agents[i].dir, LOCK_TO_BE, 0);
        (void)unlinkat(agents[i].dir, LOCK_TO_BE, AT_REMOVEDIR);
        (void)unlinkat(LOGIN_KEPT, path, 0);
        agents[i].dir = close_fd(agents[i].dir);
    }
}

/* ---- the answer ---- */

static int answer_fd = -1;

int own_keep_begin(const struct login_ask *a, const char sum[HASH_TEXT], struct err *e)
{
    char line[HASH_TEXT + 1];
    snprintf(line, sizeof line, "%s\n", sum);
    own_keep_forget(a);
    answer_fd = openat(LOGIN_KEPT, a->answer, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int no = answer_fd < 0 || fallocate(answer_fd, FALLOC_FL_KEEP_SIZE, 0, ANSWER_ROOM + SUM_LINE) < 0 ? errno : 0;
    if (answer_fd >= 0 && (no == EOPNOTSUPP || no == EINVAL))
        no = 0; /* a file system that reserves nothing */
    if (no == 0)
        no = -fd_write_all(answer_fd, line, SUM_LINE);
    if (no == 0 && (fsync(answer_fd) < 0 || fsync(LOGIN_KEPT) < 0))
        no = errno;
    return no ? err_sys(e, ERR_SYSTEM, no, "the login in %s is not renewed: the new one cannot be stored", a->shown)
              : 0;
}

int own_keep(const void *bytes, size_t n)
{
    return fd_write_all(answer_fd, bytes, n);
}

int own_keep_done(void)
{
    return fdatasync(answer_fd) < 0 ? -errno : 0;
}

int own_kept(const struct login_ask *a, const char sum[HASH_TEXT], struct login_text *ret)
{
    *ret = (struct login_text){0};
    auto_fd int fd = openat(LOGIN_KEPT, a->answer, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    char *p = fd < 0 ? NULL : malloc(ANSWER_ROOM + SUM_LINE + 1);
    ssize_t n = p ? pread(fd, p, ANSWER_ROOM + SUM_LINE, 0) : 0;
    if (n > SUM_LINE && memcmp(p, sum, HASH_TEXT - 1) == 0 && p[HASH_TEXT - 1] == '\n') {
        ret->n = (size_t)n - SUM_LINE;
        memmove(p, p + SUM_LINE, ret->n);
        p[ret->n] = 0;
        ret->p = p;
        ret->there = true;
        return 0;
    }
    free(p);
    return -ENOENT;
}

void own_keep_forget(const struct login_ask *a)
{
    answer_fd = close_fd(answer_fd);
    (void)unlinkat(LOGIN_KEPT, a->answer, 0);
}
