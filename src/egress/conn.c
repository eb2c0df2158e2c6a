/*
 * Events of one connection from the box: it is accepted, a side sends data or can take more, a deadline passes. Other
 * parts (parts.h) find out the destination, judge it, connect, and inspect the data; the connection's stage says which
 * part is next.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "egress/parts.h"

/* The original destination of a redirected connection. */
static int caught_destination(int fd, struct host_addr *ret, uint16_t *ret_port)
{
    struct sockaddr_storage to;
    socklen_t n = sizeof to;
    if (getsockname(fd, (struct sockaddr *)&to, &n) < 0)
        return -errno;
    sockaddr_read(&to, ret, ret_port);
    return 0;
}

static void caught(struct conn *c)
{
    struct host_addr to;
    if (caught_destination(c->client.fd, &to, &c->port) < 0 ||
        (addr_classify(&to) == ADDR_LOOPBACK && !stand_range(&to))) {
        conn_reset(c);
        return;
    }
    c->how = HOW_TRANSPARENT;
    c->watch = WATCH_FIRST;
    c->host->kind = HOST_ADDR;
    c->host->addr = to;
    admit(c);
}

/* There are too many connections. Reported once while that lasts; existing ones continue. */
static void no_room(enum source_kind from, int fd, size_t reach_index)
{
    struct host h = {.kind = HOST_ADDR, .addr.b = {127, 0, 0, 1}};
    uint16_t port = EGRESS_PROXY_PORT;
    enum egress_how how = from == SOURCE_CATCH ? HOW_TRANSPARENT : from == SOURCE_REACH ? HOW_REACH : HOW_CONNECT;
    char why[sizeof((struct egress_event *)0)->reason];
    if (world.full || world.ask->publish)
        return;
    world.full = true;
    if (world.max_conns < MAX_CONNECTIONS)
        snprintf(why, sizeof why,
                 "%u connections at once are the most that the limit of open files (ulimit -Hn, %u) permits",
                 world.max_conns, world.max_files);
    else
        snprintf(why, sizeof why, "more than %u connections at once", world.max_conns);
    if (from == SOURCE_REACH) {
        h.addr = world.ask->reach[reach_index].addr;
        port = world.ask->reach[reach_index].port;
    } else if (from == SOURCE_CATCH && caught_destination(fd, &h.addr, &port) == 0) {
        const char *name = stand_name(&h.addr);
        h.kind = name ? HOST_NAME : HOST_ADDR;
        strcpy(h.name, name ? name : "");
    }
    egress_tell(false, how, &h, port, NULL, EGRESS_RULE_NONE, why);
}

void conn_accept(enum source_kind from, int fd, size_t reach_index)
{
    struct conn *c = NULL;
    if (world.n_conns < world.max_conns)
        c = conn_begin(from, fd);
    else
        no_room(from, fd, reach_index);
    if (!c) {
        source_abort(fd);
        close(fd);
        return;
    }
    if (from == SOURCE_CATCH) {
        caught(c);
    } else if (from == SOURCE_REACH) {
        const struct egress_reach *r = &world.ask->reach[reach_index];
        c->how = world.ask->publish ? HOW_PUBLISH : HOW_REACH;
        c->port = r->port;
        c->rule = (uint32_t)reach_index;
        c->host->kind = HOST_ADDR;
        c->host->addr = r->addr;
        c->addrs[0] = r->addr;
        c->addrs[1] = r->also;
        c->n_addrs = r->both ? 2 : 1;
        dial_next(c);
    }
}

/* Processes client data. A request for another server has closed the connection to the last one, and starts over. */
static void consider(struct conn *c)
{
    if (c->stage == STAGE_OPEN)
        watch_client(c);
    if (!c->dead && (c->stage == STAGE_HELLO || c->stage == STAGE_SOCKS))
        hello_client(c);
}

static enum left from_client(struct conn *c)
{
    bool judged = c->stage == STAGE_OPEN && c->watch == WATCH_NOTHING;
    size_t room = judged ? relay_room() : FIRST_BYTES - c->first.n;
    enum left left;
    ssize_t n = relay_hear(c, true, judged, room, &left);

    if (n < 0)
        return left;
    if (n == 0) {
        c->client_eof = true;
        if (c->stage != STAGE_OPEN) {
            if (!c->to_client.n)
                conn_end(c);
        } else {
            watch_ended(c);
        }
        return LEFT_NOTHING;
    }
    if (c->answer && c->server_eof)
        return LEFT_MORE;
    if (judged) {
        c->bulk[1] = n >= BULK_BYTES;
        relay_push(c, false, world.buffer, (size_t)n);
        return relay_left((size_t)n, room);
    }
    if (!pending_keep(&c->first, world.buffer, (size_t)n)) {
        conn_reset(c);
        return LEFT_NOTHING;
    }
    consider(c);
    if (!conn_over(c) && c->first.n >= FIRST_BYTES && !c->upgrade && !request_answering(c))
        refuse_flow(c, NULL, "too many bytes before a decision was possible");
    return relay_left((size_t)n, room);
}

/* The server has closed. A proxy request has had its answer, or never will: what its client sends after it is
   discarded. */
