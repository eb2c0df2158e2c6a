/*
 * Connects: tries one address after the other, DIAL_MS each. If the caller's own proxy is responsible, it connects to
 * the proxy and asks it to connect (protocols/parent.c); if the proxy refuses, it may still fetch plain HTTP.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "egress/parts.h"

/* No address is left. */
static void not_reached(struct conn *c)
{
    const char *why = c->parent               ? "the parent proxy does not answer"
                      : c->no == ECONNREFUSED ? "connection refused"
                      : c->no == ENETUNREACH  ? "no route to that address"
                      : c->no == EHOSTUNREACH ? "no response from that address"
                                              : "nothing answers";
    if (c->how == HOW_PUBLISH) /* a missing server in the box is not reported */
        conn_reset(c);
    else
        refuse_failed(c, c->n_addrs && !c->parent ? &c->addrs[c->n_addrs - 1] : NULL, why);
}

/* Connected: tells the client in its protocol, and data flows. */
static void opened(struct conn *c)
{
    static const char ok[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    char socks5[10] = {5, 0, 0, 1}, socks4[8] = {0, 90};

    c->stage = STAGE_OPEN;
    conn_deadline(c, 0);
    if (c->how <= HOW_REACH)
        egress_tell_allowed(c);
    bool alive = true;
    if (c->how == HOW_CONNECT)
        alive = relay_push(c, true, ok, sizeof ok - 1);
    else if (c->how == HOW_SOCKS)
        alive = c->socks_version == 5 ? relay_push(c, true, socks5, sizeof socks5)
                                      : relay_push(c, true, socks4, sizeof socks4);
    if (!alive)
        return;
    if (c->head.n && !request_send(c)) /* the head of a proxy request; its body follows, inspected */
        return;
    watch_client(c);
    relay_settle(c);
}

static void parent_ask(struct conn *c, enum parent_step step)
{
    char said[PARENT_SAY];
    c->stage = STAGE_PARENT;
    c->parent_step = (uint8_t)step;
    conn_deadline(c, world.now + HANDSHAKE_MS);
    if (relay_push(c, false, said, parent_say(c->parent, step, c->host->name, c->port, said)))
        relay_settle(c);
}

static void dialled(struct conn *c)
{
    if (c->parent && !c->parent_fetches)
        parent_ask(c, parent_first(c->parent));
    else
        opened(c);
}

static void prefixes_come(struct conn *c, const struct host_addr *addrs, unsigned n)
{
    nat64_learn(addrs, n, !c->unanswered);
    dial_next(c);
}

/* Asks the resolver for prefixes of NAT64 before the first connection to an IPv6 address; dial_next() comes again then. */
static bool asks_first(struct conn *c, const struct host_addr *a)
{
    bool answered;
    if (!a->v6 || c->parent || c->how >= HOW_REACH || nat64_is_asked(&answered) || judge_named_alone(c, a))
        return false;
    c->stage = STAGE_RESOLVE;
    conn_deadline(c, world.now + HANDSHAKE_MS);
    lookup_only(c, "ipv4only.arpa", prefixes_come);
    return true;
}

/* Judges an address again, by what is known of prefixes now. NULL: it is connected to. */
static const char *forbids(struct conn *c, const struct host_addr *a)
{
    bool answered;
    if (!a->v6 || c->parent || c->how >= HOW_REACH || judge_named_alone(c, a))
        return NULL;
    (void)nat64_is_asked(&answered);
    return answered ? judge_address(c, a)
                    : EGRESS_AT_UNKNOWN ": allow that very address, or let the resolver answer for ipv4only.arpa";
}

void dial_next(struct conn *c)
{
    const struct host_addr *bad = NULL;
    const char *why = NULL;
    while (c->at_addr < c->n_addrs) {
        struct sockaddr_storage to;
        if (asks_first(c, &c->addrs[c->at_addr]))
            return;
        const char *no = forbids(c, &c->addrs[c->at_addr]);
        if (no) {
            why = no;
            bad = &c->addrs[c->at_addr++];
            continue;
        }
        socklen_t n = sockaddr_of(&c->addrs[c->at_addr++], c->parent ? c->parent->port : c->port, &to);
        int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            continue;
        int r = connect(fd, (struct sockaddr *)&to, n);
        if (r < 0 && errno == EINPROGRESS) /* a nearby server has answered by now */
            r = connect(fd, (struct sockaddr *)&to, n);
        bool waits = r < 0 && errno == EALREADY;
        source_edge(&c->server, SOURCE_SERVER, fd);
        if ((r < 0 && !waits) || (waits && !source_arm(&c->server, EPOLLOUT))) {
            c->no = (uint8_t)errno;
            source_close(&c->server);
            continue;
        }
        c->sent = c->no_delay = false;
        c->stage = STAGE_DIAL;
        conn_deadline(c, world.now + DIAL_MS);
        if (!waits)
            dialled(c);
        return;
    }
    if (bad && !c->no)
        refuse_as(c, EGRESS_DENIED, REFUSED_BY_RULE, c->host, bad, why, why);
    else
        not_reached(c);
}

void dial_ready(struct conn *c)
{
    int no = 0;
    socklen_t n = sizeof no;
    if (getsockopt(c->server.fd, SOL_SOCKET, SO_ERROR, &no, &n) < 0 || no) {
        c->no = (uint8_t)no;
        source_close(&c->server);
        dial_next(c);
        return;
    }
    dialled(c);
}

/* The proxy refuses to connect, but may fetch plain HTTP itself. A redirected client must first be seen to speak
   that. */
static bool fetched_instead(struct conn *c, const char *why)
{
    bool unseen = c->how == HOW_TRANSPARENT && c->port != 443;
    if (c->how != HOW_HTTP && !unseen)
        return false;
    pending_free(&c->heard);
    source_close(&c->server);
    if (unseen) {
        c->origin = true;
        c->words = strdup(why);
        c->stage = STAGE_HELLO;
        conn_deadline(c, world.now + ORIGIN_MS);
    } else {
        c->parent_fetches = true;
        c->at_addr = 0;
        dial_next(c);
    }
    return true;
}

/* Reads exactly the proxy's answer: what follows is from the server. */
enum left dial_parent_ready(struct conn *c)
{
    char why[PARENT_WHY];
    enum parent_step next = PARENT_OPEN;
    size_t before = c->heard.n;
    ssize_t n = recv(c->server.fd, world.buffer + before, PARENT_HEAR, MSG_DONTWAIT | MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return LEFT_NOTHING;
    if (n <= 0) {
        refuse_failed(c, NULL, "the parent proxy closed the connection");
        return LEFT_NOTHING;
    }
    if (before)
        memcpy(world.buffer, c->heard.p, before);
    struct str all = {world.buffer, before + (size_t)n};
    ssize_t used = parent_hear(c->parent, (enum parent_step)c->parent_step, all, &next, why);
    if (used == -EPERM && fetched_instead(c, why))
        return LEFT_NOTHING;
    if (used < 0 || (used == 0 && !pending_keep(&c->heard, world.buffer + before, (size_t)n))) {
        refuse_failed(c, NULL, used < 0 ? why : "out of memory");
        return LEFT_NOTHING;
    }
    (void)recv(c->server.fd, world.buffer, used ? (size_t)used - before : (size_t)n, MSG_DONTWAIT);
    if (used == 0)
        return LEFT_PERHAPS;
    pending_free(&c->heard);
    if (next == PARENT_OPEN)
        opened(c);
    else
        parent_ask(c, next);
    return LEFT_MORE;
}
