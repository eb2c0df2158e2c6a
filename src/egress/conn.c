/*
 * One connection from the box: what it asks for, whether it may, the dial, and the bytes. A refused connection ends in a
 * reset (clients print nonsense on an orderly end) or, on the proxy port, in the protocol's own refusal with the reason.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <strings.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "egress/conn.h"

static struct conn *graveyard;

/* ---- life ---- */

static void unlist(struct conn *c)
{
    if (c->before)
        c->before->next = c->next;
    else if (world.conns == c)
        world.conns = c->next;
    if (c->next)
        c->next->before = c->before;
    c->next = c->before = NULL;
}

static void set_deadline(struct conn *c, uint64_t at)
{
    bool listed = c->deadline != 0;
    if (listed && !at)
        unlist(c);
    if (!listed && at) {
        c->next = world.conns;
        if (c->next)
            c->next->before = c;
        world.conns = c;
    }
    c->deadline = at;
}

static void list_among_all(struct conn *c)
{
    c->other = world.all;
    if (c->other)
        c->other->other_before = c;
    world.all = c;
}

static void unlist_from_all(struct conn *c)
{
    if (c->other_before)
        c->other_before->other = c->other;
    else
        world.all = c->other;
    if (c->other)
        c->other->other_before = c->other_before;
}

bool conn_all_told(void)
{
    for (const struct conn *c = world.all; c; c = c->other) {
        if (!c->server_eof || c->to_client.n)
            return false;
    }
    return true;
}

static void pending_free(struct pending *p)
{
    world.kept -= p->n;
    free(p->p);
    *p = (struct pending){0};
}

static void die(struct conn *c)
{
    if (c->dead)
        return;
    c->dead = true;
    set_deadline(c, 0);
    if (c->lookup)
        lookup_cancel(c->lookup);
    source_close(&c->client);
    source_close(&c->server);
    pending_free(&c->to_client);
    pending_free(&c->to_server);
    pending_free(&c->first);
    pending_free(&c->heard);
    pending_free(&c->head);
    free(c->answer);
    c->answer = NULL;
    free(c->words);
    c->words = NULL;
    free(c->host);
    c->host = NULL;
    unlist_from_all(c);
    c->next = graveyard;
    graveyard = c;
    world.n_conns--;
}

void conn_bury(void)
{
    while (graveyard) {
        struct conn *c = graveyard;
        graveyard = c->next;
        free(c);
    }
}

