/*
 * What the rules say about a host, about an address to connect to, and about a name given inside a connection. A
 * non-public address needs a rule for it, whatever name led there; some classes need a rule for that very address, and
 * loopback is never permitted.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include "egress/parts.h"

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

/* An address belongs to this machine if a socket can be bound to it. A socket that could not be bound is kept for
   the next test. */
static bool own_address(const struct host_addr *a)
{
    static int unbound[2]; /* its descriptor and 1; 0: none */
    struct sockaddr_storage at;
    socklen_t n = sockaddr_of(a, 0, &at);
    int fd = unbound[a->v6] - 1;
    if (fd < 0)
        fd = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return true; /* unknown: treat as own */
    int r = bind(fd, (struct sockaddr *)&at, n);
    bool foreign = r < 0 && errno == EADDRNOTAVAIL;
    if (!foreign)
        close(fd);
    unbound[a->v6] = foreign ? fd + 1 : 0;
    return r == 0;
}

static bool leads_here(const struct host_addr *a)
{
    struct host_addr inner;
    return own_address(a) || ((addr_embedded(a, &inner) || nat64_inner(a, &inner)) && own_address(&inner));
}

const char *judge_address(struct conn *c, const struct host_addr *a)
{
    bool exact, named = address_rule(a, c->port, &exact);
    if (c->asked && c->literal) /* the answer was for this address */
        exact = named = true;
    struct host_addr inner;
    const bool behind = nat64_inner(a, &inner);
    enum addr_class class = addr_classify(behind ? &inner : a);
    uint32_t rule;

    if (address_denied(a, c->port, &rule) || (behind && address_denied(&inner, c->port, &rule))) {
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
            return class == ADDR_PRIVATE ? EGRESS_AT_PRIVATE ": allow that address or network to permit it"
                                         : EGRESS_AT_RESERVED ": allow that address or network to permit it";
        break;
    case ADDR_METADATA:
        if (!exact)
            return EGRESS_AT_METADATA ": allow that very address to permit it";
        break;
    case ADDR_LOOPBACK:
        return EGRESS_AT_LOOPBACK ": use reach for a service of this machine";
    default:
        return "is at an address that cannot be a destination";
    }
    if (!exact && leads_here(a))
        return EGRESS_AT_OWN ": allow that very address to permit it";
    return NULL;
}

bool judge_named_alone(struct conn *c, const struct host_addr *a)
{
    bool exact;
    for (size_t i = 0; i < world.ask->n_rules; i++)
        if (world.ask->rules[i].verb == RULE_DENY && world.ask->rules[i].match == MATCH_NET)
            return false;
    (void)address_rule(a, c->port, &exact);
    return exact || (c->asked && c->literal);
}

enum host_decision judge_host(struct conn *c, const struct host *h)
{
    size_t rule;
    enum host_decision d = host_judge(world.ask->rules, world.ask->n_rules, h, c->port, &rule);
    if (d == HOST_DENIED_BY_DEFAULT && c->asked)
        return HOST_ALLOWED;
    c->rule = rule == SIZE_MAX ? EGRESS_RULE_NONE : world.ask->rules[rule].origin;
    return d;
}

bool judge_inner(struct conn *c, const struct host *h)
{
    if (host_same(c->host, h))
        return true;
    if (c->host->kind != HOST_ADDR || h->kind != HOST_NAME ||
        host_judge(world.ask->rules, world.ask->n_rules, h, c->port, NULL) != HOST_ALLOWED)
        return false;
    c->inner = stand_of(h->name); /* needed if the rules change */
    return c->inner != 0;
}

bool judge_any_bytes(const struct conn *c)
{
    return host_any_bytes(world.ask->rules, world.ask->n_rules, c->host, c->port);
}

bool judge_may_ask(const struct conn *c)
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
        return !leads_here(&c->host->addr);
    default:
        return false;
    }
}
