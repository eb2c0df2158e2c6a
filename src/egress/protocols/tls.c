/* Finds the server name in a TLS ClientHello, which may be split over several records.
   Nothing is decrypted; what is not a hello ends the connection at the first byte that cannot be one. */
#include "egress/protocols/proto.h"

#include <errno.h>

/* A bounds-checked reader: `bad` stays set once something was missing. */
struct hello_reader {
    const uint8_t *p;
    size_t n;
    bool bad;
};

static unsigned tls_take(struct hello_reader *r, unsigned bytes)
{
    unsigned v = 0;
    if (r->n < bytes) {
        r->bad = true;
        r->n = 0;
        return 0;
    }
    for (unsigned i = 0; i < bytes; i++)
        v = v << 8 | r->p[i];
    r->p += bytes;
    r->n -= bytes;
    return v;
}

static struct hello_reader sub(struct hello_reader *r, size_t n)
{
    struct hello_reader s = {r->p, n, false};
    if (n > r->n) {
        r->bad = s.bad = true;
        s.n = 0;
        return s;
    }
    r->p += n;
    r->n -= n;
    return s;
}

bool tls_looks_like(struct str in)
{
    return in.n && (uint8_t)in.p[0] >= 0x14 && (uint8_t)in.p[0] <= 0x17;
}

int tls_old_hello(struct str in)
{
    const uint8_t *p = (const uint8_t *)in.p;
    if ((in.n > 0 && !(p[0] & 0x80)) || (in.n > 2 && p[2] != 1))
        return -1;
    if (in.n < 11)
        return 0;
    unsigned whole = (p[0] & 0x7fu) << 8 | p[1], ciphers = (unsigned)p[5] << 8 | p[6];
    unsigned session = (unsigned)p[7] << 8 | p[8], challenge = (unsigned)p[9] << 8 | p[10];
    return ciphers % 3 == 0 && whole == 9 + ciphers + session + challenge ? 1 : -1;
}

int tls_asks_again(struct tls_answer *a, struct str in)
{
    static const uint8_t retry[32] = {0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
                                      0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
                                      0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};
    enum { RECORD = 5, HELLO = 6, WHOLE = RECORD + HELLO + sizeof retry, ALERT = 0x80, ALERT_BYTES = 7 };
    for (size_t i = 0; i < in.n; i++) {
        uint8_t byte = (uint8_t)in.p[i];
        if (a->at == 0 && byte == 0x15) { /* a warning may come first */
            a->at = ALERT + 1;
            continue;
        }
        if (a->at & ALERT) {
            a->at = a->at + 1 == ALERT + ALERT_BYTES ? 0 : (uint8_t)(a->at + 1);
            continue;
        }
        if (a->at == 3)
            a->high = byte;
        if (a->at == 4 && a->high == 0 && byte < WHOLE - RECORD) /* split over several records, which nobody does */
            return 1;
        if ((a->at == 0 && byte != 0x16) || (a->at == RECORD && byte != 2) ||
            (a->at >= RECORD + HELLO && byte != retry[a->at - RECORD - HELLO]))
            return -1;
        if (++a->at == WHOLE)
            return 1;
    }
    return 0;
}

static int server_name(struct hello_reader *ext, struct tls_hello *h)
{
    struct hello_reader list = sub(ext, tls_take(ext, 2));
    while (list.n && !list.bad) {
        unsigned type = tls_take(&list, 1);
        struct hello_reader name = sub(&list, tls_take(&list, 2));
        if (list.bad)
            return -EBADMSG;
        if (type != 0)
            continue;
        if (h->has_name || host_parse((struct str){(const char *)name.p, name.n}, &h->name) < 0 ||
            h->name.kind != HOST_NAME)
            return -EBADMSG;
        h->has_name = true;
    }
    return list.bad || ext->bad || ext->n || !h->has_name ? -EBADMSG : 0; /* and nothing follows */
}

static int client_hello(struct hello_reader r, struct tls_hello *ret)
{
    struct tls_hello h = {0};
    tls_take(&r, 2);          /* legacy_version */
    sub(&r, 32);              /* random */
    sub(&r, tls_take(&r, 1)); /* session id */
    sub(&r, tls_take(&r, 2)); /* cipher suites */
    sub(&r, tls_take(&r, 1)); /* compression */
    if (r.bad)
        return -EBADMSG;
    if (r.n) {
        struct hello_reader all = sub(&r, tls_take(&r, 2));
        while (all.n && !all.bad) {
            unsigned type = tls_take(&all, 2);
            struct hello_reader ext = sub(&all, tls_take(&all, 2));
            if (all.bad)
                break;
            if (type == 0 && server_name(&ext, &h) < 0)
                return -EBADMSG;
            if (type == 0xfe0d) /* encrypted_client_hello */
                h.ech = true;
        }
        if (all.bad || r.bad || r.n)
            return -EBADMSG;
    }
    *ret = h;
    return 0;
}

ssize_t tls_hello_parse(struct str in, struct tls_hello *ret)
{
    uint8_t joined[MAX_CLIENT_HELLO];
    size_t have = 0, at = 0;

    while (true) {
        const uint8_t *p = (const uint8_t *)in.p + at;
        size_t there = in.n - at;
        if ((there > 0 && p[0] != 0x16) ||
            (there > 1 && p[1] != 3)) /* the minor version has no meaning (RFC 8446 5.1) */
            return -EBADMSG;
        if (there < 5)
            return in.n >= MAX_CLIENT_HELLO ? -EBADMSG : 0;
        size_t n = (size_t)(p[3] << 8 | p[4]);
        if (n == 0 || n > 16384 + 256)
            return -EBADMSG;
        size_t got = in.n - at - 5 < n ? in.n - at - 5 : n;
        if (got > sizeof joined - have)
            return -EBADMSG;
        memcpy(joined + have, p + 5, got);
        have += got;
        if (have && joined[0] != 1)
            return -EBADMSG;
        if (have >= 4) {
            size_t body = (size_t)joined[1] << 16 | (size_t)joined[2] << 8 | joined[3];
            if (body > sizeof joined - 4 || have > 4 + body) /* nothing follows it in its record */
                return -EBADMSG;
            if (have == 4 + body) {
                if (got < n)
                    return -EBADMSG;
                int r = client_hello((struct hello_reader){joined + 4, body, false}, ret);
                return r < 0 ? r : (ssize_t)(at + 5 + got);
            }
        }
        if (got < n)
            return in.n >= MAX_CLIENT_HELLO ? -EBADMSG : 0;
        at += 5 + n;
    }
}
