/*
 * Addresses, ranges and ports: the same grammar in policies, in requests of proxy clients and in the host's own files.
 * Each meaning has one spelling:
 *
 *     192.0.2.10          four decimal numbers without leading zeroes. "192.0.2.010" (8 or 10?), "127.1", "0x7f.1",
 *                         "2130706433" and "192.0.2.10." are refused, although inet_aton(3) or a browser reads some
 *     2001:db8::1         RFC 4291 2.2, letters in either case, without a zone ("%eth0" is refused)
 *     ::ffff:192.0.2.10   the IPv4 address, for every purpose, in whatever spelling of the IPv6 address
 *     10.0.0.0/8          a range: the prefix length in decimal without leading zeroes, all bits after it zero. A range
 *                         of mapped addresses is written as the IPv4 range
 *     443                 a port: 1 to 65535, decimal, without leading zeroes ("080" is refused)
 *     80-90               a range of ports, the lower one first
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

/* Parses an address. -EINVAL for anything else. */
int addr_parse(struct str text, struct host_addr *ret);
/* Parses an address or a range; for an address `prefix` is 32 or 128. -EINVAL: `wrong` is the rest of the message,
   to follow the quoted text. */
int addr_range_parse(struct str text, struct host_addr *ret, uint8_t *prefix, const char **wrong);
/* Why text that looks like an address is none: the rest of the message, to follow the quoted text. */
const char *addr_wrong(struct str text);
/* Prints in canonical form (RFC 5952). */
void addr_print(const struct host_addr *a, char text[46]);
/* Whether the first `prefix` bits of `a` are those of `net`. */
bool addr_within(const struct host_addr *a, const struct host_addr *net, unsigned prefix);
/* Whether the last label of the host is a number, so that inet_aton(3) or a browser could read it as an IPv4
   address. */
bool addr_ends_in_number(struct str host);

int port_parse(struct str text, uint16_t *ret);
/* Parses a port, or LOW-HIGH. -EINVAL, or -ERANGE if HIGH is below LOW. */
int ports_parse(struct str text, uint16_t *low, uint16_t *high);

/* Classes of addresses, to judge what a name resolved to (RFC 6890 and successors). */
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
/* The IPv4 address to which a NAT64 gateway (64:ff9b::/96, RFC 6052) or a 6to4 router (2002::/16) forwards, or that an
   IPv4-compatible address (::/96) stands for: another way to the same machine. False: there is none. */
bool addr_embedded(const struct host_addr *a, struct host_addr *ret);
/* An embedded IPv4 address decides the class. */
enum addr_class addr_classify(const struct host_addr *a);
const char *addr_class_text(enum addr_class c);

/* A socket's address as text: "1.2.3.4:80", "[::1]:80", "/run/x.sock", "@abstract"; its length, 0: something else. */
size_t addr_shown(const void *address, size_t n, char *to, size_t room, bool *ret_local);
