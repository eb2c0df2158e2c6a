/* Events sent to pinfold: decisions, questions, rules that are in force. A repeated decision is only counted. */
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include "egress/conn.h"

/* Maps v4 addresses into v6, so that both can be compared. */
static void put_end(const struct sockaddr *a, uint8_t addr[16], uint16_t *port)
{
    if (a->sa_family == AF_INET6) {
        const struct sockaddr_in6 *s = (const struct sockaddr_in6 *)(const void *)a;
        memcpy(addr, &s->sin6_addr, 16);
        *port = ntohs(s->sin6_port);
    } else if (a->sa_family == AF_INET) {
        const struct sockaddr_in *s = (const struct sockaddr_in *)(const void *)a;
        addr[10] = addr[11] = 0xff;
        memcpy(addr + 12, &s->sin_addr, 4);
        *port = ntohs(s->sin_port);
    }
}

const struct told *told_ends(const struct conn *c, struct told_room *room)
{
    socklen_t n = sizeof room->from, m = sizeof room->to;
    room->told = (struct told){0};
    if (getpeername(c->client.fd, (struct sockaddr *)&room->from, &n) == 0 &&
        getsockname(c->client.fd, (struct sockaddr *)&room->to, &m) == 0)
        room->told = (struct told){.from = (struct sockaddr *)&room->from, .to = (struct sockaddr *)&room->to};
    return &room->told;
}

static void fill(struct egress_event *e, const struct host *host, const struct host_addr *addr, const char *reason,
                 const struct told *who)
{
    if (host && host->kind == HOST_NAME)
        strcpy(e->name, host->name);
    if (host && host->kind == HOST_ADDR)
        addr_print(&host->addr, e->address);
    if (addr)
        addr_print(addr, e->address);
    strncpy(e->reason, reason, sizeof e->reason - 1);
    if (who && who->from && who->to) {
        e->udp = who->udp;
        put_end(who->from, e->from, &e->from_port);
        put_end(who->to, e->to, &e->to_port);
    }
}

static void set_lost(uint32_t lost)
{
    if (world.ask->counts && lost != world.lost)
        atomic_store_explicit(&world.ask->counts->lost, lost, memory_order_relaxed);
    world.lost = lost;
}

