/*
 * A control group through systemd's user manager, for an ordinary user in a login session.
 *
 * The kernel lets no ordinary user move a process out of a session scope; systemd does it on request: a transient scope
 * with Delegate=yes belongs to the user. To move neither our own process nor a library's caller, we fork a helper;
 * systemd puts it into a new scope, and it starts the box from there and passes the descriptors back. So only builder
 * and pid 1 are inside the scope. systemd removes a scope when it is empty, and the counters with it, so the helper
 * stays, waiting, until they have been read.
 *
 * StartTransientUnit is sent directly (wire format of the D-Bus specification, one message of known form). systemd-run
 * would cost an exec of a program that may not be installed, and could only start what it execs. The manager's private
 * socket is tried first, as systemctl does: it exists without a bus. Cost: 5 to 20 ms, most of it in systemd; only if a
 * limit was requested.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/hex.h"
#include "supervisor/parts.h"
#include "sys/fd.h"

#define MESSAGE_MAX   4096u /* of what we send; replies longer than that are refused */
#define PATIENCE_S    20    /* for the manager to take a connection and to answer: it serves one at a time */
#define ATTACH_MS     20000 /* for it to put the helper into its scope */
#define SYSTEMD_NAME  "org.freedesktop.systemd1"
#define MANAGER_PATH  "/org/freedesktop/systemd1"
#define MANAGER_IFACE "org.freedesktop.systemd1.Manager"

/* --- the wire format: little endian on every machine we know, every value aligned to its size --------------------- */

enum { METHOD_CALL = 1, METHOD_RETURN = 2, ERROR_REPLY = 3 };
enum {
    FIELD_PATH = 1,
    FIELD_INTERFACE,
    FIELD_MEMBER,
    FIELD_ERROR_NAME,
    FIELD_REPLY_SERIAL,
    FIELD_DESTINATION,
    FIELD_SENDER,
    FIELD_SIGNATURE
};

static void align(struct buf *b, size_t to)
{
    while (b->n % to && buf_ok(b))
        buf_char(b, 0);
}

static void put_u32(struct buf *b, uint32_t v)
{
    align(b, 4);
    buf_put(b, &v, sizeof v);
}

static void put_string(struct buf *b, const char *s)
{
    put_u32(b, (uint32_t)strlen(s));
    buf_put(b, s, strlen(s) + 1);
}

static void put_signature(struct buf *b, const char *s)
{
    buf_char(b, (char)strlen(s));
    buf_put(b, s, strlen(s) + 1);
}

static void set_u32(struct buf *b, size_t at, uint32_t v)
{
    if (buf_ok(b))
        memcpy(b->p + at, &v, sizeof v);
}

static void put_field(struct buf *b, int field, const char *signature, const char *value)
{
    align(b, 8);
    buf_char(b, (char)field);
    put_signature(b, signature);
    if (*signature == 'g')
        put_signature(b, value);
    else
        put_string(b, value);
}

/* The header of a call; the body, whose length is set by end_call(), follows. */
static void begin_call(struct buf *b, uint32_t serial, bool to_bus, const char *member, const char *signature)
{
    const char fixed[4] = {'l', METHOD_CALL, 0, 1};
    buf_put(b, fixed, sizeof fixed);
    put_u32(b, 0);
    put_u32(b, serial);
    put_u32(b, 0);
    size_t from = b->n;
    put_field(b, FIELD_PATH, "o", to_bus ? "/org/freedesktop/DBus" : MANAGER_PATH);
    put_field(b, FIELD_INTERFACE, "s", to_bus ? "org.freedesktop.DBus" : MANAGER_IFACE);
    put_field(b, FIELD_MEMBER, "s", member);
    put_field(b, FIELD_DESTINATION, "s", to_bus ? "org.freedesktop.DBus" : SYSTEMD_NAME);
    if (*signature)
        put_field(b, FIELD_SIGNATURE, "g", signature);
    set_u32(b, 12, (uint32_t)(b->n - from));
    align(b, 8);
}

static void put_property(struct buf *b, const char *name, const char *signature)
{
    align(b, 8);
    put_string(b, name);
    put_signature(b, signature);
}

