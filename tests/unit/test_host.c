/*
 * Hosts in canonical form, rules, classes of addresses. With every odd spelling that has fooled a filter before.
 */
#include <stdio.h>

#include "unit.h"
#include "match/host.h"
#include "policy/set.h"

static void expect_name(const char *text, const char *name)
{
    struct host h;
    assert_int_equal(host_parse(str_of(text), &h), 0);
    assert_int_equal(h.kind, HOST_NAME);
    assert_string_equal(h.name, name);
}

static void expect_addr(const char *text, const char *addr)
{
    struct host h;
    char plain[46];
    assert_int_equal(host_parse(str_of(text), &h), 0);
    assert_int_equal(h.kind, HOST_ADDR);
    addr_print(&h.addr, plain);
    assert_string_equal(plain, addr);
}

static void expect_none(struct str text)
{
    struct host h;
    assert_int_equal(host_parse(text, &h), -EINVAL);
}

static void names_have_one_form(void **state)
{
    (void)state;
    expect_name("Example.COM", "example.com");
    expect_name("example.com.", "example.com");
    expect_name("a_b.example", "a_b.example");
    expect_name("xn--bcher-kva.example", "xn--bcher-kva.example");
    expect_name("0x7f.example", "0x7f.example");
    expect_none(STR(""));
    expect_none(STR("."));
    expect_none(STR("a..b"));
    expect_none(STR(".a"));
    expect_none(STR("a b"));
    expect_none(STR("evil\0.google.com"));
    expect_none(STR("a\r\n.com"));
    expect_none(STR("user@host"));
    expect_none(STR("ex%61mple.com"));
    expect_none(STR("b\xc3\xbc"
                    "cher.example")); /* clients send A-labels */
    expect_none(STR("-a.com"));
    expect_none(STR("a-.com"));
    expect_none(STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.com")); /* 64 */
    char longest[300];
    memset(longest, 'a', sizeof longest);
    for (size_t i = 60; i < sizeof longest; i += 61)
        longest[i] = '.';
    expect_none((struct str){longest, 255});
}

static void addresses_in_every_spelling(void **state)
{
    (void)state;
    expect_addr("127.0.0.1", "127.0.0.1");
    /* What inet_aton(3) or a browser reads as an address, but has more than one reading: neither an address nor a name. */
    static const char *const odd[] = {"127.1",        "2130706433", "0x7f.1",     "0177.0.0.1", "192.0.2.010",
                                      "017700000001", "0x7f000001", "127.0.0.1.", "127.1.",     "0x.a.0x"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        expect_none(str_of(odd[i]));
    expect_addr("[::ffff:127.0.0.1]", "127.0.0.1");
    expect_addr("::1", "::1");
    expect_addr("2001:DB8::0:1", "2001:db8::1");
    expect_addr("1:0:0:2:0:0:0:3", "1:0:0:2::3");
    expect_none(STR("256.0.0.1"));
    expect_none(STR("1.2.3.4.5"));
    expect_none(STR("08.8.8.8"));
    expect_none(STR("4294967296"));
    expect_none(STR("example.1"));
    expect_none(STR("::1%lo"));
    expect_none(STR(":::"));
    expect_none(STR("1:2:3:4:5:6:7:8:9"));
    expect_none(STR("1::2::3"));
    expect_none(STR("[127.0.0.1]"));
}

static struct host_rule rule_of(const char *text, enum rule_verb verb)
{
    struct host_rule r;
    struct err e = {0};
    if (host_rule_parse(str_of(text), verb, &r, &e) < 0)
        fail_msg("%s: %s", text, e.text);
    return r;
}

static bool allows(const char *rule, const char *host, uint16_t port)
{
    struct host_rule r = rule_of(rule, RULE_ALLOW);
    struct host h;
    assert_int_equal(host_parse(str_of(host), &h), 0);
    return host_judge(&r, 1, &h, port, NULL) == HOST_ALLOWED;
}

static void wildcards_match_labels_only(void **state)
{
    (void)state;
    assert_true(allows("*.example.com", "a.example.com", 443));
    assert_true(allows("*.example.com", "a.b.example.com", 1));
    assert_false(allows("*.example.com", "example.com", 443));
    assert_false(allows("*.example.com", "evilexample.com", 443));
    assert_true(allows(".example.com", "example.com", 443));
    assert_false(allows(".example.com", "evilexample.com", 443));
    assert_false(allows("example.com", "a.example.com", 443));
    assert_true(allows("EXAMPLE.com.", "example.COM", 443));
    assert_true(allows("*", "anything.test", 443));
    assert_true(allows("xn--bcher-kva.example", "XN--bcher-KVA.example", 443));
}

static void ports_and_networks(void **state)
{
    (void)state;
    assert_true(allows("a.test:443", "a.test", 443));
    assert_false(allows("a.test:443", "a.test", 80));
    assert_true(allows("a.test:8000-8100", "a.test", 8100));
    assert_false(allows("a.test:8000-8100", "a.test", 8101));
    assert_true(allows("10.0.0.0/8:22", "10.200.1.1", 22));
    assert_false(allows("10.0.0.0/8", "11.0.0.1", 22));
    assert_true(allows("[2001:db8::/32]:443", "2001:db8:ffff::1", 443));
    assert_false(allows("[2001:db8::/33]", "2001:db8:8000::1", 443));
    assert_true(allows("1.2.3.4", "::ffff:1.2.3.4", 9));
    assert_false(allows("*.example.com", "1.2.3.4", 443));
}

static void deny_wins_and_nothing_means_no(void **state)
{
    (void)state;
    struct host_rule rules[] = {rule_of("*.corp.test", RULE_ALLOW), rule_of("secret.corp.test", RULE_DENY),
                                rule_of("*:25", RULE_DENY)};
    struct host open, secret;
    size_t which;
    host_parse(STR("a.corp.test"), &open);
    host_parse(STR("secret.corp.test"), &secret);
    assert_int_equal(host_judge(rules, 3, &open, 443, &which), HOST_ALLOWED);
    assert_int_equal(which, 0);
    assert_int_equal(host_judge(rules, 3, &secret, 443, &which), HOST_DENIED);
    assert_int_equal(which, 1);
    assert_int_equal(host_judge(rules, 3, &open, 25, NULL), HOST_DENIED);
    assert_int_equal(host_judge(rules, 0, &open, 443, &which), HOST_DENIED_BY_DEFAULT);
    assert_true(host_may_resolve(rules, 3, &open));
    assert_false(host_may_resolve(rules, 3, &secret));
    assert_false(host_may_resolve(NULL, 0, &open));
}

static void any_bytes_where_said(void **state)
{
    static const char *const said[] = {"a.test:443/tcp",        "*.a.test:1-65535/tcp",    "*:80/tcp",
                                       "10.0.0.0/8:80-443/tcp", "[2001:db8::/32]:443/tcp", ".a.test:22/tcp"};
    (void)state;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        char text[HOST_RULE_TEXT];
        struct host_rule r = rule_of(said[i], RULE_ALLOW);
        assert_true(r.any_bytes);
        host_rule_print(&r, text);
        assert_string_equal(text, said[i]);
    }
    struct host_rule rules[] = {rule_of("a.test", RULE_ALLOW), rule_of("b.test:443/tcp", RULE_ALLOW),
                                rule_of("a.test:443/tcp", RULE_DENY)};
    struct host a, b;
    host_parse(STR("a.test"), &a);
    host_parse(STR("b.test"), &b);
    assert_false(host_any_bytes(rules, 3, &a, 443)); /* a rule that denies gives nothing */
    assert_true(host_any_bytes(rules, 3, &b, 443));
    assert_false(host_any_bytes(rules, 3, &b, 80));
    assert_int_equal(host_judge(rules, 3, &a, 443, NULL), HOST_DENIED);
    assert_int_equal(host_judge(rules, 3, &a, 80, NULL), HOST_ALLOWED);
}

/* An address may be the one of a denied name. */
static void everything_but_a_name_is_names(void **state)
{
    (void)state;
    struct host_rule rules[] = {rule_of("*", RULE_ALLOW), rule_of("evil.test:443", RULE_DENY),
                                rule_of("10.0.0.0/8", RULE_ALLOW), rule_of("*:25", RULE_DENY)};
    struct host address, own, name;
    size_t which;
    host_parse(STR("192.0.2.1"), &address);
    host_parse(STR("10.1.1.1"), &own);
    host_parse(STR("other.test"), &name);
    assert_int_equal(host_judge(rules, 4, &address, 443, &which), HOST_DENIED_BY_DEFAULT);
    assert_int_equal(which, SIZE_MAX);
    assert_int_equal(host_judge(rules, 4, &address, 80, NULL), HOST_ALLOWED); /* nobody is denied there */
    assert_int_equal(host_judge(rules, 4, &own, 443, &which), HOST_ALLOWED);
    assert_int_equal(which, 2);
    assert_int_equal(host_judge(rules, 4, &name, 443, NULL), HOST_ALLOWED);
    rules[1] = rule_of("*.evil.test", RULE_DENY);
    assert_int_equal(host_judge(rules, 4, &address, 443, NULL), HOST_DENIED_BY_DEFAULT);
    rules[1] = rule_of("198.51.100.0/24", RULE_DENY);
    assert_int_equal(host_judge(rules, 4, &address, 443, NULL), HOST_ALLOWED);
}

/* A gateway leads from an IPv6 address to the IPv4 address in it: what is denied there is denied by this way, too. */
static void a_denied_address_is_denied_behind_gateways(void **state)
{
    static const char *const ways[] = {"192.0.2.1", "::ffff:192.0.2.1", "64:ff9b::c000:201", "2002:c000:201::5"};
    (void)state;
    struct host_rule rules[] = {rule_of("*", RULE_ALLOW), rule_of("192.0.2.0/24:80", RULE_DENY)};
    struct host_rule allowed = rule_of("192.0.2.1", RULE_ALLOW);
    struct host h, other;
    host_parse(STR("64:ff9b::c000:301"), &other);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        host_parse(str_of(ways[i]), &h);
        assert_int_equal(host_judge(rules, 2, &h, 80, NULL), HOST_DENIED);
        assert_int_equal(host_judge(rules, 2, &h, 81, NULL), HOST_ALLOWED);
        assert_int_equal(host_judge(&allowed, 1, &h, 80, NULL), i < 2 ? HOST_ALLOWED : HOST_DENIED_BY_DEFAULT);
    }
    assert_int_equal(host_judge(rules, 2, &other, 80, NULL), HOST_ALLOWED);
}