static void server_ended(struct conn *c)
{
    c->server_eof = true;
    if (c->answer)
        pending_free(&c->first);
}

/* Processes requests that waited for an earlier answer. */
static void resume(struct conn *c)
{
    if (conn_over(c) || !request_follows(c) || !c->first.n || request_answering(c))
        return;
    if (c->stage == STAGE_HELLO || c->stage == STAGE_OPEN)
        consider(c);
}

/* The server has nothing more to say. Between two requests the client need not know. */
static void answers_end(struct conn *c)
{
    bool whole = c->answer && c->answer->state == ANSWER_DONE && !c->answer->close && c->body.state == BODY_NONE;
    if (whole && !c->client_eof) {
        request_end(c);
        resume(c);
    } else {
        server_ended(c);
    }
}

/* Handles `n` bytes of the answer to a proxy request. What follows the answer is dropped, with the server: the client
   could take it for the answer of another host. Returns whether more may be read. */
static bool answer_heard(struct conn *c, size_t n)
{
    const size_t own = http_answer_eat(c->answer, (struct str){world.buffer, n});
    if (c->parent_fetches && c->answer->refused) {
        c->answer->refused = false;
        struct told nobody = {0};
        (void)egress_tell_refused(EGRESS_FAILED, c, c->host, NULL,
                                  "the parent proxy, or the server through it, refused it (403 or 407)", &nobody);
    }
    if (!relay_push(c, true, world.buffer, own))
        return false;
    if (own < n)
        answers_end(c);
    else if (c->answer->state == ANSWER_DONE && c->answer->close)
        server_ended(c); /* as announced, whether the server closes or not */
    else
        resume(c);
    return own == n;
}

static enum left from_server(struct conn *c)
{
    size_t room = relay_room();
    enum left left;
    ssize_t n = relay_hear(c, false, !c->answer && !c->upgrade && !watch_answers(c), room, &left);

    if (n < 0)
        return left;
    if (n == 0) {
        answers_end(c);
        return LEFT_NOTHING;
    }
    if (c->answer)
        return answer_heard(c, (size_t)n) ? relay_left((size_t)n, room) : LEFT_NOTHING;
    c->bulk[0] = n >= BULK_BYTES;
    bool held = watch_server(c, (struct str){world.buffer, (size_t)n});
    if (!conn_over(c) && relay_push(c, true, world.buffer, (size_t)n) && held &&
        (c->watch != WATCH_SWITCHED || c->first.n))
        watch_client(c);
    return relay_left((size_t)n, room);
}

void conn_ready(struct conn *c, bool client_side, uint32_t events)
{
    if (c->dead)
        return;
    if (c->stage == STAGE_UNHEARD && client_side) {
        conn_reset(c);
        return;
    }
    if (c->stage == STAGE_LEAVING) {
        if (refuse_drop(c))
            source_again(&c->client);
        return;
    }
    struct wake_source *s = client_side ? &c->client : &c->server;
    enum left left = LEFT_NOTHING;
    if (!client_side && c->stage == STAGE_DIAL) {
        dial_ready(c);
    } else if (!client_side && c->stage == STAGE_PARENT) {
        if (relay_flush(c, false))
            left = dial_parent_ready(c);
    } else {
        if (events & EPOLLOUT && !relay_flush(c, client_side))
            return;
        if (events & EPOLLOUT && client_side)
            resume(c);
        if (conn_over(c))
            return;
        if (events & EPOLLIN && s->armed & EPOLLIN) {
            left = client_side ? from_client(c) : from_server(c);
        } else if (events & EPOLLERR) {
            conn_reset(c);
        } else if (events & EPOLLHUP && client_side && c->stage != STAGE_OPEN) {
            conn_end(c);
        } /* closed on both sides while we do not read: first read the data, then report the end */
    }
    relay_settle(c);
    bool told = events & (EPOLLRDHUP | EPOLLHUP | EPOLLPRI); /* these concern what comes after the data read */
    if (!conn_over(c) && s->armed & EPOLLIN && (left == LEFT_MORE || (left == LEFT_PERHAPS && told)))
        source_again(s);
}

void conn_late(struct conn *c)
{
    if (c->stage == STAGE_HELD) {
        refuse_held(c);
        return;
    }
    if (c->stage == STAGE_LEAVING) {
        conn_end(c);
        return;
    }
    if (c->stage == STAGE_ASK) {
        refuse_answered(c, ANSWER_LATE);
        return;
    }
    if (c->stage == STAGE_DIAL) {
        struct sockaddr_storage peer;
        socklen_t n = sizeof peer;
        if (getpeername(c->server.fd, (struct sockaddr *)&peer, &n) ==
            0) { /* in time, but this process got no processor */
            conn_ready(c, false, EPOLLOUT);
            return;
        }
        source_close(&c->server);
        dial_next(c);
        relay_settle(c);
        return;
    }
    if (c->stage == STAGE_PARENT) {
        refuse_failed(c, NULL, "the parent proxy does not answer in time");
        return;
    }
    if (c->stage == STAGE_HELLO && c->origin && c->words) {
        refuse_failed(c, NULL, c->words);
        return;
    }
    conn_reset(c);
}
