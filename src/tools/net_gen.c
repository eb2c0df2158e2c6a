/*
 * Build-time program: writes the requests to the kernel's network by which a box's connections come to the egress proxy
 * (runtime/catch.c), as C data: net_gen OUT.c. Nothing in them depends on the machine or the box.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/egress.h"

enum { LO = 1, IFF_UP_BIT = 1 };

/* ---- netlink messages in a fixed buffer ---- */

struct msg {
    uint8_t bytes[4096];
    size_t n, start; /* start of the current message */
    uint32_t seq;
    unsigned acks; /* messages that are acknowledged */
};

static void put(struct msg *m, const void *p, size_t n)
{
    if (n > sizeof m->bytes - m->n) {
        fputs("net_gen: a request does not fit\n", stderr);
        exit(1);
    }
    memcpy(m->bytes + m->n, p, n);
    m->n += n;
    while (m->n % 4)
        m->bytes[m->n++] = 0;
}

static void begin(struct msg *m, uint16_t type, uint16_t flags, const void *head, size_t n)
{
    struct nlmsghdr h = {.nlmsg_type = type, .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags), .nlmsg_seq = ++m->seq};
    m->start = m->n;
    m->acks += (flags & NLM_F_ACK) != 0;
    put(m, &h, sizeof h);
    put(m, head, n);
}

static void end(struct msg *m)
{
    uint32_t len = (uint32_t)(m->n - m->start);
    memcpy(m->bytes + m->start, &len, sizeof len);
}

static size_t nest(struct msg *m, uint16_t type)
{
    size_t at = m->n;
    struct nlattr a = {.nla_type = (uint16_t)(type | NLA_F_NESTED)};
    put(m, &a, sizeof a);
    return at;
}

static void nest_end(struct msg *m, size_t at)
{
    uint16_t len = (uint16_t)(m->n - at);
    memcpy(m->bytes + at, &len, sizeof len);
}

static void attr(struct msg *m, uint16_t type, const void *p, size_t n)
{
    struct nlattr a = {.nla_type = type, .nla_len = (uint16_t)(sizeof a + n)};
    put(m, &a, sizeof a);
    put(m, p, n);
}

static void attr_text(struct msg *m, uint16_t type, const char *s)
{
    attr(m, type, s, strlen(s) + 1);
}

static void attr_be32(struct msg *m, uint16_t type, uint32_t v)
{
    uint32_t be = htonl(v);
    attr(m, type, &be, sizeof be);
}

/* ---- addresses and routes ---- */

static const uint8_t source4[4] = {198, 19, 255, 254}; /* RFC 2544's range: never a real destination */
static const uint8_t source6[16] = {0xfd, 0x5a, [14] = 0xff, [15] = 0xff};

static void add_address(struct msg *m, uint8_t family, const uint8_t *addr, size_t n)
{
    struct ifaddrmsg a = {
        .ifa_family = family, .ifa_prefixlen = (uint8_t)(8 * n), .ifa_flags = IFA_F_NODAD, .ifa_index = LO};
    begin(m, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE, &a, sizeof a);
    attr(m, IFA_LOCAL, addr, n);
    attr(m, IFA_ADDRESS, addr, n);
    end(m);
}

static void add_route(struct msg *m, uint8_t family, const uint8_t *source, size_t n)
{
    struct rtmsg r = {.rtm_family = family,
                      .rtm_table = RT_TABLE_LOCAL,
                      .rtm_protocol = RTPROT_BOOT,
                      .rtm_scope = RT_SCOPE_HOST,
                      .rtm_type = RTN_LOCAL};
    uint32_t lo = LO;
    begin(m, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE, &r, sizeof r);
    attr(m, RTA_OIF, &lo, sizeof lo);
    attr(m, RTA_PREFSRC, source, n);
    end(m);
}

static void say_up(struct msg *m)
{
    struct ifinfomsg up = {.ifi_family = AF_UNSPEC, .ifi_index = LO, .ifi_flags = IFF_UP_BIT, .ifi_change = IFF_UP_BIT};
    begin(m, RTM_NEWLINK, NLM_F_ACK, &up, sizeof up);
    end(m);
}

/* ---- without nf_tables ---- */

struct fib_rule {
    uint8_t family, bits, action;
    bool not_tcp;
    uint32_t preference;
};

