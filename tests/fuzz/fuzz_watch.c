/*
 * What the egress passes on to a server, for whatever a client says and however it is cut: no server, as loosely as it may read,
 * takes it for a request to another host. The servers here are slow and simple: each reads all bytes that were passed from the
 * beginning, with what nginx, node, Go, Apache, Python's http.server and wsgiref, Java's HttpServer, haproxy and common TLS
 * libraries are known to forgive.
 *
 * The input: port and rule, what the server says first, how the client's bytes are cut, and these bytes.
 */
#include <string.h>
#include <strings.h>

#include "egress/parts.h"
#include "fuzz.h"

struct egress_world world;

/* ---- the connection that is watched, with nobody at its ends ---- */

static struct {
    char bytes[1 << 17];
    size_t n;
    bool refused, any_bytes;
} passed;

bool relay_push(struct conn *c, bool to_client, const char *bytes, size_t n)
{
    (void)c;
    MUST(!to_client && !passed.refused && n <= sizeof passed.bytes - passed.n);
    memcpy(passed.bytes + passed.n, bytes, n);
    passed.n += n;
    return true;
}

void refuse_flow(struct conn *c, const struct host *said, const char *why)
{
    (void)said;
    MUST(*why);
    passed.refused = c->dead = true;
}

void conn_reset(struct conn *c)
{
    passed.refused = c->dead = true;
}

bool request_next(struct conn *c)
{
    (void)c;
    return false;
}

uint32_t stand_of(const char *name)
{
    (void)name;
    return 1;
}

void bulk_done(uint8_t pipe, bool empty)
{
    (void)pipe;
    (void)empty;
}

static bool is_ok(const struct host *h)
{
    return h->kind == HOST_NAME && strcmp(h->name, "ok.test") == 0;
}

bool judge_inner(struct conn *c, const struct host *h)
{
    return host_same(c->host, h) || is_ok(h);
}

bool judge_any_bytes(const struct conn *c)
{
    (void)c;
    return passed.any_bytes;
}

/* ---- servers of HTTP ---- */

enum {
    CR_ENDS = 1,    /* a line ends at a bare CR, too                               */
    ANY_METHOD = 2, /* any bytes are a method                                      */
    THREE = 4,      /* three words are a request line, whatever the third one says */
    TWO = 8,        /* two words are one                                           */
    PROXY = 16,     /* one line of the PROXY protocol may come first               */
    LENGTH = 32,    /* Content-Length wins over chunked, otherwise chunked does    */
    RTSP = 64       /* RTSP and ICE are HTTP                                       */
};

static bool space(char c)
{
    unsigned char u = (unsigned char)c;
    return u == ' ' || (u >= 9 && u <= 13) || (u >= 0x1c && u <= 0x1f) || u == 0x85 || u == 0xa0;
}

/* The next line; false: its end is not there. */
static bool line(struct str *in, unsigned kind, struct str *ret)
{
    for (size_t i = 0; i < in->n; i++) {
        if (in->p[i] != '\n' && (in->p[i] != '\r' || !(kind & CR_ENDS)))
            continue;
        *ret = (struct str){in->p, i};
        bool both = in->p[i] == '\r' && i + 1 < in->n && in->p[i + 1] == '\n';
        *in = str_skip(*in, i + 1 + both);
        while (ret->n && ret->p[ret->n - 1] == '\r')
            ret->n--;
        return true;
    }
    return false;
}

static size_t words(struct str s, struct str w[3])
{
    size_t n = 0;
    while (s.n) {
        if (space(s.p[0])) {
            s = str_skip(s, 1);
            continue;
        }
        size_t len = 0;
        while (len < s.n && !space(s.p[len]))
            len++;
        w[n < 2 ? n : 2] = (struct str){s.p, len};
        n++;
        s = str_skip(s, len);
    }
    return n;
}

static bool starts(struct str s, const char *word)
{
    return s.n >= strlen(word) && strncasecmp(s.p, word, strlen(word)) == 0;
}

static bool request_line(struct str l, unsigned kind, struct str w[3])
{
    size_t n = words(l, w);
    if (n < 2)
        return false;
    for (size_t i = 0; i < w[0].n && !(kind & ANY_METHOD); i++) {
        if (!((w[0].p[i] | 32) >= 'a' && (w[0].p[i] | 32) <= 'z') && !strchr("-_.!$%^0123456789", w[0].p[i]))
            return false;
    }
    if (n == 2)
        return kind & TWO && str_is(w[0], "GET");
    return kind & THREE || starts(w[2], "HTTP/") || (kind & RTSP && (starts(w[2], "RTSP/") || starts(w[2], "ICE/")));
}

/* Another host than the one that is allowed, as a server would route by it. */
static bool another(struct str host)
{
    while (host.n && space(host.p[0]))
        host = str_skip(host, 1);
    while (host.n && space(host.p[host.n - 1]))
        host.n--;
    const char *colon = host.n ? memchr(host.p, ':', host.n) : NULL;
    if (colon)
        host.n = (size_t)(colon - host.p);
    if (host.n && host.p[host.n - 1] == '.')
        host.n--;
    static const char *const mine[] = {"ok.test", "203.0.114.7"};
    for (size_t i = 0; i < 2; i++) {
        if (host.n == strlen(mine[i]) && strncasecmp(host.p, mine[i], host.n) == 0)
            return false;
    }
    return host.n > 0;
}

