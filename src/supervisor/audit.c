/*
 * The audit log. Many boxes write to one file: each event is one write(2) of at most 4 KiB with O_APPEND, which the
 * kernel keeps whole and in order. Rotation renames audit.jsonl to audit.1.jsonl and so on under a lock (flock on the
 * directory). A writer that still has the old file open notices by its size or link count at the next event and opens
 * the new one. A run without events does none of this.
 */
#include "supervisor/audit.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/sha256.h"
#include "supervisor/run.h"
#include "user/own_dirs.h"

#define READ_CHUNK (16u << 10)
#define CHAIN_END  (32 + sizeof "\"}\n" - 1) /* a chained line ends with its sum and these */

struct audit_log {
    int dir, file;
    bool torn;          /* the file ends in the middle of a line, whose writer died: the next one begins anew */
    unsigned waited_ms; /* for others who rotate; over all events */
};

static bool nowhere;

void audit_nowhere(void)
{
    nowhere = true;
}

bool audit_is_nowhere(void)
{
    return nowhere;
}

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
static int open_dir(const char *path)
{
    int r = own_dirs_make(path);
    if (r < 0)
        return r;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int open_file(int dir)
{
    struct stat st;
    auto_fd int fd =
        openat(dir, AUDIT_FILE_NAME, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    return S_ISREG(st.st_mode) ? take_fd(&fd) : -EINVAL; /* a FIFO would fill, and then whoever writes wait */
}

static bool is_torn(int file)
{
    char last = '\n';
    struct stat st;
    return fstat(file, &st) == 0 && st.st_size > 0 && pread(file, &last, 1, st.st_size - 1) == 1 && last != '\n';
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
    log->torn = is_torn(log->file);
    log->waited_ms = 0;
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

void audit_file_name(char ret[32], unsigned i)
{
    if (i == 0)
        snprintf(ret, 32, "%s", AUDIT_FILE_NAME);
    else
        snprintf(ret, 32, "audit.%u.jsonl", i);
}

/* False: somebody has had the lock for as long as this log waits in all. Whoever can open the directory can keep it, and a start tells of
   its losses before the command, so nobody waits for ever; but who rotates may be held up between two calls, and without waiting for
   them everybody else would go on writing into the full file. */
static bool lock_dir(struct audit_log *log)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    while (flock(log->dir, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK || log->waited_ms >= AUDIT_WAIT_MS)
            return false;
        (void)nanosleep(&pause, NULL);
        log->waited_ms++;
    }
    return true;
}

/* Renames all files up by one, unless somebody else has just done it, or keeps the lock: then this file grows until the next event. */
static void rotate(struct audit_log *log)
{
    struct stat mine, named;
    char from[32], to[32];

    if (!lock_dir(log))
        return;
    if (fstat(log->file, &mine) == 0 && fstatat(log->dir, AUDIT_FILE_NAME, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        mine.st_ino == named.st_ino && mine.st_dev == named.st_dev) {
        for (unsigned i = AUDIT_FILES - 1; i > 0; i--) {
            audit_file_name(from, i - 1);
            audit_file_name(to, i);
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
    log->torn = is_torn(fd);
    return 0;
}

/* Of the sum before ("" for the first) and what the line has so far: 32 hexadecimal digits. */
static void chain_sum(const char *before, struct str line, char ret[33])
{
    char sum[65];
    SHA2_CTX c;
    SHA256Init(&c);
    SHA256Update(&c, (const uint8_t *)before, strlen(before));
    SHA256Update(&c, (const uint8_t *)line.p, line.n);
    sha256_end(&c, sum);
    memcpy(ret, sum, 32);
    ret[32] = 0;
}

/* The event as one line; `target_n` bytes of its target. */
static void format(struct buf *out, const struct audit_event *v, const char *when, size_t target_n)
{
    struct json j = JSON(out);
    json_object(&j, NULL);
    json_uint(&j, "v", 1);
    json_text(&j, "t", when);
    json_text(&j, "id", v->id);
    if (v->caller_id && v->caller_id[0])
        json_text(&j, "caller_id", v->caller_id);
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
    if (v->argv)
        json_text(&j, "command_line", v->argv);
    if (v->host)
        json_text(&j, "host", v->host);
    if (v->address)
        json_text(&j, "address", v->address);
    if (v->why)
        json_text(&j, "why", v->why);
    if (v->count > 1)
        json_uint(&j, "count", v->count);
    if (v->no)
        json_text(&j, "errno", v->no);
    if (v->remedy)
        json_text(&j, "remedy", v->remedy);
    if (v->guess)
        json_bool(&j, "guess", true);
    if (v->monitor)
        json_bool(&j, "monitor", true);
    if (v->workspace)
        json_text(&j, "workspace", v->workspace);
    if (v->chain) {
        char sum[33];
        json_uint(&j, "seq", v->chain->seq + 1);
        chain_sum(v->chain->sum, buf_view(out), sum);
        json_text(&j, "chain", sum);
    }
    json_object_end(&j);
    buf_char(out, '\n');
}

/* One write, after the rest of a line that nobody will end. */
static int put_event(struct audit_log *log, const struct buf *line, struct audit_chain *chain)
{
    struct iovec parts[2] = {{(void *)(uintptr_t) "\n", log->torn ? 1 : 0}, {line->p, line->n}};
    ssize_t n = writev(log->file, parts, 2);
    if (n < 0)
        return -errno;
    if ((size_t)n < line->n + parts[0].iov_len) {
        log->torn = true;
        return -ENOSPC;
    }
    log->torn = false;
    if (chain) {
        chain->seq++;
        memcpy(chain->sum, line->p + line->n - CHAIN_END, 32);
        chain->sum[32] = 0;
    }
    return 0;
}

static void put_now(char when[40])
{
    struct timespec now;
    struct tm tm;
    char second[24];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(second, sizeof second, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(when, 40, "%s.%03ldZ", second, now.tv_nsec / 1000000);
}

int audit_line(struct buf *out, const struct audit_event *event)
{
    struct audit_event v = *event;
    char when[40];
    v.chain = NULL;
    put_now(when);
    format(out, &v, when, strlen(v.target));
    return buf_ok(out) ? 0 : -EMSGSIZE;
}

int audit_write(struct audit_log *log, const struct audit_event *event)
{
    struct audit_event v = *event;
    char when[40];
    size_t target_n = strlen(v.target);

    put_now(when);
    int r = fresh_file(log);
    if (r < 0)
        return r;
    for (;;) {
        auto_buf struct buf line = BUF(AUDIT_LINE_MAX);
        format(&line, &v, when, target_n);
        if (buf_ok(&line))
            return put_event(log, &line, v.chain);
        if (v.argv || v.host) { /* the least of it */
            v.argv = v.host = NULL;
            continue;
        }
        if (target_n == 0 && !v.rule && !v.origin && !v.workspace)
            return -EMSGSIZE;
        if (target_n == 0)
            v.rule = v.origin = v.why = v.remedy = v.workspace =
                NULL; /* a rule of thousands of bytes: its origin is not known without it, either */
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
    auto_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    (void)close_fd(r->fd);
    r->fd = take_fd(&fd);
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

/* No disk is full then: the kernel counts watches for each user. */
static int unwatched(const char *path, int no, struct err *e)
{
    const int r = err_sys(e, ERR_SYSTEM, no, "cannot watch the audit log '%s'", path);
    return no == ENOSPC   ? err_hint(e, r, "sudo sysctl -w fs.inotify.max_user_watches=524288, or leave out --follow")
           : no == EMFILE ? err_hint(e, r, "sudo sysctl -w fs.inotify.max_user_instances=512, or leave out --follow")
                          : r;
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
    const int no = follow ? -dir : errno;
    char why[PATH_MAX];
    if (dir < 0 && own_dirs_why(path, why, sizeof why)[0])
        return err_say(e, ERR_SYSTEM, "there is no audit log: %s", why);
    if (dir < 0)
        return no == ENOENT && !follow ? 0 : err_sys(e, ERR_SYSTEM, no, "cannot open the audit log '%s'", path);
    if (follow) { /* before reading, so that no event falls in between */
        notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (notify < 0 || inotify_add_watch(notify, path, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0)
            return unwatched(path, errno, e);
    }
    for (unsigned i = AUDIT_FILES; i-- > 0 && k == 0 && !r.stop;) {
        audit_file_name(name, i);
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
    if (k == -EINVAL)
        return err_say(e, ERR_REFUSED, "the audit log in '%s' is not a regular file; look at who made it", path);
    return k < 0 ? err_sys(e, ERR_SYSTEM, -k, "cannot read the audit log in '%s'", path) : 0;
}

/* --- checking ----------------------------------------------------------------------------------------------------- */

#define MAX_CHECKED_RUNS (1u << 20)

struct chained_run {
    char id[17], sum[33];
    uint64_t seq;
    bool used;
};
struct checking {
    struct audit_check *found;
    struct chained_run *runs; /* open addressing */
    size_t room, n;
    bool no_memory;
};

static struct chained_run *run_of(struct chained_run *runs, size_t room, const char *id)
{
    size_t at = strtoull(id, NULL, 16) % room;
    while (runs[at].used && strcmp(runs[at].id, id) != 0)
        at = (at + 1) % room;
    return &runs[at];
}

static bool grow_runs(struct checking *c)
{
    size_t room = c->room ? c->room * 2 : 256;
    struct chained_run *runs = room <= MAX_CHECKED_RUNS ? calloc(room, sizeof *runs) : NULL;
    if (!runs)
        return false;
    for (size_t i = 0; i < c->room; i++) {
        if (c->runs[i].used)
            *run_of(runs, room, c->runs[i].id) = c->runs[i];
    }
    free(c->runs);
    c->runs = runs;
    c->room = room;
    return true;
}

/* The text of `line` after `head`, which stands in it at the last place; false if it does not. */
static bool after_last(struct str line, const char *head, struct str *ret)
{
    size_t n = strlen(head);
    for (size_t at = line.n; at-- > 0;) {
        if (at + n <= line.n && memcmp(line.p + at, head, n) == 0) {
            *ret = str_skip(line, at + n);
            return true;
        }
    }
    return false;
}

/* The number and the sum at the end of a line, and its run; false: it has none. */
static bool chain_of(struct str line, char id[17], uint64_t *ret_seq, struct str *ret_body, char sum[33])
{
    static const char head[] = ",\"chain\":\"";
    const size_t tail = sizeof head - 1 + 32 + 2; /* with "} */
    const char *from = memmem(line.p, line.n, "\"id\":\"", 6);
    struct str seq;
    if (line.n < tail || !from || (size_t)(line.p + line.n - from) < 6 + 16)
        return false;
    *ret_body = (struct str){line.p, line.n - tail};
    if (memcmp(line.p + ret_body->n, head, sizeof head - 1) != 0 || !str_ends(line, STR("\"}")) ||
        !after_last(*ret_body, ",\"seq\":", &seq))
        return false;
    memcpy(id, from + 6, 16);
    id[16] = 0;
    memcpy(sum, line.p + line.n - 34, 32);
    sum[32] = 0;
    *ret_seq = strtoull(seq.p, NULL, 10);
    return strspn(id, "0123456789abcdef") == 16 && *ret_seq > 0;
}

static bool check_line(void *ctx, struct str line)
{
    struct checking *c = ctx;
    char id[17], sum[33], expected[33];
    uint64_t seq;
    struct str body;
    c->found->events++;
    if (line.n < 2 || line.p[0] != '{' || line.p[line.n - 1] != '}') {
        c->found->damaged++;
        return true;
    }
    if (!chain_of(line, id, &seq, &body, sum)) {
        c->found->unchained++;
        return true;
    }
    if (2 * (c->n + 1) > c->room && !grow_runs(c)) {
        c->no_memory = true;
        return false;
    }
    struct chained_run *run = run_of(c->runs, c->room, id);
    if (!run->used) {
        *run = (struct chained_run){.used = true};
        strcpy(run->id, id);
        c->n++;
        c->found->runs++;
        c->found->begun += seq > 1;
    } else if (seq > run->seq + 1) {
        c->found->missing += seq - run->seq - 1;
    } else if (seq <= run->seq) {
        c->found->damaged++;
    }
    chain_sum(run->sum, body, expected);
    if (seq == run->seq + 1 && strcmp(expected, sum) != 0)
        c->found->damaged++;
    strcpy(run->sum, sum);
    run->seq = seq;
    return true;
}

int audit_verify(struct audit_check *ret, struct err *e)
{
    struct checking c = {.found = ret};
    *ret = (struct audit_check){0};
    int r = audit_read(false, check_line, &c, e);
    free(c.runs);
    return c.no_memory ? err_sys(e, ERR_SYSTEM, ENOMEM, "cannot check the audit log") : r;
}
