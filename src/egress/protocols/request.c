/*
 * Successive requests on one connection: of a proxy client, each perhaps for another server, or of a redirected client,
 * for which the parent proxy fetches them (c->origin). A request is sent once its client has the whole answer to the
 * previous one.
 */
#include <stdlib.h>
#include "egress/parts.h"

bool request_take(struct conn *c, const struct http_head *h, size_t n)
{
    struct http_head plain = *h;
    if (h->form == HTTP_ORIGIN)
        plain.origin_target = h->target;
    ssize_t out = http_forward(&plain, world.buffer, SHARED_BYTES);
    if (!c->answer)
        c->answer = calloc(1, sizeof *c->answer);
    if (out < 0 || !c->answer || !pending_keep(&c->head, world.buffer, (size_t)out)) {
        refuse_http(c, "400 Bad Request", "the Connection field names an end-to-end header");
        return false;
    }
    http_body_begin(&c->body, h);
    http_answer_expect(c->answer, h);
    pending_drop(&c->first, n);
    return true;
}

bool request_send(struct conn *c)
{
    struct str head = {c->head.p, c->head.n};
    if (c->parent_fetches) {
        ssize_t n = http_by_parent(head, c->host->name, c->port, c->parent, world.buffer, SHARED_BYTES);
        if (n < 0) {
            conn_reset(c);
            return false;
        }
        head = (struct str){world.buffer, (size_t)n};
    }
    bool alive = relay_push(c, false, head.p, head.n);
    if (alive)
        pending_free(&c->head);
    return alive;
}

bool request_take_origin(struct conn *c)
{
    struct http_head h;
    ssize_t n = http_head_parse((struct str){c->first.p, c->first.n}, c->port, &h);
    if (n == 0)
        return false;
    if (n < 0)
        refuse_flow(c, NULL, "malformed or ambiguous HTTP request");
    else if (h.form == HTTP_AUTHORITY)
        refuse_flow(c, &h.host, "a proxy behind an allowed host");
    else if (!h.has_host || !host_same(c->host, &h.host))
        refuse_flow(c, h.has_host ? &h.host : NULL, "HTTP Host differs from the host connected to");
    else if (h.form == HTTP_ASTERISK)
        refuse_flow(c, NULL, "a request that cannot be sent through the parent proxy");
    else
        return request_take(c, &h, (size_t)n);
    return false;
}

static bool next_of_origin(struct conn *c)
{
    if (judge_host(c, c->host) != HOST_ALLOWED) {
        refuse_flow(c, NULL, "not allowed");
        return false;
    }
    if (request_take_origin(c))
        return request_send(c);
    if (!conn_over(c) && c->client_eof)
        refuse_flow(c, NULL, "truncated HTTP request");
    return false;
}

void request_end(struct conn *c)
{
    source_close(&c->server);
    pending_free(&c->to_server);
    let_go(c->answer);
    c->server_eof = c->server_shut = c->parent_fetches = false;
    c->asked = false; /* the next request may be for another host */
    c->at_addr = c->n_addrs = 0;
    c->stage = STAGE_HELLO;
}

bool request_next(struct conn *c)
{
    struct http_head h;
    if (request_answering(c)) {
        if (c->answer && c->answer->state == ANSWER_LOST && c->first.n >= FIRST_BYTES)
            refuse_flow(c, NULL, "requests after an unterminated response");
        return false;
    }
    if (c->origin)
        return next_of_origin(c);
    ssize_t n = http_head_parse((struct str){c->first.p, c->first.n}, 0, &h);
    bool same_server = n > 0 && h.form == HTTP_ABSOLUTE && host_same(c->host, &h.host) && h.port == c->port;
    if (n == 0) {
        if (c->client_eof)
            refuse_flow(c, NULL, "truncated HTTP request");
        return false;
    }
    if (!same_server || judge_host(c, &h.host) != HOST_ALLOWED) {
        request_end(c);
        return false;
    }
    return request_take(c, &h, (size_t)n) && request_send(c);
}
