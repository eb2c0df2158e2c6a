/*
 * Resolves a name, once per connection, with the host's servers: over UDP, from a new socket with a random port and id
 * (RFC 5452), and over TCP what is truncated there. The host's hosts file takes precedence; search domains are tried as
 * in resolv.conf(5).
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/hash.h"
#include "egress/parts.h"

enum { CACHE_MS = 30000, STREAM_MOST = 2 + 65535 };

static struct cached *slot_of(const char *name)
{
    return &world.cache[hash32(HASH32, name, strlen(name)) % CACHE_SLOTS];
}

/* The name to query in round `search`: a name with enough dots first as it is, others first with the search domains. */
static bool candidate(const char *name, unsigned round, char out[HOST_NAME_MAX_TEXT + 1])
{
    const struct egress_resolver *r = &world.ask->resolver;
    unsigned dots = 0;
    for (const char *s = name; *s; s++)
        dots += *s == '.';
    bool bare_first = dots >= r->ndots;
    if (round > r->n_search)
        return false;
    if (round == (bare_first ? 0 : r->n_search)) {
        strcpy(out, name);
        return true;
    }
    const char *domain = r->search[round - (bare_first ? 1 : 0)];
    if (strlen(name) + 1 + strlen(domain) > HOST_NAME_MAX_TEXT)
        return false;
    strcpy(out, name);
    strcat(out, ".");
    strcat(out, domain);
    return true;
}

static void finish(struct lookup *l)
{
    struct conn *c = l->conn;
    struct cached *slot = slot_of(l->base);
    struct host_addr found[MAX_ADDRESSES];
    unsigned n = l->n;
    memcpy(found, l->found, sizeof found);
    c->unanswered = l->failed;
    if (n && !l->alone) {
        strcpy(slot->name, l->base);
        slot->n = (uint8_t)n;
        slot->until = world.now + CACHE_MS;
        memcpy(slot->addrs, found, sizeof found);
    }
    resolved_fn *resolved = l->resolved;
    lookup_cancel(l);
    resolved(c, found, n);
}

