/*
 * --events: writes each refusal to a file, a descriptor, a collector or the journal. The descriptors stay the caller's. What is written
 * never blocks a box for longer than WAIT_MS: events for a pipe that nobody reads are dropped, and the run says so. Command lines, which
 * may hold what no redaction knows, do not leave this user's files: journald and collectors get none.
 */
#include "supervisor/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "base/fd.h"
#include "base/json.h"
#include "match/host.h"

#define JOURNAL     "/run/systemd/journal/socket"
#define WAIT_MS     10000      /* a reader that gets no processor for seconds is none that reads nothing */
#define MAX_BATCH   (4u << 20) /* bytes of records for a collector */
#define MAX_MESSAGE (16u << 10)

enum sink_kind { SINK_LINES, SINK_OTLP, SINK_COLLECTOR, SINK_JOURNAL };
struct sink {
    enum sink_kind kind;
    int fd; /* the caller's; of SINK_JOURNAL our own; otherwise -1 */
    int no; /* the first failure */
    struct host_addr at;
    uint16_t port;
    char path[256];
    struct buf batch; /* records, with commas between */
};

/* ---- opening ---- */

static int take_fd_number(const char *text, int *ret, struct err *e)
{
    char *end;
    long fd = strtol(text, &end, 10);
    if (end == text || *end || fd < 1 || fd > 1 << 20 || fcntl((int)fd, F_GETFD) < 0)
        return err_say(e, ERR_POLICY, "--events fd:%s: not an open file descriptor", text);
    *ret = (int)fd;
    return 0;
}

/* "http://127.0.0.1:4318/v1/logs": a collector on this machine alone. */
static int take_collector(struct sink *s, const char *url, struct err *e)
{
    const char *rest = url + strlen("http://"), *slash = strchr(rest, '/');
    char name[64];
    struct host h;
    const size_t n = slash ? (size_t)(slash - rest) : strlen(rest);
    snprintf(name, sizeof name, "%.*s", (int)n, rest);
    const bool parsed = n < sizeof name && host_port_parse(str_of(name), 0, &h, &s->port) == 0;
    if (parsed && h.kind == HOST_NAME && same(h.name, "localhost"))
        h = (struct host){.kind = HOST_ADDR, .addr = {.b = {127, 0, 0, 1}}};
    if (!parsed || h.kind != HOST_ADDR || addr_classify(&h.addr) != ADDR_LOOPBACK || strpbrk(rest, " \r\n"))
        return err_hint(e, err_say(e, ERR_POLICY, "--events otlp:%s: the collector must be on this machine", url),
                        "write otlp:http://127.0.0.1:4318/v1/logs");
    s->at = h.addr;
    if (!str_copy(str_of(slash && slash[1] ? slash : "/v1/logs"), s->path, sizeof s->path))
        return err_say(e, ERR_POLICY, "--events otlp:http://%s...: the collector's path is too long", name);
    s->kind = SINK_COLLECTOR;
    return 0;
}

static int take_journal(struct sink *s, struct err *e)
{
    const struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = JOURNAL};
    s->kind = SINK_JOURNAL;
    s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s->fd >= 0 && connect(s->fd, (const void *)&at, sizeof at) == 0)
        return 0;
    return err_sys(e, ERR_CANNOT, errno, "--events journald: cannot reach '" JOURNAL "'");
}

static int sink_take(struct sink *s, const char *where, struct err *e)
{
    const char *to = where;
    if (same(where, "journald"))
        return take_journal(s, e);
    if (strncmp(to, "otlp:", 5) == 0) {
        s->kind = SINK_OTLP;
        to += 5;
        if (strncmp(to, "http://", 7) == 0)
            return take_collector(s, to, e);
    }
    if (strncmp(to, "fd:", 3) == 0)
        return take_fd_number(to + 3, &s->fd, e);
    return err_say(e, ERR_POLICY, "--events %s: it is fd:N, otlp:fd:N, otlp:http://ADDRESS:PORT or journald", where);
}

int sink_open(const char *where, struct sink **ret, struct err *e)
{
    struct sink *s = calloc(1, sizeof *s);
    if (!s)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "--events");
    s->fd = -1;
    s->batch = BUF(MAX_BATCH);
    int r = sink_take(s, where, e);
    if (r < 0)
        (void)sink_close(s);
    else
        *ret = s;
    return r;
}

/* ---- writing ---- */

