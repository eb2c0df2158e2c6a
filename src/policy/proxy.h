/*
 * The caller's own proxy, from the environment: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY, lower-case names first.
 * There is no standard; this is what curl(1), Go and Python agree on: NO_PROXY lists hosts including everything below
 * them, with or without a leading dot or "*.", addresses, ranges, each with or without a port, or "*". Pure.
 *
 * A URL may contain a password. It is kept apart from everything printed, and no message quotes a URL.
 */
#pragma once
#include "base/arena.h"
#include "match/host.h"

enum proxy_kind { PROXY_HTTP /* CONNECT */, PROXY_SOCKS /* version 5, names are sent */ };
struct proxy {
    const char *variable; /* the variable that sets it, spelled as the caller does; NULL: no proxy */
    enum proxy_kind kind;
    struct host host;
    uint16_t port;
    struct str user, password; /* decoded; user.p NULL: none given */
    const char *basic;         /* the same for HTTP: base64 of "user:password" */
};
struct proxies {
    struct proxy plain, other;      /* for http:// and port 80; for everything else */
    struct host_rule *direct;       /* NO_PROXY: RULE_ALLOW means a direct connection */
    const char *const *direct_text; /* the entries as said */
    size_t n_direct;
    const char **skipped; /* entries of NO_PROXY that name no host, NULL-terminated, or NULL */
};

/* `environ`: NAME=VALUE, NULL-terminated. *ret is NULL if no proxy is set. */
int proxies_read(const char *const *environ, struct arena *mem, const struct proxies **ret, struct err *e);
/* The proxy for a destination; NULL: connect directly. `plain`: requested as http://, or port 80. */
const struct proxy *proxy_for(const struct proxies *all, const struct host *h, uint16_t port, bool plain);
/* Whether a name, by its form, belongs to this machine or its local network. */
bool name_is_local(const char *name);
/* "http://proxy.corp:3128", without credentials; into PROXY_TEXT bytes. */
#define PROXY_TEXT (HOST_NAME_MAX_TEXT + 32)
const char *proxy_print(const struct proxy *p, char text[PROXY_TEXT]);
