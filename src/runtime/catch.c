/*
 * CATCH: redirects the box's connections to the egress proxy. It runs in the box's namespaces before anything hostile
 * does, with raw netlink and no allocation (about 250 us). lo gets one non-loopback address of each family (without it
 * AI_ADDRCONFIG makes resolvers believe there is no network) and a local default route in table `local` (in `main`, TCP
 * times out), with a preferred source (otherwise source and destination may coincide and a socket connects to itself).
 * So every destination is local, every packet passes prerouting on lo, and one nftables rule passes each SYN that is
 * not for loopback to the transparent listener; getsockname(2) of the accepted socket is the original destination.
 * Everything else, neither TCP nor loopback, is rejected in the output hook, so that QUIC and the like fall back at
 * once. A second belt: packets of any interface but lo are dropped in both directions. There is none, but somebody outside
 * can attach one (docker network connect, ip link set netns), and a program in the box could choose it (SO_BINDTODEVICE).
 *
 * Without nf_tables (CATCH_ROUTES) the routes are the same, but each port needs its own listener at the wildcard
 * address, and a routing rule prohibits everything but TCP. Without such routes (CATCH_LOOPBACK) only local addresses
 * can be redirected: those of 127.64.0.0/10, as fake IPs. That confines a box only if its namespace has no other route
 * out, which is checked first.
 */
#include "runtime/runner.h"
#include "protocol/egress.h"

#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>

#include "sys/file.h"
#include "sys/socket.h"

#ifndef IPV6_TRANSPARENT
#define IPV6_TRANSPARENT 75
#endif

enum { LO = 1, IFF_UP_BIT = 1 };

/* ---- netlink messages in a fixed buffer ---- */

struct msg {
    uint8_t bytes[4096];
    size_t n, start; /* start of the current message */
    uint32_t seq;
};

static void put(struct msg *m, const void *p, size_t n)
{
    if (n > sizeof m->bytes - m->n)
        return; /* the content is fixed: a test checks that all of it fits */
    memcpy(m->bytes + m->n, p, n);
    m->n += n;
    while (m->n % 4)
        m->bytes[m->n++] = 0;
}

static void begin(struct msg *m, uint16_t type, uint16_t flags, const void *head, size_t n)
{
    struct nlmsghdr h = {.nlmsg_type = type, .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags), .nlmsg_seq = ++m->seq};
    m->start = m->n;
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