/* A new socket for the server at hand. TCP waits until it is connected. */
static int reach_server(struct lookup *l, bool stream)
{
    const struct egress_resolver *r = &world.ask->resolver;
    struct sockaddr_storage to;
    socklen_t n_to = sockaddr_of(&r->servers[l->server], r->ports[l->server], &to);
    if (to.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&to)->sin6_scope_id = r->zones[l->server];

    source_close(&l->source);
    pending_free(&l->answer);
    l->stream = stream;
    l->asked = false;
    int fd = socket(to.ss_family, (stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (getrandom(&l->id, sizeof l->id, 0) != sizeof l->id ||
        (connect(fd, (struct sockaddr *)&to, n_to) < 0 && !(stream && errno == EINPROGRESS)) ||
        source_add(&l->source, SOURCE_LOOKUP, fd, stream ? EPOLLOUT : EPOLLIN) < 0) {
        close(fd);
        return -EIO;
    }
    l->deadline = world.now + r->timeout_s * 1000;
    return 0;
}

static int send_query(struct lookup *l)
{
    uint8_t out[512];
    int r = reach_server(l, false);
    size_t n = dns_query(l->id, l->name, l->type, out, sizeof out);
    if (r < 0)
        return r;
    return n && send(l->source.fd, out, n, MSG_NOSIGNAL) == (ssize_t)n ? 0 : -EIO;
}

/* The next query: the other type, the next search domain, or the end. */
static void advance(struct lookup *l, bool none)
{
    if (l->type == DNS_A) {
        l->type = DNS_AAAA;
    } else {
        if (l->alone || l->n || !none || !candidate(l->base, ++l->search, l->name)) {
            finish(l);
            return;
        }
        l->type = DNS_A;
    }
    l->attempt = 0;
    l->server = 0;
    l->truncated = false;
    if (send_query(l) < 0)
        lookup_late(l);
}

void lookup_late(struct lookup *l)
{
    const struct egress_resolver *r = &world.ask->resolver;
    while (true) {
        if (++l->server >= r->n_servers) {
            l->server = 0;
            if (++l->attempt >= r->attempts)
                break;
        }
        if (send_query(l) == 0)
            return;
    }
    l->failed = true;
    if (l->truncated) /* no server gives all of it, but those of the other type may be few */
        advance(l, false);
    else
        finish(l);
}

static void lookup_heard(struct lookup *l, struct str in)
{
    int r = dns_answer_parse(in, l->id, l->name, l->type, l->found + l->n, (size_t)(MAX_ADDRESSES - l->n));
    if (r == -EAGAIN && !l->stream)
        return;
    if (r == -EMSGSIZE && !l->stream) {
        l->truncated = true;
        if (reach_server(l, true) < 0)
            lookup_late(l);
        return;
    }
    if (r < 0 && r != -ENOENT) { /* by TCP nobody else answers, and nothing is truncated */
        lookup_late(l);
        return;
    }
    l->n = (uint8_t)(l->n + (r > 0 ? r : 0));
    advance(l, r <= 0);
}

/* Connected, or not: sends the query after its length (RFC 7766 8). */
static void stream_ask(struct lookup *l)
{
    uint8_t out[2 + 512];
    int no = 0;
    socklen_t n_no = sizeof no;
    size_t n = dns_query(l->id, l->name, l->type, out + 2, sizeof out - 2);
    out[0] = (uint8_t)(n >> 8);
    out[1] = (uint8_t)n;
    if (getsockopt(l->source.fd, SOL_SOCKET, SO_ERROR, &no, &n_no) < 0 || no || !n) {
        lookup_late(l);
        return;
    }
    ssize_t m = send(l->source.fd, out, n + 2, MSG_NOSIGNAL);
    if (m < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    l->asked = true;
    if (m != (ssize_t)(n + 2) || !source_arm(&l->source, EPOLLIN))
        lookup_late(l);
}

/* More of the answer, which its length precedes. */
static void stream_hear(struct lookup *l)
{
    ssize_t n = recv(l->source.fd, world.buffer, SCARCE_READ, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || l->answer.n + (size_t)n > STREAM_MOST || !pending_keep(&l->answer, world.buffer, (size_t)n)) {
        lookup_late(l);
        return;
    }
    const uint8_t *p = (const uint8_t *)l->answer.p;
    size_t want = l->answer.n < 2 ? 0 : (size_t)p[0] << 8 | p[1];
    if (l->answer.n >= 2 && l->answer.n >= 2 + want)
        lookup_heard(l, (struct str){l->answer.p + 2, want});
}

void lookup_ready(struct lookup *l)
{
    char in[4096];
    if (!l->conn)
        return;
    if (l->stream) {
        if (l->asked)
            stream_hear(l);
        else
            stream_ask(l);
        return;
    }
    ssize_t n = recv(l->source.fd, in, sizeof in, 0);
    if (n >= 0)
        lookup_heard(l, (struct str){in, (size_t)n});
    else if (errno != EAGAIN && errno != EINTR)
        lookup_late(l);
}

static void begin(struct conn *c, const char *name, resolved_fn *resolved, bool alone)
{
    struct lookup *l = calloc(1, sizeof *l);
    if (!l) {
        c->unanswered = true;
        resolved(c, NULL, 0);
        return;
    }
    *l = (struct lookup){.source.fd = -1,
                         .conn = c,
                         .base = name,
                         .resolved = resolved,
                         .type = alone ? DNS_AAAA : DNS_A,
                         .alone = alone,
                         .next = world.lookups};
    if (l->next)
        l->next->before = l;
    world.lookups = l;
    c->lookup = l;
    if (alone)
        strcpy(l->name, name);
    if (!alone && !candidate(name, 0, l->name))
        finish(l);
    else if (send_query(l) < 0)
        lookup_late(l);
}

void lookup_only(struct conn *c, const char *name, resolved_fn *resolved)
{
    begin(c, name, resolved, true);
}

void lookup_start(struct conn *c, const char *name, resolved_fn *resolved)
{
    struct host_addr found[MAX_ADDRESSES];
    const struct cached *slot = slot_of(name);
    size_t n = hosts_find(world.ask->resolver.hosts, name, found, MAX_ADDRESSES);

    if (n) {
        resolved(c, found, (unsigned)n);
        return;
    }
    if (slot->until > world.now && strcmp(slot->name, name) == 0) {
        resolved(c, slot->addrs, slot->n);
        return;
    }
    begin(c, name, resolved, false);
}

static struct lookup *dead_lookups;

void lookup_bury(void)
{
    while (dead_lookups) {
        struct lookup *l = dead_lookups;
        dead_lookups = l->next;
        free(l);
    }
}

void lookup_cancel(struct lookup *l)
{
    source_close(&l->source);
    pending_free(&l->answer);
    if (l->before)
        l->before->next = l->next;
    else
        world.lookups = l->next;
    if (l->next)
        l->next->before = l->before;
    l->conn->lookup = NULL;
    l->conn = NULL;
    l->next = dead_lookups; /* an event for it may still be pending in this round */
    dead_lookups = l;
}