/* Ends both sides with a reset. */
static void reset(struct conn *c)
{
    struct linger now = {.l_onoff = 1};
    if (c->client.fd >= 0)
        (void)setsockopt(c->client.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    if (c->server.fd >= 0)
        (void)setsockopt(c->server.fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    die(c);
}

/* ---- bytes ---- */

static bool keep(struct pending *p, const char *bytes, size_t n)
{
    char *grown = realloc(p->p, p->n + n);
    if (!grown)
        return false;
    memcpy(grown + p->n, bytes, n);
    p->p = grown;
    p->n += (uint32_t)n;
    world.kept += n;
    return true;
}

/* Gives bytes to a side, keeping what it cannot take now; false: the connection is dead. */
static bool push(struct conn *c, bool to_client, const char *bytes, size_t n)
{
    struct source *s = to_client ? &c->client : &c->server;
    struct pending *p = to_client ? &c->to_client : &c->to_server;
    size_t sent = 0;
    if (p->n == 0 && n) {
        ssize_t m = send(s->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (m < 0 && errno != EAGAIN && errno != EINTR) {
            reset(c);
            return false;
        }
        sent = m > 0 ? (size_t)m : 0;
    }
    if (sent < n && !keep(p, bytes + sent, n - sent)) {
        reset(c);
        return false;
    }
    return true;
}

static bool flush(struct conn *c, bool to_client)
{
    struct source *s = to_client ? &c->client : &c->server;
    struct pending *p = to_client ? &c->to_client : &c->to_server;
    while (p->n) {
        ssize_t m = send(s->fd, p->p + p->at, p->n - p->at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (m < 0) {
            if (errno == EAGAIN || errno == EINTR)
                return true;
            reset(c);
            return false;
        }
        p->at += (uint32_t)m;
        if (p->at == p->n)
            pending_free(p);
    }
    return true;
}

static bool holds_client(const struct conn *c)
{
    return c->upgrade || c->first.n >= FIRST_BYTES;
}

static void settle(struct conn *c)
{
    if (c->dead)
        return;
    if (c->stage == STAGE_HELLO && c->client_eof && !c->to_client.n) {
        die(c);
        return;
    }
    if (c->stage == STAGE_OPEN) {
        if (c->client_eof && !c->to_server.n && !c->first.n && !c->server_shut) {
            (void)shutdown(c->server.fd, SHUT_WR);
            c->server_shut = true;
        }
        if (c->server_eof && !c->to_client.n && !c->client_shut) {
            (void)shutdown(c->client.fd, SHUT_WR);
            c->client_shut = true;
        }
        if (c->server_shut && c->client_shut) {
            die(c);
            return;
        }
    }
    bool reads = !holds_client(c) &&
                 (c->stage == STAGE_OPEN ? !c->to_server.n : c->stage == STAGE_HELLO || c->stage == STAGE_SOCKS);
    source_arm(&c->client, (!c->client_eof && reads ? EPOLLIN : 0u) | (c->to_client.n ? EPOLLOUT : 0u));
    if (c->stage == STAGE_PARENT)
        source_arm(&c->server, EPOLLIN | (c->to_server.n ? EPOLLOUT : 0u));
    if (c->stage == STAGE_OPEN)
        source_arm(&c->server, (!c->server_eof && !c->to_client.n ? EPOLLIN : 0u) | (c->to_server.n ? EPOLLOUT : 0u));
}

/* ---- refusing ---- */

static void say_and_end(struct conn *c, const char *bytes, size_t n)
{
    char sink[4096];
    (void)send(c->client.fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(c->client.fd, SHUT_WR);
    while (recv(c->client.fd, sink, sizeof sink, MSG_DONTWAIT) > 0) /* unread bytes would turn the end into a reset */
        ;
    die(c);
}

static void http_error(struct conn *c, const char *status, const char *reason)
{
    char text[512];
    int n = snprintf(text, sizeof text,
                     "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nConnection: close\r\nX-Pinfold: %s\r\nContent-Length: "
                     "%zu\r\n\r\npinfold: %s\n",
                     status, reason, strlen(reason) + 10, reason);
    say_and_end(c, text, (size_t)n);
}

enum refusal { REFUSED_BY_RULE, REFUSED_NO_ADDRESS, REFUSED_BY_SERVER, REFUSED_WITHOUT_WORDS };

static void refuse(struct conn *c, enum refusal why, const char *reason)
{
    static const uint8_t socks5[] = {2, 4, 5};
    char text[300];
    const char *name = c->host && c->host->kind == HOST_NAME ? c->host->name : "";
    char addr[46] = "";
    if (c->host && c->host->kind == HOST_ADDR)
        addr_print(&c->host->addr, addr);
    snprintf(text, sizeof text, "%s%s:%u %s", name, addr, c->port, reason);
    switch (why == REFUSED_WITHOUT_WORDS ? HOW_TRANSPARENT : c->how) {
    case HOW_CONNECT:
    case HOW_HTTP:
        http_error(c, why == REFUSED_BY_RULE ? "403 Forbidden" : "502 Bad Gateway", text);
        break;
    case HOW_SOCKS:
        if (c->socks_version == 5) {
            char reply[10] = {5, (char)socks5[why], 0, 1};
            say_and_end(c, reply, sizeof reply);
        } else {
            char reply[8] = {0, 91};
            say_and_end(c, reply, sizeof reply);
        }
        break;
    default:
        reset(c);
    }
}

/* Nothing more is read from it or judged. */
static bool over(const struct conn *c)
{
    return c->dead || c->stage == STAGE_HELD;
}

/* Both ends of the client's connection. */
struct ends {
    struct sockaddr_storage from, to;
    struct told told;
};

static const struct told *ends_of(const struct conn *c, struct ends *e)
{
    socklen_t n = sizeof e->from, m = sizeof e->to;
    e->told = (struct told){0};
    if (getpeername(c->client.fd, (struct sockaddr *)&e->from, &n) == 0 &&
        getsockname(c->client.fd, (struct sockaddr *)&e->to, &m) == 0)
        e->told = (struct told){.from = (struct sockaddr *)&e->from, .to = (struct sockaddr *)&e->to};
    return &e->told;
}

/*
 * Tells, then refuses: at once, or when pinfold has seen who it is, for a process that is refused often ends at once.
 * `said` and `addr` are what the event names, `told` and `words` why: in the event, and to the client.
 */
static void end_as(struct conn *c, enum egress_what what, enum refusal why, const struct host *said,
                   const struct host_addr *addr, const char *told, const char *words)
{
    struct ends ends;
    c->ticket = egress_tell_refused(what, c, said, addr, told, ends_of(c, &ends));
    c->why = (uint8_t)why;
    free(c->words);
    c->words = c->ticket ? strdup(words) : NULL;
    if (!c->words) {
        refuse(c, why, words);
        return;
    }
    c->stage = STAGE_HELD;
    set_deadline(c, world.now + HOLD_MS);
    source_arm(&c->client, 0);
    source_arm(&c->server, 0);
}

static void deny(struct conn *c, enum refusal why, const struct host *said, const struct host_addr *addr,
                 const char *told, const char *words)
{
    end_as(c, EGRESS_DENIED, why, said, addr, told, words);
}

static struct conn *waiting(uint32_t ticket, enum stage stage)
{
    struct conn *c = world.conns;
    while (c && (c->ticket != ticket || c->stage != stage))
        c = c->next;
    return c;
}

void conn_seen(uint32_t ticket)
{
    struct conn *c = waiting(ticket, STAGE_HELD);
    if (c)
        refuse(c, (enum refusal)c->why, c->words);
}

/* ---- judging ---- */

/* Whether an allow rule names the address itself; `exact`: by a single-address rule. */
static bool address_rule(const struct host_addr *a, uint16_t port, bool *exact)
{
    struct host h = {.kind = HOST_ADDR, .addr = *a};
    bool found = false;
    *exact = false;
    for (size_t i = 0; i < world.ask->n_rules; i++) {
        const struct host_rule *r = &world.ask->rules[i];
        if (r->verb == RULE_ALLOW && r->match == MATCH_NET && host_rule_matches(r, &h, port)) {
            found = true;
            *exact = *exact || r->prefix == (r->net.v6 ? 128 : 32);
        }
    }
    return found;
}

static bool address_denied(const struct host_addr *a, uint16_t port, uint32_t *rule)
{
    struct host h = {.kind = HOST_ADDR, .addr = *a};
    for (size_t i = 0; i < world.ask->n_rules; i++) {
        const struct host_rule *r = &world.ask->rules[i];
        if (r->verb == RULE_DENY && r->match == MATCH_NET && host_rule_matches(r, &h, port)) {
            *rule = r->origin;
            return true;
        }
    }
    return false;
}

/* An address is this machine's own when a socket can be bound to it. */
static bool own_address(const struct host_addr *a)
{
    struct sockaddr_in6 s6 = {.sin6_family = AF_INET6};
    struct sockaddr_in s4 = {.sin_family = AF_INET};
    memcpy(&s6.sin6_addr, a->b, 16);
    memcpy(&s4.sin_addr, a->b, 4);
    int fd = socket(a->v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return true; /* cannot tell: no */
    int r = a->v6 ? bind(fd, (struct sockaddr *)&s6, sizeof s6) : bind(fd, (struct sockaddr *)&s4, sizeof s4);
    close(fd);
    return r == 0;
}

/* The address that would be dialled, whatever name led to it. NULL: it may be; otherwise why not. */
static const char *judge_address(struct conn *c, const struct host_addr *a)
{
    bool exact, named = address_rule(a, c->port, &exact);
    if (c->asked && c->literal) /* the answer was for this very address */
        exact = named = true;
    enum addr_class class = addr_classify(a);
    uint32_t rule;

    if (address_denied(a, c->port, &rule)) {
        c->rule = rule;
        return "is at a denied address";
    }
    switch (class) {
    case ADDR_PUBLIC:
        break;
    case ADDR_PRIVATE:
    case ADDR_RESERVED:
    case ADDR_LINK_LOCAL:
        if (!named)
            return class == ADDR_PRIVATE ? "is at a private address: allow that address or network to permit it"
                                         : "is at a reserved or link-local address";
        break;
    case ADDR_METADATA:
        if (!exact)
            return "is at a cloud metadata endpoint";
        break;
    case ADDR_LOOPBACK:
        return "is at a loopback address: use reach for a service of this machine";
    default:
        return "is at an address that is no destination";
    }
    if (!exact && own_address(a))
        return "is at an address of this machine: use reach for a service of it";
    return NULL;
}

static void dial_next(struct conn *c);
static void fail(struct conn *c, const struct host_addr *addr, const char *why);

static void conn_resolved(struct conn *c, const struct host_addr *addrs, unsigned n)
{
    const char *why = "does not resolve";
    const struct host_addr *bad = NULL;

    c->n_addrs = 0;
    c->at_addr = 0;
    for (unsigned i = 0; i < n && i < MAX_ADDRESSES; i++) {
        const char *no = judge_address(c, &addrs[i]);
        if (no) {
            why = no;
            bad = &addrs[i];
        } else {
            c->addrs[c->n_addrs++] = addrs[i];
        }
    }
    if (c->n_addrs == 0) {
        end_as(c, bad ? EGRESS_DENIED : EGRESS_FAILED, bad ? REFUSED_BY_RULE : REFUSED_NO_ADDRESS, c->host, bad, why,
               why);
        return;
    }
    dial_next(c);
}

/* An address that stands for a name is that name, however it was said; false when it stands for none. */
static bool call_by_name(struct conn *c)
{
    struct host_addr addr = c->host->addr;
    c->literal = false;
    if (c->host->kind == HOST_NAME)
        return true;
    const char *name = stand_name(&addr);
    c->literal = !name;
    if (!name)
        return !stand_range(&addr);
    c->host->kind = HOST_NAME;
    strcpy(c->host->name, name);
    return true;
}

static enum host_decision decide(struct conn *c, const struct host *h)
{
    size_t rule;
    enum host_decision d = host_judge(world.ask->rules, world.ask->n_rules, h, c->port, &rule);
    if (d == HOST_DENIED_BY_DEFAULT && c->asked)
        return HOST_ALLOWED;
    c->rule = rule == SIZE_MAX ? EGRESS_RULE_NONE : world.ask->rules[rule].origin;
    return d;
}

/* Whether a yes could let it through; what is refused whatever is said is no question. */
static bool may_ask(const struct conn *c)
{
    if (!world.ask->ask_ms)
        return false;
    if (c->host->kind == HOST_NAME)
        return true;
    switch (addr_classify(&c->host->addr)) {
    case ADDR_PUBLIC:
    case ADDR_PRIVATE:
    case ADDR_RESERVED:
    case ADDR_LINK_LOCAL:
        return !own_address(&c->host->addr);
    default:
        return false;
    }
}

static void ask(struct conn *c)
{
    struct ends ends;
    c->ticket = question_of(c->how, c->host, c->port, ends_of(c, &ends));
    if (!c->ticket) {
        deny(c, REFUSED_BY_RULE, c->host, NULL, "too many open questions", "is not allowed");
        return;
    }
    if (c->ticket == QUESTION_REFUSED) {
        c->rule = EGRESS_RULE_ASKED;
        deny(c, REFUSED_BY_RULE, c->host, NULL, "the answer was no", "is not allowed: the answer was no");
        return;
    }
    c->stage = STAGE_ASK;
    set_deadline(c, world.now + world.ask->ask_ms + ASK_SLACK_MS);
    settle(c);
}

/*
 * What is not asked of the caller's own proxy, because it would look from another place: addresses, and names that mean
 * something here alone. NULL: the name may be sent.
 */
static const char *not_for_parent(const struct conn *c)
{
    struct host_addr at[MAX_ADDRESSES];
    if (c->host->kind == HOST_ADDR)
        return "is an address, which is not asked of the parent proxy; name it in NO_PROXY";
    size_t n = hosts_find(world.ask->resolver.hosts, c->host->name, at, MAX_ADDRESSES);
    bool local = name_is_local(c->host->name);
    for (size_t i = 0; i < n; i++)
        local = local || addr_classify(&at[i]) != ADDR_PUBLIC;
    return local ? "is a local name, which is not asked of the parent proxy; name it in NO_PROXY" : NULL;
}

/* The addresses of the proxy itself: the caller chose it, so they are not judged. */
static void parent_resolved(struct conn *c, const struct host_addr *addrs, unsigned n)
{
    c->at_addr = 0;
    c->n_addrs = (uint8_t)(n < MAX_ADDRESSES ? n : MAX_ADDRESSES);
    memcpy(c->addrs, addrs, c->n_addrs * sizeof *addrs);
    if (c->n_addrs)
        dial_next(c);
    else
        fail(c, NULL, "the parent proxy's name does not resolve");
}

/* The host and port are known: may they be reached? */
static void judge(struct conn *c)
{
    if (!call_by_name(c)) {
        deny(c, REFUSED_BY_RULE, c->host, NULL, "an address that stands for no name", "stands for no name");
        return;
    }
    enum host_decision d = decide(c, c->host);
    if (d == HOST_DENIED_BY_DEFAULT && may_ask(c)) {
        ask(c);
        return;
    }
    if (d != HOST_ALLOWED) {
        deny(c, REFUSED_BY_RULE, c->host, NULL, d == HOST_DENIED ? "denied by a rule" : "not allowed",
             d == HOST_DENIED ? "is denied by a rule" : "is not allowed");
        return;
    }
    c->parent = proxy_for(world.ask->proxies, c->host, c->port, c->how == HOW_HTTP || c->port == 80);
    const char *no = c->parent ? not_for_parent(c) : NULL;
    if (no) {
        deny(c, REFUSED_BY_RULE, c->host, NULL, no, no);
        return;
    }
    c->stage = STAGE_RESOLVE;
    set_deadline(c, world.now + HANDSHAKE_MS);
    settle(c);
    if (c->parent && c->parent->host.kind == HOST_ADDR)
        parent_resolved(c, &c->parent->host.addr, 1);
    else if (c->parent)
        lookup_start(c, c->parent->host.name, parent_resolved);
    else if (c->host->kind == HOST_ADDR)
        conn_resolved(c, &c->host->addr, 1);
    else
        lookup_start(c, c->host->name, conn_resolved);
}

/* ---- dialling ---- */

static void opened(struct conn *c);

static void fail(struct conn *c, const struct host_addr *addr, const char *why)
{
    char text[160];
    snprintf(text, sizeof text, "was not reached: %s", why);
    end_as(c, EGRESS_FAILED, REFUSED_BY_SERVER, c->host, addr, why, text);
}

/* No address is left to try. */
static void not_reached(struct conn *c)
{
    const char *why = c->parent               ? "the parent proxy does not answer"
                      : c->no == ECONNREFUSED ? "the connection is refused there: nothing answers"
                      : c->no == ENETUNREACH  ? "this machine has no way to that address"
                      : c->no == EHOSTUNREACH ? "no such machine answers"
                                              : "nothing answers";
    if (c->how == HOW_PUBLISH) /* a server inside that is not there yet is nothing to tell */
        reset(c);
    else
        fail(c, c->n_addrs && !c->parent ? &c->addrs[c->n_addrs - 1] : NULL, why);
}

static void dial_next(struct conn *c)
{
    uint16_t port = htons(c->parent ? c->parent->port : c->port);
    while (c->at_addr < c->n_addrs) {
        const struct host_addr *a = &c->addrs[c->at_addr++];
        struct sockaddr_in6 s6 = {.sin6_family = AF_INET6, .sin6_port = port};
        struct sockaddr_in s4 = {.sin_family = AF_INET, .sin_port = port};
        memcpy(&s6.sin6_addr, a->b, 16);
        memcpy(&s4.sin_addr, a->b, 4);
        int fd = socket(a->v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            continue;
        int r = a->v6 ? connect(fd, (struct sockaddr *)&s6, sizeof s6) : connect(fd, (struct sockaddr *)&s4, sizeof s4);
        if ((r < 0 && errno != EINPROGRESS) || source_add(&c->server, SOURCE_SERVER, fd, EPOLLOUT) < 0) {
            c->no = (uint8_t)errno;
            close(fd);
            c->server.fd = -1;
            continue;
        }
        c->stage = STAGE_DIAL;
        set_deadline(c, world.now + DIAL_MS);
        return;
    }
    not_reached(c);
}

static void parent_ask(struct conn *c, enum parent_step step)
{
    char said[PARENT_SAY];
    c->stage = STAGE_PARENT;
    c->parent_step = (uint8_t)step;
    set_deadline(c, world.now + HANDSHAKE_MS);
    if (push(c, false, said, parent_say(c->parent, step, c->host->name, c->port, said)))
        settle(c);
}

/* What the proxy says, and no byte more: what follows is the server's. */
static void parent_answers(struct conn *c)
{
    char why[PARENT_WHY];
    enum parent_step next = PARENT_OPEN;
    size_t before = c->heard.n;
    ssize_t n = recv(c->server.fd, world.buffer + before, PARENT_HEAR, MSG_DONTWAIT | MSG_PEEK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        fail(c, NULL, "the parent proxy ends the connection");
        return;
    }
    if (before)
        memcpy(world.buffer, c->heard.p, before);
    struct str all = {world.buffer, before + (size_t)n};
    ssize_t used = parent_hear(c->parent, (enum parent_step)c->parent_step, all, &next, why);
    if (used == -EPERM && c->how == HOW_HTTP) { /* plain HTTP has another way: the proxy asks for it itself */
        c->parent_fetches = true;
        c->at_addr = 0;
        pending_free(&c->heard);
        source_close(&c->server);
        dial_next(c);
        return;
    }
    if (used < 0 || (used == 0 && !keep(&c->heard, world.buffer + before, (size_t)n))) {
        fail(c, NULL, used < 0 ? why : "no memory");
        return;
    }
    (void)recv(c->server.fd, world.buffer, used ? (size_t)used - before : (size_t)n, MSG_DONTWAIT);
    if (used == 0)
        return;
    pending_free(&c->heard);
    if (next == PARENT_OPEN)
        opened(c);
    else
        parent_ask(c, next);
}

static void dialled(struct conn *c)
{
    int no = 0;
    socklen_t n = sizeof no;
    if (getsockopt(c->server.fd, SOL_SOCKET, SO_ERROR, &no, &n) < 0 || no) {
        c->no = (uint8_t)no;
        source_close(&c->server);
        dial_next(c);
        return;
    }
    if (c->parent && !c->parent_fetches)
        parent_ask(c, parent_first(c->parent));
    else
        opened(c);
}

/* ---- what flows is still judged ---- */

static bool same_name(const struct conn *c, const struct host *h)
{
    if (c->host->kind != h->kind)
        return false;
    return h->kind == HOST_NAME ? strcmp(c->host->name, h->name) == 0
                                : c->host->addr.v6 == h->addr.v6 && memcmp(c->host->addr.b, h->addr.b, 16) == 0;
}

/* A name said inside a connection that was made to an address must itself be allowed. */
static bool inner_name_ok(struct conn *c, const struct host *h)
{
    if (same_name(c, h))
        return true;
    if (c->host->kind != HOST_ADDR || h->kind != HOST_NAME ||
        host_judge(world.ask->rules, world.ask->n_rules, h, c->port, NULL) != HOST_ALLOWED)
        return false;
    c->inner = stand_of(h->name); /* for when the rules change */
    return c->inner != 0;
}

static void stop(struct conn *c, const struct host *said, const char *why)
{
    const struct host_addr *at = c->parent ? NULL : &c->addrs[c->at_addr ? c->at_addr - 1 : 0];
    deny(c, REFUSED_WITHOUT_WORDS, said ? said : c->host, at, why, why);
}

/* The first n of the client's bytes are dealt with. */
static void consume(struct conn *c, size_t n)
{
    if (n == c->first.n) {
        pending_free(&c->first);
        return;
    }
    c->first.n -= (uint32_t)n;
    c->first.at = c->first.at > n ? c->first.at - (uint32_t)n : 0;
    world.kept -= n;
    memmove(c->first.p, c->first.p + n, c->first.n);
}

/* Passes the first n of the client's bytes on, less what went before, and keeps them for the judgement. */
static bool forward(struct conn *c, size_t n)
{
    if (n <= c->first.at)
        return true;
    if (!push(c, false, c->first.p + c->first.at, n - c->first.at))
        return false;
    c->first.at = (uint32_t)n;
    return true;
}

static bool release(struct conn *c, size_t n)
{
    if (!forward(c, n))
        return false;
    consume(c, n);
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

static void watch_http(struct conn *c);

static void watch_tls(struct conn *c)
{
    struct tls_hello h;
    ssize_t n = tls_hello_parse((struct str){c->first.p, c->first.n}, &h);
    if (n == 0)
        return;
    if (n < 0)
        stop(c, NULL, "malformed TLS ClientHello");
    else if (h.has_name && !inner_name_ok(c, &h.name))
        stop(c, &h.name, "TLS server name differs from the host connected to");
    else if (!h.has_name && c->literal)
        stop(c, NULL, "TLS without a server name to an address");
    else
        watch_nothing(c);
}

static void hello(struct conn *c);

/* The server of a request is done with, and the client stays: whatever it asks for next begins anew. */
static void drop_server(struct conn *c)
{
    source_close(&c->server);
    pending_free(&c->to_server);
    free(c->answer);
    c->answer = NULL;
    c->server_eof = c->server_shut = c->parent_fetches = false;
    c->asked = false; /* the next request may be for another */
    c->at_addr = c->n_addrs = 0;
    c->stage = STAGE_HELLO;
}

/* Whether a proxy request is under way whose answer is not complete, or not yet with the client. */
static bool answering(const struct conn *c)
{
    return c->how == HOW_HTTP && (c->to_client.n || (c->answer && c->answer->state != ANSWER_DONE));
}

/* Takes one proxy request for c->host: what is to be sent for it is in c->head, and its body is followed. */
static bool take_request(struct conn *c, const struct http_head *h, size_t n)
{
    ssize_t out = http_forward(h, world.buffer, SHARED_BYTES);
    if (!c->answer)
        c->answer = calloc(1, sizeof *c->answer);
    if (out < 0 || !c->answer || !keep(&c->head, world.buffer, (size_t)out)) {
        http_error(c, "400 Bad Request", "the Connection field names what is no connection's");
        return false;
    }
    http_body_begin(&c->body, h);
    http_answer_expect(c->answer, h);
    consume(c, n);
    return true;
}

static bool send_head(struct conn *c)
{
    struct str head = {c->head.p, c->head.n};
    if (c->parent_fetches) {
        ssize_t n = http_by_parent(head, c->host->name, c->port, c->parent, world.buffer, SHARED_BYTES);
        if (n < 0) {
            reset(c);
            return false;
        }
        head = (struct str){world.buffer, (size_t)n};
    }
    bool alive = push(c, false, head.p, head.n);
    if (alive)
        pending_free(&c->head);
    return alive;
}

/*
 * The next request on a connection that knows us as a proxy. It is judged as if it were the first; where it is for the same
 * server, the connection to that server serves it, too.
 */
static void next_request(struct conn *c)
{
    struct http_head h;
    if (answering(c)) {
        if (c->answer && c->answer->state == ANSWER_LOST && c->first.n >= FIRST_BYTES)
            stop(c, NULL, "requests behind an answer without an end");
        return;
    }
    ssize_t n = http_head_parse((struct str){c->first.p, c->first.n}, 0, &h);
    bool same_server = n > 0 && h.form == HTTP_ABSOLUTE && same_name(c, &h.host) && h.port == c->port;
    if (n == 0 && !c->client_eof)
        return;
    if (n == 0) {
        stop(c, NULL, "truncated HTTP request");
        return;
    }
    if (!same_server || decide(c, &h.host) != HOST_ALLOWED) {
        drop_server(c);
        hello(c);
        return;
    }
    if (take_request(c, &h, (size_t)n) && send_head(c))
        watch_http(c);
}

static void watch_http(struct conn *c)
{
    while (!over(c) && c->first.n && !c->upgrade) {
        struct str in = {c->first.p, c->first.n};
        if (c->body.state != BODY_NONE) {
            ssize_t n = http_body_eat(&c->body, in);
            if (n < 0)
                stop(c, NULL, "malformed HTTP body");
            else if (!release(c, (size_t)n))
                return;
            continue;
        }
        if (c->how == HOW_HTTP) {
            next_request(c);
            return;
        }
        struct http_head h;
        ssize_t n = http_head_parse(in, c->port, &h);
        if (n == 0)
            return;
        if (n < 0)
            stop(c, NULL, "malformed or ambiguous HTTP request");
        else if (h.form == HTTP_AUTHORITY)
            stop(c, &h.host, "a proxy behind an allowed host");
        else if (h.has_host && !inner_name_ok(c, &h.host))
            stop(c, &h.host, "HTTP Host differs from the host connected to");
        else {
            http_body_begin(&c->body, &h);
            c->upgrade = h.upgrade;
            if (!release(c, (size_t)n))
                return;
        }
    }
}

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
    if (guess < 0)
        watch_nothing(c);
    else if (guess == 0)
        (void)forward(c, safe);
    else if (empty == 0 || release(c, empty))
        c->watch = WATCH_HTTP;
}

static void watch(struct conn *c)
{
    if (c->watch == WATCH_FIRST && c->first.n)
        watch_first(c);
    if (!over(c) && c->watch == WATCH_TLS)
        watch_tls(c);
    else if (!over(c) && c->watch == WATCH_HTTP)
        watch_http(c);
}

static void opened(struct conn *c)
{
    static const char ok[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    char socks5[10] = {5, 0, 0, 1}, socks4[8] = {0, 90};
    int one = 1;

    c->stage = STAGE_OPEN;
    set_deadline(c, 0);
    (void)setsockopt(c->client.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(c->server.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (c->how <= HOW_REACH)
        egress_tell_allowed(c);
    bool alive = true;
    if (c->how == HOW_CONNECT)
        alive = push(c, true, ok, sizeof ok - 1);
    else if (c->how == HOW_SOCKS)
        alive = c->socks_version == 5 ? push(c, true, socks5, sizeof socks5) : push(c, true, socks4, sizeof socks4);
    if (!alive)
        return;
    if (c->head.n && !send_head(c)) /* of a request that was told to us as a proxy; its body follows, watched */
        return;
    watch(c);
    settle(c);
}

/* ---- the proxy port ---- */

static void hello_http(struct conn *c)
{
    struct http_head h;
    struct str in = {c->first.p, c->first.n};
    ssize_t n = http_looks_like(in) ? http_head_parse(in, 0, &h) : -EBADMSG;
    if (n == 0)
        return;
    if (n < 0 || (h.form != HTTP_AUTHORITY && h.form != HTTP_ABSOLUTE)) {
        egress_tell(false, HOW_HTTP, NULL, 0, NULL, UINT32_MAX, "malformed or ambiguous proxy request");
        http_error(c, "400 Bad Request",
                   "this is a proxy: it takes CONNECT and absolute http:// requests that are well formed");
        return;
    }
    c->how = h.form == HTTP_AUTHORITY ? HOW_CONNECT : HOW_HTTP;
    *c->host = h.host;
    c->port = h.port;
    c->watch = WATCH_FIRST;
    if (c->how == HOW_HTTP) {
        c->watch = WATCH_HTTP;
        if (take_request(c, &h, (size_t)n))
            judge(c);
        return;
    }
    consume(c, (size_t)n);
    judge(c);
}

static void socks_ask(struct conn *c, ssize_t n, const struct socks_request *q)
{
    c->how = HOW_SOCKS;
    if (n < 0) {
        egress_tell(false, HOW_SOCKS, NULL, 0, NULL, UINT32_MAX, "malformed SOCKS request");
        refuse(c, REFUSED_BY_RULE, "is no acceptable destination");
        return;
    }
    if (q->command != 1) { /* BIND and UDP ASSOCIATE */
        char reply[10] = {5, 7, 0, 1};
        say_and_end(c, reply, sizeof reply);
        return;
    }
    *c->host = q->host;
    c->port = q->port;
    c->watch = WATCH_FIRST;
    consume(c, (size_t)n);
    judge(c);
}

static void hello(struct conn *c)
{
    struct str in = {c->first.p, c->first.n};
    struct socks_request q;
    ssize_t n;

    if (answering(c))
        return;
    if (c->stage == STAGE_SOCKS) {
        n = socks5_request(in, &q);
        if (n)
            socks_ask(c, n, &q);
        return;
    }
    switch (in.p[0]) {
    case 5: {
        bool no_auth = false;
        char reply[2] = {5, 0};
        n = socks5_greeting(in, &no_auth);
        if (n == 0)
            return;
        c->socks_version = 5;
        reply[1] = (char)(n > 0 && no_auth ? 0 : 0xff);
        if (reply[1]) {
            say_and_end(c, reply, 2);
            return;
        }
        consume(c, (size_t)n);
        c->stage = STAGE_SOCKS;
        if (push(c, true, reply, 2) && c->first.n)
            hello(c);
        return;
    }
    case 4:
        c->socks_version = 4;
        n = socks4_request(in, &q);
        if (n)
            socks_ask(c, n, &q);
        return;
    default:
        hello_http(c);
    }
}

/* ---- events ---- */

/* What is read at once may have to be kept. */
static size_t relay_room(void)
{
    return world.kept < SCARCE_BYTES ? SHARED_BYTES : SCARCE_READ;
}

static void from_client(struct conn *c)
{
    bool judged = c->stage == STAGE_OPEN && c->watch == WATCH_NOTHING;
    size_t room = judged ? relay_room() : FIRST_BYTES - c->first.n;
    ssize_t n = recv(c->client.fd, world.buffer, room, MSG_DONTWAIT);

    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR)
            reset(c);
        return;
    }
    if (n == 0) {
        c->client_eof = true;
        if (c->stage != STAGE_OPEN) {
            if (!c->to_client.n)
                die(c);
        } else if (c->watch == WATCH_FIRST ||
                   c->watch == WATCH_TLS) { /* too short to be either: what there is may go */
            watch_nothing(c);
        } else if (c->watch == WATCH_HTTP && c->first.n && !c->upgrade && !answering(c)) {
            stop(c, NULL, "truncated HTTP request");
        }
        return;
    }
    if (c->answer && c->server_eof)
        return;
    if (judged) {
        push(c, false, world.buffer, (size_t)n);
        return;
    }
    if (!keep(&c->first, world.buffer, (size_t)n)) {
        reset(c);
        return;
    }
    if (c->stage == STAGE_OPEN)
        watch(c);
    else
        hello(c);
    if (!over(c) && c->first.n >= FIRST_BYTES && !c->upgrade && !answering(c))
        stop(c, NULL, "too many bytes before a decision was possible");
}

/* The server says no more. A proxy request has had its answer, or never will: what its client says behind it is for nobody. */
static void server_ended(struct conn *c)
{
    c->server_eof = true;
    if (c->answer)
        pending_free(&c->first);
}

/* Requests that waited for the answer before them. */
static void resume(struct conn *c)
{
    if (over(c) || c->how != HOW_HTTP || !c->first.n || answering(c))
        return;
    if (c->stage == STAGE_HELLO)
        hello(c);
    else if (c->stage == STAGE_OPEN)
        watch(c);
}

static void from_server(struct conn *c)
{
    ssize_t n = recv(c->server.fd, world.buffer, relay_room(), MSG_DONTWAIT);
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR)
            reset(c);
        return;
    }
    if (n == 0) {
        bool whole = c->answer && c->answer->state == ANSWER_DONE && !c->answer->close && c->body.state == BODY_NONE;
        if (whole && !c->client_eof) { /* between two requests: the client need not know */
            drop_server(c);
            resume(c);
            return;
        }
        server_ended(c);
        return;
    }
    if (c->answer) {
        http_answer_eat(c->answer, (struct str){world.buffer, (size_t)n});
        if (c->parent_fetches && c->answer->refused) {
            c->answer->refused = false;
            struct told nobody = {0};
            (void)egress_tell_refused(EGRESS_FAILED, c, c->host, NULL,
                                      "the parent proxy, or the server by it, refuses it (403 or 407)", &nobody);
        }
        if (!push(c, true, world.buffer, (size_t)n))
            return;
        if (c->answer->state == ANSWER_DONE && c->answer->close)
            server_ended(c); /* as it was agreed, whether the server keeps to it or not */
        else
            resume(c);
        return;
    }
    bool answered = c->upgrade;
    bool switched = answered && n >= 12 && memcmp(world.buffer, "HTTP/1.1 101", 12) == 0;
    if (!push(c, true, world.buffer, (size_t)n) || !answered)
        return;
    c->upgrade = false;
    if (switched)
        watch_nothing(c);
    else
        watch(c);
}

void conn_ready(struct conn *c, bool client_side, uint32_t events)
{
    if (c->dead)
        return;
    struct source *s = client_side ? &c->client : &c->server;
    if (!client_side && c->stage == STAGE_DIAL) {
        dialled(c);
    } else if (!client_side && c->stage == STAGE_PARENT) {
        if (flush(c, false))
            parent_answers(c);
    } else {
        if (events & EPOLLOUT && !flush(c, client_side))
            return;
        if (events & EPOLLOUT && client_side)
            resume(c);
        if (over(c))
            return;
        if (events & EPOLLIN && s->armed & EPOLLIN) {
            if (client_side)
                from_client(c);
            else
                from_server(c);
        } else if (events & EPOLLERR) {
            reset(c);
        } else if (events & EPOLLHUP) { /* ended on both sides while we do not read: what it said is still to be read */
            source_rest(s);
            if (client_side && c->stage != STAGE_OPEN)
                die(c);
        }
    }
    settle(c);
}

void conn_late(struct conn *c)
{
    if (c->stage == STAGE_HELD) {
        refuse(c, (enum refusal)c->why, c->words);
        return;
    }
    if (c->stage == STAGE_ASK) {
        c->rule = EGRESS_RULE_ASKED;
        deny(c, REFUSED_BY_RULE, c->host, NULL, "nobody answered in time", "is not allowed: nobody answered in time");
        return;
    }
    if (c->stage == STAGE_DIAL) {
        source_close(&c->server);
        dial_next(c);
        settle(c);
        return;
    }
    if (c->stage == STAGE_PARENT) {
        fail(c, NULL, "the parent proxy does not answer in time");
        return;
    }
    reset(c);
}

/* ---- other rules, and answers ---- */

void conn_answered(uint32_t ticket, enum egress_answer answer)
{
    static const char *const told[] = {"the answer was no", "", "nobody answered in time", "nobody could be asked"};
    static const char *const words[] = {"is not allowed: the answer was no", "",
                                        "is not allowed: nobody answered in time",
                                        "is not allowed: nobody could be asked"};
    for (struct conn *c; (c = waiting(ticket, STAGE_ASK));) {
        c->ticket = 0;
        c->rule = EGRESS_RULE_ASKED;
        if (answer == ANSWER_YES) {
            c->asked = true;
            judge(c);
        } else {
            deny(c, REFUSED_BY_RULE, c->host, NULL, told[answer], words[answer]);
        }
    }
}

/* Whom an open connection leads to. */
static struct host whom(const struct conn *c)
{
    struct host h = {.kind = HOST_ADDR};
    if (c->host)
        return *c->host;
    if (c->stand) {
        h.kind = HOST_NAME;
        strcpy(h.name, world.names[c->stand - 1]);
    } else {
        h.addr = c->addrs[c->at_addr ? c->at_addr - 1 : 0];
    }
    return h;
}

/* NULL: it may go on. */
static const char *forbidden(struct conn *c, const struct host *h)
{
    struct host inner = {.kind = HOST_NAME};
    if (c->how >= HOW_REACH)
        return NULL;
    enum host_decision d = decide(c, h);
    if (d != HOST_ALLOWED)
        return d == HOST_DENIED ? "denied by a rule" : "not allowed";
    if (c->inner) {
        strcpy(inner.name, world.names[c->inner - 1]);
        if (host_judge(world.ask->rules, world.ask->n_rules, &inner, c->port, NULL) != HOST_ALLOWED)
            return "the name said inside is not allowed";
    }
    return c->at_addr && !c->parent ? judge_address(c, &c->addrs[c->at_addr - 1]) : NULL;
}

uint32_t conn_judge_again(void)
{
    uint32_t ended = 0;
    for (struct conn *c = world.all, *next; c; c = next) {
        next = c->other; /* whatever happens to this one, the next one stays */
        if (c->stage == STAGE_ASK) {
            judge(c);
            continue;
        }
        bool way = c->stage == STAGE_RESOLVE || c->stage == STAGE_DIAL || c->stage == STAGE_PARENT;
        if (!way && c->stage != STAGE_OPEN)
            continue;
        struct host h = whom(c);
        const char *why = forbidden(c, &h);
        if (!why)
            continue;
        if (c->lookup)
            lookup_cancel(c->lookup);
        if (way)
            source_close(&c->server);
        ended++;
        if (way) {
            deny(c, REFUSED_BY_RULE, c->host, NULL, why, why);
            continue;
        }
        struct told nobody = {0}; /* it ends now, before anybody is told that the rules hold */
        (void)egress_tell_refused(EGRESS_DENIED, c, &h, c->parent || !c->at_addr ? NULL : &c->addrs[c->at_addr - 1],
                                  why, &nobody);
        reset(c);
    }
    return ended;
}

static int caught_destination(int fd, struct host_addr *ret, uint16_t *ret_port)
{
    struct sockaddr_storage to;
    socklen_t n = sizeof to;
    char text[46];
    struct host_addr raw = {0};

    if (getsockname(fd, (struct sockaddr *)&to, &n) < 0)
        return -errno;
    if (to.ss_family == AF_INET6) {
        const struct sockaddr_in6 *s = (const struct sockaddr_in6 *)&to;
        raw.v6 = true;
        memcpy(raw.b, &s->sin6_addr, 16);
        *ret_port = ntohs(s->sin6_port);
        static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
        if (memcmp(raw.b, mapped, 12) == 0) {
            memmove(raw.b, raw.b + 12, 4);
            memset(raw.b + 4, 0, 12);
            raw.v6 = false;
        }
    } else {
        const struct sockaddr_in *s = (const struct sockaddr_in *)&to;
        memcpy(raw.b, &s->sin_addr, 4);
        *ret_port = ntohs(s->sin_port);
    }
    addr_print(&raw, text);
    return addr_parse(str_of(text), ret);
}

static void caught(struct conn *c)
{
    struct host_addr to;
    if (caught_destination(c->client.fd, &to, &c->port) < 0 ||
        (addr_classify(&to) == ADDR_LOOPBACK && !stand_range(&to))) {
        reset(c);
        return;
    }
    c->how = HOW_TRANSPARENT;
    c->watch = WATCH_FIRST;
    c->host->kind = HOST_ADDR;
    c->host->addr = to;
    judge(c);
}

void conn_accept(enum source_kind from, int fd, size_t reach_index)
{
    struct conn *c = world.n_conns < world.max_conns ? calloc(1, sizeof *c) : NULL;
    if (c)
        c->host = calloc(1, sizeof *c->host);
    if (!c || !c->host || source_add(&c->client, SOURCE_CLIENT, fd, from == SOURCE_PROXY ? EPOLLIN : 0) < 0) {
        struct linger now = {.l_onoff = 1};
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close(fd);
        if (c)
            free(c->host);
        free(c);
        return;
    }
    c->server.fd = -1;
    c->rule = UINT32_MAX;
    world.n_conns++;
    list_among_all(c);
    set_deadline(c, world.now + HANDSHAKE_MS);
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