/* StartTransientUnit(s name, s mode, a(sv) properties, a(sa(sv)) auxiliary units). */
static void put_scope(struct buf *b, uint32_t serial, const char *unit, uint32_t pid)
{
    begin_call(b, serial, false, "StartTransientUnit", "ssa(sv)a(sa(sv))");
    size_t body = b->n;
    put_string(b, unit);
    put_string(b, "fail");
    put_u32(b, 0);
    size_t length_at = b->n - 4;
    align(b, 8); /* the length of an array does not count the padding before its first element */
    size_t from = b->n;
    put_property(b, "Description", "s");
    put_string(b, "pinfold box");
    put_property(b, "CollectMode", "s");
    put_string(b, "inactive-or-failed");
    put_property(b, "Delegate", "b");
    put_u32(b, 1);
    put_property(b, "PIDs", "au");
    put_u32(b, 4);
    put_u32(b, pid);
    set_u32(b, length_at, (uint32_t)(b->n - from));
    put_u32(b, 0);
    align(b, 8);
    set_u32(b, 4, (uint32_t)(b->n - body));
}

/* --- talking ------------------------------------------------------------------------------------------------------ */

static int send_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -errno;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

static uint32_t get_u32(const char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/*
 * Walks the header fields of a reply for the serial it answers. Fields are (byte, variant) aligned to 8; the variants that
 * occur are strings (s, o), signatures (g) and numbers (u). False for anything else.
 */
static bool answers(const char *fields, size_t n, uint32_t serial)
{
    size_t at = 0;
    while (at + 8 <= n) {
        unsigned char field = (unsigned char)fields[at];
        if (fields[at + 1] != 1 || fields[at + 3] != 0)
            return false;
        char type = fields[at + 2];
        at += 4;
        if (type == 'u' && field == FIELD_REPLY_SERIAL)
            return get_u32(fields + at) == serial;
        if (type == 'u')
            at += 4;
        else if (type == 'g')
            at += (size_t)(unsigned char)fields[at] + 2;
        else if (type == 's' || type == 'o')
            at += (size_t)get_u32(fields + at) + 5;
        else
            return false;
        at = (at + 7) & ~(size_t)7;
    }
    return false;
}

/* Waits for the answer to `serial`; an error reply is told with systemd's own sentence. */
static int wait_reply(int fd, uint32_t serial, struct err *e)
{
    for (;;) {
        char head[16], rest[MESSAGE_MAX + 1];
        int r = fd_read_exactly(fd, head, sizeof head);
        uint32_t body = r < 0 ? 0 : get_u32(head + 4), fields = r < 0 ? 0 : get_u32(head + 12);
        size_t padded = ((size_t)fields + 7) & ~(size_t)7;
        if (r == 0 && (head[0] != 'l' || body > MESSAGE_MAX || fields > MESSAGE_MAX || padded + body > MESSAGE_MAX))
            r = -EBADMSG;
        if (r == 0)
            r = fd_read_exactly(fd, rest, padded + body);
        if (r < 0)
            return err_sys(e, ERR_SYSTEM, r == -EAGAIN ? ETIMEDOUT : -r, "cannot wait for systemd's user manager");
        if ((head[1] != METHOD_RETURN && head[1] != ERROR_REPLY) || !answers(rest, fields, serial))
            continue; /* a signal, or the bus's own answer to Hello */
        if (head[1] == METHOD_RETURN)
            return 0;
        size_t n = body > 4 ? get_u32(rest + padded) : 0;
        rest[n > body - 4 || body <= 4 ? padded : padded + 4 + n] = 0;
        return err_say(e, ERR_CANNOT, "systemd's user manager refused a scope for the limits: %s",
                       body > 4 ? rest + padded + 4 : "no reason given");
    }
}

/* The simple authentication of the specification: our user number, vouched for by the kernel. */
static int authenticate(int fd)
{
    char said[64] = {0}, uid[16], digits[2 * sizeof uid], answer[256];
    size_t n = 0;
    int k = snprintf(uid, sizeof uid, "%u", (unsigned)geteuid());
    hex_digits(uid, (size_t)k, digits);
    int at = 1 + snprintf(said + 1, sizeof said - 1, "AUTH EXTERNAL %s\r\n", digits);
    int r = send_all(fd, said, (size_t)at);
    while (r == 0 && n < sizeof answer - 1 && (n == 0 || answer[n - 1] != '\n')) {
        r = fd_read_exactly(fd, answer + n, 1);
        n++;
    }
    if (r == 0 && (n < 3 || memcmp(answer, "OK ", 3) != 0))
        r = -EACCES;
    return r < 0 ? r : send_all(fd, "BEGIN\r\n", 7);
}

static int connect_bus(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct timeval patience = {PATIENCE_S, 0};
    if (strlen(path) >= sizeof at.sun_path)
        return -ENAMETOOLONG;
    strcpy(at.sun_path, path);
    auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) < 0)
        return -errno;
    int r = authenticate(fd);
    return r < 0 ? r : take_fd(&fd);
}

