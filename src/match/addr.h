/*
 * Addresses, ranges and ports, in policies, in what clients of the proxy say, and in the host's own files alike. Each has one
 * spelling per meaning, or none:
 *
 *     192.0.2.10          four decimal numbers without leading zeroes. "192.0.2.010" (8 or 10?), "127.1", "0x7f.1",
 *                         "2130706433" and "192.0.2.10." are refused, though inet_aton(3) or a browser would read some
 *     2001:db8::1         RFC 4291 2.2, in either case of letters, without a zone ("%eth0" is refused)
 *     ::ffff:192.0.2.10   the IPv4 address, for every purpose; every spelling of these IPv6 addresses means that
 *     10.0.0.0/8          a range: the length in decimal without leading zeroes, the bits behind it zero. A range of mapped
 *                         addresses is written as the IPv4 range
 *     443                 a port: 1 to 65535, decimal, without leading zeroes ("080" is refused)
 *     80-90               ports, from the lower to the higher
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"

static inline bool addr_is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static inline char addr_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

struct host_addr {
    bool v6;
    uint8_t b[16]; /* v4: the first four */
};

/* An address. -EINVAL for anything else. */
int addr_parse(struct str text, struct host_addr *ret);
/* An address or a range; `prefix` is 32 or 128 of an address. -EINVAL, and in `wrong` what stands behind the quoted text. */
int addr_range_parse(struct str text, struct host_addr *ret, uint8_t *prefix, const char **wrong);
/* Why the text is no address though it looks like one: what stands behind the quoted text. */
const char *addr_wrong(struct str text);
/* RFC 5952. */
void addr_print(const struct host_addr *a, char text[46]);
/* Whether the first `prefix` bits of `a` are those of `net`. */
bool addr_within(const struct host_addr *a, const struct host_addr *net, unsigned prefix);
/* Whether inet_aton(3) or a browser could read a host of this spelling as an IPv4 address: its last label is a number. */
bool addr_ends_in_number(struct str host);

int port_parse(struct str text, uint16_t *ret);
/* A port, or LOW-HIGH. -EINVAL, or -ERANGE when the range ends before it begins. */
int ports_parse(struct str text, uint16_t *low, uint16_t *high);

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