static void expect_error(const char *text, const char *why)
{
    struct host_rule r;
    struct err e = {0};
    assert_int_equal(host_rule_parse(str_of(text), RULE_ALLOW, &r, &e), -EINVAL);
    assert_string_equal(e.text, why);
}

static void malformed_rules_say_why(void **state)
{
    (void)state;
    expect_error("a.test:0", "'a.test:0' has a port that is not a number from 1 to 65535");
    expect_error("a.test:70000", "'a.test:70000' has a port that is not a number from 1 to 65535");
    expect_error("a.test:080", "'a.test:080' has a port that is not a number from 1 to 65535");
    expect_error("a.test:", "'a.test:' has a port that is not a number from 1 to 65535");
    expect_error("a.test:90-80", "'a.test:90-80' has a port range whose end is below its start");
    expect_error("10.0.0.1/8", "'10.0.0.1/8' has bits set after its prefix; write the range's first address");
    expect_error("10.0.0.0/33", "'10.0.0.0/33' has a prefix length that is not a number from 0 to 32");
    expect_error("192.0.2.010", "'192.0.2.010' has a number with a leading zero, which some programs read as octal; "
                                "write decimal numbers without it, such as 192.0.2.10");
    expect_error("127.1:80", "'127.1:80' ends in a number but is not a complete address; write all four decimal "
                             "numbers, such as 192.0.2.10");
    expect_error("1.2.3.4.", "'1.2.3.4.' is an address that ends in a dot; remove the dot");
    expect_error("[fe80::1%eth0]:80",
                 "'[fe80::1%eth0]:80' has a zone, which rules do not support; remove the '%' and what follows it");
    expect_error("b\xc3\xbc"
                 "cher.example",
                 "'b\xc3\xbc"
                 "cher.example' is not ASCII; write the name in its xn-- form");
    expect_error("a.*.test", "'a.*.test' has a misplaced '*'; use '*' alone or '*.' before a name");
    expect_error("*a.test", "'*a.test' has a misplaced '*'; use '*' alone or '*.' before a name");
    expect_error("2001:db8::1:443", "'2001:db8::1:443' is ambiguous: the last part may be a port or part of the "
                                    "address; write [ADDRESS]:PORT or [ADDRESS]");
    expect_error("[2001:db8::1", "'[2001:db8::1' has no ']' after the address");
    expect_error("[127.0.0.1]:80", "'[127.0.0.1]:80' has something other than an IPv6 address in its brackets");
    expect_error("", "'' is not a host; write DOMAIN, *.DOMAIN, an address or a CIDR range");
    expect_error("http://a.test", "'http://a.test' is a URL; write the name of its host");
    static const char *const portless[] = {"a.test/tcp", "10.0.0.0/8/tcp", "[2001:db8::1]/tcp", "*/tcp", "a.test/udp"};
    for (size_t i = 0; i < sizeof portless / sizeof *portless; i++) {
        char why[120];
        snprintf(why, sizeof why, "'%s': /tcp must follow a port, as in example.com:443/tcp", portless[i]);
        expect_error(portless[i], why);
    }
    expect_error("a.test:443/udp", "'a.test:443/udp': only /tcp (any protocol on that port) can follow a port");
    expect_error("a.test:443/tcp/tcp", "'a.test:443/tcp/tcp': only /tcp (any protocol on that port) can follow a port");
    expect_error("[::1]:443/TCP", "'[::1]:443/TCP': only /tcp (any protocol on that port) can follow a port");
}

