/*
 * The caller's own proxy. What the variables of the environment say, and what is said to the proxy.
 */
#include <errno.h>
#include <stdio.h>

#include "egress/protocols/proto.h"
#include "policy/proxy.h"
#include "unit.h"

static const struct proxies *read_all(struct arena *mem, const char *const *variables)
{
    const struct proxies *all = NULL;
    struct err e = {0};
    if (proxies_read(variables, mem, &all, &e) < 0)
        fail_msg("%s", e.text);
    return all;
}

static struct host host_of(const char *text)
{
    struct host h;
    if (host_parse(str_of(text), &h) < 0)
        fail_msg("%s", text);
    return h;
}

static bool direct(const char *no_proxy, const char *host, uint16_t port)
{
    auto_arena struct arena *mem = arena_new(1u << 20);
    char text[256];
    snprintf(text, sizeof text, "no_proxy=%s", no_proxy);
    const char *const variables[] = {"https_proxy=p.test:3128", text, NULL};
    struct host h = host_of(host);
    return proxy_for(read_all(mem, variables), &h, port, false) == NULL;
}

static void urls(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"p.test:3128", "http://p.test:3128"},
                                           {"http://P.Test:3128/", "http://p.test:3128"},
                                           {"http://p.test", "http://p.test:80"},
                                           {"HTTP://u:p@p.test:1/x?y", "http://p.test:1"},
                                           {"socks5h://10.0.0.1", "socks5h://10.0.0.1:1080"},
                                           {"socks5://10.0.0.1:9", "socks5h://10.0.0.1:9"},
                                           {"http://[::1]:8080", "http://[::1]:8080"}};
    static const char *const wrong[] = {
        "https://u:secret@p.test", "socks4://p.test",     "ftp://p.test",        "http://",
        "http://u:secret@",        "http://p.test:0",     "http://p.test:99999", "http://p t",
        "http://u:secret@p..test", "http://u:sec\nret@p", "http://u:se%00cret@p"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        auto_arena struct arena *mem = arena_new(1u << 20);
        char text[256], url[PROXY_TEXT];
        snprintf(text, sizeof text, "ALL_PROXY=%s", cases[i][0]);
        const char *const variables[] = {text, NULL};
        const struct proxies *all = read_all(mem, variables);
        assert_string_equal(proxy_print(&all->other, url), cases[i][1]);
        assert_string_equal(all->plain.variable, "ALL_PROXY");
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        auto_arena struct arena *mem = arena_new(1u << 20);
        const struct proxies *all = NULL;
        struct err e = {0};
        char text[256];
        snprintf(text, sizeof text, "https_proxy=%s", wrong[i]);
        const char *const variables[] = {text, NULL};
        if (proxies_read(variables, mem, &all, &e) >= 0)
            fail_msg("%s", wrong[i]);
        assert_memory_equal(e.text, "https_proxy: ", 13);
        assert_null(strstr(e.text, "secret"));
        assert_null(all);
    }
}

static void which_variable(void **state)
{
    (void)state;
    auto_arena struct arena *mem = arena_new(1u << 20);
    const char *const variables[] = {"HTTPS_PROXY=upper.test:1", "https_proxy=lower.test:2", "HTTP_PROXY=plain.test:3",
                                     "ALL_PROXY=all.test:4", NULL};
    const char *const only_https[] = {"HTTPS_PROXY=upper.test:1", "http_proxy=", NULL};
    const char *const nothing[] = {"PATH=/bin", "NO_PROXY=x", NULL};
    const char *const star[] = {"HTTPS_PROXY=upper.test:1", "no_proxy=a.test, *", NULL};
    struct host h = host_of("x.test");
    const struct proxies *all = read_all(mem, variables);
    assert_string_equal(proxy_for(all, &h, 443, false)->host.name, "lower.test");
    assert_string_equal(proxy_for(all, &h, 80, true)->host.name, "plain.test");
    all = read_all(mem, only_https);
    assert_string_equal(proxy_for(all, &h, 443, false)->host.name, "upper.test");
    assert_null(proxy_for(all, &h, 80, true));
    assert_null(read_all(mem, nothing));
    assert_null(read_all(mem, star));
    assert_null(read_all(mem, NULL));
}

