/*
 * The first bytes of strangers: HTTP heads, SOCKS, ClientHellos, DNS. Whole, cut anywhere, and malformed.
 */
#include "unit.h"
#include "egress/egress.h"
#include "egress/protocols/proto.h"

static ssize_t head(const char *text, struct http_head *h)
{
    return http_head_parse(str_of(text), 80, h);
}

static void good_heads(void **state)
{
    (void)state;
    struct http_head h;
    const char *get = "GET /x HTTP/1.1\r\nHost: a.test:8080\r\nAccept: */*\r\n\r\nrest";
    assert_int_equal(head(get, &h), strlen(get) - 4);
    assert_int_equal(h.form, HTTP_ORIGIN);
    assert_string_equal(h.host.name, "a.test");
    assert_int_equal(h.port, 8080);
    for (size_t n = 0; n < strlen(get) - 4; n++)
        assert_int_equal(http_head_parse((struct str){get, n}, 80, &h), 0);
    assert_true(head("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n", &h) > 0);
    assert_int_equal(h.form, HTTP_AUTHORITY);
    assert_true(head("GET http://A.test?q HTTP/1.1\r\nHost: a.TEST\r\n\r\n", &h) ==
                -EBADMSG); /* "?q" has no path in front */
    assert_true(head("GET http://A.test/p?q HTTP/1.1\r\nHost: a.TEST\r\n\r\n", &h) > 0);
    assert_true(str_is(h.origin_target, "/p?q"));
    assert_true(head("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: x, Close\r\n\r\n", &h) >
                0);
    assert_true(h.chunked && h.close);
    assert_true(head("GET http://a.test/p HTTP/1.0\r\n\r\n", &h) > 0);
    assert_string_equal(h.host.name, "a.test");
}

/* Upgrade is of one hop: it asks for nothing unless Connection names it. */
static void upgrades(void **state)
{
    (void)state;
    struct http_head h;
    assert_true(head("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: y, UPGRADE\r\n\r\n", &h) > 0);
    assert_true(h.upgrade && !h.close);
    assert_true(
        head("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", &h) > 0);
    assert_true(h.upgrade && h.close);
    assert_true(head("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: keep-alive\r\n\r\n", &h) > 0);
    assert_false(h.upgrade);
    assert_true(head("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n\r\n", &h) > 0);
    assert_false(h.upgrade);
}

static void ambiguous_heads_are_refused(void **state)
{
    static const char *const bad[] = {
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "OPTIONS * HTTP/1.0\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
        "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n",
        "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a%2etest/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT a:0 HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT a:443 HTTP/1.1\r\nHost: b:443\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct http_head h;
        if (head(bad[i], &h) != -EBADMSG)
            fail_msg("accepted: %s", bad[i]);
    }
}

static void bodies_end_where_they_end(void **state)
{
    (void)state;
    struct http_head h;
    struct http_body b;
    head("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", &h);
    const char *body = "5\r\nhello\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nGET";
    http_body_begin(&b, &h);
    assert_int_equal(http_body_eat(&b, str_of(body)), strlen(body) - 3);
    assert_int_equal(b.state, BODY_NONE);
    http_body_begin(&b, &h);
    for (size_t i = 0; i < strlen(body) - 3; i++) /* a byte at a time */
        assert_int_equal(http_body_eat(&b, (struct str){body + i, 1}), 1);
    assert_int_equal(b.state, BODY_NONE);
    static const char *const bad[] = {"5;ext\r\n", "\r\n", "5\nhello", "g\r\n", "5\r\nhelloX", "00000000000000005\r\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        http_body_begin(&b, &h);
        assert_int_equal(http_body_eat(&b, str_of(bad[i])), -EBADMSG);
    }
}

