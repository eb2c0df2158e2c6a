/* Parses SOCKS 4, 4a and 5 requests of programs in the box.
   A request is taken whole or not at all: more bytes, a request, or an error. */
#include "egress/protocols/proto.h"

#include <errno.h>

enum { MAX_SOCKS_TEXT = 256 }; /* a user or host name of SOCKS 4, with its NUL */

static uint8_t byte(struct str s, size_t at)
{
    return (uint8_t)s.p[at];
}

ssize_t socks5_greeting(struct str in, bool *ret_no_auth)
{
    if (in.n < 2)
        return 0;
    size_t n = 2 + (size_t)byte(in, 1);
    if (byte(in, 0) != 5 || n == 2)
        return -EBADMSG;
    if (in.n < n)
        return 0;
    *ret_no_auth = memchr(in.p + 2, 0, n - 2) != NULL;
    return (ssize_t)n;
}

ssize_t socks5_request(struct str in, struct socks_request *ret)
{
    struct socks_request q = {.version = 5};
    size_t n;

    if (in.n < 5)
        return 0;
    if (byte(in, 0) != 5 || byte(in, 2) != 0)
        return -EBADMSG;
    q.command = byte(in, 1);
    switch (byte(in, 3)) {
    case 1:
        n = 4 + 4;
        break;
    case 3:
        n = 5 + (size_t)byte(in, 4);
        break;
    case 4:
        n = 4 + 16;
        break;
    default:
        return -EAFNOSUPPORT;
    }
    if (in.n < n + 2)
        return 0;
    if (byte(in, 3) == 3) {
        if (host_parse((struct str){in.p + 5, n - 5}, &q.host) < 0)
            return -EINVAL;
    } else {
        q.host.kind = HOST_ADDR;
        char text[46];
        struct host_addr raw = {.v6 = byte(in, 3) == 4};
        memcpy(raw.b, in.p + 4, n - 4);
        addr_print(&raw, text); /* by the one parser, which maps v4-in-v6 addresses to v4 */
        if (addr_parse(str_of(text), &q.host.addr) < 0)
            return -EINVAL;
    }
    q.port = (uint16_t)(byte(in, n) << 8 | byte(in, n + 1));
    if (q.port == 0)
        return -EINVAL;
    *ret = q;
    return (ssize_t)n + 2;
}

ssize_t socks4_request(struct str in, struct socks_request *ret)
{
    struct socks_request q = {.version = 4};

    if (in.n < 9)
        return in.n && byte(in, 0) != 4 ? -EBADMSG : 0;
    if (byte(in, 0) != 4)
        return -EBADMSG;
    q.command = byte(in, 1);
    q.port = (uint16_t)(byte(in, 2) << 8 | byte(in, 3));
    size_t user = in.n - 8 < MAX_SOCKS_TEXT ? in.n - 8 : MAX_SOCKS_TEXT;
    const char *user_end = memchr(in.p + 8, 0, user);
    if (!user_end)
        return user == MAX_SOCKS_TEXT ? -EBADMSG : 0;
    struct str rest = str_skip(in, (size_t)(user_end - in.p) + 1);
    if (byte(in, 4) == 0 && byte(in, 5) == 0 && byte(in, 6) == 0 && byte(in, 7) != 0) { /* SOCKS4a: 0.0.0.x */
        size_t most = rest.n < MAX_SOCKS_TEXT ? rest.n : MAX_SOCKS_TEXT;
        const char *end = most ? memchr(rest.p, 0, most) : NULL;
        if (!end)
            return most == MAX_SOCKS_TEXT ? -EBADMSG : 0;
        struct str name = {rest.p, (size_t)(end - rest.p)};
        if (host_parse(name, &q.host) < 0)
            return -EINVAL;
        rest = str_skip(rest, name.n + 1);
    } else {
        q.host.kind = HOST_ADDR;
        memcpy(q.host.addr.b, in.p + 4, 4);
    }
    if (q.port == 0)
        return -EINVAL;
    *ret = q;
    return rest.p - in.p;
}