static void no_proxy(void **state)
{
    (void)state;
    assert_true(direct("corp.test", "corp.test", 443));
    assert_true(direct("corp.test", "a.b.corp.test", 443));
    assert_true(direct(".corp.test", "corp.test", 443));
    assert_true(direct("*.corp.test", "a.corp.test", 443));
    assert_false(direct("corp.test", "evilcorp.test", 443));
    assert_true(direct("a.test b.test\tc.test,d.test", "d.test", 1));
    assert_true(direct("CORP.test:8443", "corp.test", 8443));
    assert_false(direct("corp.test:8443", "corp.test", 443));
    assert_true(direct("10.0.0.0/8", "10.1.2.3", 1));
    assert_true(direct("10.9.9.9/8", "10.1.2.3", 1));
    assert_false(direct("10.0.0.0/8", "11.1.2.3", 1));
    assert_false(direct("10.0.0.0/8", "ten.test", 1));
    assert_true(direct("192.0.2.1", "192.0.2.1", 1));
    assert_true(direct("192.0.2.1:80", "192.0.2.1", 80));
    assert_false(direct("192.0.2.1:80", "192.0.2.1", 81));
    assert_true(direct("2001:db8::/32", "2001:db8::5", 1));
    assert_true(direct("::1,[2001:db8::1]:443", "2001:db8::1", 443));
    assert_false(direct("[2001:db8::1]:443", "2001:db8::1", 80));
    assert_false(direct("", "a.test", 1));
    assert_true(direct("*:22,a.test", "b.test", 22));
    assert_false(direct("*:22,a.test", "b.test", 443));
    assert_false(direct("a..test,10.0.0.0/33,:80,a.test:0,a.test:x,[::1,10.0.0.0/", "a.test", 80));

    auto_arena struct arena *mem = arena_new(1u << 20);
    const char *const variables[] = {"https_proxy=p.test", "no_proxy=a..b, ok.test,10.0.0.0/99", NULL};
    const struct proxies *all = read_all(mem, variables);
    assert_int_equal(all->n_direct, 1);
    assert_string_equal(all->direct_text[0], "ok.test");
    assert_string_equal(all->skipped[0], "a..b");
    assert_string_equal(all->skipped[1], "10.0.0.0/99");
    assert_null(all->skipped[2]);
}

