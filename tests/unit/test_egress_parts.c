/*
 * Parts of a connection that need no connection: addresses from and to the kernel, bytes that are kept. The rest is
 * tests/egress.
 */
#include "unit.h"
#include <netinet/in.h>
#include "egress/parts.h"

static void there_and_back(const char *text, int family, socklen_t room)
{
    struct host_addr a, b;
    struct sockaddr_storage s;
    uint16_t port = 0;
    assert_int_equal(addr_parse(str_of(text), &a), 0);
    assert_int_equal(sockaddr_of(&a, 8443, &s), room);
    assert_int_equal(s.ss_family, family);
    sockaddr_read(&s, &b, &port);
    assert_int_equal(port, 8443);
    assert_int_equal(a.v6, b.v6);
    assert_memory_equal(a.b, b.b, sizeof a.b);
}

static void addresses_of_the_kernel(void **state)
{
    (void)state;
    struct host_addr a;
    uint16_t port = 0;
    char text[46];
    there_and_back("192.0.2.7", AF_INET, sizeof(struct sockaddr_in));
    there_and_back("2001:db8::7", AF_INET6, sizeof(struct sockaddr_in6));
    struct sockaddr_storage s = {0};
    *(struct sockaddr_in6 *)&s =
        (struct sockaddr_in6){.sin6_family = AF_INET6,
                              .sin6_port = htons(80),
                              .sin6_addr.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 1, [14] = 2, [15] = 3}};
    sockaddr_read(&s, &a, &port); /* the same rules hold for it as for the v4 address that it is */
    assert_false(a.v6);
    addr_print(&a, text);
    assert_string_equal(text, "10.1.2.3");
    assert_int_equal(port, 80);
}

static void kept_bytes(void **state)
{
    (void)state;
    struct pending p = {0};
    assert_int_equal(world.kept, 0);
    assert_true(pending_keep(&p, "abc", 3));
    assert_true(pending_keep(&p, "defg", 4));
    assert_int_equal(p.n, 7);
    assert_int_equal(world.kept, 7);
    p.at = 3; /* passed on already */
    pending_drop(&p, 2);
    assert_int_equal(p.n, 5);
    assert_int_equal(p.at, 1);
    assert_memory_equal(p.p, "cdefg", 5);
    pending_drop(&p, 3); /* more than was passed on */
    assert_int_equal(p.at, 0);
    assert_memory_equal(p.p, "fg", 2);
    assert_int_equal(world.kept, 2);
    pending_drop(&p, 2);
    assert_null(p.p);
    assert_int_equal(p.n, 0);
    assert_true(pending_keep(&p, "x", 1));
    pending_free(&p);
    assert_null(p.p);
    assert_int_equal(world.kept, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_of_the_kernel),
        cmocka_unit_test(kept_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
