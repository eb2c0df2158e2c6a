/*
 * The egress: the one process through which a box reaches the network. It lives in the host's network namespace, holds
 * the sockets that were made inside the box's, and locks itself in (confine.c) before it reads the first byte from them.
 * If it dies, the sockets die with it: no network, never an open one.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "match/host.h"
#include "policy/proxy.h"
#include "protocol/egress.h"

/* What the host's resolver configuration says (resolv.conf(5)); filled by resolv_parse, hosts as text. */
#define EGRESS_SERVERS 3
#define EGRESS_SEARCH  6
struct egress_resolver {
    struct host_addr servers[EGRESS_SERVERS];
    uint16_t ports[EGRESS_SERVERS];
    unsigned n_servers;
    char search[EGRESS_SEARCH][HOST_NAME_MAX_TEXT + 1];
    unsigned n_search, ndots, timeout_s, attempts;
    struct str hosts; /* the text of /etc/hosts, borrowed */
};
void resolv_parse(struct str text, struct egress_resolver *ret); /* unknown lines are skipped, as the C library does */
/* Addresses of `name` in a hosts(5) text; number written. */
size_t hosts_find(struct str text, const char *name, struct host_addr *out, size_t room);

struct egress_reach { /* one service of the host that appears at the same address inside; or a published port */
    struct host_addr addr, also; /* `also` is tried after `addr` where `both` says so */
    bool both;
    uint16_t port;
    int listener; /* made inside, or for a published port outside; owned */
};

struct egress_ask {
    const struct host_rule *rules;
    size_t n_rules;
    struct egress_reach reach[EGRESS_MAX_REACH];
    size_t n_reach;
    struct egress_resolver resolver;
    const struct proxies *proxies; /* of the caller; NULL: everything is dialled directly */
    int sockets[EGRESS_SOCKETS];   /* owned; egress_receive() fills these and the listeners of `reach` */
    int ports[EGRESS_MAX_PORTS];   /* listeners of LISTEN steps, owned */
    size_t n_ports;
    enum catch_way way;
    struct egress_counts *counts; /* shared with pinfold; NULL: each decision is told */
    bool v6;
    bool who;        /* pinfold looks who was refused: a refusal waits for that, a moment */
    uint32_t ask_ms; /* somebody is asked where no rule decides, and has so long to answer; 0: nobody is */
    bool
        publish; /* the process of published ports: `reach` alone, and at the end what clients have not read yet goes out */
    int events; /* SOCK_SEQPACKET to pinfold: struct egress_event out, struct egress_order in; its end is the egress's */
};

/* Takes the sockets that the builder sends over `from` (protocol/egress.h). 0, or -errno: the box has no network then. */
int egress_receive(struct egress_ask *ask, int from);
/* Serves until `events` ends. Never returns. Locks itself in first; exits 1 at once when that fails. */
_Noreturn void egress_serve(const struct egress_ask *ask);
/* No file system, no new privileges, only the calls it needs. 0 or -errno. */
int egress_lock(void);
