/*
 * Messages between the builder of a box, pinfold and the egress proxy. The builder creates sockets in the box's network
 * namespace and sends them to the egress proxy; the proxy reports its decisions to pinfold.
 *
 * Published ports are served by a separate process that enters the box's network. The builder sends it the namespaces:
 * two one-byte messages, each with a descriptor, the user namespace first.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define EGRESS_DNS_ADDRESS "127.53.53.53" /* the nameserver in the box's resolv.conf */
#define EGRESS_PROXY_PORT  61080          /* 127.0.0.1, HTTP and SOCKS on one port */
#define EGRESS_CATCH_PORT  61081          /* where redirected connections arrive */
#define EGRESS_MAX_REACH   16 /* services of the host visible in the box; also the limit for published ports */

#define EGRESS_MAX_PORTS 64 /* listeners, for the methods that need one per port */

/* How connections of programs that know no proxy reach the egress proxy; `a` of the step CATCH. */
enum catch_way {
    CATCH_TPROXY, /* nftables redirects every TCP connection to one listener */
    CATCH_ROUTES, /* every address is local, and each listed port has a listener */
    /* names resolve to fake IPs in 127.64.0.0/10, and each listed port has a listener; needs no privileges */
    CATCH_LOOPBACK,
    CATCH_SOCKET /* no network namespace: no inet sockets at all; the proxy is at a Unix socket */
};

enum egress_socket { EGRESS_CATCH, EGRESS_PROXY, EGRESS_DNS_UDP, EGRESS_DNS_TCP, EGRESS_SOCKETS };

/*
 * One message per socket: EGRESS_SOCKETS (the first one with CATCH_TPROXY only), then the listeners of the steps REACH
 * and LISTEN in their order.
 */
struct egress_socket_frame {
    uint32_t index, v6; /* v6: the namespace has IPv6 */
};

enum egress_how { HOW_DNS, HOW_TRANSPARENT, HOW_CONNECT, HOW_HTTP, HOW_SOCKS, HOW_REACH, HOW_PUBLISH };
#define EGRESS_NAME 254

/* Why an address is not connected to, whatever name led to it; the beginning of egress_event's reason. */
#define EGRESS_AT_PRIVATE  "is at a private address"
#define EGRESS_AT_RESERVED "is at a reserved or link-local address"
#define EGRESS_AT_METADATA "is at a cloud metadata endpoint"
#define EGRESS_AT_LOOPBACK "is at a loopback address"
#define EGRESS_AT_OWN      "is at an address of this machine"
#define EGRESS_AT_UNKNOWN  "may stand for a private address by NAT64, of which the resolver tells nothing"

/* Why data is not passed on; egress_event's reason. "/tcp" after the port in a rule permits other protocols. */
#define EGRESS_ONLY_TLS  "only TLS may flow on port 443"
#define EGRESS_ONLY_HTTP "only HTTP may flow on port 80"

#define EGRESS_RULE_NONE     UINT32_MAX       /* the default */
#define EGRESS_RULE_ASKED    (UINT32_MAX - 1) /* a question was answered */
#define EGRESS_MAX_QUESTIONS 32               /* open at one time; further ones are refused */

enum egress_said {
    SAID_DECISION, /* with a ticket: the refused client waits until pinfold has identified its process (ORDER_SEEN) */
    SAID_ASK,      /* no rule decides: the connection with this ticket waits for ORDER_ANSWER */
    SAID_RULES     /* the rules of ORDER_RULES number `ticket` are in force; `count` tunnels were closed */
};
enum egress_what {
    EGRESS_DENIED,
    EGRESS_ALLOWED,
    EGRESS_FAILED /* allowed, but the upstream (resolver, server or parent proxy) failed */
};
struct egress_event {
    uint8_t said;      /* enum egress_said */
    uint8_t what, how; /* enum egress_what, enum egress_how */
    uint8_t by_proxy;  /* through the caller's own proxy */
    uint8_t udp;       /* of from and to */
    uint16_t port;     /* 0: a DNS query */
    uint16_t from_port, to_port;
    uint32_t rule; /* id of the rule; with HOW_REACH: number of the service */
    uint32_t ticket, count;
    uint32_t lost; /* events before this one that could not be sent */
    uint32_t
        /* repetitions of this event are only counted, in this entry (from 1) of struct egress_counts; 0: each one is
           sent */
        counted;
    uint8_t from[16]; /* both ends of the refused client's socket, IPv4 addresses mapped into IPv6; zeros: unknown */
    uint8_t to[16];
    char name[EGRESS_NAME]; /* as the client named it, canonical, or "" */
    char address[46];       /* the address that was connected to or refused, or "" */
    char reason[96];        /* a clause, or "" */
};

/*
 * Memory shared by both: how often an event that was sent has happened again. So a flood of equal connections costs
 * pinfold nothing.
 */
#define EGRESS_COUNTS 256
struct egress_counts {
    _Atomic uint64_t n[EGRESS_COUNTS];
    _Atomic uint64_t
        lost; /* events that could not be sent since the last one that could: no other will tell of these */
};

/* What pinfold sends to the egress proxy, or to the process of published ports, on the socket of the events. */
enum egress_order_kind {
    ORDER_RULES,  /* with a descriptor: `bytes` of struct host_rule, which replace all rules */
    ORDER_ANSWER, /* answers a SAID_ASK: enum egress_answer */
    ORDER_SEEN,   /* answers a SAID_DECISION that has a ticket */
    ORDER_RESOLV, /* with a descriptor: the text of resolv.conf */
    ORDER_HOSTS,  /* with a descriptor: the text of hosts */
    ORDER_LISTEN  /* published ports; with a descriptor: a listener, which leads to port `ticket` of the box */
};
enum egress_answer { ANSWER_NO, ANSWER_YES, ANSWER_LATE, ANSWER_NOBODY };
struct egress_order {
    uint32_t kind, ticket, answer;
    uint32_t bytes; /* size of the content of the descriptor that comes along */
};
#define EGRESS_MAX_ORDER (64u << 20)
