/* DNS messages: the box's questions, and servers' answers. The first byte chooses the side. */
#include "egress/egress.h"
#include "egress/protocols/proto.h"
#include "fuzz.h"

static void check_question(struct str in)
{
    struct dns_question q = {0}, again = {0};
    uint8_t out[DNS_MAX_UDP + 32], asked[600];
    struct host_addr a = {.b = {198, 18, 1, 2}}, back[4];
    int r = dns_query_parse(in, &q);
    MUST(r == 0 || r == -EBADMSG || r == -ENOTSUP);
    if (r == -EBADMSG)
        return;
    MUST(q.end >= 12 && q.end <= in.n);
    size_t n = dns_reply(in, &q, DNS_NXDOMAIN, NULL, 0, out, sizeof out);
    MUST(n == 0 || (n == q.end && (out[2] & 0x80) && (out[3] & 15) == DNS_NXDOMAIN));
    MUST(dns_query_parse((struct str){(char *)out, n}, &again) == -EBADMSG); /* an answer is no question */
    if (r < 0 || !q.valid_name)
        return;
    MUST(q.host.kind == HOST_NAME && q.host.name[0]);
    /* Asked by us, the same name is the same question. */
    size_t m = dns_query(q.id, q.host.name, q.type, asked, sizeof asked);
    MUST(m && dns_query_parse((struct str){(char *)asked, m}, &again) == 0);
    MUST(again.valid_name && same(again.host.name, q.host.name) && again.type == q.type && again.end == m);
    n = dns_reply((struct str){(char *)asked, m}, &again, DNS_NOERROR, &a, 60, out, sizeof out);
    MUST(n == m + 16);
    int found = dns_answer_parse((struct str){(char *)out, n}, q.id, q.host.name, q.type, back, 4);
    MUST(found == (q.type == DNS_A) && (!found || memcmp(back[0].b, a.b, 4) == 0));
}

static void check_answer(struct str in)
{
    struct host_addr out[3];
    uint16_t id = in.n >= 2 ? (uint16_t)((uint8_t)in.p[0] << 8 | (uint8_t)in.p[1]) : 0;
    static const uint16_t types[] = {DNS_A, DNS_AAAA};
    for (int i = 0; i < 2; i++) {
        memset(out, 0xEE, sizeof out);
        int r = dns_answer_parse(in, id, "www.ok.test", types[i], out, 2);
        MUST(r <= 2 && out[2].b[0] == 0xEE);
        MUST(r >= 0 || r == -EAGAIN || r == -ENOENT || r == -EMSGSIZE || r == -EBADMSG || r == -EIO);
        for (int k = 0; k < r; k++)
            MUST(!out[k].v6 || types[i] == DNS_AAAA);
        MUST(dns_answer_parse(in, (uint16_t)(id + 1), "www.ok.test", types[i], out, 2) == -EAGAIN);
        if (r > 0)
            MUST(dns_answer_parse(in, id, "www.other.test", types[i], out, 2) == -EAGAIN);
    }
}

static void check_files(struct str text)
{
    struct egress_resolver r = {0};
    struct host_addr out[3];
    struct host h;
    resolv_parse(text, &r);
    MUST(r.n_servers >= 1 && r.n_servers <= EGRESS_SERVERS && r.n_search <= EGRESS_SEARCH);
    MUST(r.timeout_s >= 1 && r.timeout_s <= 30 && r.attempts >= 1 && r.attempts <= 5 && r.ndots <= 15);
    for (unsigned i = 0; i < r.n_search; i++)
        MUST(host_parse(str_of(r.search[i]), &h) == 0 && h.kind == HOST_NAME);
    MUST(hosts_find(text, "ok.test", out, 2) <= 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str in = {(const char *)data, size};
    if (size == 0)
        return 0;
    struct str rest = str_skip(in, 1);
    switch (data[0] % 3) {
    case 0:
        check_question(rest);
        break;
    case 1:
        check_answer(rest);
        break;
    default:
        check_files(rest);
    }
    return 0;
}
