/*
 * What the builder of a box, pinfold and the egress process say to each other. The builder makes sockets inside the box's
 * network namespace and passes them to the egress in one message; the egress tells pinfold what it decided.
 *
 * Published ports have a process of their own, which enters the box's network; it gets the namespaces from the builder: two
 * messages of one byte, each with a descriptor, the user namespace first.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define EGRESS_DNS_ADDRESS "127.53.53.53" /* what the box's resolv.conf names */
#define EGRESS_PROXY_PORT  61080          /* 127.0.0.1, HTTP and SOCKS on one port */
#define EGRESS_CATCH_PORT  61081          /* where caught connections arrive */
#define EGRESS_MAX_REACH   16             /* services of the host that appear inside, and ports published */

#define EGRESS_MAX_PORTS 64 /* listeners of the ways that need one for each port */

/* How a connection that knows no proxy gets to the egress; CATCH's `a`. */
enum catch_way {
    CATCH_TPROXY,   /* nf_tables hands every TCP connection to one listener                                        */
    CATCH_ROUTES,   /* every address is local, and each listed port has a listener                                 */
    CATCH_LOOPBACK, /* names get stand-ins in 127.64.0.0/10, and each listed port has a listener: needs no powers  */
    CATCH_SOCKET    /* without a network namespace: no inet sockets at all, the proxy at a Unix socket             */
};

enum egress_socket { EGRESS_CATCH, EGRESS_PROXY, EGRESS_DNS_UDP, EGRESS_DNS_TCP, EGRESS_SOCKETS };

/*
 * One message for each socket, with the socket: EGRESS_SOCKETS (the first with CATCH_TPROXY only), then the listeners of
 * REACH and LISTEN steps in their order.
 */
struct egress_socket_frame {
    uint32_t index, v6; /* v6: the namespace has IPv6 */
};

enum egress_how { HOW_DNS, HOW_TRANSPARENT, HOW_CONNECT, HOW_HTTP, HOW_SOCKS, HOW_REACH, HOW_PUBLISH };
#define EGRESS_NAME 254

/* Why an address is not dialled, whatever name led to it; egress_event's reason begins so. */
#define EGRESS_AT_PRIVATE  "is at a private address"
#define EGRESS_AT_RESERVED "is at a reserved or link-local address"
#define EGRESS_AT_METADATA "is at a cloud metadata endpoint"
#define EGRESS_AT_LOOPBACK "is at a loopback address"
#define EGRESS_AT_OWN      "is at an address of this machine"

/* Why bytes are not passed on; egress_event's reason. "/tcp" behind the port in a rule lets other protocols flow. */
#define EGRESS_ONLY_TLS  "only TLS may flow on port 443"
#define EGRESS_ONLY_HTTP "only HTTP may flow on port 80"

#define EGRESS_RULE_NONE     UINT32_MAX       /* by default */
#define EGRESS_RULE_ASKED    (UINT32_MAX - 1) /* somebody was asked */
#define EGRESS_MAX_QUESTIONS 32               /* open at one time; what would be one more is refused */

enum egress_said {
    SAID_DECISION, /* with a ticket: whoever was refused waits until pinfold has looked who it is (ORDER_SEEN) */
    SAID_ASK,      /* no rule decides: the ticket waits for ORDER_ANSWER                                      */
    SAID_RULES     /* ORDER_RULES `ticket` holds now; `count` tunnels were closed                             */
};
enum egress_what {
    EGRESS_DENIED,
    EGRESS_ALLOWED,
    EGRESS_FAILED /* allowed, but whoever is asked did not let it through */
};
struct egress_event {
    uint8_t said;      /* enum egress_said */
    uint8_t what, how; /* enum egress_what, enum egress_how */
    uint8_t by_proxy;  /* the caller's own proxy was asked for it */
    uint8_t udp;       /* of from and to */
    uint16_t port;     /* 0: a question of the resolver */
    uint16_t from_port, to_port;
    uint32_t rule; /* the id that came with the rule; of HOW_REACH: which of the services */
    uint32_t ticket, count;
    uint32_t lost; /* events before this one that could not be sent */
    uint32_t
        counted; /* equal ones that follow are counted alone, there (1 ...) in struct egress_counts; 0: each is told */
    uint8_t from[16]; /* who is refused: the ends of its socket, v4 addresses mapped into v6; zeros: not known */
    uint8_t to[16];
    char name[EGRESS_NAME]; /* as the box said it, canonical, or "" */
    char address[46];       /* what was dialled or refused, or "" */
    char reason[96];        /* a clause, or "" */
};

/*
 * Memory of both: how often a decision that was told was taken again since. A tunnel of many to one place costs its own work,
 * not pinfold's.
 */
#define EGRESS_COUNTS 256
struct egress_counts {
    _Atomic uint64_t n[EGRESS_COUNTS];
};

/* What pinfold says to the egress, on the socket of the events. */
enum egress_order_kind {
    ORDER_RULES,  /* with a descriptor: `bytes` of struct host_rule, in place of all rules */
    ORDER_ANSWER, /* to SAID_ASK: enum egress_answer                                       */
    ORDER_SEEN,   /* to a SAID_DECISION with a ticket                                      */
    ORDER_RESOLV, /* with a descriptor: the text of resolv.conf                            */
    ORDER_HOSTS   /* with a descriptor: the text of hosts                                  */
};
enum egress_answer { ANSWER_NO, ANSWER_YES, ANSWER_LATE, ANSWER_NOBODY };
struct egress_order {
    uint32_t kind, ticket, answer;
    uint32_t bytes; /* in the descriptor that comes along, from its beginning */
};
#define EGRESS_MAX_ORDER (64u << 20)