static void socks(void **state)
{
    (void)state;
    struct socks_request q;
    bool no_auth = false;
    assert_int_equal(socks5_greeting(STR("\5\2\2\0"), &no_auth), 4);
    assert_true(no_auth);
    assert_int_equal(socks5_greeting(STR("\5\0"), &no_auth), -EBADMSG);
    struct str name = STR("\5\1\0\3\6a.test\1\xbb");
    assert_int_equal(socks5_request(name, &q), name.n);
    assert_string_equal(q.host.name, "a.test");
    assert_int_equal(q.port, 443);
    for (size_t n = 0; n < name.n; n++)
        assert_int_equal(socks5_request((struct str){name.p, n}, &q), 0);
    assert_int_equal(socks5_request(STR("\5\1\0\3\x0e"
                                        "evil\0.test.com\1\xbb"),
                                    &q),
                     -EINVAL);
    assert_int_equal(socks5_request(STR("\5\1\0\x09zzzzzzzzz"), &q), -EAFNOSUPPORT);
    struct str v6 = STR("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1\0\x50");
    assert_int_equal(socks5_request(v6, &q), v6.n);
    assert_false(q.host.addr.v6); /* ::ffff:127.0.0.1 is 127.0.0.1 */
    struct str four = STR("\4\1\0\x50\0\0\0\1user\0a.test\0");
    assert_int_equal(socks4_request((struct str){four.p, four.n}, &q), four.n);
    assert_string_equal(q.host.name, "a.test");
    assert_int_equal(socks4_request(STR("\4\1\0\x50\1\2\3\4\0"), &q), 9);
    assert_int_equal(q.host.kind, HOST_ADDR);
    assert_int_equal(socks4_request(STR("\4\1\0\0\1\2\3\4\0"), &q), -EINVAL);
}

/* A ClientHello with the given server name, in records of at most `cut` bytes. */
static size_t client_hello(const char *name, bool ech, size_t cut, uint8_t *out)
{
    uint8_t body[600];
    size_t n = 0, len = name ? strlen(name) : 0;
    static const uint8_t fixed[] = {3, 3};
    memcpy(body, fixed, 2);
    memset(body + 2, 7, 32);
    n = 34;
    body[n++] = 0;
    memcpy(body + n, "\0\2\x13\1\1\0", 6);
    n += 6;
    size_t ext_at = n;
    n += 2;
    if (name) {
        uint8_t e[] = {0, 0, 0, (uint8_t)(len + 5), 0, (uint8_t)(len + 3), 0, 0, (uint8_t)len};
        memcpy(body + n, e, sizeof e);
        memcpy(body + n + sizeof e, name, len);
        n += sizeof e + len;
    }
    if (ech) {
        memcpy(body + n, "\xfe\x0d\0\1x", 5);
        n += 5;
    }
    body[ext_at] = (uint8_t)((n - ext_at - 2) >> 8);
    body[ext_at + 1] = (uint8_t)(n - ext_at - 2);
    uint8_t hello[700];
    hello[0] = 1;
    hello[1] = 0;
    hello[2] = (uint8_t)(n >> 8);
    hello[3] = (uint8_t)n;
    memcpy(hello + 4, body, n);
    size_t total = n + 4, at = 0, o = 0;
    while (at < total) {
        size_t m = total - at < cut ? total - at : cut;
        uint8_t record[] = {0x16, 3, 1, (uint8_t)(m >> 8), (uint8_t)m};
        memcpy(out + o, record, 5);
        memcpy(out + o + 5, hello + at, m);
        o += 5 + m;
        at += m;
    }
    return o;
}

static void guesses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int guess;
        size_t safe;
    } all[] = {
        {"", 0, 0},
        {"x", 0, 1},
        {"ping", 0, 4},
        {"PING\r\n", -1, 4},
        {"SSH-2.0-OpenSSH_9.2\r\n", -1, 19},
        {"0032git-upload-pack /project.git", 0, 19},
        {"1GET /f HTTP/1.1\r\n", 1, 4},
        {"\r\n \tGET /f HTTP/1.1\r\n", 1, 7},
        {"~ /f HTTP/1.1\r\n", 1, 1},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZ /f HTTP/1.1\r\n", 1, 52},
        {"NICK me\r\n", -1, 4},
        {"CONNECT {\"verbose\":false}\r\n", -1, 7},
        {"hello host\r\n", -1, 5},
        {"get /key\r\n", -1, 3},
        {"\r\n", 0, 2},
        {"GET", 0, 3},
        {"GET ", 0, 3},
        {"GET /f HTTP/1.1\r", 0, 3},
        {"GET /f HTTP/1.1\r\n", 1, 3},
        {"GET /f\r\n", 1, 3},
        {"\r\n\nGET /f HTTP/1.1\n", 1, 6},
        {"GET\t/f\tHTTP/1.1\r\n", 1, 3},
        {"get \v/f http/1.1\r\n", 1, 3},
        {"ACL /f HTTP/1.1\r\n", 1, 3},
        {"M-SEARCH * HTTP/1.1\r\n", 1, 8},
        {"GET HTTP://a.test/ HTTP/1.1\r\n", 1, 3},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 1, 3}, /* for whoever has not seen the preface in it */
        {"FOO http://a.test/ BAR\r\n", 1, 3},
        {"connect a.test:443 HTTP/1.1\r\n", 1, 7},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t safe, empty;
        int guess = http_guess(str_of(all[i].text), &safe, &empty);
        if (guess != all[i].guess || safe != all[i].safe)
            fail_msg("'%s': %d, %zu", all[i].text, guess, safe);
    }
    static const char git[] = "0032git-upload-pack /project.git\0host=a.test\0";
    size_t safe, empty;
    assert_int_equal(http_guess((struct str){git, sizeof git - 1}, &safe, &empty), -1);
}

