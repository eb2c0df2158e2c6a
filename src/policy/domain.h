/*
 * Canonical forms of a policy's network rules: hosts and @SETs, ports, and the arguments of publish and reach. match/
 * has the grammar of hosts, addresses and ports; connections are judged elsewhere, on the parsed address.
 */
#pragma once
#include <stdint.h>
#include "base/arena.h"
#include "base/err.h"

/* Each returns 0 and the canonical text in `mem`, or -EINVAL with a message that quotes `s`; -ENOMEM. */
int domain_rule_form(struct str s, struct arena *mem, const char **ret, struct err *e);
/* Whether a rule names only loopback names and addresses, which in the box are the box's own. */
bool domain_is_loopback(struct str s);
#define DOMAIN_LOOPBACK                                                                                                \
    "inside the box this address is the box itself; for a service of this machine: net.reach (--reach 127.0.0.1:PORT)"
int port_rule_form(struct str s, struct arena *mem, const char **ret, struct err *e);
/* A port of the host, at an address, and the port of the box it forwards to. */
struct publish {
    bool v6;
    uint8_t addr[16]; /* as in struct host_addr; by default 127.0.0.1 */
    uint16_t host, box;
};
int publish_parse(struct str s, struct publish *ret, struct err *e);
int publish_form(struct str s, struct arena *mem, const char **ret, struct err *e);
int reach_form(struct str s, struct arena *mem, const char **ret, struct err *e);
/* A host name of at most 64 bytes (__NEW_UTS_LEN of the kernel). */
int hostname_form(struct str s, struct arena *mem, const char **ret, struct err *e);