static void local_names(void **state)
{
    (void)state;
    static const char *const local[] = {"localhost",    "printer", "a.localhost", "x.local", "metadata.google.internal",
                                        "nas.home.arpa"};
    static const char *const others[] = {"example.com", "local.example.com", "xlocal.com", "internal.test"};
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        assert_true(name_is_local(local[i]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(name_is_local(others[i]));
}

static struct proxy proxy_of(struct arena *mem, const char *entry)
{
    const char *const variables[] = {entry, NULL};
    return read_all(mem, variables)->other;
}

static void asked(void **state)
{
    (void)state;
    auto_arena struct arena *mem = arena_new(1u << 20);
    char out[PARENT_SAY + 1];
    struct proxy open = proxy_of(mem, "https_proxy=http://p.test"),
                 known = proxy_of(mem, "https_proxy=http://Aladdin:open%20sesame@p.test"),
                 socks = proxy_of(mem, "all_proxy=socks5h://ann:b%3ac@p.test");
    out[parent_say(&open, PARENT_CONNECT, "a.test", 443, out)] = 0;
    assert_string_equal(out, "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n");
    out[parent_say(&known, PARENT_CONNECT, "a.test", 443, out)] = 0;
    assert_string_equal(out, "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\nProxy-Authorization: Basic "
                             "QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n"); /* RFC 7617 2 */
    assert_int_equal(parent_first(&socks), PARENT_GREET);
    assert_int_equal(parent_say(&socks, PARENT_GREET, "a.test", 443, out), 4);
    assert_memory_equal(out, "\5\2\0\2", 4);
    assert_int_equal(parent_say(&socks, PARENT_LOGIN, "a.test", 443, out), 9);
    assert_memory_equal(out, "\1\3ann\3b:c", 9);
    assert_int_equal(parent_say(&socks, PARENT_REQUEST, "a.test", 443, out), 13);
    assert_memory_equal(out, "\5\1\0\3\6a.test\1\273", 13);

    /* The longest of everything fits. */
    char name[HOST_NAME_MAX_TEXT + 1], entry[1024];
    memset(name, 'a', HOST_NAME_MAX_TEXT);
    name[HOST_NAME_MAX_TEXT] = 0;
    snprintf(entry, sizeof entry, "https_proxy=http://%0255d:%0255d@p.test", 1, 2);
    struct proxy longest = proxy_of(mem, entry);
    assert_true(parent_say(&longest, PARENT_CONNECT, name, 65535, out) > 500 + 2 * HOST_NAME_MAX_TEXT);
    assert_true(parent_say(&longest, PARENT_LOGIN, name, 65535, out) == 513);
    assert_true(parent_say(&longest, PARENT_REQUEST, name, 65535, out) == 7 + HOST_NAME_MAX_TEXT);
}

static void answers(void **state)
{
    (void)state;
    auto_arena struct arena *mem = arena_new(1u << 20);
    struct proxy open = proxy_of(mem, "https_proxy=http://p.test"),
                 known = proxy_of(mem, "https_proxy=http://u:p@p.test");
    static const struct {
        const char *text, *why; /* why NULL: opened */
        bool known;
    } connect[] = {{"HTTP/1.1 200 Connection established\r\n\r\n", NULL, false},
                   {"HTTP/1.0 204 x\r\nVia: y\r\n\r\n", NULL, false},
                   {"HTTP/1.1 407 x\r\n\r\n", "the parent proxy requires credentials (407)", false},
                   {"HTTP/1.1 407 x\r\n\r\n", "the parent proxy rejected the credentials (407)", true},
                   {"HTTP/1.1 403 x\r\n\r\n", "the parent proxy refused it (403)", false},
                   {"HTTP/1.1 503 x\r\n\r\n", "the parent proxy could not reach it (503)", false},
                   {"HTTP/1.1 400 x\r\n\r\n", "the parent proxy answered with an error (400)", false},
                   {"SSH-2.0-OpenSSH\r\n\r\n", "the parent proxy sent an invalid answer", false},
                   {"\r\n\r\n", "the parent proxy sent an invalid answer", false},
                   {"HTTP/1.1 2x0 x\r\n\r\n", "the parent proxy sent an invalid answer", false}};
    for (size_t i = 0; i < sizeof connect / sizeof *connect; i++) {
        struct str in = str_of(connect[i].text);
        enum parent_step next = PARENT_CONNECT;
        char why[PARENT_WHY] = "";
        const struct proxy *p = connect[i].known ? &known : &open;
        for (size_t n = 0; n < in.n && !connect[i].why; n++) /* nothing is decided before the end */
            assert_int_equal(parent_hear(p, PARENT_CONNECT, (struct str){in.p, n}, &next, why), 0);
        ssize_t n = parent_hear(p, PARENT_CONNECT, in, &next, why);
        bool this_way = strstr(connect[i].text, " 403 ") != NULL;
        assert_int_equal(n, this_way ? -EPERM : connect[i].why ? -EACCES : (ssize_t)in.n);
        assert_string_equal(why, connect[i].why ? connect[i].why : "");
        assert_int_equal(next, connect[i].why ? PARENT_CONNECT : PARENT_OPEN);
    }
    enum parent_step next = PARENT_GREET;
    char why[PARENT_WHY];
    assert_int_equal(parent_hear(&open, PARENT_GREET, STR("\5\0"), &next, why), 2);
    assert_int_equal(next, PARENT_REQUEST);
    assert_int_equal(parent_hear(&known, PARENT_GREET, STR("\5\2"), &next, why), 2);
    assert_int_equal(next, PARENT_LOGIN);
    assert_int_equal(parent_hear(&open, PARENT_GREET, STR("\5\2"), &next, why), -EACCES);
    assert_int_equal(parent_hear(&open, PARENT_GREET, STR("\5\377"), &next, why), -EACCES);
    assert_int_equal(parent_hear(&known, PARENT_LOGIN, STR("\1\1"), &next, why), -EACCES);
    assert_int_equal(parent_hear(&open, PARENT_REQUEST, STR("\5\0\0\1\0\0\0\0\0\0x"), &next, why), 10);
    assert_int_equal(next, PARENT_OPEN);
    assert_int_equal(parent_hear(&open, PARENT_REQUEST, STR("\5\0\0\1\0\0\0\0\0"), &next, why), 0);
    assert_int_equal(parent_hear(&open, PARENT_REQUEST, STR("\5\0\0\3\2ab\0\0"), &next, why), 9);
    assert_int_equal(parent_hear(&open, PARENT_REQUEST, STR("\5\2\0\1\0"), &next, why), -EACCES);
    assert_string_equal(why, "the parent proxy refused it (2)");
    assert_int_equal(parent_hear(&open, PARENT_REQUEST, STR("\5\0\0\7\0"), &next, why), -EACCES);
}

/* ---- requests and answers of a proxy's connection */

static void forwards(const char *request, const char *wanted)
{
    struct http_head h;
    char out[4096];
    ssize_t n = http_head_parse(str_of(request), 0, &h);
    assert_true(n > 0);
    ssize_t m = http_forward(&h, out, sizeof out - 1);
    if (!wanted) {
        assert_int_equal(m, -EBADMSG);
        return;
    }
    assert_true(m > 0);
    out[m] = 0;
    assert_string_equal(out, wanted);
    assert_int_equal(http_forward(&h, out, 20), -EMSGSIZE);
}

static void forwarded_requests(void **state)
{
    (void)state;
    forwards("GET http://a.test/x?y HTTP/1.1\r\nHost: a.test\r\nProxy-Authorization: Basic x\r\nProxy-Connection: "
             "keep-alive\r\nAccept: */*\r\n\r\n",
             "GET /x?y HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n");
    forwards(
        "GET http://a.test HTTP/1.1\r\nHost: a.test\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nX-Hopper: 2\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nX-Hopper: 2\r\nConnection: close\r\n\r\n");
    forwards("GET http://a.test/ HTTP/1.0\r\nHost: a.test\r\n\r\n",
             "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    forwards("GET http://a.test:81 HTTP/1.0\r\nAccept: */*\r\n\r\n",
             "GET / HTTP/1.1\r\nHost: a.test:81\r\nAccept: */*\r\nConnection: close\r\n\r\n");
    forwards("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: "
             "A\r\nTE: trailers\r\n\r\n",
             "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n");
    forwards(
        "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: x, content-length\r\nContent-Length: 1\r\n\r\n",
        NULL);
    forwards("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nProxy-Connection: HOST\r\n\r\n", NULL);
}

static void fetched_by_a_parent(void **state)
{
    (void)state;
    auto_arena struct arena *mem = arena_new(1u << 20);
    struct proxy open = proxy_of(mem, "https_proxy=http://p.test"),
                 known = proxy_of(mem, "https_proxy=http://Aladdin:open%20sesame@p.test");
    struct str head = STR("GET /x y HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    char out[512];
    out[http_by_parent(head, "a.test", 8080, &open, out, sizeof out - 1)] = 0;
    assert_string_equal(out, "GET http://a.test:8080/x y HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    out[http_by_parent(head, "a.test", 80, &known, out, sizeof out - 1)] = 0;
    assert_string_equal(
        out, "GET http://a.test:80/x y HTTP/1.1\r\nProxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n"
             "Host: a.test\r\nConnection: close\r\n\r\n");
    for (size_t room = 0; room < 60; room++)
        assert_int_equal(http_by_parent(head, "a.test", 80, &known, out, room), -EMSGSIZE);
}

static void ends(const char *method, const char *text, int state, bool close)
{
    char request[128];
    struct http_head h;
    snprintf(request, sizeof request, "%s http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", method);
    assert_true(http_head_parse(str_of(request), 0, &h) > 0);
    for (size_t piece = 1; piece <= 64; piece *= 4) {
        struct http_answer a;
        struct str rest = str_of(text);
        http_answer_expect(&a, &h);
        while (rest.n) {
            size_t n = rest.n < piece ? rest.n : piece;
            if (state == ANSWER_DONE && a.state == ANSWER_DONE)
                fail_msg("'%s' ends too early", text);
            if (http_answer_eat(&a, (struct str){rest.p, n}) < n)
                a.state = ANSWER_LOST; /* more than was requested */
            rest = str_skip(rest, n);
        }
        if ((int)a.state != state || (state == ANSWER_DONE && a.close != close))
            fail_msg("'%s': %d, close %d", text, a.state, a.close);
    }
}

static void answers_end(void **state)
{
    (void)state;
    ends("GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", ANSWER_DONE, false);
    ends("GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", ANSWER_BODY, false);
    ends("GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc", ANSWER_LOST, false);
    ends("GET", "HTTP/1.1 200\nContent-Length: 0\n\n", ANSWER_DONE, false);
    ends("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", ANSWER_DONE, false);
    ends("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", ANSWER_DONE, false);
    ends("GET", "HTTP/1.1 204 No Content\r\n\r\n", ANSWER_DONE, false);
    ends("POST", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", ANSWER_DONE, false);
    ends("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=\"y\"\r\nab\r\n0\r\n\r\n", ANSWER_DONE,
         false);
    ends("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nT: 1\r\n\r\n", ANSWER_DONE,
         false);
    ends("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n", ANSWER_DONE,
         false);
    ends("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\nx", ANSWER_LOST, false);
    ends("GET", "HTTP/1.1 200 OK\r\n\r\nto the end", ANSWER_LOST, false);
    ends("GET", "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n", ANSWER_DONE, true);
    ends("GET", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", ANSWER_DONE, true);
    ends("GET", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", ANSWER_LOST, false);
    ends("GET", "HTTP/1.1 101 Switching\r\n\r\n", ANSWER_LOST, false);
    ends("GET", "ICY 200 OK\r\n\r\n", ANSWER_LOST, false);
    char text[2048];
    snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nX: %01500d\r\nContent-Length: 1\r\n\r\na", 0);
    ends("GET", text, ANSWER_DONE, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(urls),
                                       cmocka_unit_test(which_variable),
                                       cmocka_unit_test(no_proxy),
                                       cmocka_unit_test(local_names),
                                       cmocka_unit_test(asked),
                                       cmocka_unit_test(answers),
                                       cmocka_unit_test(forwarded_requests),
                                       cmocka_unit_test(answers_end),
                                       cmocka_unit_test(fetched_by_a_parent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
