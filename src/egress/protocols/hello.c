/*
 * Finds the destination of a client. On the proxy port the client sends an HTTP request or SOCKS 4 or 5, recognised by
 * the first byte. A redirected client is read here only if the parent proxy fetches plain HTTP and does nothing else.
 */
#include <stdio.h>
#include "egress/parts.h"

/* For the first connection to the parent proxy, or a new one after it has closed. */
static void hello_origin(struct conn *c)
{
    char why[PARENT_WHY] = "the parent proxy refused it";
    size_t safe, empty;
    int guess = http_guess((struct str){c->first.p, c->first.n}, &safe, &empty);
    if (guess == 0)
        return;
    if (c->words)
        snprintf(why, sizeof why, "%s", c->words);
    if (guess < 0) {
        refuse_failed(c, NULL, why);
        return;
    }
    if (empty)
        pending_drop(&c->first, empty);
    if (!request_take_origin(c))
        return;
    c->watch = WATCH_HTTP;
    c->parent_fetches = true;
    admit(c);
}

static void hello_http(struct conn *c)
{
    struct http_head h;
    struct str in = {c->first.p, c->first.n};
    ssize_t n = http_looks_like(in) ? http_head_parse(in, 0, &h) : -EBADMSG;
    if (n == 0)
        return;
    if (n < 0 || (h.form != HTTP_AUTHORITY && h.form != HTTP_ABSOLUTE)) {
        egress_tell(false, HOW_HTTP, NULL, 0, NULL, EGRESS_RULE_NONE, "malformed or ambiguous proxy request");
        refuse_http(c, "400 Bad Request", "this is a proxy: send well-formed CONNECT or absolute http:// requests");
        return;
    }
    c->how = h.form == HTTP_AUTHORITY ? HOW_CONNECT : HOW_HTTP;
    *c->host = h.host;
    c->port = h.port;
    c->watch = WATCH_FIRST;
    if (c->how == HOW_HTTP) {
        c->watch = WATCH_HTTP;
        if (request_take(c, &h, (size_t)n))
            admit(c);
        return;
    }
    pending_drop(&c->first, (size_t)n);
    admit(c);
}

/* The greeting of SOCKS 5; true: it is complete and answered; the request follows. */
static bool socks5_greeted(struct conn *c)
{
    bool no_auth = false;
    char reply[2] = {5, 0};
    ssize_t n = socks5_greeting((struct str){c->first.p, c->first.n}, &no_auth);
    if (n == 0)
        return false;
    c->socks_version = 5;
    reply[1] = (char)(n > 0 && no_auth ? 0 : 0xff);
    if (reply[1]) {
        refuse_saying(c, reply, 2);
        return false;
    }
    pending_drop(&c->first, (size_t)n);
    c->stage = STAGE_SOCKS;
    return relay_push(c, true, reply, 2);
}

static void socks_request_heard(struct conn *c, ssize_t n, const struct socks_request *q)
{
    c->how = HOW_SOCKS;
    if (n < 0) {
        egress_tell(false, HOW_SOCKS, NULL, 0, NULL, EGRESS_RULE_NONE, "malformed SOCKS request");
        refuse_now(c, REFUSED_BY_RULE, "is not an acceptable destination");
        return;
    }
    if (q->command != 1) { /* BIND and UDP ASSOCIATE */
        char reply[10] = {5, 7, 0, 1}, old[8] = {0, 91};
        refuse_saying(c, q->version == 5 ? reply : old, q->version == 5 ? sizeof reply : sizeof old);
        return;
    }
    *c->host = q->host;
    c->port = q->port;
    c->watch = WATCH_FIRST;
    pending_drop(&c->first, (size_t)n);
    admit(c);
}

void hello_client(struct conn *c)
{
    struct str in = {c->first.p, c->first.n};
    struct socks_request q;
    ssize_t n;

    if (request_answering(c))
        return;
    if (c->origin) {
        hello_origin(c);
        return;
    }
    if (c->stage == STAGE_SOCKS) {
        n = socks5_request(in, &q);
        if (n)
            socks_request_heard(c, n, &q);
        return;
    }
    switch (in.p[0]) {
    case 5:
        if (socks5_greeted(c) && c->first.n)
            hello_client(c);
        return;
    case 4:
        c->socks_version = 4;
        n = socks4_request(in, &q);
        if (n)
            socks_request_heard(c, n, &q);
        return;
    default:
        hello_http(c);
    }
}
