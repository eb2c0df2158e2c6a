/*
 * What policies say of the network, in one canonical text: rules for hosts and @SETs, ports, and what publish and reach take.
 * The grammar of hosts, addresses and ports is match/'s; what a rule means to a connection is judged elsewhere, on the parsed
 * object that is dialled.
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
    "inside the box this address is the box itself; for a service of this machine: net.reach (--reach 127.0.0.1:PORT)"
int port_rule_form(struct str s, struct arena *mem, const char **ret, struct err *e);
/* A port of the host, at an address, and the port inside that it leads to. */
struct publish {
    bool v6;
    uint8_t addr[16]; /* as in struct host_addr; 127.0.0.1 unless said */
    uint16_t host, box;
};
int publish_parse(struct str s, struct publish *ret, struct err *e);
int publish_form(struct str s, struct arena *mem, const char **ret, struct err *e);
int reach_form(struct str s, struct arena *mem, const char **ret, struct err *e);
/* A host name of at most 64 bytes (the kernel's __NEW_UTS_LEN). */
int hostname_form(struct str s, struct arena *mem, const char **ret, struct err *e);