/* All of it, waiting a little for a slow reader; 0 or -errno. */
static int sink_write(int fd, const char *p, size_t n)
{
    while (n) {
        struct pollfd slow = {.fd = fd, .events = POLLOUT};
        if (poll(&slow, 1, WAIT_MS) == 0)
            return -EAGAIN;
        ssize_t k = write(fd, p, n < 4096 ? n : 4096);
        if (k < 0 && errno != EINTR && errno != EAGAIN)
            return -errno;
        p += k > 0 ? k : 0;
        n -= k > 0 ? (size_t)k : 0;
    }
    return 0;
}

static void otlp_attribute(struct json *j, const char *key, const char *text)
{
    if (!text || !*text)
        return;
    json_object(j, NULL);
    json_text(j, "key", key);
    json_object(j, "value");
    json_text(j, "stringValue", text);
    json_object_end(j);
    json_object_end(j);
}

static void put_sentence(struct buf *out, const struct audit_event *v)
{
    buf_printf(out, "%s: %s '%s' was refused (%s)", v->kind, v->action, v->target, v->rule ? v->rule : "");
}

/* One logRecord of OTLP. */
static void put_record(struct buf *out, const struct audit_event *v, bool whole)
{
    auto_buf struct buf sentence = BUF(MAX_MESSAGE);
    struct timespec now;
    char number[32];
    struct json j = JSON(out);
    clock_gettime(CLOCK_REALTIME, &now);
    put_sentence(&sentence, v);
    json_object(&j, NULL);
    snprintf(number, sizeof number, "%lld%09ld", (long long)now.tv_sec, now.tv_nsec);
    json_text(&j, "timeUnixNano", number);
    json_int(&j, "severityNumber", 13);
    json_text(&j, "severityText", "WARN");
    json_object(&j, "body");
    json_text(&j, "stringValue", buf_cstr(&sentence));
    json_object_end(&j);
    json_array(&j, "attributes");
    otlp_attribute(&j, "event.name", "pinfold.denial");
    otlp_attribute(&j, "pinfold.run", v->id);
    otlp_attribute(&j, "pinfold.caller_id", v->caller_id);
    otlp_attribute(&j, "pinfold.session", v->session);
    otlp_attribute(&j, "pinfold.kind", v->kind);
    otlp_attribute(&j, "pinfold.action", v->action);
    otlp_attribute(&j, "pinfold.target", v->target);
    otlp_attribute(&j, "pinfold.rule", v->rule);
    otlp_attribute(&j, "pinfold.origin", v->origin);
    otlp_attribute(&j, "pinfold.mechanism", v->how);
    otlp_attribute(&j, "pinfold.errno", v->no);
    otlp_attribute(&j, "pinfold.remedy", v->remedy);
    otlp_attribute(&j, "pinfold.workspace", v->workspace);
    otlp_attribute(&j, "process.command_line", whole ? v->argv : NULL);
    snprintf(number, sizeof number, "%u", v->pid);
    otlp_attribute(&j, "process.pid", v->pid ? number : NULL);
    json_array_end(&j);
    json_object_end(&j);
}

