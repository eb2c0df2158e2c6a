/*
 * The proxy that the caller himself goes through, as his environment says it: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY,
 * the small letters first. There is no standard for these; what is read here is what curl(1), Go and Python agree on:
 * NO_PROXY names a host and what is below it, with or without a leading dot or "*.", an address, a range, each with a port
 * behind it or not, or "*". Pure.
 *
 * A URL may hold a password. It is kept apart from all that is printed, and no message here quotes a URL.
 */
#pragma once
#include "base/arena.h"
#include "match/host.h"

enum proxy_kind { PROXY_HTTP /* CONNECT */, PROXY_SOCKS /* version 5, names are sent */ };
struct proxy {
    const char *variable; /* that says it, as the caller spells it; NULL: there is no proxy */
    enum proxy_kind kind;
    struct host host;
    uint16_t port;
    struct str user, password; /* decoded; user.p NULL: none were said */
    const char *basic;         /* the same for HTTP: base64 of "user:password" */
};
struct proxies {
    struct proxy plain, other;      /* for http:// and port 80; for everything else */
    struct host_rule *direct;       /* NO_PROXY: RULE_ALLOW means dialled directly */
    const char *const *direct_text; /* the entries as said */
    size_t n_direct;
    const char **skipped; /* entries of NO_PROXY that are no host, NULL-terminated, or NULL */
};

/* `environ`: NAME=VALUE, NULL-terminated. *ret is NULL when nothing goes through a proxy. */
int proxies_read(const char *const *environ, struct arena *mem, const struct proxies **ret, struct err *e);
/* The proxy for a destination, or NULL: directly. `plain`: asked for as http://, or port 80. */
const struct proxy *proxy_for(const struct proxies *all, const struct host *h, uint16_t port, bool plain);
/* Whether a name means something on this machine or in its network alone, by its form. */
bool name_is_local(const char *name);
/* "http://proxy.corp:3128", without credentials; into PROXY_TEXT bytes. */
#define PROXY_TEXT (HOST_NAME_MAX_TEXT + 32)
const char *proxy_print(const struct proxy *p, char text[PROXY_TEXT]);
