/*
 * Relays data between the two sides. Data from one side is written to the other at once; what that cannot take is kept,
 * and meanwhile the first side is not read. Large amounts that need no inspection are moved by the kernel (bulk.c).
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include "egress/parts.h"

bool relay_push(struct conn *c, bool to_client, const char *bytes, size_t n)
{
    struct wake_source *s = to_client ? &c->client : &c->server;
    struct pending *p = to_client ? &c->to_client : &c->to_server;
    size_t sent = 0;
    if (!to_client && !c->no_delay && (c->sent || n > ONE_SEGMENT)) { /* a first segment is sent at once anyway */
        int one = 1;
        (void)setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        c->no_delay = true;
    }
    c->sent = c->sent || !to_client;
    if (p->n == 0 && n) {
        ssize_t m = send(s->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (m < 0 && errno != EAGAIN && errno != EINTR) {
            conn_reset(c);
            return false;
        }
        sent = m > 0 ? (size_t)m : 0;
    }
    if (sent < n && !pending_keep(p, bytes + sent, n - sent)) {
        conn_reset(c);
        return false;
    }
    return true;
}

bool relay_flush(struct conn *c, bool to_client)
{
    struct wake_source *s = to_client ? &c->client : &c->server;
    struct pending *p = to_client ? &c->to_client : &c->to_server;
    while (p->n) {
        ssize_t m = p->pipe ? bulk_give(p->pipe, s->fd, p->n - p->at)
                            : send(s->fd, p->p + p->at, p->n - p->at, MSG_NOSIGNAL | MSG_DONTWAIT);
        int no = p->pipe ? (int)-m : errno;
        if (m < 0 && no == EINTR)
            continue;
        if (m < 0) {
            if (no == EAGAIN)
                return true;
            conn_reset(c);
            return false;
        }
        if (m == 0)
            return true;
        p->at += (uint32_t)m;
        if (p->at == p->n)
            pending_free(p);
    }
    return true;
}

/* Moves data that needs no inspection without reading it, if the last read was large. Returns how much, 0 at the
   end, -EAGAIN for nothing now, -ECONNRESET if the connection has ended, -ENOBUFS: read it. */
static int relay_move(struct conn *c, bool to_client)
{
    struct pending *p = to_client ? &c->to_client : &c->to_server;
    if (!c->bulk[!to_client] || p->n || world.kept >= SCARCE_BYTES)
        return -ENOBUFS;
    uint8_t pipe = 0;
    int n = bulk_take(to_client ? c->server.fd : c->client.fd, &pipe);
    if (n > 0) {
        if (to_client && c->follow && c->follow->state == ANSWER_BODY)
            c->follow->body.left -= (uint64_t)n; /* more than that is left (watch_answers) */
        *p = (struct pending){.pipe = pipe, .n = (uint32_t)n};
        world.kept += (unsigned)n;
        c->bulk[!to_client] = n >= BULK_BYTES;
        return relay_flush(c, to_client) ? n : -ECONNRESET;
    }
    if (n == 0 || n == -EAGAIN || n == -EINTR || n == -ENOBUFS)
        return n == -EINTR ? -EAGAIN : n;
    conn_reset(c);
    return -ECONNRESET;
}

size_t relay_room(void)
{
    return world.kept < SCARCE_BYTES ? SHARED_BYTES : SCARCE_READ;
}

ssize_t relay_hear(struct conn *c, bool client, bool unseen, size_t room, enum left *ret_left)
{
    int moved = unseen ? relay_move(c, !client) : -ENOBUFS;
    *ret_left = moved > 0 ? LEFT_MORE : LEFT_NOTHING;
    if (moved == 0)
        return 0;
    if (moved != -ENOBUFS)
        return -1;
    ssize_t n = recv(client ? c->client.fd : c->server.fd, world.buffer, room, MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        conn_reset(c);
    return n;
}

static bool holds_client(const struct conn *c)
{
    return c->upgrade || c->first.n >= FIRST_BYTES;
}

void relay_settle(struct conn *c)
{
    if (c->dead || c->stage == STAGE_LEAVING)
        return;
    if (c->stage == STAGE_HELLO && c->client_eof && !c->to_client.n) {
        conn_end(c);
        return;
    }
    if (c->stage == STAGE_OPEN) {
        if (c->client_eof && !c->to_server.n && !c->first.n && !c->server_shut) {
            (void)shutdown(c->server.fd, SHUT_WR);
            c->server_shut = true;
        }
        if (c->server_eof && !c->to_client.n && c->server_shut) {
            conn_end(c); /* both have ended and all was passed on */
            return;
        }
        if (c->server_eof && !c->to_client.n && !c->client_shut) {
            (void)shutdown(c->client.fd, SHUT_WR);
            c->client_shut = true;
        }
    }
    bool reads = !holds_client(c) && (c->stage == STAGE_OPEN ? !c->to_server.n
                                                             : c->stage == STAGE_HELLO || c->stage == STAGE_SOCKS ||
                                                                   c->stage == STAGE_UNHEARD);
    bool set = source_arm(&c->client, (!c->client_eof && reads ? EPOLLIN : 0u) | (c->to_client.n ? EPOLLOUT : 0u));
    if (c->stage == STAGE_PARENT || c->stage == STAGE_OPEN) {
        bool hears = c->stage == STAGE_PARENT || (!c->server_eof && !c->to_client.n);
        set = source_arm(&c->server, (hears ? EPOLLIN : 0u) | (c->to_server.n ? EPOLLOUT : 0u)) && set;
    }
    if (!set)
        conn_reset(c);
}