/* Of an absolute target: what stands between "://" and the next slash, behind user information. */
static bool target_elsewhere(struct str target)
{
    const char *at = target.p && target.n > 3 ? memmem(target.p, target.n, "://", 3) : NULL;
    if (!at || at == target.p || memchr(target.p, '/', (size_t)(at - target.p)) ||
        memchr(target.p, '?', (size_t)(at - target.p)))
        return false;
    struct str rest = str_skip(target, (size_t)(at + 3 - target.p));
    size_t n = 0;
    while (n < rest.n && !memchr("/?#", rest.p[n], 3))
        n++;
    const char *user = memrchr(rest.p, '@', n);
    size_t skip = user ? (size_t)(user + 1 - rest.p) : 0;
    return another((struct str){rest.p + skip, n - skip});
}

/* A length as strtol(3) reads it: white space, a sign, "0x" and whatever follows are forgiven. */
static uint64_t length(struct str s, int base)
{
    char text[24] = "";
    memcpy(text, s.p, s.n < sizeof text - 1 ? s.n : sizeof text - 1);
    return strtoull(text, NULL, base);
}

struct message {
    bool has_length, chunked;
    uint64_t length;
};

/* The fields of one head. 1: whole; 0: its end is not there; -1: it is for another host. */
static int fields(struct str *in, unsigned kind, struct message *m)
{
    struct str l;
    bool elsewhere = false;
    while (line(in, kind, &l)) {
        if (l.n == 0)
            return elsewhere ? -1 : 1;
        while (l.n && space(l.p[0]))
            l = str_skip(l, 1);
        const char *colon = l.n ? memchr(l.p, ':', l.n) : NULL;
        if (!colon)
            continue;
        struct str name = {l.p, (size_t)(colon - l.p)}, value = str_skip(l, name.n + 1);
        while (name.n && space(name.p[name.n - 1]))
            name.n--;
        if (name.n == 4 && starts(name, "Host")) {
            elsewhere = elsewhere || another(value);
        } else if (name.n == 14 && starts(name, "Content-Length")) {
            m->has_length = true;
            m->length = length(value, 10);
        } else if (name.n == 17 && starts(name, "Transfer-Encoding")) {
            m->chunked = m->chunked || memmem(value.p, value.n, "hunked", 6);
        }
    }
    return 0;
}

/* Skips the body; false: it is not all there. */
static bool body(struct str *in, unsigned kind, const struct message *m)
{
    struct str l;
    if (!m->chunked || (m->has_length && kind & LENGTH)) {
        if (m->length > in->n)
            return false;
        *in = str_skip(*in, (size_t)m->length);
        return true;
    }
    while (line(in, kind, &l)) {
        uint64_t n = length(l, 16);
        if (n == 0) {
            while (line(in, kind, &l) && l.n)
                ;
            return true;
        }
        if (n > in->n)
            return false;
        *in = str_skip(*in, (size_t)n);
        (void)line(in, kind, &l);
    }
    return false;
}

static void serve(struct str in, unsigned kind)
{
    bool again = false;
    if (kind & PROXY && str_starts(in, STR("PROXY "))) {
        struct str l;
        if (!line(&in, kind, &l))
            return;
    }
    while (in.n) {
        struct str l, w[3];
        struct message m = {0};
        do {
            if (!line(&in, kind, &l))
                return;
        } while (l.n == 0);
        if (!request_line(l, kind, w))
            return;
        /* Who reads no version asks the field alone (Java, Twisted), as node does for RTSP. */
        bool versioned = words(l, w) == 2 || starts(w[2], "HTTP/");
        bool elsewhere = versioned && target_elsewhere(w[1]);
        int r = fields(&in, kind, &m);
        if (r == 0)
            return;
        if (r < 0 || elsewhere) {
            fprintf(stderr, "server %#x takes a request for another host (%s)\n", kind, again ? "later" : "the first");
            abort();
        }
        if (words(l, w) == 2 || !body(&in, kind, &m)) /* HTTP/0.9 has one request a connection */
            return;
        again = true;
    }
}

/* ---- a server of TLS: only the kinds of records and messages mean anything, all else is forgiven ---- */

