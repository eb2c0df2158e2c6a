/*
 * HTTP/1 between a proxy client and a server: rewrites the request for the server, and finds the end of the answer, so
 * that the next request on the connection can be judged and sent elsewhere.
 */
#include <stdio.h>
#include <strings.h>
#include "egress/protocols/proto.h"

static bool any_of(struct str s, const char *const *names)
{
    for (; *names; names++) {
        if (str_is_nocase(s, *names))
            return true;
    }
    return false;
}

/* A line without its end. */
static struct str line_text(struct str s)
{
    while (s.n && (s.p[s.n - 1] == '\r' || s.p[s.n - 1] == '\n'))
        s.n--;
    return str_trim(s);
}

/* The next field of a parsed head; false at the end. */
static bool next_field(struct str *fields, struct str *line, struct str *name, struct str *value)
{
    if (!fields->n)
        return false;
    struct str rest = str_until(fields, '\n');
    *line = (struct str){rest.p, rest.n + 1};
    *name = str_until(&rest, ':');
    *value = line_text(rest);
    return true;
}

/* Whether a Connection field names this one, which is then removed (RFC 9110 7.6.1). -EBADMSG: it names a field for
   framing or for the host. */
static int nominated(const struct http_head *h, struct str field)
{
    static const char *const never[] = {"Host", "Content-Length", "Transfer-Encoding", NULL};
    struct str fields = h->fields, line, name, value;
    int found = 0;
    while (next_field(&fields, &line, &name, &value)) {
        if (!str_is_nocase(name, "Connection") && !str_is_nocase(name, "Proxy-Connection"))
            continue;
        while (value.n) {
            struct str one = str_trim(str_until(&value, ','));
            if (any_of(one, never))
                return -EBADMSG;
            found = found || (one.n == field.n && strncasecmp(one.p, field.p, one.n) == 0);
        }
    }
    return found;
}

static bool put_bytes(char *out, size_t room, size_t *at, const char *bytes, size_t n)
{
    if (n > room - *at)
        return false;
    memcpy(out + *at, bytes, n);
    *at += n;
    return true;
}

/* A server of HTTP/1.1 must be told the host by a field, which a request of HTTP/1.0 may lack. */
static bool put_host(const struct http_head *h, char *out, size_t room, size_t *at)
{
    struct str rest = str_skip(h->target, strlen("http://")), authority = str_until(&rest, '/');
    return h->has_host || (put_bytes(out, room, at, "Host: ", 6) &&
                           put_bytes(out, room, at, authority.p, authority.n) && put_bytes(out, room, at, "\r\n", 2));
}

ssize_t http_forward(const struct http_head *h, char *out, size_t room)
{
    static const char *const ends_here[] = {"Connection",
                                            "Proxy-Connection",
                                            "Proxy-Authorization",
                                            "Proxy-Authenticate",
                                            "Keep-Alive",
                                            "TE",
                                            "Upgrade",
                                            "HTTP2-Settings",
                                            NULL};
    static const char keep[] = "Connection: keep-alive\r\n\r\n", close[] = "Connection: close\r\n\r\n";
    struct str fields = h->fields, line, name, value;
    size_t at = 0;
    bool ok = put_bytes(out, room, &at, h->method.p, h->method.n) && put_bytes(out, room, &at, " ", 1) &&
              put_bytes(out, room, &at, h->origin_target.p, h->origin_target.n) &&
              put_bytes(out, room, &at, " HTTP/1.1\r\n", 11) && put_host(h, out, room, &at);
    while (ok && next_field(&fields, &line, &name, &value)) {
        int named = nominated(h, name);
        if (named < 0)
            return named;
        if (!named && !any_of(name, ends_here))
            ok = put_bytes(out, room, &at, line.p, line.n);
    }
    ok = ok && (h->close ? put_bytes(out, room, &at, close, sizeof close - 1)
                         : put_bytes(out, room, &at, keep, sizeof keep - 1));
    return ok ? (ssize_t)at : -EMSGSIZE;
}

ssize_t http_by_parent(struct str head, const char *host, uint16_t port, const struct proxy *by, char *out, size_t room)
{
    struct str method = str_until(&head, ' '), line = str_until(&head, '\n');
    char authority[HOST_NAME_MAX_TEXT + 32];
    int n = snprintf(authority, sizeof authority, " http://%s:%u", host, port);
    static const char field[] = "Proxy-Authorization: Basic ";
    size_t at = 0, n_basic = by->basic ? strlen(by->basic) : 0;
    bool ok = put_bytes(out, room, &at, method.p, method.n) && put_bytes(out, room, &at, authority, (size_t)n) &&
              put_bytes(out, room, &at, line.p, line.n) && put_bytes(out, room, &at, "\n", 1);
    if (n_basic)
        ok = ok && put_bytes(out, room, &at, field, sizeof field - 1) &&
             put_bytes(out, room, &at, by->basic, n_basic) && put_bytes(out, room, &at, "\r\n", 2);
    return ok && put_bytes(out, room, &at, head.p, head.n) ? (ssize_t)at : -EMSGSIZE;
}