static void put_request(struct buf *out, struct str records)
{
    buf_text(out,
             "{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":{\"stringValue\":"
             "\"pinfold\"}}]},\"scopeLogs\":[{\"scope\":{\"name\":\"pinfold\"},\"logRecords\":[");
    buf_put(out, records.p, records.n);
    buf_text(out, "]}]}]}");
}

/* A field of the journal's protocol: a text of several lines has its length before it. */
static void journal_field(struct buf *out, const char *name, const char *text)
{
    const uint64_t n = text ? strlen(text) : 0;
    if (!n)
        return;
    buf_text(out, name);
    if (strchr(text, '\n')) {
        buf_char(out, '\n');
        for (unsigned i = 0; i < 8; i++)
            buf_char(out, (char)(n >> 8 * i & 0xff));
    } else {
        buf_char(out, '=');
    }
    buf_put(out, text, n);
    buf_char(out, '\n');
}

static int journal_event(struct sink *s, const struct audit_event *v)
{
    auto_buf struct buf out = BUF(MAX_MESSAGE), sentence = BUF(MAX_MESSAGE);
    char pid[16];
    put_sentence(&sentence, v);
    snprintf(pid, sizeof pid, "%u", v->pid);
    journal_field(&out, "MESSAGE", buf_cstr(&sentence));
    journal_field(&out, "PRIORITY", "5");
    journal_field(&out, "SYSLOG_IDENTIFIER", "pinfold");
    journal_field(&out, "PINFOLD_RUN", v->id);
    journal_field(&out, "PINFOLD_CALLER_ID", v->caller_id);
    journal_field(&out, "PINFOLD_SESSION", v->session);
    journal_field(&out, "PINFOLD_KIND", v->kind);
    journal_field(&out, "PINFOLD_ACTION", v->action);
    journal_field(&out, "PINFOLD_TARGET", v->target);
    journal_field(&out, "PINFOLD_RULE", v->rule);
    journal_field(&out, "PINFOLD_ORIGIN", v->origin);
    journal_field(&out, "PINFOLD_ERRNO", v->no);
    journal_field(&out, "PINFOLD_REMEDY", v->remedy);
    journal_field(&out, "PINFOLD_PID", v->pid ? pid : NULL);
    if (!buf_ok(&out) || !buf_ok(&sentence))
        return -EMSGSIZE;
    return send(s->fd, out.p, out.n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

void sink_event(struct sink *s, const struct audit_event *v)
{
    auto_buf struct buf record = BUF(MAX_MESSAGE), out = BUF(2 * MAX_MESSAGE);
    int no = 0;
    if (!s || s->no)
        return;
    if (s->kind == SINK_JOURNAL) {
        no = journal_event(s, v);
    } else if (s->kind == SINK_LINES) {
        no = audit_line(&out, v);
    } else {
        put_record(&record, v, s->kind == SINK_OTLP);
        no = buf_ok(&record) ? 0 : -EMSGSIZE;
    }
    if (no == 0 && s->kind == SINK_COLLECTOR) {
        if (s->batch.n)
            buf_char(&s->batch, ',');
        buf_put(&s->batch, record.p, record.n);
    } else if (no == 0 && s->kind == SINK_OTLP) {
        put_request(&out, buf_view(&record));
        buf_char(&out, '\n');
    }
    if (no == 0 && s->fd >= 0 && s->kind != SINK_JOURNAL)
        no = buf_ok(&out) ? sink_write(s->fd, out.p, out.n) : -EMSGSIZE;
    s->no = no;
}

/* ---- the collector ---- */

static int connect_collector(const struct sink *s)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(s->port)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(s->port)};
    const struct timeval wait = {.tv_sec = WAIT_MS / 1000};
    memcpy(&v6.sin6_addr, s->at.b, 16);
    memcpy(&v4.sin_addr, s->at.b, 4);
    auto_fd int fd = socket(s->at.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) < 0 ||
        connect(fd, s->at.v6 ? (const void *)&v6 : (const void *)&v4, s->at.v6 ? sizeof v6 : sizeof v4) < 0)
        return -errno;
    return take_fd(&fd);
}

/* One POST; the answer must begin with a status of success. */
static int sink_post(const struct sink *s)
{
    auto_buf struct buf out = BUF(MAX_BATCH + MAX_MESSAGE), body = BUF(MAX_BATCH + 4096);
    char answer[64] = "";
    auto_fd int fd = connect_collector(s);
    if (fd < 0)
        return fd;
    put_request(&body, buf_view(&s->batch));
    buf_printf(&out,
               "POST %s HTTP/1.1\r\nHost: localhost:%u\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
               "Connection: close\r\n\r\n",
               s->path, s->port, body.n);
    buf_put(&out, body.p, body.n);
    if (!buf_ok(&out) || !buf_ok(&body))
        return -EMSGSIZE;
    for (size_t at = 0; at < out.n;) {
        ssize_t n = send(fd, out.p + at, out.n - at, MSG_NOSIGNAL);
        if (n < 0)
            return -errno;
        at += (size_t)n;
    }
    ssize_t n = recv(fd, answer, sizeof answer - 1, MSG_WAITALL);
    return n >= 12 && strncmp(answer, "HTTP/1.", 7) == 0 && answer[9] == '2' ? 0 : n < 0 ? -errno : -EPROTO;
}

int sink_close(struct sink *s)
{
    int no = s ? s->no : 0;
    if (!s)
        return 0;
    if (no == 0 && s->kind == SINK_COLLECTOR && s->batch.n)
        no = buf_ok(&s->batch) ? sink_post(s) : -ENOBUFS;
    if (s->kind == SINK_JOURNAL)
        s->fd = close_fd(s->fd);
    buf_free(&s->batch);
    free(s);
    return no;
}
