/*
 * Hosts as policies and clients write them, in one canonical form, and the rules that judge them. Pure.
 *
 * A name is decided on its canonical form: lower-case ASCII without a trailing dot, which one may be written with. Labels have
 * 1 to 63 letters, digits, hyphens (but at the ends) and underscores, which DNS uses in practice; a name has 253 bytes
 * (RFC 1035 2.3, RFC 1123 2.1). Names that are not ASCII are refused: they are written as their A-labels ("xn--"; RFC
 * 5890), which are compared as they stand. A name whose last label is a number is never a name (WHATWG URL, "ends in a
 * number"): it is an address as match/addr.h has it, or it is refused, so that no spelling of an address passes as a name.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "base/str.h"
#include "match/addr.h"

#define HOST_NAME_MAX_TEXT 253 /* RFC 1035 3.1: 255 octets on the wire */

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
 * One rule as written in a policy: HOST, HOST:PORT, HOST:LOW-HIGH where HOST is a name, *.name, .name, *, an IPv4 address or
 * range, or an IPv6 one in brackets; without a port the brackets may be left out, but where its end could be one
 * ("2001:db8::1:443"). "/tcp" may stand behind the port or ports. The error quotes the text; the caller says where it stands.
 */
int host_rule_parse(struct str text, enum rule_verb verb, struct host_rule *ret, struct err *e);
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
