/*
 * --control-fd: each line is a whole configuration; what it allows and denies of the network takes the place of what the
 * one before it said. A process of its own reads the lines, for the box is waited for in the other: it checks a line as the
 * settings file is checked, and says it to the box by the box's control connection (pinfold-network(7)).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/json.h"
#include "srt/srt.h"

enum { LINE_MAX_BYTES = 1 << 20, SAID_MAX = 256 << 10, KILL_GRACE_MS = 2000, UPDATE_MEMORY = 64 << 20 };

struct channel {
    int fd; /* -1: it has ended */
    int number;
    int box;     /* the box's control connection, -1 when the box has closed it */
    int signals; /* a signalfd */
    pid_t child;
    struct buf in, said; /* lines that have begun: of the caller, of the box */
    bool skipping;       /* the line is too long */
    bool received;       /* a line has come */
    bool failed;         /* it broke before one had */
    int64_t kill_at;     /* ms; 0: not */
    const char **denied; /* by the settings that the box began with, which stays */
    size_t n_denied;
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void invalid(const struct channel *c, const char *why)
{
    srt_say("Invalid config on control fd %d: ignored, previous config still in force: %s", c->number, why);
}

static bool is_loopback_port(const char *host)
{
    return strncmp(host, "localhost", 9) == 0 || strncmp(host, "127.", 4) == 0 || strncmp(host, "[::1]", 5) == 0;
}

static void put_hosts(struct json *j, const char *name, const char *const *hosts, size_t n)
{
    json_array(j, name);
    for (size_t i = 0; i < n; i++) {
        if (!is_loopback_port(hosts[i])) /* services of this machine are given when the box starts */
            json_text(j, NULL, hosts[i]);
    }
    json_array_end(j);
}

/* What was denied at the start cannot be allowed later; who thinks so is told. */
static void say_still_denied(const struct channel *c, const char *const *denied, size_t n)
{
    for (size_t i = 0; i < c->n_denied; i++) {
        size_t k = 0;
        while (k < n && !same(denied[k], c->denied[i]))
            k++;
        if (k == n)
            srt_say("control fd %d: '%s' stays denied, as the settings that the command began with said", c->number,
                    c->denied[i]);
    }
}

/* One line: a configuration, or nothing. */
static void update(struct channel *c, const char *text)
{
    auto_arena struct arena *mem = arena_new(UPDATE_MEMORY);
    auto_buf struct buf out = BUF(SAID_MAX);
    struct json j = JSON(&out);
    struct pinfold_error error = {0};
    struct err e = {0};
    struct node root;
    char name[64];
    const char **allow = NULL, **deny = NULL;
    size_t n_allow = 0, n_deny = 0;

    c->received = true;
    if (!text[strspn(text, " \t\r")])
        return;
    snprintf(name, sizeof name, "control fd %d", c->number);
    struct pinfold_policy *policy = mem ? srt_policy(name, text, NULL, &error) : NULL;
    pinfold_policy_free(policy);
    if (!policy || node_read(name, str_of(text), NULL, mem, &root, &e) < 0) {
        invalid(c, !mem ? "out of memory" : !policy ? error.text : e.text);
        return;
    }
    if (!srt_hosts(&root, "allowedDomains", mem, &allow, &n_allow) ||
        !srt_hosts(&root, "deniedDomains", mem, &deny, &n_deny) ||
        !srt_hosts(&root, "deniedResolvedAddresses", mem, &deny, &n_deny)) {
        invalid(c, "out of memory");
        return;
    }
    json_object(&j, NULL);
    json_text(&j, "op", "replace");
    put_hosts(&j, "allow", allow, n_allow);
    put_hosts(&j, "deny", deny, n_deny);
    json_object_end(&j);
    buf_char(&out, '\n');
    if (!buf_ok(&out))
        invalid(c, "it has too many hosts");
    else if (c->box < 0 || fd_write_all(c->box, out.p, out.n) < 0)
        return; /* the box has ended: nobody needs it */
    else
        say_still_denied(c, deny, n_deny);
}

/* Calls `each` for the whole lines in `b` and removes them. `end`: what is left is a line, too. */
static void each_line(struct channel *c, struct buf *b, bool end, void (*each)(struct channel *c, const char *line))
{
    size_t at = 0;
    while (at < b->n) {
        char *stop = memchr(b->p + at, '\n', b->n - at);
        if (!stop && !end)
            break;
        size_t n = stop ? (size_t)(stop - (b->p + at)) : b->n - at;
        b->p[at + n] = 0;
        if (n && b->p[at + n - 1] == '\r')
            b->p[at + n - 1] = 0;
        each(c, b->p + at);
        at += n + (stop ? 1 : 0);
    }
    if (at && at < b->n)
        memmove(b->p, b->p + at, b->n - at);
    b->n -= at < b->n ? at : b->n;
}

/* What the box answers: only a refusal matters. */
static void answer(struct channel *c, const char *line)
{
    const char *why = strstr(line, "\"error\":\"");
    if (strstr(line, "\"ok\":false"))
        invalid(c, why ? why + 9 : line);
}

static void broke(struct channel *c, int no)
{
    c->fd = close_fd(c->fd);
    if (c->received) {
        srt_say("Error: reading control fd %d: %s. The control channel is closed; no further updates will be applied.",
                c->number, strerror(no));
        return;
    }
    srt_say(
        "Error: control fd %d failed before delivering an update: %s. Refusing to run the command without the control "
        "channel it asks for.",
        c->number, strerror(no));
    c->failed = true;
    c->kill_at = now_ms() + KILL_GRACE_MS;
    (void)kill(c->child, SIGTERM);
}

