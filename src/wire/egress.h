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
enum egress_what {
    EGRESS_DENIED,
    EGRESS_ALLOWED,
    EGRESS_FAILED /* allowed, but whoever is asked did not let it through */
};
struct egress_event {
    uint8_t what, how;      /* enum egress_what, enum egress_how */
    uint8_t by_proxy;       /* the caller's own proxy was asked for it */
    uint16_t port;          /* 0: a question of the resolver */
    uint32_t rule;          /* index into the egress's rules, UINT32_MAX: by default */
    char name[EGRESS_NAME]; /* as the box said it, canonical, or "" */
    char address[46];       /* what was dialled or refused, or "" */
    char reason[96];        /* a clause, or "" */
};