/* Sends all messages at once and reads an acknowledgement for each that asked; the first error counts. */
static int talk(struct msg *m, int protocol, unsigned acks)
{
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    int fd = sys_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (fd < 0)
        return fd;
    int r = sys_connect(fd, &kernel, sizeof kernel);
    if (r == 0) {
        long n = sys_send(fd, m->bytes, m->n, 0);
        r = n < 0 ? (int)n : 0;
    }
    while (r == 0 && acks) {
        uint8_t in[8192] __attribute__((aligned(8)));
        long n = sys_recv(fd, in, sizeof in, 0);
        if (n < 0) {
            r = (int)n;
            break;
        }
        for (size_t at = 0; at + sizeof(struct nlmsghdr) <= (size_t)n && r == 0;) {
            struct nlmsghdr h;
            struct nlmsgerr e;
            memcpy(&h, in + at, sizeof h);
            if (h.nlmsg_len < sizeof h || h.nlmsg_len > (size_t)n - at)
                break;
            if (h.nlmsg_type == NLMSG_ERROR && h.nlmsg_len >= sizeof h + sizeof e) {
                memcpy(&e, in + at + sizeof h, sizeof e);
                r = e.error;
                if (acks)
                    acks--;
            }
            at += NLMSG_ALIGN(h.nlmsg_len);
        }
    }
    sys_close(fd);
    return r;
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

static int link_up(void)
{
    struct msg m = {0};
    say_up(&m);
    return talk(&m, NETLINK_ROUTE, 1);
}

static int links_and_routes(bool *ret_v6)
{
    struct msg m = {0};
    say_up(&m);
    add_address(&m, AF_INET, source4, sizeof source4);
    add_route(&m, AF_INET, source4, sizeof source4);
    int r = talk(&m, NETLINK_ROUTE, 3);
    if (r < 0)
        return r;
    /* Fails with disable_ipv6=1 or without IPv6 in the kernel: the box then has only IPv4, and AAAA answers are
       empty. */
    m.n = 0;
    add_address(&m, AF_INET6, source6, sizeof source6);
    add_route(&m, AF_INET6, source6, sizeof source6);
    *ret_v6 = talk(&m, NETLINK_ROUTE, 2) == 0;
    return 0;
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

/* First loopback as usual; then everything but TCP gets EACCES at once; then the local table, whose own rule came
   before them all. */
static int only_tcp(uint8_t family)
{
    struct msg m = {0};
    uint8_t loopback = family == AF_INET ? 8 : 128;
    fib_rule(&m, RTM_NEWRULE, (struct fib_rule){family, loopback, FR_ACT_TO_TBL, false, 10});
    fib_rule(&m, RTM_NEWRULE, (struct fib_rule){family, 0, FR_ACT_PROHIBIT, true, 20});
    fib_rule(&m, RTM_NEWRULE, (struct fib_rule){family, 0, FR_ACT_TO_TBL, false, 30});
    fib_rule(&m, RTM_DELRULE, (struct fib_rule){family, 0, FR_ACT_TO_TBL, false, 0});
    return talk(&m, NETLINK_ROUTE, 4);
}

/* Whether a route message describes a route to lo only. */
static bool stays_here(const uint8_t *p, size_t n)
{
    struct rtmsg r;
    bool here = false;
    if (n < sizeof r)
        return false;
    memcpy(&r, p, sizeof r);
    if (r.rtm_type == RTN_UNREACHABLE || r.rtm_type == RTN_PROHIBIT || r.rtm_type == RTN_BLACKHOLE)
        return true;
    for (size_t at = NLMSG_ALIGN(sizeof r); at + sizeof(struct nlattr) <= n;) {
        struct nlattr a;
        uint32_t index = 0;
        memcpy(&a, p + at, sizeof a);
        if (a.nla_len < sizeof a || a.nla_len > n - at)
            return false;
        uint16_t type = a.nla_type & NLA_TYPE_MASK;
        if (type == RTA_GATEWAY || type == RTA_VIA || type == RTA_MULTIPATH || type == RTA_NH_ID || type == RTA_ENCAP)
            return false;
        if (type == RTA_OIF && a.nla_len == sizeof a + sizeof index) {
            memcpy(&index, p + at + sizeof a, sizeof index);
            here = index == LO;
        }
        at += NLA_ALIGN(a.nla_len);
    }
    return here;
}

/* The messages of one read; 1 at the end of the list. */
static int routes_stay_here(const uint8_t *in, size_t n)
{
    for (size_t at = 0; at + sizeof(struct nlmsghdr) <= n;) {
        struct nlmsghdr h;
        memcpy(&h, in + at, sizeof h);
        if (h.nlmsg_len < sizeof h || h.nlmsg_len > n - at || h.nlmsg_type == NLMSG_ERROR)
            return -EBADMSG;
        if (h.nlmsg_type == NLMSG_DONE)
            return 1;
        if (h.nlmsg_type == RTM_NEWROUTE && !stays_here(in + at + sizeof h, h.nlmsg_len - sizeof h))
            return -ENOTUNIQ;
        at += NLMSG_ALIGN(h.nlmsg_len);
    }
    return 0;
}

int catch_alone(void)
{
    struct msg m = {0};
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    struct rtmsg all = {.rtm_family = AF_UNSPEC};
    begin(&m, RTM_GETROUTE, NLM_F_DUMP, &all, sizeof all);
    end(&m);
    int fd = sys_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0)
        return fd;
    int r = sys_connect(fd, &kernel, sizeof kernel);
    long n = r < 0 ? r : sys_send(fd, m.bytes, m.n, 0);
    while (n >= 0 && r == 0) {
        uint8_t in[16384] __attribute__((aligned(8)));
        n = sys_recv(fd, in, sizeof in, 0);
        r = n <= 0 ? -EBADMSG : routes_stay_here(in, (size_t)n);
    }
    sys_close(fd);
    return n < 0 ? (int)n : r < 0 ? r : 0;
}

/* Only lo: up, and, where possible, with an address that makes resolvers believe in a network. */
static int loopback_only(void)
{
    struct msg m = {0};
    int r = link_up();
    if (r < 0)
        return r;
    add_address(&m, AF_INET, source4, sizeof source4);
    (void)talk(&m, NETLINK_ROUTE, 1);
    return catch_alone();
}

/* ---- rules ---- */

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

static int rules(void)
{
    struct msg m = {0};
    unsigned acks = 0;

    batch(&m, NFNL_MSG_BATCH_BEGIN);
    nf_begin(&m, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_ACK);
    attr_text(&m, NFTA_TABLE_NAME, table);
    end(&m);
    chain(&m, "catch", NF_INET_PRE_ROUTING, -150);
    chain(&m, "refuse", NF_INET_LOCAL_OUT, 0);
    chain(&m, "inbound", NF_INET_LOCAL_IN, 0);
    rule_of_lo(&m, "refuse", NFT_META_OIF);
    rule_of_lo(&m, "inbound", NFT_META_IIF);
    acks += 6;
    for (int v6 = 0; v6 < 2; v6++) {
        struct nft_rule r = rule(&m, "catch");
        to_loopback(&m, v6, NFT_CMP_EQ);
        put_verdict(&m, NF_ACCEPT);
        rule_end(&m, r);
        r = rule(&m, "refuse");
        to_loopback(&m, v6, NFT_CMP_NEQ);
        load_meta(&m, NFT_META_L4PROTO);
        compare_byte(&m, NFT_CMP_NEQ, IPPROTO_TCP);
        reject(&m);
        rule_end(&m, r);
        acks += 2;
    }
    struct nft_rule r = rule(&m, "catch");
    load_meta(&m, NFT_META_L4PROTO);
    compare_byte(&m, NFT_CMP_EQ, IPPROTO_TCP);
    load_payload(&m, NFT_PAYLOAD_TRANSPORT_HEADER, 13, 1);
    mask_byte(&m, 0x12); /* SYN and ACK */
    compare_byte(&m, NFT_CMP_EQ, 0x02);
    tproxy(&m, EGRESS_CATCH_PORT);
    put_verdict(&m, NF_ACCEPT);
    rule_end(&m, r);
    acks++;
    batch(&m, NFNL_MSG_BATCH_END);
    return talk(&m, NETLINK_NETFILTER, acks);
}

/* ---- sockets ---- */

enum { TRANSPARENT = 1, SHARED = 2 /* beside listeners of the same port at other addresses */ };

static int listener(int family, int type, const void *address, size_t n, int how)
{
    bool transparent = how & TRANSPARENT;
    int one = 1, zero = 0;
    int fd = sys_socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return fd;
    int r = sys_setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (r == 0 && family == AF_INET6)
        r = sys_setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    if (r == 0 && how & SHARED)
        r = sys_setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
    if (r == 0 && transparent)
        r = sys_setsockopt(fd, SOL_IP, IP_TRANSPARENT, &one, sizeof one);
    if (r == 0 && transparent && family == AF_INET6)
        r = sys_setsockopt(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, &one, sizeof one);
    if (r == 0)
        r = sys_bind(fd, address, n);
    if (r == 0 && type == SOCK_STREAM)
        r = (int)sys_call(SYS_listen, fd, 1024, 0, 0, 0, 0);
    if (r < 0) {
        sys_close(fd);
        return r;
    }
    return fd;
}

/* Sends one socket to the egress proxy and closes it here: descriptors of the builder could be inherited. */
static int give(struct runner *r, int fd, uint32_t index, bool v6)
{
    struct egress_socket_frame f = {.index = index, .v6 = v6};
    if (fd < 0)
        return fd;
    long e = sys_send_fd(r->egress, &f, sizeof f, fd, 0);
    sys_close(fd);
    return e < 0 ? (int)e : 0;
}

static int give_sockets(struct runner *r, enum catch_way way, bool v6)
{
    int how = way == CATCH_TPROXY ? 0 : SHARED, e = 0;
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons(EGRESS_CATCH_PORT)};
    struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons(EGRESS_CATCH_PORT)};
    struct sockaddr_in proxy = {
        .sin_family = AF_INET, .sin_port = htons(EGRESS_PROXY_PORT), .sin_addr.s_addr = htonl(0x7F000001)};
    struct sockaddr_in dns = {.sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(0x7F353535)};

    if (way == CATCH_TPROXY)
        e = give(r,
                 v6 ? listener(AF_INET6, SOCK_STREAM, &any6, sizeof any6, TRANSPARENT)
                    : listener(AF_INET, SOCK_STREAM, &any4, sizeof any4, TRANSPARENT),
                 EGRESS_CATCH, v6);
    if (e == 0)
        e = give(r, listener(AF_INET, SOCK_STREAM, &proxy, sizeof proxy, how), EGRESS_PROXY, v6);
    if (e == 0)
        e = give(r, listener(AF_INET, SOCK_DGRAM, &dns, sizeof dns, 0), EGRESS_DNS_UDP, v6);
    return e < 0 ? e : give(r, listener(AF_INET, SOCK_STREAM, &dns, sizeof dns, how), EGRESS_DNS_TCP, v6);
}

