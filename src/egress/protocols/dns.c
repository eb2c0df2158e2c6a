/* Parses and writes DNS messages: the box's queries, and the queries and answers of the egress proxy's own resolver.
   Both sides are hostile; fuzz_dns.c reads any bytes by it. */
#include "egress/protocols/proto.h"

#include <errno.h>

static unsigned get16(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}
static void put16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

/* Reads the name at `at` as text, following compression (only backwards, so that it ends); returns its size at `at`,
   or -EBADMSG. Bytes that are not valid in host names are kept: host_parse() judges them. */
static ssize_t name_read(struct str in, size_t at, char out[256], size_t *ret_n)
{
    const uint8_t *p = (const uint8_t *)in.p;
    size_t n = 0, end = 0, limit = at;
    bool jumped = false;

    while (true) {
        if (at >= in.n)
            return -EBADMSG;
        unsigned len = p[at];
        if ((len & 0xC0) == 0xC0) {
            if (at + 1 >= in.n)
                return -EBADMSG;
            size_t to = (size_t)(len & 0x3F) << 8 | p[at + 1];
            if (!jumped)
                end = at + 2;
            jumped = true;
            if (to >= limit)
                return -EBADMSG;
            limit = at = to;
            continue;
        }
        if (len & 0xC0 || at + 1 + len > in.n)
            return -EBADMSG;
        if (len == 0)
            break;
        if (n + len + 1 > 254)
            return -EBADMSG;
        if (n)
            out[n++] = '.';
        memcpy(out + n, p + at + 1, len);
        n += len;
        at += 1 + len;
    }
    out[n] = 0;
    *ret_n = n;
    return (ssize_t)((jumped ? end : at + 1));
}

int dns_query_parse(struct str in, struct dns_question *ret)
{
    struct dns_question q = {0};
    const uint8_t *p = (const uint8_t *)in.p;
    char name[256];
    size_t n = 0;

    if (in.n < 12 || p[2] & 0x80)
        return -EBADMSG;
    q.id = (uint16_t)get16(p);
    q.recursion = p[2] & 1;
    q.end = 12;
    if ((p[2] & 0x78) != 0 || get16(p + 4) != 1) {
        *ret = q;
        return -ENOTSUP;
    }
    ssize_t at = name_read(in, 12, name, &n);
    if (at < 0 || (size_t)at + 4 > in.n)
        return -EBADMSG;
    q.type = (uint16_t)get16(p + at);
    q.class = (uint16_t)get16(p + at + 2);
    q.end = (size_t)at + 4;
    /* A NUL or dot inside a label would make it ambiguous: the text must have the full length, and dots only
       separate labels. */
    q.valid_name = n && host_parse((struct str){name, n}, &q.host) == 0 && q.host.kind == HOST_NAME;
    for (size_t i = 12; q.valid_name && i < q.end - 5; i += 1 + p[i]) {
        if (p[i] & 0xC0)
            break;
        if (memchr(p + i + 1, '.', p[i]))
            q.valid_name = false;
    }
    *ret = q;
    return 0;
}

size_t dns_reply(struct str query, const struct dns_question *q, int rcode, const struct host_addr *addr, uint32_t ttl,
                 uint8_t *out, size_t room)
{
    size_t n = q->end;
    if (n > query.n || n + 12 + 16 > room)
        return 0;
    memcpy(out, query.p, n);
    out[2] = (uint8_t)(0x80 | (out[2] & 0x79)); /* a response; opcode and RD copied; not authoritative */
    out[3] = (uint8_t)(0x80 | rcode);           /* recursion available */
    put16(out + 4, n > 12);
    put16(out + 6, addr ? 1 : 0);
    put16(out + 8, 0);
    put16(out + 10, 0);
    if (addr) {
        unsigned len = addr->v6 ? 16 : 4;
        put16(out + n, 0xC00C);
        put16(out + n + 2, addr->v6 ? DNS_AAAA : DNS_A);
        put16(out + n + 4, 1);
        put16(out + n + 6, ttl >> 16);
        put16(out + n + 8, ttl & 0xFFFF);
        put16(out + n + 10, len);
        memcpy(out + n + 12, addr->b, len);
        n += 12 + len;
    }
    return n;
}

