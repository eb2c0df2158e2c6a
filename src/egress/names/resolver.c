/*
 * The box's resolver. Allowed names get a fake IP; all others do not exist (NXDOMAIN, because clients retry after
 * REFUSED or SERVFAIL). No query is forwarded, so queries cannot carry data out.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "egress/conn.h"

enum { TTL = 60, HELD = 32 };
static size_t n_held;

/* The reply to a refused client waits until pinfold has identified it. */
static struct held_query {
    uint32_t ticket; /* 0: free */
    uint64_t until;
    size_t n;
    socklen_t n_to;
    struct sockaddr_storage to;
    uint8_t reply[512];
} held[HELD];

static void send_held(struct held_query *h)
{
    (void)sendto(world.listeners[EGRESS_DNS_UDP].fd, h->reply, h->n, MSG_DONTWAIT | MSG_NOSIGNAL,
                 (struct sockaddr *)&h->to, h->n_to);
    h->ticket = 0;
}

static bool hold(uint32_t ticket, const void *reply, size_t n, const struct sockaddr_storage *to, socklen_t n_to)
{
    for (size_t i = 0; ticket && n <= sizeof held->reply && i < HELD; i++) {
        struct held_query *h = &held[i];
        if (h->ticket)
            continue;
        *h = (struct held_query){.ticket = ticket, .until = world.now + HOLD_MS, .n = n, .n_to = n_to, .to = *to};
        memcpy(h->reply, reply, n);
        n_held++;
        return true;
    }
    return false;
}

void dns_seen(uint32_t ticket)
{
    for (size_t i = 0; n_held && i < HELD; i++) {
        if (held[i].ticket == ticket) {
            send_held(&held[i]);
            n_held--;
        }
    }
}

uint64_t dns_late(void)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; n_held && i < HELD; i++) {
        if (!held[i].ticket)
            continue;
        if (held[i].until <= world.now) {
            send_held(&held[i]);
            n_held--;
        } else if (held[i].until < next) {
            next = held[i].until;
        }
    }
    return next;
}

/* Whether a question about some port of the name could follow, so that it must resolve first. */
static bool asked_later(const struct host *h)
{
    if (!world.ask->ask_ms)
        return false;
    for (size_t i = 0; i < world.ask->n_rules; i++) {
        const struct host_rule *r = &world.ask->rules[i];
        if (r->verb == RULE_DENY && r->low == 1 && r->high == 65535 && host_rule_matches(r, h, 1))
            return false;
    }
    return true;
}

/* The first rule of `verb` for any port of the name. */
static uint32_t rule_for(const struct host *h, enum rule_verb verb)
{
    for (size_t i = 0; i < world.ask->n_rules; i++) {
        const struct host_rule *r = &world.ask->rules[i];
        if (r->verb == verb && host_rule_matches(r, h, r->low))
            return r->origin;
    }
    return EGRESS_RULE_NONE;
}

static size_t answer(struct str query, uint8_t *out, size_t room, const struct told *who, uint32_t *ret_ticket)
{
    struct dns_question q;
    struct host_addr a;
    int r = dns_query_parse(query, &q);

    if (r == -ENOTSUP)
        return dns_reply(query, &q, DNS_NOTIMP, NULL, 0, out, room);
    if (r < 0)
        return 0;
    bool address = q.type == DNS_A || q.type == DNS_AAAA;
    if (q.class != 1 || !q.valid_name)
        return dns_reply(query, &q, DNS_NXDOMAIN, NULL, 0, out, room);
    if (strcmp(q.host.name, "localhost") == 0 || str_ends(str_of(q.host.name), STR(".localhost"))) { /* RFC 6761 6.3 */
        a = (struct host_addr){.v6 = q.type == DNS_AAAA};
        a.b[a.v6 ? 15 : 0] = a.v6 ? 1 : 127;
        a.b[3] = a.v6 ? 0 : 1;
        return dns_reply(query, &q, DNS_NOERROR, address ? &a : NULL, TTL, out, room);
    }
    if (!host_may_resolve(world.ask->rules, world.ask->n_rules, &q.host) && !asked_later(&q.host)) {
        if (address)
            *ret_ticket = egress_tell_no_name(&q.host, rule_for(&q.host, RULE_DENY), who);
        return dns_reply(query, &q, DNS_NXDOMAIN, NULL, 0, out, room);
    }
    uint32_t before = world.n_names, stand = address ? stand_of(q.host.name) : 0;
    if (world.n_names > before) /* only the first time is a new decision */
        egress_tell(true, HOW_DNS, &q.host, 0, NULL, rule_for(&q.host, RULE_ALLOW), "");
    if (!stand || (q.type == DNS_AAAA && !world.ask->v6))
        return dns_reply(query, &q, DNS_NOERROR, NULL, 0, out, room);
    stand_addr(stand, q.type == DNS_AAAA, &a);
    return dns_reply(query, &q, DNS_NOERROR, &a, TTL, out, room);
}