/* The box decides how many there are, so events that pinfold does not take in time are only counted. */
static bool send_event(struct egress_event *e)
{
    e->lost = world.lost;
    const bool sent = send(world.ask->events, e, sizeof *e, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof *e;
    set_lost(sent ? 0 : world.lost + (e->said == SAID_DECISION));
    return sent;
}

void egress_tell(bool allowed, enum egress_how how, const struct host *host, uint16_t port,
                 const struct host_addr *addr, uint32_t rule, const char *reason)
{
    struct egress_event e = {
        .what = allowed ? EGRESS_ALLOWED : EGRESS_DENIED, .how = (uint8_t)how, .port = port, .rule = rule};
    fill(&e, host, addr, reason, NULL);
    (void)send_event(&e);
}

/* A reported decision, so that it is reported once: the host, its address, the client's protocol and the rule. */
struct tellable {
    uint32_t stand, rule; /* stand 0: the host is an address */
    struct host_addr host, addr;
    uint16_t port;
    uint8_t how, by_proxy;
};
static struct tellable told[EGRESS_COUNTS];
static unsigned n_told;

static uint64_t tellable_hash(const struct tellable *t)
{
    uint64_t h = 14695981039346656037u ^ t->stand;
    for (int i = 0; i < 16; i++)
        h = (h ^ t->addr.b[i] ^ (uint64_t)t->host.b[i] << 8) * 1099511628211u;
    h = (h ^ t->rule) * 1099511628211u;
    return (h ^ t->port ^ (uint64_t)t->how << 16 ^ (uint64_t)t->by_proxy << 24) * 1099511628211u;
}

static bool tellable_same(const struct tellable *a, const struct tellable *b)
{
    return a->stand == b->stand && a->rule == b->rule && a->port == b->port && a->how == b->how &&
           a->by_proxy == b->by_proxy && a->addr.v6 == b->addr.v6 && a->host.v6 == b->host.v6 &&
           memcmp(a->addr.b, b->addr.b, 16) == 0 && memcmp(a->host.b, b->host.b, 16) == 0;
}

/* Its entry, or a free one (*ret_new); NULL if there is none. An entry is never reused. */
static struct tellable *told_place(const struct tellable *t, bool *ret_new)
{
    size_t at = tellable_hash(t) >> 32 & (EGRESS_COUNTS - 1);
    *ret_new = false;
    for (size_t i = 0; i < EGRESS_COUNTS; i++, at = (at + 1) & (EGRESS_COUNTS - 1)) {
        *ret_new = !told[at].how; /* no decision about a tunnel is HOW_DNS */
        if (*ret_new)
            return n_told < EGRESS_COUNTS / 2 ? &told[at] : NULL;
        if (tellable_same(&told[at], t))
            return &told[at];
    }
    return NULL;
}

void egress_tell_allowed(const struct conn *c)
{
    struct egress_event e = {
        .what = EGRESS_ALLOWED, .how = c->how, .by_proxy = c->parent != NULL, .port = c->port, .rule = c->rule};
    const struct host_addr *addr = c->parent ? NULL : &c->addrs[c->at_addr - 1];
    struct tellable t = {.rule = c->rule, .port = c->port, .how = c->how, .by_proxy = c->parent != NULL};
    struct tellable *place = NULL;
    bool new = false;

    if (addr)
        t.addr = *addr;
    if (c->host->kind == HOST_ADDR)
        t.host = c->host->addr;
    else
        t.stand = stand_of(c->host->name);
    if (world.ask->counts && (t.stand || c->host->kind == HOST_ADDR))
        place = told_place(&t, &new);
    if (place && !new) {
        atomic_fetch_add_explicit(&world.ask->counts->n[place - told], 1, memory_order_relaxed);
        return;
    }
    e.counted = place ? (uint32_t)(place - told) + 1 : 0;
    fill(&e, c->host, addr, "", NULL);
    if (!send_event(&e) || !place)
        return;
    *place = t;
    n_told++;
}

static uint32_t refused(struct egress_event *e, const struct told *who)
{
    if (world.ask->who && world.holds < HOLDS && who->from) {
        world.holds++;
        e->ticket = ++world.tickets;
    }
    return send_event(e) ? e->ticket : 0;
}

uint32_t egress_tell_refused(enum egress_what what, const struct conn *c, const struct host *said,
                             const struct host_addr *addr, const char *reason, const struct told *who)
{
    struct egress_event e = {
        .what = (uint8_t)what, .how = c->how, .by_proxy = c->parent != NULL, .port = c->port, .rule = c->rule};
    fill(&e, said, addr, reason, who);
    return refused(&e, who);
}

uint32_t egress_tell_no_name(const struct host *host, uint32_t rule, const struct told *who)
{
    struct egress_event e = {.how = HOW_DNS, .rule = rule};
    fill(&e, host, NULL, "", who);
    return refused(&e, who);
}

uint32_t egress_tell_question(enum egress_how how, const struct host *host, uint16_t port, const struct told *who)
{
    struct egress_event e = {.said = SAID_ASK, .how = (uint8_t)how, .port = port, .rule = EGRESS_RULE_ASKED};
    fill(&e, host, NULL, "", who);
    e.ticket = ++world.tickets;
    return send_event(&e) ? e.ticket : 0;
}

void egress_tell_rules(uint32_t ticket, uint32_t closed)
{
    struct egress_event e = {.said = SAID_RULES, .ticket = ticket, .count = closed, .lost = world.lost};
    set_lost(0); /* wait for this one: pinfold reads as long as it runs */
    while (send(world.ask->events, &e, sizeof e, MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}