/* Bytes of a line that is too long are dropped up to its end. */
static void take_in(struct channel *c, const char *bytes, size_t n)
{
    while (n) {
        const char *stop = memchr(bytes, '\n', n);
        size_t part = stop ? (size_t)(stop - bytes) + 1 : n;
        if (!c->skipping && c->in.n + part > LINE_MAX_BYTES) {
            invalid(c, "the line is longer than 1 MiB");
            c->received = c->skipping = true;
            c->in.n = 0;
        }
        if (!c->skipping)
            buf_put(&c->in, bytes, part);
        if (stop) {
            c->skipping = false;
            each_line(c, &c->in, false, update);
        }
        bytes += part;
        n -= part;
    }
}

static void read_caller(struct channel *c)
{
    char bytes[16384];
    ssize_t n = read(c->fd, bytes, sizeof bytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n < 0) {
        broke(c, errno);
        return;
    }
    if (n > 0) {
        take_in(c, bytes, (size_t)n);
        return;
    }
    each_line(c, &c->in, true, update); /* the caller has said all */
    c->fd = close_fd(c->fd);
}

static void read_box(struct channel *c)
{
    char bytes[8192];
    ssize_t n = read(c->box, bytes, sizeof bytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        c->box = close_fd(c->box);
        return;
    }
    buf_put(&c->said, bytes, (size_t)n);
    if (!buf_ok(&c->said))
        c->box = close_fd(c->box);
    else
        each_line(c, &c->said, false, answer);
}

/* Keys of the terminal reach the child by themselves; what was sent to this process is for it. */
static void read_signals(struct channel *c)
{
    struct signalfd_siginfo s;
    while (read(c->signals, &s, sizeof s) == (ssize_t)sizeof s) {
        if (s.ssi_signo != SIGCHLD && s.ssi_code != SI_KERNEL)
            (void)kill(c->child, (int)s.ssi_signo);
    }
}

/* Until the child has ended; returns what this program exits with. */
static int attend(struct channel *c)
{
    for (;;) {
        int status;
        pid_t gone = waitpid(c->child, &status, WNOHANG);
        if (gone == c->child)
            return c->failed ? SRT_FAILED : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (gone < 0 && errno != EINTR)
            return SRT_FAILED;
        struct pollfd p[] = {
            {.fd = c->signals, .events = POLLIN}, {.fd = c->fd, .events = POLLIN}, {.fd = c->box, .events = POLLIN}};
        int64_t left = c->kill_at ? c->kill_at - now_ms() : -1;
        if (c->kill_at && left <= 0) {
            (void)kill(c->child, SIGKILL);
            c->kill_at = 0;
            left = -1;
        }
        if (poll(p, 3, (int)left) < 0 && errno != EINTR)
            return SRT_FAILED;
        if (p[0].revents)
            read_signals(c);
        if (p[2].revents)
            read_box(c);
        if (p[1].revents)
            read_caller(c);
    }
}

static bool is_readable(int fd)
{
    int mode = fcntl(fd, F_GETFL);
    if (mode >= 0 && (mode & O_PATH) == 0 && (mode & O_ACCMODE) != O_WRONLY)
        return true;
    srt_say("Error: --control-fd %d is not usable: %s. Refusing to run the command without the control channel it asks "
            "for.",
            fd, mode < 0 ? strerror(EBADF) : "it is not open for reading");
    return false;
}

static pid_t give_up(int *ret_status, const char *what)
{
    srt_say("Error: %s: %s", what, strerror(errno));
    *ret_status = SRT_FAILED;
    return -1;
}

pid_t srt_channel(int fd, const struct srt_settings *s, int *ret_fd, int *ret_status)
{
    struct arena *mem = arena_new(UPDATE_MEMORY); /* left to exit */
    struct channel c = {.fd = fd, .number = fd, .in = BUF(LINE_MAX_BYTES + 1), .said = BUF(SAID_MAX)};
    int pair[2];
    sigset_t taken, before;

    *ret_status = SRT_FAILED;
    if (!is_readable(fd))
        return -1;
    if (!mem || !srt_hosts(&s->root, "deniedDomains", mem, &c.denied, &c.n_denied)) {
        srt_say("Error: out of memory");
        return -1;
    }
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return give_up(ret_status, "socketpair");
    sigemptyset(&taken);
    sigaddset(&taken, SIGCHLD);
    sigaddset(&taken, SIGTERM);
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGHUP);
    sigaddset(&taken, SIGQUIT);
    sigprocmask(SIG_BLOCK, &taken, &before);
    const pid_t parent = getpid();
    c.child = fork();
    if (c.child < 0)
        return give_up(ret_status, "fork");
    if (c.child == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(SRT_FAILED);
        (void)close_fd(pair[0]);
        (void)close_fd(fd);
        *ret_fd = pair[1];
        return 0;
    }
    (void)close_fd(pair[1]);
    c.box = pair[0];
    c.signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
    if (c.signals < 0) {
        (void)kill(c.child, SIGKILL);
        return give_up(ret_status, "signalfd");
    }
    (void)signal(SIGPIPE, SIG_IGN); /* after the child is gone, a write fails */
    *ret_status = attend(&c);
    return c.child;
}
