/*
 * Inspects data that flows. The client's first bytes show its protocol: a TLS server name, the Host of each HTTP
 * request and the authority of each HTTP/2 request must be the host that was connected to, or, if that was an address,
 * be allowed themselves. Invalid data ends the connection at the first byte that cannot be right:
 *
 *   port 443              only TLS; port 80: only HTTP/1 or HTTP/2; unless a rule has /tcp
 *   first byte 0x14-0x17  only TLS, on any port: some servers check no other byte of a record header
 *   a request line        only HTTP, if any server accepts it as one: every request on the connection is parsed
 *   anything else         is followed as text (protocols/text.c) as long as the server may speak HTTP, then not at all
 *
 * A server of HTTP/1 or TLS never sends first: if the server does, and it is not HTTP/2, nothing is inspected (except
 * on ports 80 and 443). Nor is TLS after its ClientHello, nor what follows an Upgrade that the server accepted, unless
 * it is TLS or HTTP, which a server that says 101 of anything may go on with. STARTTLS and the like are not recognised,
 * except PostgreSQL's, where hosts share an address.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "egress/parts.h"

/* Passes on the first n bytes of the client's data, minus what was passed on before, and keeps them for inspection. */
static bool forward(struct conn *c, size_t n)
{
    if (n <= c->first.at)
        return true;
    if (!relay_push(c, false, c->first.p + c->first.at, n - c->first.at))
        return false;
    c->first.at = (uint32_t)n;
    return true;
}

static bool release(struct conn *c, size_t n)
{
    if (!forward(c, n))
        return false;
    pending_drop(&c->first, n);
    return true;
}

static void watch_nothing(struct conn *c)
{
    c->watch = WATCH_NOTHING;
    let_go(c->text);
    if (c->first.n && !release(c, c->first.n))
        return;
    if (c->host && c->host->kind == HOST_NAME && !(c->stand = stand_of(c->host->name)))
        return; /* kept as it is */
    let_go(c->host);
}

/* One ClientHello: its size if it is complete and its name is allowed, otherwise 0. */
static size_t hello_judged(struct conn *c)
{
    struct tls_hello h;
    ssize_t n = tls_hello_parse((struct str){c->first.p, c->first.n}, &h);
    if (n < 0)
        refuse_flow(c, NULL, "malformed TLS ClientHello");
    else if (n && h.has_name && !judge_inner(c, &h.name))
        refuse_flow(c, &h.name, "TLS server name differs from the host connected to");
    else if (n && !h.has_name && c->literal && !(c->any_bytes = judge_any_bytes(c)))
        refuse_flow(c, NULL, "TLS without a server name to an address");
    else
        return (size_t)n;
    return 0;
}

/* The header of a record that is no handshake: the record's size, 0 for more bytes, -1 if it is not valid here. */
static int64_t other_record(const uint8_t *p, size_t n)
{
    if (p[0] == 0x16 || p[0] < 0x14 || p[0] > 0x17 || (n > 1 && p[1] != 3))
        return -1;
    return n < 5 ? 0 : 5 + ((int64_t)p[3] << 8 | p[4]);
}

/* After the first ClientHello, until the server has declined to ask for another, or has got it: early data and
   alerts are passed on, and a hello is judged. Other client data may not precede the server's. */
static void watch_tls_again(struct conn *c)
{
    while (!conn_over(c) && c->watch == WATCH_TLS_AGAIN && c->first.n) {
        const uint8_t *p = (const uint8_t *)c->first.p;
        size_t n = c->body.left < c->first.n ? (size_t)c->body.left : c->first.n;
        if (n) { /* part of a record */
            c->body.left -= n;
            if (!release(c, n))
                return;
        } else if (p[0] == 0x16) {
            if (!hello_judged(c))
                return;
            watch_nothing(c);
        } else {
            int64_t record = other_record(p, c->first.n);
            if (record < 0)
                refuse_flow(c, NULL, "data that is not TLS after a ClientHello");
            if (record <= 0)
                return;
            c->body.left = (uint64_t)record;
        }
    }
}

static void watch_tls(struct conn *c)
{
    size_t n = hello_judged(c);
    if (!n || !release(c, n))
        return;
    c->watch = WATCH_TLS_AGAIN;
    watch_tls_again(c);
}

/* Whether the server's next data is the answer to this request, because all earlier ones were answered. After a
   pipelined request that is unknown. */