static void addresses_have_classes(void **state)
{
    static const struct {
        const char *addr;
        enum addr_class class;
    } cases[] = {
        {"93.184.216.34", ADDR_PUBLIC},
        {"127.9.9.9", ADDR_LOOPBACK},
        {"0.0.0.0", ADDR_UNSPECIFIED},
        {"169.254.169.254", ADDR_METADATA},
        {"169.254.1.1", ADDR_LINK_LOCAL},
        {"10.1.1.1", ADDR_PRIVATE},
        {"172.31.255.255", ADDR_PRIVATE},
        {"172.32.0.1", ADDR_PUBLIC},
        {"192.168.1.1", ADDR_PRIVATE},
        {"100.64.0.1", ADDR_PRIVATE},
        {"100.100.100.200", ADDR_METADATA},
        {"224.0.0.1", ADDR_MULTICAST},
        {"255.255.255.255", ADDR_BROADCAST},
        {"240.0.0.1", ADDR_RESERVED},
        {"198.18.0.1", ADDR_RESERVED},
        {"::", ADDR_UNSPECIFIED},
        {"::1", ADDR_LOOPBACK},
        {"::ffff:10.0.0.1", ADDR_PRIVATE},
        {"::7f00:1", ADDR_LOOPBACK},
        {"64:ff9b::a9fe:a9fe", ADDR_METADATA},
        {"2002:7f00:1::", ADDR_LOOPBACK},
        {"fe80::1", ADDR_LINK_LOCAL},
        {"fd00::1", ADDR_PRIVATE},
        {"fd00:ec2::254", ADDR_METADATA},
        {"fd00:ec2::23", ADDR_METADATA},
        {"fd20:ce::254", ADDR_METADATA},
        {"fd20:ce::255", ADDR_PRIVATE},
        {"169.254.170.23", ADDR_METADATA},
        {"169.254.170.24", ADDR_LINK_LOCAL},
        {"ff02::1", ADDR_MULTICAST},
        {"2606:2800:220:1::1", ADDR_PUBLIC},
        {"2001:db8::1", ADDR_RESERVED},
        {"4000::1", ADDR_RESERVED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct host_addr a;
        assert_int_equal(addr_parse(str_of(cases[i].addr), &a), 0);
        if (addr_classify(&a) != cases[i].class)
            fail_msg("%s is %s", cases[i].addr, addr_class_text(addr_classify(&a)));
    }
}

static void sets_stand_for_their_hosts(void **state)
{
    (void)state;
    struct host_rule rules[64];
    struct host h;
    struct err e = {0};
    size_t n = host_rule_count(STR("@npm"));
    assert_true(n > 1 && n <= 64);
    assert_int_equal(host_rules_parse(STR("@npm"), RULE_DENY, 7, rules, &e), 0);
    assert_int_equal(host_parse(STR("registry.npmjs.org"), &h), 0);
    assert_int_equal(host_judge(rules, n, &h, 443, NULL), HOST_DENIED);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(rules[i].origin, 7);
    assert_int_equal(host_rule_count(STR("npm")), 1);
    assert_int_equal(host_rule_count(STR("@nope")), 1);
    assert_int_equal(host_rules_parse(STR("@nmp"), RULE_ALLOW, 0, rules, &e), -EINVAL);
    assert_string_equal(e.text, "unknown set of hosts '@nmp' (did you mean '@npm'?)");
    assert_int_equal(host_rules_parse(STR("@npm:443"), RULE_ALLOW, 0, rules, &e), -EINVAL);
    assert_non_null(strstr(e.text, "cannot have a port"));
    assert_int_equal(host_rules_parse(STR("@"), RULE_ALLOW, 0, rules, &e), -EINVAL);
    for (const struct host_set *s = host_set_table; s->name; s++) {
        for (size_t i = 0; i < s->n; i++) {
            struct host_rule r = rule_of(s->hosts[i], RULE_ALLOW);
            assert_true(r.match != MATCH_ANY && r.match != MATCH_NET);
        }
    }
}

static bool covers(const char *a, const char *b)
{
    struct host_rule x = rule_of(a, RULE_DENY), y = rule_of(b, RULE_ALLOW);
    if (host_rule_covers(&x, &y))
        assert_true(host_rule_meets(&x, &y) && host_rule_meets(&y, &x));
    return host_rule_covers(&x, &y);
}

static bool meets(const char *a, const char *b)
{
    struct host_rule x = rule_of(a, RULE_DENY), y = rule_of(b, RULE_ALLOW);
    assert_int_equal(host_rule_meets(&x, &y), host_rule_meets(&y, &x));
    return host_rule_meets(&x, &y);
}

static void rules_cover_and_meet(void **state)
{
    (void)state;
    assert_true(covers("*", "a.test"));
    assert_true(covers("*", "10.0.0.0/8"));
    assert_false(covers("a.test", "*"));
    assert_true(covers("a.test", "a.test:443"));
    assert_false(covers("a.test:443", "a.test"));
    assert_true(meets("a.test:443", "a.test"));
    assert_false(meets("a.test:22", "a.test:443"));
    assert_true(covers("*.test", "a.test"));
    assert_true(covers("*.test", ".a.test"));
    assert_true(covers("*.test", "*.test"));
    assert_false(covers("*.test", ".test"));
    assert_true(meets("*.test", ".test"));
    assert_false(meets("*.test", "test"));
    assert_true(covers(".test", "*.test"));
    assert_true(covers(".test", "test"));
    assert_false(meets("*.test", "latest"));
    assert_true(covers("10.0.0.0/8", "10.1.0.0/16"));
    assert_false(covers("10.1.0.0/16", "10.0.0.0/8"));
    assert_true(meets("10.1.0.0/16", "10.0.0.0/8"));
    assert_false(meets("10.0.0.0/8", "11.0.0.1"));
    assert_false(meets("10.0.0.0/8", "a.test"));
    assert_true(meets("*:22", "a.test"));
}

static bool hosts_same(const char *a, const char *b)
{
    struct host x = {0}, y;
    memset(&y, 0xa5, sizeof y); /* what is not of its kind does not count */
    assert_int_equal(host_parse(str_of(a), &x), 0);
    assert_int_equal(host_parse(str_of(b), &y), 0);
    assert_int_equal(host_same(&x, &y), host_same(&y, &x));
    return host_same(&x, &y);
}

static void hosts_are_the_same_or_not(void **state)
{
    (void)state;
    assert_true(hosts_same("a.test", "A.test."));
    assert_false(hosts_same("a.test", "b.test"));
    assert_true(hosts_same("[::1]", "::1"));
    assert_true(hosts_same("::ffff:10.0.0.1", "10.0.0.1"));
    assert_false(hosts_same("10.0.0.1", "10.0.0.2"));
    assert_false(hosts_same("10.0.0.1", "[a00:1::]")); /* the first four bytes are */
    assert_false(hosts_same("10.0.0.1", "a.test"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_one_form),
        cmocka_unit_test(addresses_in_every_spelling),
        cmocka_unit_test(wildcards_match_labels_only),
        cmocka_unit_test(ports_and_networks),
        cmocka_unit_test(sets_stand_for_their_hosts),
        cmocka_unit_test(rules_cover_and_meet),
        cmocka_unit_test(hosts_are_the_same_or_not),
        cmocka_unit_test(deny_wins_and_nothing_means_no),
        cmocka_unit_test(any_bytes_where_said),
        cmocka_unit_test(everything_but_a_name_is_names),
        cmocka_unit_test(a_denied_address_is_denied_behind_gateways),
        cmocka_unit_test(malformed_rules_say_why),
        cmocka_unit_test(addresses_have_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