static void serve_tls(struct str in, size_t most)
{
    static uint8_t all[1 << 17];
    size_t n = 0, at = 0;
    const uint8_t *p = (const uint8_t *)in.p;
    while (in.n - at >= 5) {
        size_t len = (size_t)(p[at + 3] << 8 | p[at + 4]);
        if (p[at] < 0x14 || p[at] > 0x17 || in.n - at - 5 < len)
            break;
        if (p[at] == 0x16) {
            memcpy(all + n, p + at + 5, len);
            n += len;
        }
        at += 5 + len;
    }
    /* The second one after a HelloRetryRequest. */
    for (size_t m = 0, hellos = 0; n - m >= 4 && hellos < most; hellos++) {
        size_t len = (size_t)all[m + 1] << 16 | (size_t)all[m + 2] << 8 | all[m + 3];
        if (all[m] != 1 || len > n - m - 4)
            return;
        const uint8_t *h = all + m + 4, *end = h + len;
        m += 4 + len;
        h += 34;
        for (int i = 0; i < 3 && h < end; i++) { /* session, ciphers, compression */
            size_t k = i == 1 && end - h > 1 ? (size_t)(h[0] << 8 | h[1]) + 2 : (size_t)h[0] + 1;
            h = (size_t)(end - h) < k ? end : h + k;
        }
        for (h = end - h >= 2 ? h + 2 : end; end - h >= 4;) {
            size_t kind = (size_t)(h[0] << 8 | h[1]), k = (size_t)(h[2] << 8 | h[3]);
            h += 4;
            if (k > (size_t)(end - h))
                break;
            if (kind == 0 && k > 5 && another((struct str){(const char *)h + 5, k - 5}))
                MUST(!"a server takes a ClientHello for another host");
            h += k;
        }
    }
}

static void old_hello(struct str in)
{
    MUST(tls_old_hello(in) <= 0);
}

/* ---- the input ---- */

static const struct str server_says[] = {
    {NULL, 0},
    {"220 mail\r\n", 10},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38},
    {"HTTP/1.1 101 OK\r\n\r\n", 19},
    {"\x16\3\3\0\x58\2\0\0\x54\3\3\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e"
     "\x65\xb8\x91\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c",
     43},
    {"\0\0\6\4\0\0\0\0\0\0\3\0\0\0\x64", 15}};

static struct conn *begin(uint8_t how)
{
    static const uint16_t ports[] = {8080, 80, 443, 8443};
    struct conn *c = calloc(1, sizeof *c);
    MUST(c != NULL);
    c->host = calloc(1, sizeof *c->host);
    MUST(c->host != NULL);
    c->stage = STAGE_OPEN;
    c->watch = WATCH_FIRST;
    c->how = HOW_TRANSPARENT;
    c->port = ports[how & 3];
    passed.n = 0;
    passed.refused = false;
    passed.any_bytes = how & 4;
    strcpy(c->host->name, "ok.test");
    if (how & 8) {
        c->host->kind = HOST_ADDR;
        c->host->addr = (struct host_addr){.b = {203, 0, 114, 7}};
        c->literal = true;
    }
    return c;
}

static void end(struct conn *c)
{
    pending_free(&c->first);
    free(c->follow);
    free(c->text);
    free(c->host);
    free(c->h2);
    free(c);
}

static void client_says(struct conn *c, struct str in, size_t step, struct str answer)
{
    const bool says_first = answer.n && answer.p[0] == 0; /* HTTP/2 */
    if (says_first) {
        (void)watch_server(c, answer);
        answer.n = 0;
    }
    for (size_t at = 0; at < in.n && !c->dead; at += step) {
        size_t n = in.n - at < step ? in.n - at : step;
        if (c->watch == WATCH_NOTHING) {
            (void)relay_push(c, false, in.p + at, n);
            continue;
        }
        MUST(pending_keep(&c->first, in.p + at, n));
        watch_client(c);
        if (!c->dead && answer.n && passed.n) {
            (void)watch_server(c, answer);
            if (!c->dead && c->first.n)
                watch_client(c);
            answer.n = 0;
        }
        if (!c->dead && c->first.n >= FIRST_BYTES)
            refuse_flow(c, NULL, "too much");
    }
    if (!c->dead)
        watch_ended(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned servers[] = {0,
                                       PROXY,
                                       CR_ENDS,
                                       LENGTH,
                                       ANY_METHOD | TWO,
                                       ANY_METHOD | THREE,
                                       RTSP | CR_ENDS | LENGTH,
                                       ANY_METHOD | THREE | PROXY | RTSP,
                                       CR_ENDS | ANY_METHOD | THREE | PROXY | RTSP,
                                       CR_ENDS | ANY_METHOD | TWO | PROXY | RTSP};
    if (size < 3 || size > 1 << 15)
        return 0;
    struct conn *c = begin(data[0]);
    struct str answer = server_says[data[1] % 6], in = {(const char *)data + 3, size - 3};
    const unsigned says = data[1] % 6;
    const bool text_server = says == 1, http_server = says == 0 || says == 2 || says == 5;
    client_says(c, in, (size_t)data[2] + 1, answer);
    struct str got = {passed.bytes, passed.n};
    /* Whoever speaks another protocol, or one that was agreed on, reads no request. */
    for (size_t i = 0; http_server && i < sizeof servers / sizeof *servers; i++)
        serve(got, servers[i]);
    if (!text_server)
        serve_tls(got, says == 0 || says == 4 ? 2 : 1);
    if (!text_server)
        old_hello(got);
    if (c->port == 443 && !passed.any_bytes && got.n)
        MUST(got.p[0] == 0x16);
    if (c->port == 80 && !passed.any_bytes && got.n)
        MUST(http_begins(got) || h2_looks_like(got, 1));
    end(c);
    return 0;
}
