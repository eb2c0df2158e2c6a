/* Requests to the kernel's network that never differ: made while pinfold is built (tools/net_gen.c), used by catch.c. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct net_request {
    unsigned acks; /* how many of its messages the kernel acknowledges */
    size_t n;
    const uint8_t *bytes;
};

extern const struct net_request net_up, net_address4; /* lo; its address that is no loopback address */
extern const struct net_request net_routes4, net_routes6;
extern const struct net_request net_only_tcp4, net_only_tcp6; /* CATCH_ROUTES */
extern const struct net_request net_rules;                    /* CATCH_TPROXY, of nf_tables */
extern const struct net_request net_list_routes;
