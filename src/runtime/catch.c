/*
 * CATCH: redirects the box's connections to the egress proxy. It runs in the box's namespaces before anything hostile
 * does, with requests that were made while pinfold was built (tools/net_gen.c) and no allocation (about 250 us). lo gets one non-loopback address of each family (without it
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
#include "runtime/net_requests.h"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>

#include "sys/file.h"
#include "sys/socket.h"

#ifndef IPV6_TRANSPARENT
#define IPV6_TRANSPARENT 75
#endif

enum { LO = 1 };

/* A socket to which the request was sent, or -errno. */
static int send_request(const struct net_request *q, int protocol)
{
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    own_fd int fd = sys_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    long r = fd < 0 ? fd : sys_connect(fd, &kernel, sizeof kernel);
    if (r == 0)
        r = sys_send(fd, q->bytes, q->n, 0);
    return r < 0 ? (int)r : sys_taken(&fd);
}

/* Sends all its messages at once and reads an acknowledgement for each that asked; the first error counts. */
static int ask(const struct net_request *q, int protocol)
{
    unsigned acks = q->acks;
    own_fd int fd = send_request(q, protocol);
    int r = fd < 0 ? fd : 0;
    while (r == 0 && acks) {
        uint8_t in[8192] __attribute__((aligned(8)));
        long n = sys_recv(fd, in, sizeof in, 0);
        if (n < 0)
            return (int)n;
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
    return r;
}

static int links_and_routes(bool *ret_v6)
{
    int r = ask(&net_routes4, NETLINK_ROUTE);
    if (r < 0)
        return r;
    /* Fails with disable_ipv6=1 or without IPv6 in the kernel: the box then has only IPv4, and AAAA answers are
       empty. */
    *ret_v6 = ask(&net_routes6, NETLINK_ROUTE) == 0;
    return 0;
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

/* That a list could not be made the kernel says at its end, and that it changed meanwhile in each of its messages. */
int catch_routes(const uint8_t *in, size_t n)
{
    int no = 0;
    for (size_t at = 0; at + sizeof(struct nlmsghdr) <= n;) {
        struct nlmsghdr h;
        memcpy(&h, in + at, sizeof h);
        if (h.nlmsg_len < sizeof h || h.nlmsg_len > n - at || h.nlmsg_type == NLMSG_ERROR)
            return -EBADMSG;
        if (h.nlmsg_flags & NLM_F_DUMP_INTR)
            return -EAGAIN;
        if (h.nlmsg_type == NLMSG_DONE) {
            if (h.nlmsg_len >= sizeof h + sizeof no)
                memcpy(&no, in + at + sizeof h, sizeof no);
            return no < 0 ? no : 1;
        }
        if (h.nlmsg_type == RTM_NEWROUTE && !stays_here(in + at + sizeof h, h.nlmsg_len - sizeof h))
            return -ENOTUNIQ;
        at += NLMSG_ALIGN(h.nlmsg_len);
    }
    return 0;
}

static int list_alone(void)
{
    own_fd int fd = send_request(&net_list_routes, NETLINK_ROUTE);
    int r = fd < 0 ? fd : 0;
    while (r == 0) {
        uint8_t in[16384] __attribute__((aligned(8)));
        const long n = sys_recv(fd, in, sizeof in, 0);
        r = n < 0 ? (int)n : n == 0 ? -EBADMSG : catch_routes(in, (size_t)n);
    }
    return r < 0 ? r : 0;
}

int catch_alone(void)
{
    int e = list_alone();
    for (int tries = 0; e == -EAGAIN && tries < 16; tries++)
        e = list_alone();
    return e;
}

/* Only lo: up, and, where possible, with an address that makes resolvers believe in a network. */
static int loopback_only(void)
{
    int r = ask(&net_up, NETLINK_ROUTE);
    if (r < 0)
        return r;
    (void)ask(&net_address4, NETLINK_ROUTE);
    return catch_alone();
}

/* ---- sockets ---- */

enum { TRANSPARENT = 1, SHARED = 2 /* beside listeners of the same port at other addresses */ };

static int listener(int family, int type, const void *address, size_t n, int how)
{
    bool transparent = how & TRANSPARENT;
    int one = 1, zero = 0;
    own_fd int fd = sys_socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r = fd < 0 ? fd : sys_setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
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
    return r < 0 ? r : sys_taken(&fd);
}

/* Sends one socket to the egress proxy and closes it here: descriptors of the builder could be inherited. */
static int give_listener(struct runner *r, int given, uint32_t index, bool v6)
{
    struct egress_socket_frame f = {.index = index, .v6 = v6};
    own_fd int fd = given;
    const long e = fd < 0 ? fd : sys_send_fd(r->egress, &f, sizeof f, fd, 0);
    return e < 0 ? (int)e : 0;
}

enum { LOOPBACK = 0x7f000001, RESOLVER = 0x7f353535 };

static int listener4(int type, uint32_t address, uint32_t port, int how)
{
    const struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(address)};
    return listener(AF_INET, type, &a, sizeof a, how);
}

/* At ::1 or, 0, at all addresses, of IPv4 too. */
static int listener6(uint8_t address, uint32_t port, int how)
{
    const struct sockaddr_in6 a = {
        .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr.s6_addr = {[15] = address}};
    return listener(AF_INET6, SOCK_STREAM, &a, sizeof a, how);
}

/* One port on all addresses. */
static int listener_at_all(bool v6, uint32_t port, int how)
{
    return v6 ? listener6(0, port, how) : listener4(SOCK_STREAM, 0, port, how);
}

static int give_sockets(struct runner *r, enum catch_way way, bool v6)
{
    const int how = way == CATCH_TPROXY ? 0 : SHARED;
    int e = 0;
    if (way == CATCH_TPROXY)
        e = give_listener(r, listener_at_all(v6, EGRESS_CATCH_PORT, TRANSPARENT), EGRESS_CATCH, v6);
    if (e == 0)
        e = give_listener(r, listener4(SOCK_STREAM, LOOPBACK, EGRESS_PROXY_PORT, how), EGRESS_PROXY, v6);
    if (e == 0)
        e = give_listener(r, listener4(SOCK_DGRAM, RESOLVER, 53, 0), EGRESS_DNS_UDP, v6);
    return e < 0 ? e : give_listener(r, listener4(SOCK_STREAM, RESOLVER, 53, how), EGRESS_DNS_TCP, v6);
}

int catch_prepare(enum catch_way way, bool *ret_v6)
{
    *ret_v6 = false;
    int e = way == CATCH_LOOPBACK ? loopback_only() : links_and_routes(ret_v6);
    if (e == 0 && way == CATCH_TPROXY)
        e = ask(&net_rules, NETLINK_NETFILTER);
    if (e == 0 && way == CATCH_ROUTES)
        e = ask(&net_only_tcp4, NETLINK_ROUTE);
    if (e == 0 && way == CATCH_ROUTES && *ret_v6)
        e = ask(&net_only_tcp6, NETLINK_ROUTE);
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
        const int fd = part->kind == STEP_LISTEN ? listener_at_all(v6, part->b, SHARED)
                       : part->a                 ? listener6(1, part->b, how)
                                                 : listener4(SOCK_STREAM, LOOPBACK, part->b, how);
        e = give_listener(r, fd, EGRESS_SOCKETS + i, v6);
    }
    r->egress = sys_shut(r->egress);
    return e;
}
