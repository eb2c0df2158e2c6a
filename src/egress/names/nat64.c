/*
 * A network's own prefix for NAT64, behind which an IPv6 address is another name of an IPv4 address (RFC 6052). Only the network's resolver
 * knows it: it answers for ipv4only.arpa, which has IPv4 addresses alone, with these behind each of its prefixes (RFC 7050). It is asked
 * before the first connection to an IPv6 address, and again after a while; never where IPv4 comes first and answers.
 */
#include <string.h>
#include "egress/parts.h"

enum { KNOWN_MS = 600000, UNKNOWN_MS = 30000, PREFIXES = MAX_ADDRESSES };

static struct {
    uint64_t until; /* asked; 0: never */
    bool answered;
    unsigned n;
    struct {
        uint8_t b[12], bits;
    } at[PREFIXES];
} nat64;

/* The IPv4 address behind a prefix of `bits`: bits 64 to 71 are left out (RFC 6052, 2.2). */
static struct host_addr behind(const struct host_addr *a, unsigned bits)
{
    struct host_addr inner = {.v6 = false};
    for (unsigned i = 0, at = bits / 8; i < 4; i++, at++) {
        at += at == 8;
        inner.b[i] = a->b[at];
    }
    return inner;
}

static void learn(const struct host_addr *a)
{
    static const uint8_t lengths[] = {32, 40, 48, 56, 64, 96}, only[] = {192, 0, 0};
    for (size_t i = 0; i < sizeof lengths && nat64.n < PREFIXES; i++) {
        const struct host_addr inner = behind(a, lengths[i]);
        if (memcmp(inner.b, only, sizeof only) != 0 || (inner.b[3] != 170 && inner.b[3] != 171))
            continue;
        memcpy(nat64.at[nat64.n].b, a->b, 12);
        nat64.at[nat64.n++].bits = lengths[i];
    }
}

void nat64_learn(const struct host_addr *addrs, unsigned n, bool answered)
{
    nat64.answered = answered;
    nat64.until = world.now + (answered ? KNOWN_MS : UNKNOWN_MS);
    nat64.n = answered ? 0 : nat64.n;
    for (unsigned i = 0; i < n; i++)
        if (addrs[i].v6)
            learn(&addrs[i]);
}

bool nat64_is_asked(bool *ret_answered)
{
    *ret_answered = nat64.answered;
    return nat64.until > world.now;
}

void nat64_forget(void)
{
    nat64.until = 0;
}

bool nat64_inner(const struct host_addr *a, struct host_addr *ret)
{
    for (unsigned i = 0; a->v6 && i < nat64.n; i++) {
        if (memcmp(a->b, nat64.at[i].b, nat64.at[i].bits / 8) != 0)
            continue;
        *ret = behind(a, nat64.at[i].bits);
        return true;
    }
    return false;
}
