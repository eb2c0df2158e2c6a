/*
 * The requests that tools/net_gen.c makes: whole messages, as many acknowledgements as are waited for. And what they
 * ask for.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "protocol/egress.h"
#include "runtime/inner.h"
#include "runtime/net_requests.h"

/* How many messages there are of `type` (0: of any), and that lengths and acknowledgements are right. */
static unsigned messages(const struct net_request *q, uint16_t type)
{
    unsigned found = 0, acks = 0;
    size_t at = 0;
    uint32_t before = 0;
    while (at < q->n) {
        struct nlmsghdr h;
        assert_true(q->n - at >= sizeof h);
        memcpy(&h, q->bytes + at, sizeof h);
        assert_true(h.nlmsg_len >= sizeof h && h.nlmsg_len <= q->n - at);
        assert_true(h.nlmsg_flags & NLM_F_REQUEST);
        assert_true(h.nlmsg_seq > before);
        before = h.nlmsg_seq;
        acks += (h.nlmsg_flags & NLM_F_ACK) != 0;
        found += !type || h.nlmsg_type == type;
        at += NLMSG_ALIGN(h.nlmsg_len);
    }
    assert_int_equal(at, q->n);
    assert_int_equal(acks, q->acks);
    return found;
}

static bool has(const struct net_request *q, const void *bytes, size_t n)
{
    return memmem(q->bytes, q->n, bytes, n) != NULL;
}

static void routes(void **state)
{
    static const uint8_t four[] = {198, 19, 255, 254};
    (void)state;
    assert_int_equal(messages(&net_up, RTM_NEWLINK), 1);
    assert_int_equal(messages(&net_up, 0), 1);
    assert_int_equal(messages(&net_address4, RTM_NEWADDR), 1);
    assert_int_equal(messages(&net_routes4, 0), 3);
    assert_int_equal(messages(&net_routes4, RTM_NEWROUTE), 1);
    assert_true(has(&net_routes4, four, sizeof four) && has(&net_address4, four, sizeof four));
    assert_int_equal(messages(&net_routes6, 0), 2);
    assert_false(has(&net_routes6, four, sizeof four));
    assert_int_equal(messages(&net_list_routes, RTM_GETROUTE), 1);
    assert_int_equal(net_list_routes.acks, 0);
}

/* The local table's own rule goes last: until then a packet finds another that refuses it. */
static void only_tcp(void **state)
{
    const struct net_request *both[] = {&net_only_tcp4, &net_only_tcp6};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct nlmsghdr last = {0};
        assert_int_equal(messages(both[i], RTM_NEWRULE), 3);
        assert_int_equal(messages(both[i], 0), 4);
        for (size_t at = 0; at < both[i]->n; at += NLMSG_ALIGN(last.nlmsg_len))
            memcpy(&last, both[i]->bytes + at, sizeof last);
        assert_int_equal(last.nlmsg_type, RTM_DELRULE);
    }
}

/* One batch: a table, three chains, two rules for lo, two for each family, and the one that redirects to the port. */
static void nf_rules(void **state)
{
    const uint8_t port[] = {EGRESS_CATCH_PORT >> 8, EGRESS_CATCH_PORT & 0xff};
    (void)state;
    assert_int_equal(messages(&net_rules, 0), 13);
    assert_int_equal(net_rules.acks, 11);
    assert_int_equal(messages(&net_rules, NLMSG_MIN_TYPE), 1);     /* begins the batch */
    assert_int_equal(messages(&net_rules, NLMSG_MIN_TYPE + 1), 1); /* ends it */
    assert_true(has(&net_rules, port, sizeof port));
    assert_true(has(&net_rules, "tproxy", sizeof "tproxy") && has(&net_rules, "reject", sizeof "reject"));
}

/* A list of routes by itself proves nothing: the kernel says at its end whether it could be made. */
static void list_of_routes(void **state)
{
    struct {
        struct nlmsghdr head;
        struct rtmsg route;
        struct nlmsghdr done;
        int no;
    } m = {
        .head = {.nlmsg_len = sizeof m.head + sizeof m.route, .nlmsg_type = RTM_NEWROUTE, .nlmsg_flags = NLM_F_MULTI},
        .route = {.rtm_type = RTN_UNREACHABLE},
        .done = {.nlmsg_len = sizeof m.done + sizeof m.no, .nlmsg_type = NLMSG_DONE, .nlmsg_flags = NLM_F_MULTI}};
    const uint8_t *in = (const uint8_t *)&m;
    (void)state;
    assert_int_equal(catch_routes(in, sizeof m), 1);
    assert_int_equal(catch_routes(in, sizeof m.head + sizeof m.route), 0);
    m.no = -ENOMEM;
    assert_int_equal(catch_routes(in, sizeof m), -ENOMEM);
    m.no = 0;
    m.head.nlmsg_flags |= NLM_F_DUMP_INTR; /* routes came or went meanwhile */
    assert_true(catch_routes(in, sizeof m) < 0);
    m.head.nlmsg_flags = NLM_F_MULTI;
    m.route.rtm_type = RTN_UNICAST; /* to nowhere that is said */
    assert_int_equal(catch_routes(in, sizeof m), -ENOTUNIQ);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(routes), cmocka_unit_test(only_tcp), cmocka_unit_test(nf_rules),
                                       cmocka_unit_test(list_of_routes)};
    return cmocka_run_group_tests_name("net_requests", tests, NULL, NULL);
}