/* Asks for a scope `unit` with process `pid` in it. */
static int ask_scope(const char *unit, int pid, struct err *e)
{
    char path[64];
    bool bus = false;

    snprintf(path, sizeof path, "/run/user/%u/systemd/private", (unsigned)geteuid());
    auto_fd int fd = connect_bus(path);
    int no = -fd;
    if (fd < 0) { /* a manager that keeps its socket to itself may still be on the bus */
        char other[64];
        snprintf(other, sizeof other, "/run/user/%u/bus", (unsigned)geteuid());
        fd = connect_bus(other);
        bus = true;
    }
    if (fd < 0)
        return err_sys(e, ERR_SYSTEM, no, "cannot connect to systemd's user manager at '%s'", path);
    auto_buf struct buf m = BUF(MESSAGE_MAX), hello = BUF(MESSAGE_MAX);
    if (bus)
        begin_call(&hello, 1, true, "Hello", "");
    put_scope(&m, 2, unit, (uint32_t)pid);
    if (!buf_ok(&m) || !buf_ok(&hello))
        return err_sys(e, ERR_BUG, EMSGSIZE, "cannot build a message to systemd");
    int r = bus ? send_all(fd, hello.p, hello.n) : 0;
    if (r == 0)
        r = send_all(fd, m.p, m.n);
    return r < 0 ? err_sys(e, ERR_SYSTEM, -r, "cannot ask systemd's user manager for a scope") : wait_reply(fd, 2, e);
}

/* The answer only says that a job was queued: waits until the helper is where it should be. */
static int wait_attached(const char *unit, int pid, char *ret_path, size_t n, struct err *e)
{
    struct timespec pause = {0, 500000};
    for (int i = 0; i < ATTACH_MS * 2; i++) {
        char path[CGROUP_PATH_MAX];
        int r = cgroup_path_v2(pid, path, sizeof path);
        const char *last = r == 0 ? strrchr(path, '/') : NULL;
        if (last && strcmp(last + 1, unit) == 0) {
            int k = snprintf(ret_path, n, "/sys/fs/cgroup%s", path);
            return k < 0 || (size_t)k >= n ? err_sys(e, ERR_SYSTEM, ENAMETOOLONG, "cannot use control group '%s'", path)
                                           : 0;
        }
        nanosleep(&pause, NULL);
    }
    return err_sys(e, ERR_SYSTEM, ETIMEDOUT, "systemd's user manager did not set up the scope '%s'", unit);
}

/* --- the helper --------------------------------------------------------------------------------------------------- */

struct report { /* helper -> us; pidfd, control and builder come with it when r is 0 */
    int r, pid;
    struct err e;
    char dir[CGROUP_PATH_MAX], aside[CGROUP_PATH_MAX];
};

static void send_report(int to, const struct report *report, const struct started *s)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(3 * sizeof(int))];
    } control;
    struct iovec io = {(void *)(uintptr_t)report, sizeof *report};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1};
    if (report->r == 0) {
        int fds[3] = {s->pidfd, s->control, s->builder};
        m.msg_control = &control;
        m.msg_controllen = sizeof control;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fds);
        memcpy(CMSG_DATA(c), fds, sizeof fds);
    }
    (void)sys_send_fds(to, &m, MSG_NOSIGNAL);
}