/* One routing rule: for loopback destinations (bits), for everything but TCP, or for everything. */
static void fib_rule(struct msg *m, uint16_t type, struct fib_rule r)
{
    static const uint8_t four[4] = {127}, six[16] = {[15] = 1};
    struct fib_rule_hdr h = {.family = r.family,
                             .dst_len = r.bits,
                             .table = r.action == FR_ACT_TO_TBL ? RT_TABLE_LOCAL : RT_TABLE_UNSPEC,
                             .action = r.action,
                             .flags = r.not_tcp ? FIB_RULE_INVERT : 0};
    uint8_t tcp = IPPROTO_TCP;
    begin(m, type, (uint16_t)(NLM_F_ACK | (type == RTM_NEWRULE ? NLM_F_CREATE | NLM_F_EXCL : 0)), &h, sizeof h);
    if (r.bits && r.family == AF_INET)
        attr(m, FRA_DST, four, sizeof four);
    else if (r.bits)
        attr(m, FRA_DST, six, sizeof six);
    if (r.not_tcp)
        attr(m, FRA_IP_PROTO, &tcp, sizeof tcp);
    attr(m, FRA_PRIORITY, &r.preference, sizeof r.preference);
    end(m);
}

/* ---- with nf_tables ---- */

static const char table[] = "pinfold";

static void nf_begin(struct msg *m, uint16_t type, uint16_t flags)
{
    struct nfgenmsg g = {.nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0};
    begin(m, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags, &g, sizeof g);
}

static void batch(struct msg *m, uint16_t type)
{
    struct nfgenmsg g = {.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};
    begin(m, type, 0, &g, sizeof g);
    end(m);
}

static void chain(struct msg *m, const char *name, uint32_t hook, int32_t priority)
{
    nf_begin(m, NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_ACK);
    attr_text(m, NFTA_CHAIN_TABLE, table);
    attr_text(m, NFTA_CHAIN_NAME, name);
    size_t h = nest(m, NFTA_CHAIN_HOOK);
    attr_be32(m, NFTA_HOOK_HOOKNUM, hook);
    attr_be32(m, NFTA_HOOK_PRIORITY, (uint32_t)priority);
    nest_end(m, h);
    attr_text(m, NFTA_CHAIN_TYPE, "filter");
    end(m);
}

struct expr {
    size_t elem, data;
};

static struct expr expr(struct msg *m, const char *name)
{
    struct expr e = {.elem = nest(m, NFTA_LIST_ELEM)};
    attr_text(m, NFTA_EXPR_NAME, name);
    e.data = nest(m, NFTA_EXPR_DATA);
    return e;
}

static void expr_end(struct msg *m, struct expr e)
{
    nest_end(m, e.data);
    nest_end(m, e.elem);
}

static void value(struct msg *m, uint16_t type, const void *p, size_t n)
{
    size_t at = nest(m, type);
    attr(m, NFTA_DATA_VALUE, p, n);
    nest_end(m, at);
}

static void load_meta(struct msg *m, uint32_t key)
{
    struct expr e = expr(m, "meta");
    attr_be32(m, NFTA_META_DREG, NFT_REG_1);
    attr_be32(m, NFTA_META_KEY, key);
    expr_end(m, e);
}

static void load_payload(struct msg *m, uint32_t base, uint32_t offset, uint32_t n)
{
    struct expr e = expr(m, "payload");
    attr_be32(m, NFTA_PAYLOAD_DREG, NFT_REG_1);
    attr_be32(m, NFTA_PAYLOAD_BASE, base);
    attr_be32(m, NFTA_PAYLOAD_OFFSET, offset);
    attr_be32(m, NFTA_PAYLOAD_LEN, n);
    expr_end(m, e);
}

static void compare(struct msg *m, uint32_t op, const void *p, size_t n)
{
    struct expr e = expr(m, "cmp");
    attr_be32(m, NFTA_CMP_SREG, NFT_REG_1);
    attr_be32(m, NFTA_CMP_OP, op);
    value(m, NFTA_CMP_DATA, p, n);
    expr_end(m, e);
}

static void compare_byte(struct msg *m, uint32_t op, uint8_t v)
{
    compare(m, op, &v, 1);
}

