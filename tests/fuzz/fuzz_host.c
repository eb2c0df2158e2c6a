/*
 * Hosts and rules. What the C library reads as an address is never a name, and canonical forms stay what they are.
 */
#include <arpa/inet.h>

#include "fuzz.h"
#include "match/host.h"

static void check_host(struct str s, const char *text)
{
    struct host h, again;
    struct in_addr v4;
    char plain[46];
    int r = host_parse(s, &h);
    bool aton = strlen(text) == s.n && inet_aton(text, &v4) && !strpbrk(text, " \t\n\r\v\f");
    if (r < 0)
        return;
    if (h.kind == HOST_NAME) {
        MUST(!aton && !inet_aton(h.name, &v4));
        size_t n = strlen(h.name);
        MUST(n && n <= HOST_NAME_MAX_TEXT && h.name[n - 1] != '.' && h.name[0] != '.' && !strstr(h.name, ".."));
        for (const char *c = h.name; *c; c++)
            MUST((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '-' || *c == '_' || *c == '.');
        MUST(host_parse(str_of(h.name), &again) == 0 && again.kind == HOST_NAME && same(again.name, h.name));
        return;
    }
    if (aton && !h.addr.v6)
        MUST(memcmp(&v4, h.addr.b, 4) == 0);
    addr_print(&h.addr, plain);
    MUST(addr_parse(str_of(plain), &again.addr) == 0 && again.addr.v6 == h.addr.v6 &&
         memcmp(again.addr.b, h.addr.b, 16) == 0);
    struct in6_addr v6;
    MUST(inet_pton(h.addr.v6 ? AF_INET6 : AF_INET, plain, &v6) == 1 && memcmp(&v6, h.addr.b, h.addr.v6 ? 16 : 4) == 0);
    MUST(addr_class_text(addr_classify(&h.addr)) != NULL);
}

static void check_rule(struct str s, struct str other)
{
    struct host_rule r = {0}, again = {0};
    struct host h;
    struct err e = {0};
    char text[HOST_RULE_TEXT], twice[HOST_RULE_TEXT];
    if (host_rule_parse(s, RULE_ALLOW, &r, &e) < 0) {
        MUST(e.text[0]);
        return;
    }
    MUST(r.low >= 1 && r.low <= r.high && r.prefix <= (r.match == MATCH_NET && r.net.v6 ? 128 : 32));
    host_rule_print(&r, text);
    MUST(host_rule_parse(str_of(text), RULE_ALLOW, &again, &e) == 0);
    host_rule_print(&again, twice);
    MUST(same(text, twice) && again.match == r.match && again.low == r.low && again.high == r.high);
    if (host_parse(other, &h) < 0)
        return;
    bool yes = host_rule_matches(&r, &h, r.low);
    MUST(yes == host_rule_matches(&again, &h, r.low));
    MUST(r.high == 65535 || !host_rule_matches(&r, &h, (uint16_t)(r.high + 1)));
    MUST(!yes || r.match == MATCH_ANY || (r.match == MATCH_NET) == (h.kind == HOST_ADDR));
    size_t which;
    struct host_rule both[2] = {r, r};
    both[1].verb = RULE_DENY;
    MUST(host_judge(both, 1, &h, r.low, &which) == (yes ? HOST_ALLOWED : HOST_DENIED_BY_DEFAULT));
    MUST(host_judge(both, 2, &h, r.low, &which) == (yes ? HOST_DENIED : HOST_DENIED_BY_DEFAULT));
    MUST(host_judge(both, 0, &h, r.low, &which) == HOST_DENIED_BY_DEFAULT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = {(const char *)data, size};
    struct host h;
    uint16_t port = 0;
    const char *cut = size ? memchr(in.p, '\n', in.n) : NULL;
    struct str first = {in.p, cut ? (size_t)(cut - in.p) : in.n};
    char *text = strndup(first.p ? first.p : "", first.n);
    MUST(text != NULL);
    check_host(first, text);
    check_rule(first, cut ? str_skip(in, first.n + 1) : in);
    if (host_port_parse(first, 0, &h, &port) == 0)
        MUST(port != 0);
    free(text);
    return 0;
}