/*
 * Keeps the scope from being empty until `with` is closed at the other end. A terminal's signals are not meant for it, nor
 * is the SIGTERM that systemd 253 and later send to a scope where the kernel killed for want of memory (OOMPolicy=).
 */
static _Noreturn void stay(int with)
{
    static const int deaf[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGPIPE};
    char ignored;
    for (size_t i = 0; i < sizeof deaf / sizeof *deaf; i++)
        (void)signal(deaf[i], SIG_IGN);
    /* Whoever reads what the command writes, or waits for another box, is not to wait for us. */
    if (with > 0)
        (void)sys_close_range(0, (unsigned)with - 1);
    (void)sys_close_range((unsigned)with + 1, ~0u);
    while (recv(with, &ignored, 1, 0) < 0 && errno == EINTR)
        ;
    _exit(0);
}

static _Noreturn void help(int with, struct means *m, const struct limits *l, engine_start_fn *begin,
                           struct start_request *request)
{
    struct report report = {.r = -ECONNRESET};
    struct started s = {.pid = -1, .pidfd = -1, .control = -1, .builder = -1};
    char scope[CGROUP_PATH_MAX];
    ssize_t n = recv(with, scope, sizeof scope, 0);

    if (n > 0 && scope[n - 1] == 0) {
        report.r = cgroup2_begin_scope(m, scope, l, &report.e);
        request->cgroup = m->join;
        request->parent_death_signal = false; /* this parent is not the one that matters */
        if (report.r == 0)
            report.r = begin(request, &s, &report.e);
        report.pid = s.pid;
        strcpy(report.dir, m->paths->dir[0]);
        strcpy(report.aside, m->paths->aside);
        send_report(with, &report, &s);
        if (report.r == 0)
            stay(with);
    }
    _exit(0);
}

static int receive_report(int from, struct report *report, struct started *ret)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(3 * sizeof(int))];
    } control;
    struct iovec io = {report, sizeof *report};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n;
    do
        n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof *report)
        return n < 0 ? -errno : -ECONNRESET;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (report->r < 0)
        return 0;
    if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(3 * sizeof(int)))
        return -EBADMSG;
    int fds[3];
    memcpy(fds, CMSG_DATA(c), sizeof fds);
    *ret = (struct started){.pid = report->pid, .pidfd = fds[0], .control = fds[1], .builder = fds[2]};
    return 0;
}

void systemd_leave(struct means *m)
{
    m->helper_with = close_fd(m->helper_with);
    while (m->helper > 0 && waitpid(m->helper, NULL, 0) < 0 && errno == EINTR)
        ;
    m->helper = 0;
}

int systemd_start(struct means *m, const struct limits *l, engine_start_fn *begin, struct start_request *request,
                  struct started *ret, struct err *e)
{
    char name[64], unit[80], scope[CGROUP_PATH_MAX];
    int ends[2];

    group_name(name, sizeof name);
    snprintf(unit, sizeof unit, "%s.scope", name);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "socketpair");
    auto_fd int mine = ends[0], theirs = ends[1];
    int pid = fork();
    if (pid < 0)
        return err_sys(e, ERR_SYSTEM, errno, "fork");
    if (pid == 0) {
        (void)close(mine);
        help(theirs, m, l, begin, request);
    }
    drop_fd(&theirs);
    int r = ask_scope(unit, pid, e);
    if (r == 0)
        r = wait_attached(unit, pid, scope, sizeof scope, e);
    struct report report = {.r = 0};
    if (r == 0) {
        r = send_all(mine, scope, strlen(scope) + 1);
        if (r == 0)
            r = receive_report(mine, &report, ret);
        if (r < 0)
            err_sys(e, ERR_SYSTEM, -r, "the helper inside scope '%s' failed", unit);
    }
    m->helper = pid;
    if (r == 0 && report.r == 0)
        m->helper_with = take_fd(&mine);
    else
        systemd_leave(m);
    strcpy(m->paths->dir[0], report.dir);
    strcpy(m->paths->aside, report.aside);
    if (r == 0 && report.r < 0) {
        if (e)
            *e = report.e;
        r = report.r;
    }
    return r;
}
