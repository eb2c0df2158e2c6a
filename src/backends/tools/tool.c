/*
 * Other programs: finds and queries them, and builds their command lines. They run outside of any box, so a program
 * that a box or another user could have written is never started.
 */
#include "backends/tools/tool.h"
#include "survey/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "sys/fd.h"
#include "sys/poll.h"
#include "sys/process.h"

/* Root's, or of the owner of "/": in a user namespace without root, root's files belong to the overflow uid. */
static bool is_roots(const struct stat *st)
{
    struct stat top;
    return st->st_uid == 0 ||
           (st->st_uid != geteuid() && stat("/", &top) == 0 && top.st_uid == st->st_uid && top.st_uid != geteuid());
}

/*
 * A tool runs outside of any box, and PATH may include a project. So the program and its directory must belong to root
 * and be writable only by root's own groups: what a box could have put there is never started.
 */
static bool is_systems(const struct stat *st)
{
    return is_roots(st) && !(st->st_mode & 02);
}

static bool may_be_started(const char *path)
{
    char dir[PATH_MAX];
    struct stat st;
    const char *name = strrchr(path, '/');
    size_t n = name && name > path ? (size_t)(name - path) : 1;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || !is_systems(&st) || access(path, X_OK) < 0 || n >= sizeof dir)
        return false;
    memcpy(dir, path, n);
    dir[n] = 0;
    return stat(dir, &st) == 0 && is_systems(&st);
}

const char *tool_find(struct arena *mem, const char *name)
{
    const char *path = getenv("PATH");
    const char *all =
        arena_printf(mem, "/usr/bin:/bin:/usr/local/bin:/usr/sbin:/sbin:/usr/local/sbin:%s", path ? path : "");
    for (const char *p = all; p && *p;) {
        size_t n = strcspn(p, ":");
        const char *file = n && p[0] == '/' ? arena_printf(mem, "%.*s/%s", (int)n, p, name) : NULL;
        if (file && may_be_started(file))
            return file;
        p += n;
        p += *p == ':';
    }
    return NULL;
}

/* Owned by root or the caller, as pinfold itself is, and not writable by others. */
static bool is_trusted(const struct stat *st)
{
    return (is_roots(st) || st->st_uid == geteuid()) && !(st->st_mode & 022);
}

static int open_helper(const char *path)
{
    struct stat st;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && is_trusted(&st) && st.st_mode & 0111)
        return fd;
    (void)close(fd);
    return -EPERM;
}