/* ---- answers ---- */

void http_answer_expect(struct http_answer *a, const struct http_head *request)
{
    *a = (struct http_answer){
        .state = ANSWER_HEAD, .bodiless = str_is(request->method, "HEAD"), .close = request->close};
}

static void lost(struct http_answer *a)
{
    a->state = ANSWER_LOST;
}

static void status_line(struct http_answer *a, struct str line)
{
    bool good = line.n >= 12 && memcmp(line.p, "HTTP/1.", 7) == 0 && line.p[8] == ' ';
    for (size_t i = 9; good && i < 12; i++) {
        good = line.p[i] >= '0' && line.p[i] <= '9';
        a->status = a->status * 10 + (unsigned)(line.p[i] - '0');
    }
    a->refused = good && (a->status == 403 || a->status == 407);
    if (!good)
        lost(a);
    else if (line.p[7] == '0')
        a->close = true; /* unless announced otherwise, which old servers may do but need not be believed */
}

static void field(struct http_answer *a, struct str line)
{
    struct str name = str_until(&line, ':'), value = line_text(line);
    bool framing = str_is_nocase(name, "Content-Length") || str_is_nocase(name, "Transfer-Encoding") ||
                   str_is_nocase(name, "Connection");
    if (framing && a->overlong) {
        lost(a);
    } else if (str_is_nocase(name, "Content-Length")) {
        uint64_t v = 0;
        bool good = value.n > 0 && value.n <= 18;
        for (size_t i = 0; good && i < value.n; i++) {
            good = value.p[i] >= '0' && value.p[i] <= '9';
            v = v * 10 + (uint64_t)(value.p[i] - '0');
        }
        if (!good || (a->has_length && a->length != v))
            lost(a);
        a->has_length = true;
        a->length = v;
    } else if (str_is_nocase(name, "Transfer-Encoding")) {
        a->coded = true;
        a->chunked = str_is_nocase(value, "chunked");
    } else if (str_is_nocase(name, "Connection")) {
        while (value.n)
            a->close = str_is_nocase(str_trim(str_until(&value, ',')), "close") || a->close;
    }
}

/* After the empty line: how the body ends. */
static void head_ends(struct http_answer *a)
{
    struct http_head h = {.chunked = a->chunked, .has_length = a->has_length && !a->coded, .length = a->length};
    if (a->status == 101) {
        lost(a);
    } else if (a->status < 200) {
        bool bodiless = a->bodiless, close = a->close;
        *a = (struct http_answer){.state = ANSWER_HEAD, .bodiless = bodiless, .close = close};
    } else if (a->bodiless || a->status == 204 || a->status == 304) {
        a->state = ANSWER_DONE;
    } else if (!a->chunked && !h.has_length) {
        a->state = ANSWER_LOST; /* ends with the connection */
    } else {
        http_body_begin(&a->body, &h);
        a->body.extensions = true;
        a->state = a->body.state == BODY_NONE ? ANSWER_DONE : ANSWER_BODY;
    }
}

static void head_byte(struct http_answer *a, char c)
{
    if (c != '\n') {
        if (a->n < sizeof a->line)
            a->line[a->n++] = c;
        else
            a->overlong = true;
        return;
    }
    struct str line = line_text((struct str){a->line, a->n});
    bool first = !a->begun;
    a->begun = true;
    if (first)
        status_line(a, line);
    else if (line.n == 0)
        head_ends(a);
    else
        field(a, line);
    a->n = 0;
    a->overlong = false;
}

size_t http_answer_eat(struct http_answer *a, struct str in)
{
    struct str rest = in;
    while (rest.n && (a->state == ANSWER_HEAD || a->state == ANSWER_BODY)) {
        if (a->state == ANSWER_HEAD) {
            head_byte(a, rest.p[0]);
            rest = str_skip(rest, 1);
            continue;
        }
        ssize_t n = http_body_eat(&a->body, rest);
        if (n < 0) {
            lost(a);
        } else {
            rest = str_skip(rest, (size_t)n);
            if (a->body.state == BODY_NONE)
                a->state = ANSWER_DONE;
        }
    }
    return a->state == ANSWER_DONE ? in.n - rest.n : in.n;
}