static bool follow_request(struct conn *c, const struct http_head *h)
{
    if (!c->follow) {
        c->follow = malloc(sizeof *c->follow);
        if (!c->follow)
            return false;
        c->follow->state = ANSWER_DONE;
    }
    if (c->follow->state == ANSWER_DONE)
        http_answer_expect(c->follow, h);
    else
        c->follow->state = ANSWER_LOST;
    return c->follow->state != ANSWER_LOST;
}

bool watch_answers(const struct conn *c)
{
    const struct http_answer *a = c->follow;
    bool in_data = a && a->state == ANSWER_BODY && a->body.left > BULK_ROOM &&
                   (a->body.state == BODY_LENGTH || a->body.state == BODY_CHUNK_DATA);
    return (a && a->state != ANSWER_LOST && !in_data) || (c->watch == WATCH_TLS_AGAIN && !c->retried) ||
           ((c->watch == WATCH_FIRST || c->watch == WATCH_TEXT || c->watch == WATCH_SWITCHED) && !c->http_there);
}

/* Whether this port carries only its own protocol. */
static bool carries_only(struct conn *c, uint16_t port)
{
    if (c->port != port || c->any_bytes)
        return false;
    c->any_bytes = judge_any_bytes(c);
    return !c->any_bytes;
}

/* The server sends first, while the client's protocol is unknown. */
static void server_first(struct conn *c, struct str in)
{
    size_t n = in.n < 5 ? in.n : 5;
    bool settings = in.p[0] == 0 && (in.n < 4 || in.p[3] == 4); /* HTTP/2, whose servers need not wait for the client */
    c->http_there = settings || strncasecmp(in.p, "HTTP/", n) == 0;
    if (c->watch == WATCH_SWITCHED) {
        c->spoke = !c->http_there;
        c->http_there = true; /* what comes later tells nothing */
    } else if (!c->http_there && !carries_only(c, 443) && !carries_only(c, 80)) {
        watch_nothing(c);
    }
}

/* The server accepts an Upgrade. What it says next may show its protocol; if the end of its head is not here yet, that
   cannot be told apart. */
static void server_switches(struct conn *c, struct str in)
{
    static const char end[] = "\r\n\r\n";
    const char *body = memmem(in.p, in.n, end, sizeof end - 1);
    c->watch = WATCH_SWITCHED;
    c->http_there = !body;
    c->spoke = false;
    let_go(c->follow);
    if (body && in.p + in.n > body + 4)
        server_first(c, str_skip(in, (size_t)(body + 4 - in.p)));
}

bool watch_server(struct conn *c, struct str in)
{
    const bool asked = c->upgrade;
    c->upgrade = false;
    if (c->watch == WATCH_TLS_AGAIN && !c->retried) {
        int again = tls_asks_again(&c->hello, in);
        c->retried = again > 0;
        if (again < 0)
            watch_nothing(c);
    } else if ((c->watch == WATCH_FIRST || c->watch == WATCH_TEXT || c->watch == WATCH_SWITCHED) && !c->http_there) {
        server_first(c, in);
    } else if (asked && c->body.state == BODY_NONE && in.n >= 12 && memcmp(in.p, "HTTP/1.1 101", 12) == 0) {
        server_switches(c, in);
    } else if (c->follow && http_answer_eat(c->follow, in) < in.n) {
        c->follow->state = ANSWER_LOST; /* more than was requested */
    }
    return asked;
}

static void watch_http(struct conn *c)
{
    while (!conn_over(c) && c->first.n && !c->upgrade) {
        struct str in = {c->first.p, c->first.n};
        if (c->body.state != BODY_NONE) {
            ssize_t n = http_body_eat(&c->body, in);
            if (n < 0)
                refuse_flow(c, NULL, "malformed HTTP body");
            else if (!release(c, (size_t)n))
                return;
            continue;
        }
        if (request_follows(c)) {
            if (!request_next(c))
                return;
            continue;
        }
        struct http_head h;
        ssize_t n = http_head_parse(in, c->port, &h);
        if (n == 0 && http_begins(in))
            return;
        if (n <= 0)
            refuse_flow(c, NULL, "malformed or ambiguous HTTP request");
        else if (h.form == HTTP_AUTHORITY)
            refuse_flow(c, &h.host, "a proxy behind an allowed host");
        else if (!judge_inner(c, &h.host)) /* said in the target or by the field */
            refuse_flow(c, &h.host, "HTTP Host differs from the host connected to");
        else {
            http_body_begin(&c->body, &h);
            c->upgrade = follow_request(c, &h) && h.upgrade;
            if (!release(c, (size_t)n))
                return;
        }
    }
}

