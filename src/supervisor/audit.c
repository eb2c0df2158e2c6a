/*
 * The audit log. Many boxes write to one file: each event is one write(2) of at most 4 KiB with O_APPEND, which the
 * kernel keeps whole and in order. Rotation renames audit.jsonl to audit.1.jsonl and so on under a lock (flock on the
 * directory). A writer that still has the old file open notices by its size or link count at the next event and opens
 * the new one. A run without events does none of this.
 */
#include "supervisor/audit.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"

#define READ_CHUNK (64u << 10)

struct audit_log {
    int dir, file;
};

int audit_dir(char *ret, size_t n)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int k;
    if (state && state[0] == '/') /* relative values are to be ignored: XDG Base Directory Specification */
        k = snprintf(ret, n, "%s/pinfold/audit", state);
    else if (home && home[0] == '/')
        k = snprintf(ret, n, "%s/.local/state/pinfold/audit", home);
    else
        return -ENOENT;
    return k < 0 || (size_t)k >= n ? -ENAMETOOLONG : 0;
}

/* Opens the directory, making what is missing of it, for ourselves only. */
static int open_dir(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        int r = mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
        *slash = '/';
        if (r < 0 && r != -EROFS && r != -EACCES)
            return r;
    }
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return -errno;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int open_file(int dir)
{
    int fd = openat(dir, AUDIT_FILE_NAME, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

int audit_open(struct audit_log **ret)
{
    char path[4096];
    int r = audit_dir(path, sizeof path);
    if (r < 0)
        return r;
    auto_fd int dir = open_dir(path);
    if (dir < 0)
        return dir;
    auto_fd int file = open_file(dir);
    if (file < 0)
        return file;
    struct audit_log *log = malloc(sizeof *log);
    if (!log)
        return -ENOMEM;
    log->dir = take_fd(&dir);
    log->file = take_fd(&file);
    *ret = log;
    return 0;
}

struct audit_log *audit_close(struct audit_log *log)
{
    if (log) {
        (void)close_fd(log->dir);
        (void)close_fd(log->file);
        free(log);
    }
    return NULL;
}

static void file_name(char ret[32], unsigned i)
{
    if (i == 0)
        snprintf(ret, 32, "%s", AUDIT_FILE_NAME);
    else
        snprintf(ret, 32, "audit.%u.jsonl", i);
}

/* Renames all files up by one, unless somebody else has just done it. */
static void rotate(struct audit_log *log)
{
    struct stat mine, named;
    char from[32], to[32];

    if (flock(log->dir, LOCK_EX) < 0)
        return;
    if (fstat(log->file, &mine) == 0 && fstatat(log->dir, AUDIT_FILE_NAME, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        mine.st_ino == named.st_ino && mine.st_dev == named.st_dev) {
        for (unsigned i = AUDIT_FILES - 1; i > 0; i--) {
            file_name(from, i - 1);
            file_name(to, i);
            (void)renameat(log->dir, from, log->dir, to);
        }
    }
    (void)flock(log->dir, LOCK_UN);
}

/* Whether the file we hold is still the one to write to; rotates when it is full. */
static int fresh_file(struct audit_log *log)
{
    struct stat st;
    if (fstat(log->file, &st) < 0)
        return -errno;
    if (st.st_nlink > 0 && st.st_size < (off_t)AUDIT_FILE_MAX)
        return 0;
    rotate(log);
    int fd = open_file(log->dir);
    if (fd < 0)
        return fd;
    (void)close_fd(log->file);
    log->file = fd;
    return 0;
}

/* The event as one line; `target_n` bytes of its target. */
static void format(struct buf *out, const struct audit_event *v, const char *when, size_t target_n)
{
    struct json j = JSON(out);
    json_object(&j, NULL);
    json_uint(&j, "v", 1);
    json_text(&j, "t", when);
    json_text(&j, "id", v->id);
    json_text_or_null(&j, "session", v->session);
    if (v->scope && v->scope[0])
        json_text(&j, "scope", v->scope);
    json_text(&j, "kind", v->kind);
    json_text(&j, "action", v->action);
    json_str(&j, "target", (struct str){v->target, target_n});
    json_text_or_null(&j, "rule", v->rule);
    json_text_or_null(&j, "origin", v->origin);
    json_text(&j, "how", v->how);
    json_uint(&j, "pid", v->pid);
    if (v->command)
        json_text(&j, "command", v->command);
    if (v->address)
        json_text(&j, "address", v->address);
    if (v->why)
        json_text(&j, "why", v->why);
    if (v->count > 1)
        json_uint(&j, "count", v->count);
    json_object_end(&j);
    buf_char(out, '\n');
}

int audit_write(struct audit_log *log, const struct audit_event *event)
{
    struct audit_event v = *event;
    struct timespec now;
    struct tm tm;
    char when[40], second[24];
    size_t target_n = strlen(v.target);

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(second, sizeof second, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(when, sizeof when, "%s.%03ldZ", second, now.tv_nsec / 1000000);
    int r = fresh_file(log);
    if (r < 0)
        return r;
    for (;;) {
        auto_buf struct buf line = BUF(AUDIT_LINE_MAX);
        format(&line, &v, when, target_n);
        if (buf_ok(&line)) {
            ssize_t n = write(log->file, line.p, line.n);
            return n < 0 ? -errno : (size_t)n < line.n ? -ENOSPC : 0;
        }
        if (target_n == 0 && !v.rule && !v.origin)
            return -EMSGSIZE;
        if (target_n == 0)
            v.rule = v.origin = NULL; /* a rule of thousands of bytes: its origin is not known without it, either */
        target_n /= 2;
    }
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

struct audit_reader {
    int fd;
    ino_t ino;
    struct buf rest; /* of a line that is not whole yet */
    bool (*line)(void *ctx, struct str text);
    void *ctx;
    bool stop;
};

/* Passes on whole lines of what can be read now; 0 or -errno. */
static int read_lines(struct audit_reader *r)
{
    char chunk[READ_CHUNK];
    while (!r->stop) {
        ssize_t n = read(r->fd, chunk, sizeof chunk);
        if (n < 0)
            return -errno;
        if (n == 0)
            return 0;
        for (const char *p = chunk, *end = chunk + n; p < end && !r->stop;) {
            const char *newline = memchr(p, '\n', (size_t)(end - p));
            buf_put(&r->rest, p, (size_t)((newline ? newline : end) - p));
            p = newline ? newline + 1 : end;
            if (!newline)
                break;
            if (buf_ok(&r->rest) && r->rest.n) /* a line over the ceiling is none of ours */
                r->stop = !r->line(r->ctx, buf_view(&r->rest));
            buf_free(&r->rest);
            r->rest = BUF(2 * AUDIT_LINE_MAX);
        }
    }
    return 0;
}

static int open_reader(struct audit_reader *r, int dir, const char *name)
{
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        int no = errno;
        (void)close_fd(fd);
        return -no;
    }
    (void)close_fd(r->fd);
    r->fd = fd;
    r->ino = st.st_ino;
    return 0;
}

/* Waits for the directory to change; 0 or -errno. */
static int wait_change(int notify)
{
    char events[4096] __attribute__((aligned(8)));
    struct pollfd p = {.fd = notify, .events = POLLIN};
    if (poll(&p, 1, -1) < 0)
        return -errno;
    return read(notify, events, sizeof events) < 0 && errno != EAGAIN ? -errno : 0;
}

static int follow_log(struct audit_reader *r, int dir, int notify)
{
    while (!r->stop) {
        struct stat named;
        bool there = fstatat(dir, AUDIT_FILE_NAME, &named, AT_SYMLINK_NOFOLLOW) == 0;
        int k = r->fd >= 0 ? read_lines(r) : 0; /* first what is left of the file that we have */
        if (k < 0)
            return k;
        if (there && (r->fd < 0 || named.st_ino != r->ino)) {
            k = open_reader(r, dir, AUDIT_FILE_NAME);
            if (k < 0 && k != -ENOENT)
                return k;
            continue;
        }
        k = r->stop ? 0 : wait_change(notify);
        if (k < 0)
            return k;
    }
    return 0;
}

int audit_read(bool follow, bool (*line)(void *ctx, struct str text), void *ctx, struct err *e)
{
    char path[4096], name[32];
    struct audit_reader r = {.fd = -1, .rest = BUF(2 * AUDIT_LINE_MAX), .line = line, .ctx = ctx};
    auto_fd int notify = -1;
    int k = audit_dir(path, sizeof path);

    if (k < 0)
        return err_sys(e, ERR_SYSTEM, -k,
                       "no directory for the audit log: set XDG_STATE_HOME or HOME to an absolute path");
    auto_fd int dir = follow ? open_dir(path) : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 && !follow && errno == ENOENT)
        return 0;
    if (dir < 0)
        return err_sys(e, ERR_SYSTEM, follow ? -dir : errno, "cannot open the audit log '%s'", path);
    if (follow) { /* before reading, so that no event falls in between */
        notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (notify < 0 || inotify_add_watch(notify, path, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0)
            return err_sys(e, ERR_SYSTEM, errno, "cannot watch the audit log '%s'", path);
    }
    for (unsigned i = AUDIT_FILES; i-- > 0 && k == 0 && !r.stop;) {
        file_name(name, i);
        k = open_reader(&r, dir, name);
        if (k == 0)
            k = read_lines(&r);
        else if (k == -ENOENT)
            k = 0;
    }
    if (k == 0 && follow)
        k = follow_log(&r, dir, notify);
    (void)close_fd(r.fd);
    buf_free(&r.rest);
    return k < 0 ? err_sys(e, ERR_SYSTEM, -k, "cannot read the audit log in '%s'", path) : 0;
}