int tool_helper(struct arena *mem, const char *name, const char **ret_path, int *ret_fd, struct err *e)
{
    char own[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    own[n > 0 ? n : 0] = 0;
    const char *places[N_HELPER_PLACES];
    helper_places(mem, own, name, places);
    int no = -ENOENT;
    for (size_t i = 0; i < N_HELPER_PLACES; i++) {
        int fd = places[i] ? open_helper(places[i]) : -ENOENT;
        if (fd == -EPERM)
            return err_say(e, ERR_REFUSED,
                           "'%s' is not used: it is owned or writable by another user (install pinfold for yourself, "
                           "or for everybody as root: scripts/install.sh)",
                           places[i]);
        if (fd < 0) {
            no = fd == -ENOENT ? no : fd;
            continue;
        }
        if (ret_path)
            *ret_path = places[i];
        if (ret_fd)
            *ret_fd = fd;
        else
            (void)close(fd);
        return 0;
    }
    return err_sys(e, ERR_CANNOT, -no, "cannot find %s, expected beside pinfold or at %s", name,
                   places[N_HELPER_PLACES - 1]);
}

int tool_init(struct arena *mem, const char **ret_path, int *ret_fd, struct err *e)
{
    return tool_helper(mem, "pinfold-init", ret_path, ret_fd, e);
}

uint64_t tool_now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Reads to the end or until the time is up; returns whether the end was reached. Drops what exceeds the buffer's
   limit. */
static bool read_all(int fd, uint64_t until, struct buf *out)
{
    for (;;) {
        char text[4096];
        uint64_t now = tool_now_ms(), left = until > now ? until - now : 0;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        const struct timespec wait = {.tv_sec = (time_t)(left / 1000), .tv_nsec = (long)(left % 1000) * 1000000};
        int ready = left ? sys_poll(&p, 1, &wait) : 0;
        if (ready == -EINTR)
            continue;
        ssize_t n = ready > 0 ? read(fd, text, sizeof text) : -1;
        if (n <= 0)
            return n == 0;
        size_t room = out->max > out->n + 1 ? out->max - out->n - 1 : 0;
        buf_put(out, text, (size_t)n < room ? (size_t)n : room);
    }
}

int tool_ask(const char *const *argv, unsigned patience_ms, struct buf *out)
{
    static const char *const env[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C",
                                      NULL};
    int ends[2], status = 0;
    auto_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    int from = ends[0], to = ends[1];
    int pid = sys_vfork();
    if (pid == 0) {
        (void)sys_dup3(null, 0, 0);
        (void)sys_dup3(to, 1, 0);
        (void)sys_dup3(to, 2, 0);
        (void)sys_close_range(3, ~0u);
        (void)sys_sigmask(SIG_SETMASK, 0);
        (void)sys_execve(argv[0], argv, env);
        sys_exit(127);
    }
    (void)close(to);
    bool ended = pid > 0 && read_all(from, tool_now_ms() + patience_ms, out);
    (void)close(from);
    if (pid > 0 && !ended)
        (void)kill(pid, SIGKILL);
    while (pid > 0 && sys_wait4(pid, &status, 0, NULL) == -EINTR)
        ;
    return pid < 0 ? pid : !ended ? -ETIMEDOUT : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- command lines ---- */

void tool_word(struct tool_words *w, const char *word)
{
    const char **slot = word ? arena_push(w->mem, &w->at, &w->n, sizeof *slot) : NULL;
    if (slot)
        *slot = word;
    w->failed |= !slot;
}

void tool_two(struct tool_words *w, const char *word, const char *value)
{
    tool_word(w, word);
    tool_word(w, value);
}

void tool_number(struct tool_words *w, const char *word, uint64_t value)
{
    tool_two(w, word, arena_printf(w->mem, "%llu", (unsigned long long)value));
}

int tool_end(struct tool_words *w, const struct plan *plan, const char *init, const char *socket,
             const char *const **ret, struct err *e)
{
    char digest[65];
    plan_image_digest(plan, digest);
    tool_word(w, init);
    tool_two(w, "--plan", arena_text(w->mem, digest));
    if (socket)
        tool_two(w, "--socket", socket);
    else
        tool_number(w, "--fd", TOOL_CHECKIN);
    const char **end = arena_push(w->mem, &w->at, &w->n, sizeof *end);
    if (!end || w->failed)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot build the engine's command line");
    *ret = w->at;
    return 0;
}

static bool is_plain(const char *s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
    return *s && strspn(s, letters) == strlen(s);
}

static void put_word(const char *s, struct buf *out)
{
    bool dull = true;
    for (const unsigned char *p = (const unsigned char *)s; *p; p++)
        dull &= (*p >= ' ' && *p != 127) || *p == '\n';
    if (is_plain(s)) {
        buf_text(out, s);
    } else if (dull && utf8_valid(str_of(s))) {
        buf_char(out, '\'');
        for (; *s; s++)
            buf_printf(out, *s == '\'' ? "'\\%c'" : "%c", *s);
        buf_char(out, '\'');
    } else { /* safe for a terminal; printf of any shell restores the bytes */
        buf_text(out, "\"$(printf '");
        for (; *s; s++)
            buf_printf(out, "\\%03o", (unsigned char)*s);
        buf_text(out, "')\"");
    }
}

void tool_print(const char *const *argv, const char *init, struct buf *out)
{
    size_t line = 0;
    bool by_fd = false;
    for (size_t i = 0; argv[i]; i++) {
        const char *s = argv[i];
        bool option = s[0] == '-' && s[1];
        size_t n = out->n;
        by_fd |= same(s, TOOL_INIT_PATH);
        if (i && line > 60 && option) {
            buf_text(out, " \\\n    ");
            line = 4;
        } else if (i) {
            buf_char(out, ' ');
        }
        put_word(s, out);
        line += out->n - n;
    }
    if (by_fd) {
        buf_printf(out, " %d<", TOOL_INIT);
        put_word(init, out);
    }
    buf_char(out, '\n');
}