static bool h2_host_ok(void *context, const struct host *h)
{
    struct conn *c = context;
    if (c->inner && h->kind == HOST_NAME && strcmp(world.names[c->inner - 1], h->name) != 0)
        return false; /* one host per connection: names in the compression table are not judged again */
    return judge_inner(c, h);
}

/* Judges each HTTP/2 request like one of HTTP/1. */
static void watch_h2(struct conn *c)
{
    if (!c->h2) {
        c->h2 = malloc(sizeof *c->h2);
        if (!c->h2) {
            conn_reset(c);
            return;
        }
        h2_begin(c->h2);
    }
    ssize_t n = h2_eat(c->h2, (struct str){c->first.p, c->first.n}, h2_host_ok, c);
    if (n > 0)
        (void)release(c, (size_t)n);
    else if (n == -EACCES)
        refuse_flow(c, &c->h2->said, "HTTP/2 authority differs from the host connected to");
    else if (n == -EOPNOTSUPP)
        refuse_flow(c, &c->h2->said, "a proxy behind an allowed host");
    else if (n == -EMSGSIZE)
        refuse_flow(c, NULL, "HTTP/2 headers that are too large to check");
    else if (n < 0)
        refuse_flow(c, NULL, "malformed HTTP/2, or a request without a host");
}

/* 1: begins with all of `word`; 0: is a prefix of it; -1 */
static int begins_with(struct str in, const char *word, size_t n)
{
    if (memcmp(in.p, word, in.n < n ? in.n : n) != 0)
        return -1;
    return in.n >= n;
}

enum { PG_ASKS = 8 };
/* PostgreSQL's SSLRequest or GSSENCRequest; as begins_with(). */
static int pg_asks(struct str in)
{
    static const char tls[] = "\0\0\0\10\x04\xd2\x16\x2f", gss[] = "\0\0\0\10\x04\xd2\x16\x30";
    int a = begins_with(in, tls, PG_ASKS), b = begins_with(in, gss, PG_ASKS);
    return a > b ? a : b;
}

static bool text_host_ok(void *context, const struct host *h)
{
    return judge_inner(context, h);
}

/* An unknown protocol that some server might still read as HTTP. */
static void watch_text(struct conn *c)
{
    if (!c->text) {
        c->text = malloc(sizeof *c->text);
        if (!c->text) {
            conn_reset(c);
            return;
        }
        http_text_begin(c->text);
        c->watch = WATCH_TEXT;
    }
    ssize_t n = http_text_eat(c->text, (struct str){c->first.p, c->first.n}, text_host_ok, c);
    if (n == -EACCES)
        refuse_flow(c, &c->text->said, "HTTP Host differs from the host connected to");
    else if (n < 0)
        refuse_flow(c, NULL, "a malformed HTTP request, or the PROXY protocol");
    else if (release(c, (size_t)n) && c->text->over)
        watch_nothing(c);
}

/* An Upgrade was accepted. A server that says so although it goes on with HTTP gets no request to another host. Where
   the server speaks first, as before a terminal, only known methods are waited for: no line may ever end there. */
static void watch_switched(struct conn *c)
{
    struct str in = {c->first.p, c->first.n};
    size_t safe, empty;
    int guess = http_guess(in, &safe, &empty);
    if (guess == 0 && c->spoke && empty < in.n && !http_looks_like(str_skip(in, empty)))
        guess = -1;
    if (tls_looks_like(in)) {
        c->watch = WATCH_TLS;
    } else if (h2_looks_like(in, 1)) {
        if (in.n >= H2_PREFACE_BYTES)
            c->watch = WATCH_H2;
    } else if (guess < 0) {
        watch_nothing(c);
    } else if (guess == 0) {
        (void)forward(c, safe);
    } else if (empty == 0 || release(c, empty)) {
        c->watch = WATCH_HTTP;
    }
}

/* After PostgreSQL's request comes TLS, or, if the server declines, another request or its cleartext protocol. */
static void watch_tls_asked(struct conn *c)
{
    struct str in = {c->first.p, c->first.n};
    int pg = pg_asks(in);
    if (tls_looks_like(in))
        c->watch = WATCH_TLS;
    else if (pg > 0)
        (void)release(c, PG_ASKS);
    else if (pg == 0)
        (void)forward(c, in.n);
    else
        watch_text(c);
}

/* The first data on port 80. */
static void watch_first_http(struct conn *c)
{
    struct str in = {c->first.p, c->first.n};
    if (h2_looks_like(in, 1)) {
        if (in.n >= 4) /* no method */
            c->watch = WATCH_H2;
    } else if (!http_begins(in)) {
        refuse_flow(c, NULL, EGRESS_ONLY_HTTP);
    } else if (memchr(in.p, '\n', in.n)) {
        c->watch = WATCH_HTTP;
    }
}