static bool only_ok(void *context, const struct host *h)
{
    (void)context;
    return h->kind == HOST_NAME && strcmp(h->name, "ok.test") == 0;
}

/* How much of a text was let through, in pieces of `step` bytes; -1: it was refused. */
static ssize_t followed(const char *said, size_t n, size_t step, struct http_text *t)
{
    size_t done = 0;
    http_text_begin(t);
    for (size_t have = step < n ? step : n;; have = have + step < n ? have + step : n) {
        ssize_t r = http_text_eat(t, (struct str){said + done, have - done}, only_ok, NULL);
        if (r < 0)
            return -1;
        done += (size_t)r;
        if (have == n)
            return (ssize_t)done;
    }
}

static void texts(void **state)
{
#define LINES "\r\nA: b\r\n"
    static const struct {
        const char *text;
        int passes; /* 1: all of it; 0: up to a field that is not whole; -1: refused */
    } all[] = {
        {"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", 1},
        {"NICK me\r\nUSER a 0 * :b\r\n", 1},
        {"metric.host: 1 2\nhosts.a 1 2\nhost 1 2\n", 1},
        {"{\"method\": \"x\", \"url\": \"http://other.test/\"}\n", 1},
        {"DESCRIBE rtsp://ok.test/ RTSP/1.0" LINES "\r\n", 1},
        {"FOO a b" LINES "Host: ok.test\r\n\r\n", 1},
        {"QUIT\r\nHost: other.test\r\n", 1}, /* no request to anybody */
        {"FOO a b" LINES "Host: other.t", 0},
        {"FOO a b" LINES "Host: other.test\r\n", -1},
        {"FOO a b" LINES "hOST\t: other.test\n", -1},
        {"FOO a b" LINES " Host: other.test\n", -1},
        {"FOO a b" LINES "Host: ok.test\r\nHost: other.test\r\n", -1},
        {"FOO a b" LINES "Host: ok.test\r\n .other.test\r\n", -1},
        {"FOO a b" LINES "Host: ok.test x\r\n", -1},
        {"FOO a b" LINES "Host: u@ok.test\r\n", -1},
        {"FOO a b\rHost: other.test\r\n", -1},
        {"FOO a b" LINES "Host: ok.test\r\n\r\nGET /f HTTP/1.1\r\n", -1},
        {"GET x://other.test/ HTTP/1.1\r\n", -1},
        {"GET x://other.test/\r\n", -1},
        {"GET ?q http/", -1},
        {"\001\002 f\tHTTP/1.0\r\n", -1},
        {"PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n", -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t n = strlen(all[i].text);
        for (size_t step = 1; step <= n; step++) {
            struct http_text t;
            ssize_t r = followed(all[i].text, n, step, &t);
            if (all[i].passes < 0 ? r >= 0 : all[i].passes ? r != (ssize_t)n : r < 0 || r == (ssize_t)n)
                fail_msg("'%s' in pieces of %zu: %zd", all[i].text, step, r);
        }
    }
}

/* What a server says, in pieces of `step` bytes. */
static int asks_again(struct str in, size_t step)
{
    struct tls_answer a = {0};
    int r = 0;
    for (size_t at = 0; r == 0 && at < in.n; at += step)
        r = tls_asks_again(&a, (struct str){in.p + at, in.n - at < step ? in.n - at : step});
    return r;
}

static void client_hellos(void **state)
{
    (void)state;
    uint8_t b[4096];
    struct tls_hello h;
    size_t n = client_hello("A.test", true, 1000, b);
    assert_int_equal(tls_hello_parse((struct str){(char *)b, n}, &h), n);
    assert_true(h.has_name && h.ech);
    assert_string_equal(h.name.name, "a.test");
    for (size_t i = 0; i < n; i++)
        assert_int_equal(tls_hello_parse((struct str){(char *)b, i}, &h), 0);
    n = client_hello("a.test", false, 7, b); /* over many records */
    assert_int_equal(tls_hello_parse((struct str){(char *)b, n}, &h), n);
    assert_true(h.has_name);
    n = client_hello(NULL, false, 1000, b);
    assert_int_equal(tls_hello_parse((struct str){(char *)b, n}, &h), n);
    assert_false(h.has_name);
    n = client_hello("1.2.3.4", false, 1000, b);
    assert_int_equal(tls_hello_parse((struct str){(char *)b, n}, &h), -EBADMSG);
    n = client_hello("a.test", false, 1000, b);
    b[5] = 2;
    assert_int_equal(tls_hello_parse((struct str){(char *)b, n}, &h), -EBADMSG);
    assert_false(tls_looks_like(STR("GET / ")));
    for (int i = 0; i < 256; i++) {
        char first = (char)i;
        assert_int_equal(tls_looks_like((struct str){&first, 1}), i >= 0x14 && i <= 0x17);
    }
    assert_int_equal(tls_hello_parse(STR("\x16\x03\x32\x01"), &h), 0); /* a minor version that nobody looks at */
    const struct str no[] = {STR("\x14"),           STR("\x15\3\1"),      STR("\x16\4"),
                             STR("\x16\xfe\xfd"),   STR("\x16\3\1\0\0"),  STR("\x16\3\1\xff\xff"),
                             STR("\x16\3\1\0\5\0"), STR("\x16\3\1\0\5\2")}; /* a HelloRequest, a ServerHello */
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_int_equal(tls_hello_parse(no[i], &h), -EBADMSG);
    n = client_hello("a.test", false, 1000, b);
    assert_int_equal(tls_hello_parse((struct str){(char *)b, n}, &h), n);
    b[4]++; /* another message begins in the record of the hello */
    b[n] = 1;
    assert_int_equal(tls_hello_parse((struct str){(char *)b, n + 1}, &h), -EBADMSG);
    /* A HelloRetryRequest, whole or not yet; nothing else is one. */
    static const char retry[] =
        "\x16\3\3\0\x58\2\0\0\x54\3\3\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"
        "\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c";
    char other[sizeof retry];
    memcpy(other, retry, sizeof retry);
    other[42] ^= 1;
    assert_int_equal(asks_again(STR(retry), 43), 1);
    assert_int_equal(asks_again(STR(retry), 1), 1);
    assert_int_equal(asks_again((struct str){retry, 42}, 5), 0);
    assert_int_equal(asks_again((struct str){other, 42}, 3), 0);
    assert_int_equal(asks_again((struct str){other, 43}, 43), -1);
    assert_int_equal(asks_again((struct str){other, 43}, 1), -1);
    assert_int_equal(asks_again(STR("\x15\3\3\0\2\1\x70\x16\3\3\0\x58\2"), 4), 0); /* a warning comes first */
    assert_int_equal(asks_again(STR("\x15\3\3\0\2\1\x70\x16\3\3\0\x58\1"), 4), -1);
    assert_int_equal(asks_again(STR("\x16\3\3\0\4\2"), 6), 1); /* in pieces: nobody can tell */
    assert_int_equal(asks_again(STR("HTTP/1.1 400 Bad Request\r\n"), 100), -1);
    /* A hello in the record of SSL 2: no name in it. */
    static const char old[] = "\x80\x1c\1\3\1\0\3\0\0\0\x10\0\0\x2f"
                              "0123456789abcdef";
    assert_int_equal(tls_old_hello(STR(old)), 1);
    assert_int_equal(tls_old_hello((struct str){old, 10}), 0);
    assert_int_equal(tls_old_hello(STR("\xff\xfd\3")), -1);
    assert_int_equal(tls_old_hello(STR("\x80\x1d\1\3\1\0\3\0\0\0\x10")), -1);
}

static void dns(void **state)
{
    (void)state;
    uint8_t q[512], out[600];
    struct dns_question question;
    struct host_addr a = {.b = {198, 18, 0, 1}}, found[4];
    size_t n = dns_query(0x1234, "a.test", DNS_A, q, sizeof q);
    struct str query = {(char *)q, n};
    assert_int_equal(dns_query_parse(query, &question), 0);
    assert_true(question.valid_name);
    assert_string_equal(question.host.name, "a.test");
    size_t m = dns_reply(query, &question, DNS_NOERROR, &a, 60, out, sizeof out);
    assert_int_equal(dns_answer_parse((struct str){(char *)out, m}, 0x1234, "A.TEST", DNS_A, found, 4), 1);
    assert_memory_equal(found[0].b, a.b, 4);
    assert_int_equal(dns_answer_parse((struct str){(char *)out, m}, 0x1235, "a.test", DNS_A, found, 4), -EAGAIN);
    assert_int_equal(dns_answer_parse((struct str){(char *)out, m}, 0x1234, "b.test", DNS_A, found, 4), -EAGAIN);
    m = dns_reply(query, &question, DNS_NXDOMAIN, NULL, 0, out, sizeof out);
    assert_int_equal(dns_answer_parse((struct str){(char *)out, m}, 0x1234, "a.test", DNS_A, found, 4), -ENOENT);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(dns_query_parse((struct str){(char *)q, i}, &question), -EBADMSG);
    q[13] = 0; /* a NUL inside a label */
    assert_int_equal(dns_query_parse(query, &question), 0);
    assert_false(question.valid_name);
    q[13] = '.';
    assert_int_equal(dns_query_parse(query, &question), 0);
    assert_false(question.valid_name);
    q[12] = 0xC0; /* a pointer to itself */
    q[13] = 12;
    assert_int_equal(dns_query_parse(query, &question), -EBADMSG);
}

static void resolver_configuration(void **state)
{
    (void)state;
    struct egress_resolver r = {0};
    resolv_parse(STR("# x\nnameserver 10.0.0.53\nnameserver fe80::1%eth0\nnameserver fe80::2%31\nsearch Corp.example "
                     "lab.example\noptions "
                     "ndots:2 timeout:1\n"),
                 &r);
    assert_int_equal(r.n_servers, 3);
    assert_true(r.zones[0] == 0 && r.zones[1] == 0 && r.zones[2] == 31);
    assert_int_equal(r.n_search, 2);
    assert_string_equal(r.search[0], "corp.example");
    assert_int_equal(r.ndots, 2);
    resolv_parse(STR(""), &r);
    assert_int_equal(r.servers[0].b[0], 127);
    struct host_addr a[3];
    assert_int_equal(hosts_find(STR("127.0.0.1 localhost\n10.0.0.9\tDB.corp db # x\n10.0.0.8 db"), "db", a, 3), 2);
    assert_int_equal(hosts_find(STR("127.0.0.1 localhost"), "db", a, 3), 0);
}

/* ---- HTTP/2 ---- */

static bool only_example(void *context, const struct host *h)
{
    ++*(int *)context;
    return h->kind == HOST_NAME && strcmp(h->name, "www.example.com") == 0;
}

/* A frame around `n` bytes; returns its length. */
static size_t frame(char *out, uint8_t type, uint8_t flags, uint8_t stream, const void *bytes, size_t n)
{
    const char head[9] = {0, (char)(n >> 8), (char)n, (char)type, (char)flags, 0, 0, 0, (char)stream};
    memcpy(out, head, sizeof head);
    if (n)
        memcpy(out + sizeof head, bytes, n);
    return sizeof head + n;
}

#define BLOCK(text) text, sizeof(text) - 1
static const char h2_preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/* The requests of RFC 7541, appendix C.3 and C.4: one table for three of them. */
static void h2_examples(void **state)
{
    (void)state;
    static const struct {
        const char *p;
        size_t n;
    } blocks[][3] = {
        {{BLOCK("\x82\x86\x84\x41\x0fwww.example.com")},
         {BLOCK("\x82\x86\x84\xbe\x58\x08no-cache")},
         {BLOCK("\x82\x87\x85\xbf\x40\x0a"
                "custom-key\x0c"
                "custom-value")}},
        {{BLOCK("\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff")},
         {BLOCK("\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf")},
         {BLOCK("\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf")}},
    };
    for (size_t i = 0; i < 2; i++) {
        struct h2 h;
        int asked = 0;
        h2_begin(&h);
        assert_int_equal(h2_eat(&h, str_of(h2_preface), only_example, &asked), H2_PREFACE_BYTES);
        for (size_t k = 0; k < 3; k++) {
            char at[200];
            size_t n = frame(at, 1, 4, (uint8_t)(2 * k + 1), blocks[i][k].p, blocks[i][k].n);
            for (size_t cut = 0; cut < n; cut++)
                assert_int_equal(h2_eat(&h, (struct str){at, cut}, only_example, &asked), 0);
            assert_int_equal(h2_eat(&h, (struct str){at, n}, only_example, &asked), n);
        }
        assert_int_equal(asked, 1);    /* then it stands in the table */
        assert_int_equal(h.size, 164); /* as the RFC says */
        assert_int_equal(h.n, 3);
    }
}

static ssize_t h2_one(const char *block, size_t n)
{
    struct h2 h;
    int asked = 0;
    char at[400];
    h2_begin(&h);
    memcpy(at, h2_preface, H2_PREFACE_BYTES);
    n = frame(at + H2_PREFACE_BYTES, 1, 4, 1, block, n);
    return h2_eat(&h, (struct str){at, H2_PREFACE_BYTES + n}, only_example, &asked);
}

static void h2_refusals(void **state)
{
    (void)state;
    assert_true(h2_one(BLOCK("\x82\x41\x0fwww.example.com")) > 0);
    assert_true(h2_one(BLOCK("\x82\x41\x12www.example.com:80")) > 0);
    assert_true(h2_one(BLOCK("\x82\x00\x04Host\x0fwww.example.com")) > 0);
    assert_true(h2_one(BLOCK("\x82\x66\x0fwww.example.com")) > 0); /* host, by its index */
    assert_true(h2_one(BLOCK("\x40\x08grpc-msg\x02ok")) > 0);      /* a trailer names nobody */
    assert_true(h2_one(BLOCK("\x82\x41\x0fwww.example.com\x04\x02/x")) > 0);
    assert_true(h2_one(BLOCK("\x42\x07"
                             "OPTIONS\x41\x0fwww.example.com\x04\x01*")) > 0);
    assert_int_equal(h2_one(BLOCK("\x82\x41\x0fwww.example.com\x04\x0ehttp://x.test/")), -EBADMSG); /* a second host */
    assert_int_equal(h2_one(BLOCK("\x82\x41\x0fwww.example.com\x45\x01x")), -EBADMSG);
    assert_int_equal(h2_one(BLOCK("\x82\x41\x0fwww.example.com\x00\x05:path\x00")), -EBADMSG);
    assert_int_equal(h2_one(BLOCK("\x82\x41\x0fwww.example.com\x44\x02/x\x0f\x2f\x01x")), -EBADMSG); /* by its entry */
    assert_int_equal(h2_one(BLOCK("\x82\x41\x0fwww.example.com\x00\x01x\x03"
                                  "a\nb")),
                     -EBADMSG); /* lines of HTTP/1 */
    assert_int_equal(h2_one(BLOCK("\x82\x41\x0fwww.example.com\x00\x03"
                                  "a\rb\x01x")),
                     -EBADMSG);
    assert_int_equal(h2_one(BLOCK("\x82\x41\x0fwww.example.com\x00\x01x\x01\x00")), -EBADMSG);
    assert_int_equal(h2_one(BLOCK("\x82\x41\x0fwww.example.com\x00\x01x\x84\xff\xff\xff\xf3")),
                     -EBADMSG); /* \n, coded */
    assert_int_equal(h2_one(BLOCK("\x82\x41\x0fwww.example.org")), -EACCES);
    assert_int_equal(h2_one(BLOCK("\x82\x41\x0fwww.example.com\x00\x04host\x0fwww.example.org")), -EACCES);
    assert_int_equal(h2_one(BLOCK("\x00\x0a:authority\x01x")), -EACCES); /* in a trailer, too */
    assert_int_equal(h2_one(BLOCK("\x82")), -EBADMSG);                   /* a request for nobody */
    assert_int_equal(h2_one(BLOCK("\x82\x81")), -EBADMSG);
    assert_int_equal(h2_one(BLOCK("\x82\x41\x11u@www.example.com")), -EBADMSG);
    assert_int_equal(h2_one(BLOCK("\x82\xbe")), -EBADMSG); /* of an empty table */
    assert_int_equal(h2_one(BLOCK("\x80")), -EBADMSG);
    assert_int_equal(h2_one(BLOCK("\x82\x41\x1fwww.example.com")), -EBADMSG);
    assert_int_equal(h2_one(BLOCK("\x82\x41\x84\xff\xff\xff\xff")), -EBADMSG); /* EOS */
    assert_int_equal(h2_one(BLOCK("\x3f\xe1\x7f\x82\x41\x0fwww.example.com")), H2_PREFACE_BYTES + 9 + 21);
    assert_int_equal(h2_one(BLOCK("\x3f\xe2\x7f")), -EMSGSIZE); /* 16 KiB of table and one more */
    assert_int_equal(h2_one(BLOCK("\x42\x07"
                                  "CONNECT\x41\x0fwww.example.com")),
                     -EOPNOTSUPP);
    assert_true(h2_one(BLOCK("\x42\x07"
                             "CONNECT\x00\x09:protocol\x09websocket\x41\x0fwww.example.com")) > 0);
}

static void h2_frames(void **state)
{
    (void)state;
    struct h2 h;
    int asked = 0;
    char at[400];
    size_t n = H2_PREFACE_BYTES;
    memcpy(at, h2_preface, n);
    n += frame(at + n, 4, 0, 0, NULL, 0);                                /* SETTINGS */
    n += frame(at + n, 1, 8 | 0x20, 1, BLOCK("\2\0\0\0\0\0\x82\x41pp")); /* padded, with a priority, and not its end */
    size_t half = n;
    n += frame(at + n, 9, 0, 1, BLOCK("\x0fwww."));
    n += frame(at + n, 9, 4, 1, BLOCK("example.com"));
    n += frame(at + n, 0, 1, 1, BLOCK("data that is nobody's"));
    h2_begin(&h);
    assert_int_equal(h2_eat(&h, (struct str){at, n}, only_example, &asked), n);
    assert_int_equal(asked, 1);
    h2_begin(&h);
    n = half + frame(at + half, 0, 0, 1, BLOCK("x")); /* something else between */
    assert_int_equal(h2_eat(&h, (struct str){at, n}, only_example, &asked), -EBADMSG);
    h2_begin(&h);
    assert_int_equal(h2_eat(&h, STR("PRI * HTTP/2.0\r\nHost: x\r\n\r\n"), only_example, &asked), -EBADMSG);
    assert_true(h2_looks_like(STR("PRI * HTTP/2.0\r"), 15));
    assert_false(h2_looks_like(STR("PRI * HTTP/2."), 15));
    assert_false(h2_looks_like(STR("PRI * HTTP/1.1\r\n"), 15));
}

/* What is too old leaves the table, in the order the standard says. */
static void h2_table(void **state)
{
    (void)state;
    struct h2 h;
    int asked = 0;
    char at[400];
    size_t n = H2_PREFACE_BYTES;
    memcpy(at, h2_preface, n);
    /* 100 bytes of table: the second field (47) drops the first one (57), which is not there any more */
    n += frame(at + n, 1, 4, 1,
               BLOCK("\x3f\x45\x82\x41\x0fwww.example.com\x40\x05"
                     "field\x0avalue10byt"));
    h2_begin(&h);
    assert_int_equal(h2_eat(&h, (struct str){at, n}, only_example, &asked), n);
    assert_int_equal(h.n, 1);
    assert_int_equal(h.size, 47);
    n = frame(at, 1, 4, 3, BLOCK("\x82\xbf"));
    assert_int_equal(h2_eat(&h, (struct str){at, n}, only_example, &asked), -EBADMSG);
    n = frame(at, 1, 4, 3, BLOCK("\x20")); /* none at all */
    assert_int_equal(h2_eat(&h, (struct str){at, n}, only_example, &asked), n);
    assert_int_equal(h.size, 0);
    n = frame(at, 1, 4, 3, BLOCK("\xbe"));
    assert_int_equal(h2_eat(&h, (struct str){at, n}, only_example, &asked), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_heads),
        cmocka_unit_test(upgrades),
        cmocka_unit_test(ambiguous_heads_are_refused),
        cmocka_unit_test(bodies_end_where_they_end),
        cmocka_unit_test(socks),
        cmocka_unit_test(guesses),
        cmocka_unit_test(texts),
        cmocka_unit_test(client_hellos),
        cmocka_unit_test(dns),
        cmocka_unit_test(resolver_configuration),
        cmocka_unit_test(h2_examples),
        cmocka_unit_test(h2_refusals),
        cmocka_unit_test(h2_frames),
        cmocka_unit_test(h2_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
