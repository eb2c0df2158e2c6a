/*
 * The egress proxy: the only process through which a box reaches the network. It lives in the host's network namespace,
 * holds sockets created in the box's, and locks itself down (confine.c) before it reads a byte from them. If it dies,
 * the sockets close with it: the box then has no network.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "match/host.h"
#include "policy/proxy.h"
#include "protocol/egress.h"

/* The host's resolver configuration (resolv.conf(5)), from resolv_parse(); hosts as text. */
#define EGRESS_SERVERS 3
#define EGRESS_SEARCH  6
struct egress_resolver {
    struct host_addr servers[EGRESS_SERVERS];
    uint16_t ports[EGRESS_SERVERS];
    uint32_t zones[EGRESS_SERVERS]; /* the interface's number for a link-local address, else 0 */
    unsigned n_servers;
    char search[EGRESS_SEARCH][HOST_NAME_MAX_TEXT + 1];
    unsigned n_search, ndots, timeout_s, attempts;
    struct str hosts; /* the text of /etc/hosts, borrowed */
};
void resolv_parse(struct str text, struct egress_resolver *ret); /* unknown lines are skipped, as libc does */
/* Addresses of `name` in a hosts(5) text; returns how many were written. */
size_t hosts_find(struct str text, const char *name, struct host_addr *out, size_t room);

struct egress_reach {            /* a service of the host, at the same address in the box; or a published port */
    struct host_addr addr, also; /* `also` is tried after `addr` if `both` is set */
    bool both;
    uint16_t port;
    int listener; /* in the box, or for a published port on the host; owned */
};

struct egress_ask {
    const struct host_rule *rules;
    size_t n_rules;
    struct egress_reach reach[EGRESS_MAX_REACH];
    size_t n_reach;
    struct egress_resolver resolver;
    const struct proxies *proxies; /* of the caller; NULL: connect directly */
    int sockets[EGRESS_SOCKETS];   /* owned; filled in by egress_receive(), as are the listeners of `reach` */
    int ports[EGRESS_MAX_PORTS];   /* listeners of LISTEN steps, owned */
    size_t n_ports;
    enum catch_way way;
    struct egress_counts *counts; /* shared with pinfold; NULL: send each decision */
    bool v6;
    bool who;        /* pinfold identifies refused clients: a refusal waits a moment for that */
    uint32_t ask_ms; /* time to answer a question where no rule decides, in ms; 0: no questions */
    bool publish; /* the process of published ports: only `reach`; at the end, unread data is still sent to clients */
    /* SOCK_SEQPACKET to pinfold: struct egress_event out, struct egress_order in; when it closes, the proxy exits */
    int events;
};

/* Receives the sockets that the builder sends on `from` (protocol/egress.h). 0, or -errno: the box then has no
   network. */
int egress_receive(struct egress_ask *ask, int from);
/* Locks itself down (exits with 1 if that fails) and serves until `events` closes. Never returns. */
_Noreturn void egress_serve(const struct egress_ask *ask);
/* Gives up file system, new privileges, and all system calls but those it needs. 0 or -errno. */
int egress_lock(void);