/* Data with a meaning before HTTP; false: none of that. */
static bool watch_first_bytes(struct conn *c, struct str in)
{
    static const char proxy[] = "\r\n\r\n\0\r\nQUIT\n";
    int old = tls_old_hello(in), pg = pg_asks(in), v2 = begins_with(in, proxy, sizeof proxy - 1);
    if (old > 0)
        refuse_flow(c, NULL, "an SSL 2 ClientHello, which has no server name");
    else if (v2 > 0)
        refuse_flow(c, NULL, "the PROXY protocol");
    else if (pg > 0)
        c->watch = release(c, PG_ASKS) ? WATCH_TLS_ASKED : c->watch;
    else if (old == 0 || pg == 0 || v2 == 0) /* a prefix means nothing to a server, either */
        (void)forward(c, in.n);
    else
        return false;
    return true;
}

/* The client's protocol where it may be any. What must not be judged, or has no meaning yet, is passed on at once. */
static void watch_first_any(struct conn *c)
{
    struct str in = {c->first.p, c->first.n};
    size_t safe, empty;
    if (watch_first_bytes(c, in))
        return;
    int guess = http_guess(in, &safe, &empty);
    if (h2_looks_like(str_skip(in, empty), H2_TOLD)) {
        if (empty == 0 || release(c, empty))
            c->watch = WATCH_H2;
    } else if (guess < 0)
        watch_text(c);
    else if (guess == 0 && safe == in.n && safe - empty > MAX_HTTP_METHOD)
        (void)release(c, safe - 1); /* any method will do, also the end of one */
    else if (guess == 0)
        (void)forward(c, safe);
    else if (empty == 0 || release(c, empty))
        c->watch = WATCH_HTTP;
}

static void watch_first(struct conn *c)
{
    if (tls_looks_like((struct str){c->first.p, c->first.n})) {
        if (carries_only(c, 80))
            refuse_flow(c, NULL, EGRESS_ONLY_HTTP);
        else
            c->watch = WATCH_TLS;
    } else if (carries_only(c, 443)) {
        refuse_flow(c, NULL, EGRESS_ONLY_TLS);
    } else if (carries_only(c, 80)) {
        watch_first_http(c);
    } else {
        watch_first_any(c);
    }
}

void watch_client(struct conn *c)
{
    if (c->watch == WATCH_FIRST && c->first.n)
        watch_first(c);
    if (!conn_over(c) && c->watch == WATCH_SWITCHED && c->first.n)
        watch_switched(c);
    if (!conn_over(c) && c->watch == WATCH_TLS_ASKED && c->first.n)
        watch_tls_asked(c);
    if (!conn_over(c) && c->watch == WATCH_TLS)
        watch_tls(c);
    else if (!conn_over(c) && c->watch == WATCH_TLS_AGAIN)
        watch_tls_again(c);
    else if (!conn_over(c) && c->watch == WATCH_H2 && c->first.n)
        watch_h2(c);
    else if (!conn_over(c) && c->watch == WATCH_HTTP)
        watch_http(c);
    else if (!conn_over(c) && c->watch == WATCH_TEXT && c->first.n)
        watch_text(c);
}

/* The client ends before its protocol is known. */
static void first_ended(struct conn *c)
{
    if (!c->first.n)
        watch_nothing(c);
    else if (carries_only(c, 443))
        refuse_flow(c, NULL, EGRESS_ONLY_TLS);
    else if (carries_only(c, 80))
        refuse_flow(c, NULL, EGRESS_ONLY_HTTP);
    else
        watch_text(c);
    if (!conn_over(c) && c->watch == WATCH_TEXT && c->first.n)
        refuse_flow(c, NULL, "a malformed HTTP request, or the PROXY protocol");
}

void watch_ended(struct conn *c)
{
    switch (c->watch) {
    case WATCH_FIRST:
    case WATCH_TLS_ASKED:
    case WATCH_TEXT:
        first_ended(c);
        break;
    case WATCH_SWITCHED:
        watch_nothing(c);
        break;
    case WATCH_TLS:
    case WATCH_TLS_AGAIN:
        if (c->first.n)
            refuse_flow(c, NULL, "truncated TLS");
        break;
    case WATCH_HTTP:
        if (c->first.n && !c->upgrade && !request_answering(c))
            refuse_flow(c, NULL, "truncated HTTP request");
        break;
    case WATCH_H2:
        if (c->first.n)
            refuse_flow(c, NULL, "truncated HTTP/2");
        break;
    default:
        break;
    }
}
