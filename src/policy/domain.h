/*
 * The forms of network rules: DOMAIN, *.DOMAIN, addresses, CIDR ranges, @SETs, ports, and what publish and reach take. This
 * layer checks and canonicalises the text; what it means to a connection is judged elsewhere, on the parsed object that is dialled.
 *
 * Canonical: lower case, no trailing dot, IPv6 in brackets when a port follows, numbers without leading zeroes.
 * Rules of names: RFC 1035 2.3.4 (63 and 253 bytes), RFC 1123 2.1 (letters, digits, hyphen), plus the underscore that DNS
 * uses in practice. A name whose last label is a number is never a name (WHATWG URL 3.5): "127.1" must not pass as one.
 */
#pragma once
#include <stdint.h>
#include "base/arena.h"
#include "base/err.h"

/* Each returns 0 with the canonical text in `mem`, or -EINVAL with a sentence that quotes `s`; -ENOMEM. */
int domain_rule_form(struct str s, struct arena *mem, const char **ret, struct err *e);
/* Whether a rule is about names and addresses of the machine itself alone, which are the box's own inside. */
bool domain_is_loopback(struct str s);
#define DOMAIN_LOOPBACK                                                                                                \
    "inside, that is the box's own; for a service of this machine: net.reach (--reach 127.0.0.1:PORT)"
int port_rule_form(struct str s, struct arena *mem, const char **ret, struct err *e);
/* A port of the host, at an address, and the port inside that it leads to. */
struct publish {
    bool v6;
    uint8_t addr[16]; /* v4: the first four; 127.0.0.1 unless said */
    uint16_t host, box;
};
int publish_parse(struct str s, struct publish *ret, struct err *e);
int publish_form(struct str s, struct arena *mem, const char **ret, struct err *e);
int reach_form(struct str s, struct arena *mem, const char **ret, struct err *e);
/* A host name of at most 64 bytes (the kernel's __NEW_UTS_LEN). */
int hostname_form(struct str s, struct arena *mem, const char **ret, struct err *e);

/* Decimal port, 1 to 65535, the whole of `s`. */
int parse_port(struct str s, uint16_t *ret);
/* Dotted decimal with four numbers, no leading zeroes. */
int parse_ipv4(struct str s, uint8_t ret[4]);
/* RFC 4291 2.2, without zone. */
int parse_ipv6(struct str s, uint8_t ret[16]);