static void mask_byte(struct msg *m, uint8_t mask)
{
    uint8_t zero = 0;
    struct expr e = expr(m, "bitwise");
    attr_be32(m, NFTA_BITWISE_SREG, NFT_REG_1);
    attr_be32(m, NFTA_BITWISE_DREG, NFT_REG_1);
    attr_be32(m, NFTA_BITWISE_LEN, 1);
    value(m, NFTA_BITWISE_MASK, &mask, 1);
    value(m, NFTA_BITWISE_XOR, &zero, 1);
    expr_end(m, e);
}

static void put_verdict(struct msg *m, uint32_t code)
{
    struct expr e = expr(m, "immediate");
    attr_be32(m, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    size_t data = nest(m, NFTA_IMMEDIATE_DATA), v = nest(m, NFTA_DATA_VERDICT);
    attr_be32(m, NFTA_VERDICT_CODE, code);
    nest_end(m, v);
    nest_end(m, data);
    expr_end(m, e);
}

static void reject(struct msg *m)
{
    uint8_t code = NFT_REJECT_ICMPX_PORT_UNREACH;
    struct expr e = expr(m, "reject");
    attr_be32(m, NFTA_REJECT_TYPE, NFT_REJECT_ICMPX_UNREACH);
    attr(m, NFTA_REJECT_ICMP_CODE, &code, 1);
    expr_end(m, e);
}

static void tproxy(struct msg *m, uint16_t port)
{
    uint16_t be = htons(port);
    struct expr e = expr(m, "immediate");
    attr_be32(m, NFTA_IMMEDIATE_DREG, NFT_REG_1);
    value(m, NFTA_IMMEDIATE_DATA, &be, sizeof be);
    expr_end(m, e);
    e = expr(m, "tproxy");
    attr_be32(m, NFTA_TPROXY_FAMILY, NFPROTO_UNSPEC);
    attr_be32(m, NFTA_TPROXY_REG_PORT, NFT_REG_1);
    expr_end(m, e);
}

struct nft_rule {
    size_t expressions;
};

static struct nft_rule rule(struct msg *m, const char *chain_name)
{
    nf_begin(m, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | NLM_F_ACK);
    attr_text(m, NFTA_RULE_TABLE, table);
    attr_text(m, NFTA_RULE_CHAIN, chain_name);
    return (struct nft_rule){nest(m, NFTA_RULE_EXPRESSIONS)};
}

static void rule_end(struct msg *m, struct nft_rule r)
{
    nest_end(m, r.expressions);
    end(m);
}

/* Matches destinations that are (op EQ) or are not (op NEQ) loopback, for one family. */
static void to_loopback(struct msg *m, bool v6, uint32_t op)
{
    static const uint8_t one[16] = {[15] = 1};
    load_meta(m, NFT_META_NFPROTO);
    compare_byte(m, NFT_CMP_EQ, v6 ? NFPROTO_IPV6 : NFPROTO_IPV4);
    if (v6) {
        load_payload(m, NFT_PAYLOAD_NETWORK_HEADER, 24, 16);
        compare(m, op, one, sizeof one);
    } else {
        load_payload(m, NFT_PAYLOAD_NETWORK_HEADER, 16, 1);
        compare_byte(m, op, 127);
    }
}

/* Only lo counts, to send (NFT_META_OIF) and to receive (NFT_META_IIF). */
static void rule_of_lo(struct msg *m, const char *chain_name, uint32_t key)
{
    const uint32_t lo = LO;
    struct nft_rule r = rule(m, chain_name);
    load_meta(m, key);
    compare(m, NFT_CMP_NEQ, &lo, sizeof lo);
    put_verdict(m, NF_DROP);
    rule_end(m, r);
}

/* What is for loopback passes; of the rest TCP goes to the listener that EGRESS_CATCH_PORT names, and everything else is refused. */
static void make_rules(struct msg *m)
{
    batch(m, NFNL_MSG_BATCH_BEGIN);
    nf_begin(m, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_ACK);
    attr_text(m, NFTA_TABLE_NAME, table);
    end(m);
    chain(m, "catch", NF_INET_PRE_ROUTING, -150);
    chain(m, "refuse", NF_INET_LOCAL_OUT, 0);
    chain(m, "inbound", NF_INET_LOCAL_IN, 0);
    rule_of_lo(m, "refuse", NFT_META_OIF);
    rule_of_lo(m, "inbound", NFT_META_IIF);
    for (int v6 = 0; v6 < 2; v6++) {
        struct nft_rule r = rule(m, "catch");
        to_loopback(m, v6, NFT_CMP_EQ);
        put_verdict(m, NF_ACCEPT);
        rule_end(m, r);
        r = rule(m, "refuse");
        to_loopback(m, v6, NFT_CMP_NEQ);
        load_meta(m, NFT_META_L4PROTO);
        compare_byte(m, NFT_CMP_NEQ, IPPROTO_TCP);
        reject(m);
        rule_end(m, r);
    }
    struct nft_rule r = rule(m, "catch");
    load_meta(m, NFT_META_L4PROTO);
    compare_byte(m, NFT_CMP_EQ, IPPROTO_TCP);
    load_payload(m, NFT_PAYLOAD_TRANSPORT_HEADER, 13, 1);
    mask_byte(m, 0x12); /* SYN and ACK */
    compare_byte(m, NFT_CMP_EQ, 0x02);
    tproxy(m, EGRESS_CATCH_PORT);
    put_verdict(m, NF_ACCEPT);
    rule_end(m, r);
    batch(m, NFNL_MSG_BATCH_END);
}

/* First loopback as usual; then everything but TCP gets EACCES at once; then the local table, whose own rule came
   before them all. */
static void make_only_tcp(struct msg *m, uint8_t family)
{
    uint8_t loopback = family == AF_INET ? 8 : 128;
    fib_rule(m, RTM_NEWRULE, (struct fib_rule){family, loopback, FR_ACT_TO_TBL, false, 10});
    fib_rule(m, RTM_NEWRULE, (struct fib_rule){family, 0, FR_ACT_PROHIBIT, true, 20});
    fib_rule(m, RTM_NEWRULE, (struct fib_rule){family, 0, FR_ACT_TO_TBL, false, 30});
    fib_rule(m, RTM_DELRULE, (struct fib_rule){family, 0, FR_ACT_TO_TBL, false, 0});
}

/* ---- the program ---- */

static void make(struct msg *m, const char *name)
{
    struct rtmsg all = {.rtm_family = AF_UNSPEC};
    if (strcmp(name, "up") == 0) {
        say_up(m);
    } else if (strcmp(name, "address4") == 0) {
        add_address(m, AF_INET, source4, sizeof source4);
    } else if (strcmp(name, "routes4") == 0) {
        say_up(m);
        add_address(m, AF_INET, source4, sizeof source4);
        add_route(m, AF_INET, source4, sizeof source4);
    } else if (strcmp(name, "routes6") == 0) {
        add_address(m, AF_INET6, source6, sizeof source6);
        add_route(m, AF_INET6, source6, sizeof source6);
    } else if (strcmp(name, "only_tcp4") == 0) {
        make_only_tcp(m, AF_INET);
    } else if (strcmp(name, "only_tcp6") == 0) {
        make_only_tcp(m, AF_INET6);
    } else if (strcmp(name, "list_routes") == 0) {
        begin(m, RTM_GETROUTE, NLM_F_DUMP, &all, sizeof all);
        end(m);
    } else {
        make_rules(m);
    }
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"up",        "address4",  "routes4",     "routes6",
                                        "only_tcp4", "only_tcp6", "list_routes", "rules"};
    FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;
    if (!out) {
        fputs("usage: net_gen OUT.c\n", stderr);
        return 1;
    }
    fprintf(out,
            "/* Made by tools/net_gen.c. */\n#include \"runtime/net_requests.h\"\n_Static_assert(__BYTE_ORDER__ == %d, "
            "\"made on a machine of another byte order\");\n",
            __BYTE_ORDER__);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct msg m = {0};
        make(&m, names[i]);
        fprintf(out, "const struct net_request net_%s = {%u, %zu, (const uint8_t[]){", names[i], m.acks, m.n);
        for (size_t k = 0; k < m.n; k++)
            fprintf(out, "%s%u,", k % 24 ? "" : "\n    ", m.bytes[k]);
        fputs("}};\n", out);
    }
    return fclose(out) != 0;
}