void dns_udp_ready(void)
{
    uint8_t in[DNS_MAX_UDP], out[DNS_MAX_UDP + 32];
    struct sockaddr_storage to;
    socklen_t n_to = sizeof to;
    if (getsockname(world.listeners[EGRESS_DNS_UDP].fd, (struct sockaddr *)&to, &n_to) < 0)
        return;
    for (int i = 0; i < 64; i++) {
        struct sockaddr_storage from;
        socklen_t n_from = sizeof from;
        ssize_t n = recvfrom(world.listeners[EGRESS_DNS_UDP].fd, in, sizeof in, 0, (struct sockaddr *)&from, &n_from);
        if (n < 0)
            return;
        struct told who = {.from = (struct sockaddr *)&from, .to = (struct sockaddr *)&to, .udp = true};
        uint32_t ticket = 0;
        size_t m = answer((struct str){(char *)in, (size_t)n}, out, sizeof out, &who, &ticket);
        if (m && !hold(ticket, out, m, &from, n_from))
            (void)sendto(world.listeners[EGRESS_DNS_UDP].fd, out, m, MSG_DONTWAIT | MSG_NOSIGNAL,
                         (struct sockaddr *)&from, n_from);
    }
}

/* DNS over TCP: several queries per connection, each after its length (RFC 7766). */
struct dns_conn {
    struct wake_source source;
    size_t n;
    uint8_t in[2 + DNS_MAX_UDP];
};

void dns_conn_accept(int fd)
{
    struct dns_conn *d = calloc(1, sizeof *d);

    if (!d || world.n_conns >= world.max_conns || source_add(&d->source, SOURCE_DNS_CONN, fd, EPOLLIN) < 0) {
        free(d);
        close(fd);
        return;
    }
    world.n_conns++;
}

static void dns_conn_end(struct dns_conn *d)
{
    source_close(&d->source);
    free(d);
    world.n_conns--;
}

void dns_conn_ready(struct wake_source *s)
{
    struct dns_conn *d = (struct dns_conn *)s;
    ssize_t n = recv(s->fd, d->in + d->n, sizeof d->in - d->n, 0);
    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            dns_conn_end(d);
        return;
    }
    d->n += (size_t)n;
    while (d->n >= 2) {
        uint8_t out[2 + DNS_MAX_UDP + 32];
        size_t want = (size_t)(d->in[0] << 8 | d->in[1]);
        if (want > DNS_MAX_UDP) {
            dns_conn_end(d);
            return;
        }
        if (d->n < 2 + want)
            return;
        uint32_t ticket = 0; /* do not wait: resolvers retry by TCP after UDP, which has reported it */
        struct told who = {0};
        size_t m = answer((struct str){(char *)d->in + 2, want}, out + 2, sizeof out - 2, &who, &ticket);
        out[0] = (uint8_t)(m >> 8);
        out[1] = (uint8_t)m;
        if (m == 0 || send(s->fd, out, m + 2, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)(m + 2)) {
            dns_conn_end(d);
            return;
        }
        memmove(d->in, d->in + 2 + want, d->n - 2 - want);
        d->n -= 2 + want;
    }
}
