/*
 * Hosts as policies and clients write them, in one canonical form, and the rules that judge them. Pure.
 *
 * Names are compared in canonical form: lower-case ASCII without the trailing dot, which may be written. A label has 1
 * to 63 letters, digits, hyphens (not at the ends) and underscores, which are used in practice; a name has at most 253
 * bytes (RFC 1035 2.3, RFC 1123 2.1). Non-ASCII names must be written as A-labels ("xn--"; RFC 5890). If the last label
 * is a number, the host is an address as in match/addr.h or it is refused (WHATWG URL, "ends in a number"); so no
 * spelling of an address passes as a name.
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

/* Parses a host as clients name it: no port, IPv6 with or without brackets. -EINVAL for anything ambiguous. */
int host_parse(struct str text, struct host *ret);
/* The same for "host:port", "[v6]:port"; `fallback_port` 0 makes the port mandatory. */
int host_port_parse(struct str text, uint16_t fallback_port, struct host *ret, uint16_t *ret_port);
bool host_same(const struct host *a, const struct host *b);
enum rule_verb { RULE_ALLOW, RULE_DENY };
enum rule_match {
    MATCH_ANY,           /* * */
    MATCH_NAME,          /* example.com */
    MATCH_BELOW,         /* *.example.com: any depth below, never the apex */
    MATCH_BELOW_OR_APEX, /* .example.com: the apex, too */
    MATCH_NET            /* an address or CIDR */
};
struct host_rule {
    uint8_t verb, match, prefix; /* prefix bits of MATCH_NET */
    bool any_bytes;              /* "/tcp": ports 443 and 80 may carry any protocol; no effect in a rule that denies */
    uint16_t low, high;          /* ports, inclusive; 1-65535 if the rule names none */
    uint32_t origin;
    struct host_addr net;
    char name[HOST_NAME_MAX_TEXT + 1];
};

/*
 * Parses one rule of a policy: HOST, HOST:PORT or HOST:LOW-HIGH, where HOST is a name, *.name, .name, *, an IPv4
 * address or range, or an IPv6 one in brackets. Without a port the brackets may be omitted, unless the end could be
 * read as a port ("2001:db8::1:443"). "/tcp" may follow the port or ports. The error quotes the text; the caller adds
 * where the rule stands.
 */
int host_rule_parse(struct str text, enum rule_verb verb, struct host_rule *ret, struct err *e);
/* Prints the rule in canonical form, as host_rule_parse() reads it; at most HOST_RULE_TEXT bytes with the NUL. */
#define HOST_RULE_TEXT 320
void host_rule_print(const struct host_rule *r, char text[HOST_RULE_TEXT]);
bool host_rule_matches(const struct host_rule *r, const struct host *h, uint16_t port);

/* covers: `a` matches everything that `b` matches. The other: both match something in common. */
bool host_rule_covers(const struct host_rule *a, const struct host_rule *b);
bool host_rule_meets(const struct host_rule *a, const struct host_rule *b);

enum host_decision { HOST_DENIED_BY_DEFAULT, HOST_DENIED, HOST_ALLOWED };
/*
 * Judges a host and port. Deny wins; without a matching rule the answer is no. If a rule denies some name on that port,
 * "*" matches names only: an address may belong to the denied name, so it needs a rule for addresses. `ret_rule` (or
 * NULL) gets the index of the rule that decided, or SIZE_MAX.
 */
enum host_decision host_judge(const struct host_rule *rules, size_t n, const struct host *h, uint16_t port,
                              size_t *ret_rule);
/* Whether a rule that allows this host and port permits any protocol ("/tcp"). */
bool host_any_bytes(const struct host_rule *rules, size_t n, const struct host *h, uint16_t port);
/* Whether some port of the name may be reached, so that the box's resolver answers for it. */
bool host_may_resolve(const struct host_rule *rules, size_t n, const struct host *h);