size_t dns_query(uint16_t id, const char *name, uint16_t type, uint8_t *out, size_t room)
{
    size_t n = 12;
    if (room < 12 + strlen(name) + 2 + 4)
        return 0;
    memset(out, 0, 12);
    put16(out, id);
    out[2] = 1; /* recursion desired */
    put16(out + 4, 1);
    while (*name) {
        const char *dot = strchr(name, '.');
        size_t len = dot ? (size_t)(dot - name) : strlen(name);
        if (len == 0 || len > 63)
            return 0;
        out[n++] = (uint8_t)len;
        memcpy(out + n, name, len);
        n += len;
        name += len + (dot ? 1 : 0);
    }
    out[n++] = 0;
    put16(out + n, type);
    put16(out + n + 2, 1);
    return n + 4;
}

/* Names are compared without regard to case (RFC 4343). */
static bool same_name(const char *a, size_t n, const char *b)
{
    if (n != strlen(b))
        return false;
    for (size_t i = 0; i < n; i++) {
        char x = a[i], y = b[i];
        if (x >= 'A' && x <= 'Z')
            x = (char)(x + 32);
        if (y >= 'A' && y <= 'Z')
            y = (char)(y + 32);
        if (x != y)
            return false;
    }
    return true;
}

int dns_answer_parse(struct str in, uint16_t id, const char *name, uint16_t type, struct host_addr *out, size_t room)
{
    const uint8_t *p = (const uint8_t *)in.p;
    char text[256], wanted[256];
    size_t n = 0, found = 0;

    if (in.n < 12 || get16(p) != id || !(p[2] & 0x80) || get16(p + 4) != 1)
        return -EAGAIN;
    ssize_t at = name_read(in, 12, text, &n);
    if (at < 0 || (size_t)at + 4 > in.n || !same_name(text, n, name) || get16(p + at) != type)
        return -EAGAIN;
    if (p[2] & 2)
        return -EMSGSIZE;
    if ((p[3] & 15) == DNS_NXDOMAIN)
        return -ENOENT;
    if (p[3] & 15)
        return -EIO;
    size_t first = (size_t)at + 4;
    unsigned answers = get16(p + 6);
    memcpy(wanted, text, n + 1);
    /* CNAMEs may be in any order: one pass per link of the chain, at most eight. */
    for (int hop = 0; hop < 8; hop++) {
        bool moved = false;
        size_t pos = first;
        for (unsigned i = 0; i < answers; i++) {
            ssize_t next = name_read(in, pos, text, &n);
            if (next < 0 || (size_t)next + 10 > in.n)
                return -EBADMSG;
            unsigned rtype = get16(p + next), class = get16(p + next + 2), len = get16(p + next + 8);
            pos = (size_t)next + 10;
            if (pos + len > in.n)
                return -EBADMSG;
            if (class == 1 && same_name(text, n, wanted)) {
                if (rtype == type && len == (type == DNS_AAAA ? 16u : 4u) && found < room) {
                    struct host_addr a = {.v6 = type == DNS_AAAA};
                    memcpy(a.b, p + pos, len);
                    char plain[46];
                    addr_print(&a, plain);
                    if (addr_parse(str_of(plain), &out[found]) == 0)
                        found++;
                } else if (rtype == DNS_CNAME && !moved) {
                    char to[256];
                    size_t to_n = 0;
                    if (name_read(in, pos, to, &to_n) < 0)
                        return -EBADMSG;
                    memcpy(wanted, to, to_n + 1);
                    moved = true;
                }
            }
            pos += len;
        }
        if (found || !moved)
            break;
    }
    return (int)found;
}
