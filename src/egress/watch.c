/*
 * What flows is still judged. The client's first bytes tell what it speaks: a TLS server name, the Host of each HTTP request
 * and the authority of each of HTTP/2 must be the host that was connected to, or, where that was an address, be allowed
 * themselves. What is none of these is not looked at any more, nor is TLS behind its ClientHello.
 */
#include <stdlib.h>
#include <string.h>
#include "egress/parts.h"

/* Passes the first n of the client's bytes on, less what went before, and keeps them for the judgement. */
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
    if (c->first.n && !release(c, c->first.n))
        return;
    if (c->host && c->host->kind == HOST_NAME && !(c->stand = stand_of(c->host->name)))
        return; /* kept as it is */
    free(c->host);
    c->host = NULL;
}

/* One ClientHello: its bytes when it is whole and its name is good, otherwise 0. */
static size_t hello_judged(struct conn *c)
{
    struct tls_hello h;
    ssize_t n = tls_hello_parse((struct str){c->first.p, c->first.n}, &h);
    if (n < 0)
        refuse_flow(c, NULL, "malformed TLS ClientHello");
    else if (n && h.has_name && !judge_inner(c, &h.name))
        refuse_flow(c, &h.name, "TLS server name differs from the host connected to");
    else if (n && !h.has_name && c->literal)
        refuse_flow(c, NULL, "TLS without a server name to an address");
    else
        return (size_t)n;
    return 0;
}

/*
 * Behind the first ClientHello, until the server has not asked for another, or has it: data that a client sends early goes by,
 * and a hello is judged.
 */
static void watch_tls_again(struct conn *c)
{
    while (!conn_over(c) && c->watch == WATCH_TLS_AGAIN && c->first.n) {
        const uint8_t *p = (const uint8_t *)c->first.p;
        size_t n = c->body.left < c->first.n ? (size_t)c->body.left : c->first.n;
        if (n) { /* of a record */
            c->body.left -= n;
            if (!release(c, n))
                return;
        } else if (p[0] == 0x14 || p[0] == 0x17) {
            if (c->first.n < 5)
                return;
            c->body.left = 5 + ((uint64_t)p[3] << 8 | p[4]);
        } else if (p[0] == 0x16 && (c->first.n < 6 || p[5] == 1)) {
            if (c->first.n < 6 || !hello_judged(c))
                return;
            watch_nothing(c);
        } else {
            watch_nothing(c);
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

/*
 * Whether the next bytes of the server are the answer to this request: every one before it has had its own. Behind a pipelined
 * request nobody knows any more.
 */
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
    return (a && a->state != ANSWER_LOST && !in_data) || (c->watch == WATCH_TLS_AGAIN && !c->retried);
}

bool watch_server(struct conn *c, struct str in)
{
    const bool asked = c->upgrade;
    c->upgrade = false;
    if (c->watch == WATCH_TLS_AGAIN && !c->retried) {
        c->retried = tls_asks_again(in);
        if (!c->retried)
            watch_nothing(c);
    } else if (asked && in.n >= 12 && memcmp(in.p, "HTTP/1.1 101", 12) == 0) {
        c->watch = WATCH_SWITCHED;
        free(c->follow);
        c->follow = NULL;
    } else if (c->follow) {
        http_answer_eat(c->follow, in);
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
        if (n == 0)
            return;
        if (n < 0)
            refuse_flow(c, NULL, "malformed or ambiguous HTTP request");
        else if (h.form == HTTP_AUTHORITY)
            refuse_flow(c, &h.host, "a proxy behind an allowed host");
        else if (h.has_host && !judge_inner(c, &h.host))
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
        return false; /* one name a connection: what is in the compression's table is not judged again */
    return judge_inner(c, h);
}

/* Each request of HTTP/2 is judged as one of HTTP/1 is. */
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
        refuse_flow(c, NULL, "HTTP/2 headers that are too large to judge");
    else if (n < 0)
        refuse_flow(c, NULL, "malformed HTTP/2, or a request that names no host");
}

/* Another protocol was agreed on. */
static void watch_switched(struct conn *c)
{
    struct str in = {c->first.p, c->first.n};
    if (!h2_looks_like(in, 1))
        watch_nothing(c);
    else if (in.n >= H2_PREFACE_BYTES)
        c->watch = WATCH_H2;
}

enum { LONG_METHOD = 32 };

/* What does the client speak? What must not be judged, or cannot mean anything yet, goes on at once. */
static void watch_first(struct conn *c)
{
    struct str in = {c->first.p, c->first.n};
    size_t safe, empty;
    if (tls_looks_like(in)) {
        c->watch = in.n < 2 ? WATCH_FIRST : WATCH_TLS;
        return;
    }
    int guess = http_guess(in, &safe, &empty);
    if (h2_looks_like(str_skip(in, empty), H2_TOLD)) {
        if (empty == 0 || release(c, empty))
            c->watch = WATCH_H2;
    } else if (guess < 0)
        watch_nothing(c);
    else if (guess == 0 && safe == in.n && safe - empty > LONG_METHOD)
        (void)release(c, safe - 1); /* any method will do, also the end of one */
    else if (guess == 0)
        (void)forward(c, safe);
    else if (empty == 0 || release(c, empty))
        c->watch = WATCH_HTTP;
}

void watch_client(struct conn *c)
{
    if (c->watch == WATCH_FIRST && c->first.n)
        watch_first(c);
    if (!conn_over(c) && c->watch == WATCH_SWITCHED && c->first.n)
        watch_switched(c);
    if (!conn_over(c) && c->watch == WATCH_TLS)
        watch_tls(c);
    else if (!conn_over(c) && c->watch == WATCH_TLS_AGAIN)
        watch_tls_again(c);
    else if (!conn_over(c) && c->watch == WATCH_H2 && c->first.n)
        watch_h2(c);
    else if (!conn_over(c) && c->watch == WATCH_HTTP)
        watch_http(c);
}

void watch_ended(struct conn *c)
{
    switch (c->watch) {
    case WATCH_FIRST:
    case WATCH_SWITCHED:
    case WATCH_TLS: /* too short to be either: what there is may go */
    case WATCH_TLS_AGAIN:
        watch_nothing(c);
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
