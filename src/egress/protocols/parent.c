/* The handshake with a parent proxy, HTTP CONNECT or SOCKS 5: what to send and what its answer means.
   Only bytes in and out; dial.c has the connection. */
#include "egress/protocols/proto.h"

#include <stdio.h>

static size_t parent_put(char *out, size_t at, const void *bytes, size_t n)
{
    memcpy(out + at, bytes, n);
    return at + n;
}

size_t parent_say(const struct proxy *p, enum parent_step step, const char *host, uint16_t port, char out[PARENT_SAY])
{
    const char ports[2] = {(char)(port >> 8), (char)port};
    size_t n = strlen(host), at = 0;
    char byte;
    int k;

    switch (step) {
    case PARENT_CONNECT:
        k = snprintf(out, PARENT_SAY, "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n%s%s%s\r\n", host, port, host, port,
                     p->basic ? "Proxy-Authorization: Basic " : "", p->basic ? p->basic : "", p->basic ? "\r\n" : "");
        return k > 0 && k < PARENT_SAY ? (size_t)k : 0;
    case PARENT_GREET:
        return p->user.p ? parent_put(out, 0, "\5\2\0\2", 4) : parent_put(out, 0, "\5\1\0", 3);
    case PARENT_LOGIN: /* both have at most 255 bytes (policy/proxy.c) */
        byte = (char)p->user.n;
        at = parent_put(out, parent_put(out, 0, "\1", 1), &byte, 1);
        at = parent_put(out, at, p->user.p, p->user.n);
        byte = (char)p->password.n;
        at = parent_put(out, at, &byte, 1);
        return parent_put(out, at, p->password.p, p->password.n);
    case PARENT_REQUEST:
        byte = (char)n;
        at = parent_put(out, parent_put(out, 0, "\5\1\0\3", 4), &byte, 1);
        return parent_put(out, parent_put(out, at, host, n), ports, 2);
    case PARENT_OPEN:
        break;
    }
    return 0;
}

static ssize_t no(char why[PARENT_WHY], const char *clause, unsigned code)
{
    if (code)
        snprintf(why, PARENT_WHY, "%s (%u)", clause, code);
    else
        snprintf(why, PARENT_WHY, "%s", clause);
    return -EACCES;
}

static ssize_t hear_connect(const struct proxy *p, struct str in, enum parent_step *ret_next, char why[PARENT_WHY])
{
    static const char end[] = "\r\n\r\n";
    size_t n = 0;
    for (size_t i = 0; n == 0 && i + 4 <= in.n; i++)
        n = memcmp(in.p + i, end, 4) == 0 ? i + 4 : 0;
    if (n == 0)
        return in.n >= PARENT_HEAR ? no(why, "the parent proxy sent an invalid answer", 0) : 0;
    unsigned code = 0;
    bool good = n > 12 && memcmp(in.p, "HTTP/1.", 7) == 0 && in.p[8] == ' ';
    for (size_t i = 9; good && i < 12; i++) {
        good = in.p[i] >= '0' && in.p[i] <= '9';
        code = code * 10 + (unsigned)(in.p[i] - '0');
    }
    if (!good)
        return no(why, "the parent proxy sent an invalid answer", 0);
    if (code >= 200 && code < 300) {
        *ret_next = PARENT_OPEN;
        return (ssize_t)n;
    }
    ssize_t r = no(why,
                   code == 407   ? p->basic ? "the parent proxy rejected the credentials"
                                            : "the parent proxy requires credentials"
                   : code == 403 ? "the parent proxy refused it"
                   : code == 405 ? "the parent proxy does not forward to this port"
                   : code >= 500 ? "the parent proxy could not reach it"
                                 : "the parent proxy answered with an error",
                   code);
    return code == 403 || code == 405 ? -EPERM : r;
}

static ssize_t hear_greeting(const struct proxy *p, struct str in, enum parent_step *ret_next, char why[PARENT_WHY])
{
    if (in.n < 2)
        return 0;
    if (in.p[0] != 5)
        return no(why, "the parent proxy does not support SOCKS 5", 0);
    if (in.p[1] != 0 && (in.p[1] != 2 || !p->user.p))
        return no(why, "the parent proxy requires credentials", 0);
    *ret_next = in.p[1] ? PARENT_LOGIN : PARENT_REQUEST;
    return 2;
}

static ssize_t hear_request(struct str in, enum parent_step *ret_next, char why[PARENT_WHY])
{
    if (in.n < 5)
        return 0;
    unsigned code = (uint8_t)in.p[1], type = (uint8_t)in.p[3];
    size_t n = type == 1 ? 10 : type == 4 ? 22 : type == 3 ? 7u + (uint8_t)in.p[4] : 0;
    if (in.p[0] != 5 || n == 0)
        return no(why, "the parent proxy sent an invalid answer", 0);
    if (code)
        return no(why, code == 2 ? "the parent proxy refused it" : "the parent proxy could not reach it", code);
    if (in.n < n)
        return 0;
    *ret_next = PARENT_OPEN;
    return (ssize_t)n;
}

ssize_t parent_hear(const struct proxy *p, enum parent_step step, struct str in, enum parent_step *ret_next,
                    char why[PARENT_WHY])
{
    switch (step) {
    case PARENT_CONNECT:
        return hear_connect(p, in, ret_next, why);
    case PARENT_GREET:
        return hear_greeting(p, in, ret_next, why);
    case PARENT_LOGIN:
        if (in.n < 2)
            return 0;
        if (in.p[1])
            return no(why, "the parent proxy rejected the credentials", 0);
        *ret_next = PARENT_REQUEST;
        return 2;
    case PARENT_REQUEST:
        return hear_request(in, ret_next, why);
    case PARENT_OPEN:
        break;
    }
    return no(why, "the parent proxy sent an invalid answer", 0);
}