/* LISTEN: one port on all addresses. */
static int give_port(struct runner *r, const struct step *s, uint32_t index, bool v6)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)s->b)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->b)};
    return give(r,
                v6 ? listener(AF_INET6, SOCK_STREAM, &six, sizeof six, SHARED)
                   : listener(AF_INET, SOCK_STREAM, &four, sizeof four, SHARED),
                index, v6);
}

static int give_reach(struct runner *r, const struct step *s, int how, uint32_t index, bool v6)
{
    struct sockaddr_in6 six = {
        .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)s->b), .sin6_addr.s6_addr = {[15] = 1}};
    struct sockaddr_in four = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)s->b), .sin_addr.s_addr = htonl(0x7F000001)};
    return give(r,
                s->a ? listener(AF_INET6, SOCK_STREAM, &six, sizeof six, how)
                     : listener(AF_INET, SOCK_STREAM, &four, sizeof four, how),
                index, v6);
}

int catch_prepare(enum catch_way way, bool *ret_v6)
{
    *ret_v6 = false;
    int e = way == CATCH_LOOPBACK ? loopback_only() : links_and_routes(ret_v6);
    if (e == 0 && way == CATCH_TPROXY)
        e = rules();
    if (e == 0 && way == CATCH_ROUTES)
        e = only_tcp(AF_INET);
    if (e == 0 && way == CATCH_ROUTES && *ret_v6)
        e = only_tcp(AF_INET6);
    return e;
}

int step_catch(struct runner *r, const struct step *s)
{
    bool v6 = false;
    if (r->late_net) /* steps_catch() */
        return 0;
    if (r->egress < 0)
        return -EBADMSG;
    int e = catch_prepare((enum catch_way)s->a, &v6), how = s->a == CATCH_TPROXY ? 0 : SHARED;
    if (e == 0)
        e = give_sockets(r, (enum catch_way)s->a, v6);
    for (uint32_t i = 0; e == 0 && i < s->b; i++) {
        const struct step *part = s + 1 + i;
        r->failed = (uint32_t)(part - plan_steps(r->plan));
        e = part->kind == STEP_LISTEN ? give_port(r, part, EGRESS_SOCKETS + i, v6)
                                      : give_reach(r, part, how, EGRESS_SOCKETS + i, v6);
    }
    r->egress = sys_shut(r->egress);
    return e;
}
