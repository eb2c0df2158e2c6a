/*
 * Hosts as policies and clients write them, in one canonical form, and the rules that judge them. Pure.
 *
 * A name is decided on its canonical form: lower-case A-labels without a trailing dot (RFC 1035 2.3.1, RFC 5890). What
 * a resolver would read as an address (inet_aton(3): "127.1", "0x7f.1", "2130706433", "017700000001") is an address
 * here as well, so that no spelling of one slips through as a name. Whatever else is odd is refused: control
 * characters, NUL, spaces, percent signs, user information, empty or over-long labels.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "base/str.h"

#define HOST_NAME_MAX_TEXT 253 /* RFC 1035 3.1: 255 octets on the wire */

/* An address; v4 ones are kept as such, v4-in-v6 forms (::ffff:a.b.c.d) become v4 so that both meet the same rules. */
struct host_addr {
    bool v6;
    uint8_t b[16]; /* v4: the first four */
};

enum host_kind { HOST_NAME, HOST_ADDR };
struct host {
    enum host_kind kind;
    char name[HOST_NAME_MAX_TEXT + 1]; /* HOST_NAME: canonical */
    struct host_addr addr;             /* HOST_ADDR */
};

/* A host as a client names it (no port, IPv6 with or without brackets). -EINVAL for anything that is not clearly one. */
int host_parse(struct str text, struct host *ret);
/* The same for "host:port", "[v6]:port"; `fallback_port` 0 makes the port mandatory. */
int host_port_parse(struct str text, uint16_t fallback_port, struct host *ret, uint16_t *ret_port);
bool host_same(const struct host *a, const struct host *b);
int addr_parse(struct str text, struct host_addr *ret); /* strict dotted quad or RFC 4291 text; nothing else */
void addr_print(const struct host_addr *a, char text[46]);

enum rule_verb { RULE_ALLOW, RULE_DENY };
enum rule_match {
    MATCH_ANY,           /* *                                                   */
    MATCH_NAME,          /* example.com                                         */
    MATCH_BELOW,         /* *.example.com: any depth below, never the apex      */
    MATCH_BELOW_OR_APEX, /* .example.com: the apex, too                   */
    MATCH_NET            /* an address or CIDR                                  */
};
struct host_rule {
    uint8_t verb, match, prefix; /* prefix bits of MATCH_NET */
    bool any_bytes;              /* "/tcp": ports 443 and 80 carry any protocol; means nothing to a rule that denies */
    uint16_t low, high;          /* ports, inclusive; 1-65535 when none was said */
    uint32_t origin;
    struct host_addr net;
    char name[HOST_NAME_MAX_TEXT + 1];
};

/*
 * One rule as written in a policy: HOST, HOST:PORT, HOST:LOW-HIGH where HOST is a name, *.name, .name, *, an IPv4
 * address or CIDR, or a bracketed IPv6 address or CIDR. Names may be IDN in Unicode (already lower-case) or as A-labels.
 * "/tcp" may stand behind the port or ports.
 * The error is the reason alone ("port 70000 is not between 1 and 65535"); the caller says where.
 */
int host_rule_parse(struct str text, enum rule_verb verb, struct host_rule *ret, struct err *e);
/* Cuts "/tcp" off the end of a rule. -EINVAL: it stands where it must not, or something else stands there. */
int host_rule_suffix(struct str *text, bool *ret_any_bytes, struct err *e);
/* The rule as host_rule_parse reads it, in one canonical spelling; at most HOST_RULE_TEXT bytes with the NUL. */
#define HOST_RULE_TEXT 320
void host_rule_print(const struct host_rule *r, char text[HOST_RULE_TEXT]);
bool host_rule_matches(const struct host_rule *r, const struct host *h, uint16_t port);

/* Whether `a` matches whatever `b` does; whether anything is matched by both. */
bool host_rule_covers(const struct host_rule *a, const struct host_rule *b);
bool host_rule_meets(const struct host_rule *a, const struct host_rule *b);

enum host_decision { HOST_DENIED_BY_DEFAULT, HOST_DENIED, HOST_ALLOWED };
/*
 * Deny wins; no rule: denied. Where a rule denies a name on that port, "*" stands for names alone: an address may be the one of
 * the denied name, so it takes a rule for addresses. `ret_rule` (may be NULL): the index of the rule that decided, or
 * SIZE_MAX.
 */
enum host_decision host_judge(const struct host_rule *rules, size_t n, const struct host *h, uint16_t port,
                              size_t *ret_rule);
/* Whether a rule that allows that host and port lets any protocol flow there. */
bool host_any_bytes(const struct host_rule *rules, size_t n, const struct host *h, uint16_t port);
/* Whether any port of the name may be reached: what the box's resolver answers. */
bool host_may_resolve(const struct host_rule *rules, size_t n, const struct host *h);

/* What an address is, for judging what a name resolved to (RFC 6890 and successors). */
enum addr_class {
    ADDR_PUBLIC,
    ADDR_UNSPECIFIED,
    ADDR_LOOPBACK,
    ADDR_LINK_LOCAL,
    ADDR_METADATA, /* cloud metadata endpoints */
    ADDR_MULTICAST,
    ADDR_BROADCAST,
    ADDR_PRIVATE, /* RFC 1918, RFC 6598, RFC 4193 */
    ADDR_RESERVED
};
/* v4 addresses inside 6to4, NAT64 and v4-compatible forms are judged as the v4 address they reach. */
enum addr_class addr_classify(const struct host_addr *a);
const char *addr_class_text(enum addr_class c);
