/*
 * SOCKS 4, 4a and 5, as the first bytes of a connection. A request is taken whole or not at all, and its host is in
 * canonical form.
 */
#include "egress/protocols/proto.h"
#include "fuzz.h"

static void check_host(const struct host *h)
{
    struct host again;
    char text[46];
    if (h->kind == HOST_NAME) {
        MUST(h->name[0] && host_parse(str_of(h->name), &again) == 0 && again.kind == HOST_NAME &&
             same(again.name, h->name));
        return;
    }
    addr_print(&h->addr, text);
    MUST(host_parse(str_of(text), &again) == 0 && again.kind == HOST_ADDR && memcmp(again.addr.b, h->addr.b, 16) == 0);
}

static void check(struct str in, ssize_t (*parse)(struct str, struct socks_request *), uint8_t version)
{
    struct socks_request q, again;
    ssize_t n = parse(in, &q);
    MUST(n <= (ssize_t)in.n);
    if (n < 0) {
        MUST(n == -EBADMSG || n == -EINVAL || n == -EAFNOSUPPORT);
        return;
    }
    for (size_t i = 0; i < (n ? (size_t)n : in.n); i++)
        MUST(parse((struct str){in.p, i}, &again) == 0);
    if (n == 0)
        return;
    MUST(q.version == version && q.port != 0 && q.command == (uint8_t)in.p[1]);
    check_host(&q.host);
    MUST(parse((struct str){in.p, (size_t)n}, &again) == n && again.port == q.port && again.host.kind == q.host.kind);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = {(const char *)data, size};
    bool no_auth = false;
    ssize_t n = socks5_greeting(in, &no_auth);
    MUST(n <= (ssize_t)size && (n <= 0 || n == 2 + data[1]));
    MUST(n <= 0 || no_auth == (memchr(data + 2, 0, (size_t)n - 2) != NULL));
    check(in, socks5_request, 5);
    check(in, socks4_request, 4);
    return 0;
}
