/*
 * Units, forms of network rules, and the small judges. What they take, and what they refuse.
 */
#include "policy_help.h"
#include "policy/domain.h"
#include "policy/path.h"

struct unit_case {
    const char *text;
    int r;
    uint64_t value;
};

static void check_units(const struct unit_case *cases, size_t n, int (*parse)(struct str, uint64_t *))
{
    for (size_t i = 0; i < n; i++) {
        uint64_t v = 4711;
        int r = parse(str_of(cases[i].text), &v);
        if (r != cases[i].r || v != (r < 0 ? 4711 : cases[i].value))
            fail_msg("'%s': %d, %llu", cases[i].text, r, (unsigned long long)v);
    }
}
#define CHECK(cases, parse) check_units(cases, sizeof cases / sizeof *cases, parse)

static void sizes(void **state)
{
    (void)state;
    static const struct unit_case cases[] = {{"0", 0, 0},
                                             {"4096", 0, 4096},
                                             {"512M", 0, 512ull << 20},
                                             {"512m", 0, 512ull << 20},
                                             {"512MB", 0, 512ull << 20},
                                             {"512MiB", 0, 512ull << 20},
                                             {"1.5GiB", 0, 3ull << 29},
                                             {"0.5K", 0, 512},
                                             {"2T", 0, 2ull << 40},
                                             {"7B", 0, 7},
                                             {"18446744073709551615", 0, UINT64_MAX},
                                             {"18446744073709551616", -ERANGE, 0},
                                             {"16777216T", -ERANGE, 0},
                                             {"", -EINVAL, 0},
                                             {"-1", -EINVAL, 0},
                                             {"+1", -EINVAL, 0},
                                             {" 1", -EINVAL, 0},
                                             {"1 ", -EINVAL, 0},
                                             {"1e30", -EINVAL, 0},
                                             {"nan", -EINVAL, 0},
                                             {"inf", -EINVAL, 0},
                                             {"512X", -EINVAL, 0},
                                             {"512Mi", -EINVAL, 0},
                                             {"512MM", -EINVAL, 0},
                                             {"1.M", -EINVAL, 0},
                                             {".5M", -EINVAL, 0},
                                             {"1.5", -EINVAL, 0},
                                             {"0x10", -EINVAL, 0}};
    CHECK(cases, parse_size);
}

static void durations(void **state)
{
    (void)state;
    static const struct unit_case cases[] = {{"90s", 0, 90000},
                                             {"90", 0, 90000},
                                             {"1.5", 0, 1500},
                                             {"2m", 0, 120000},
                                             {"1h30m", 0, 5400000},
                                             {"1d2h3m4s5ms", 0, 93784005},
                                             {"500ms", 0, 500},
                                             {"0.25h", 0, 900000},
                                             {"0", 0, 0},
                                             {"", -EINVAL, 0},
                                             {"1h1h", -EINVAL, 0},
                                             {"30m1h", -EINVAL, 0},
                                             {"1h30", -EINVAL, 0},
                                             {"1.5ms", -EINVAL, 0},
                                             {"1y", -EINVAL, 0},
                                             {"-5s", -EINVAL, 0},
                                             {"s", -EINVAL, 0},
                                             {"99999999999999999999s", -ERANGE, 0},
                                             {"18446744073709551615h", -ERANGE, 0}};
    CHECK(cases, parse_duration);
}

static void processors_and_counts(void **state)
{
    (void)state;
    static const struct unit_case cpus[] = {{"0.5", 0, 500},    {"2", 0, 2000},     {"50%", 0, 500},
                                            {"0.1", 0, 100},    {"12.5%", 0, 125},  {"1.2345", 0, 1234},
                                            {"", -EINVAL, 0},   {"%", -EINVAL, 0},  {"50 %", -EINVAL, 0},
                                            {"-1", -EINVAL, 0}, {"1,5", -EINVAL, 0}};
    static const struct unit_case counts[] = {{"0", 0, 0},        {"50", 0, 50},
                                              {"", -EINVAL, 0},   {"1.0", -EINVAL, 0},
                                              {"5k", -EINVAL, 0}, {"99999999999999999999", -ERANGE, 0}};
    CHECK(cpus, parse_cpus);
    CHECK(counts, parse_count);
}

static void check_form(int (*form)(struct str, struct arena *, const char **, struct err *), const char *text,
                       const char *canonical)
{
    auto_arena struct arena *mem = arena_new(1 << 16);
    const char *got = NULL;
    struct err e;
    int r = form(str_of(text), mem, &got, &e);
    if (!same(got, canonical) || (r < 0) != (canonical == NULL))
        fail_msg("'%s': %d '%s'", text, r, got ? got : e.text);
}

static void network_rules(void **state)
{
    (void)state;
    static const char *const domains[][2] = {{"Example.COM", "example.com"},
                                             {"example.com.", "example.com"},
                                             {"*.Example.com:443", "*.example.com:443"},
                                             {"localhost", "localhost"},
                                             {"a_b.c-d.e", "a_b.c-d.e"},
                                             {"xn--bcher-kva.de", "xn--bcher-kva.de"},
                                             {"*", "*"},
                                             {"*:22", "*:22"},
                                             {"1.2.3.4", "1.2.3.4"},
                                             {"1.2.3.4:80", "1.2.3.4:80"},
                                             {"::1", "[::1]"},
                                             {"[::1]", "[::1]"},
                                             {"[FE80::1]:443", "[fe80::1]:443"},
                                             {"10.0.0.0/8", "10.0.0.0/8"},
                                             {"fd00::/8", "[fd00::/8]"},
                                             {"b\303\274cher.de:80-90", NULL},
                                             {"0.0.0.0/0", "0.0.0.0/0"},
                                             {"@npm", "@npm"},
                                             {"@NPM", NULL},
                                             {"@npm:443", NULL},
                                             {"@", NULL},
                                             {"", NULL},
                                             {".", NULL},
                                             {"*.", NULL},
                                             {"a.*.b", NULL},
                                             {"*a.b", NULL},
                                             {"http://x.com", NULL},
                                             {"x.com:", NULL},
                                             {"x.com:080", NULL},
                                             {"127.1", NULL},
                                             {"0x7f000001", NULL},
                                             {"2130706433", NULL},
                                             {"10.0.0.0/8:80", "10.0.0.0/8:80"},
                                             {"[::1]x", NULL},
                                             {"a..b", NULL},
                                             {"10.1.0.0/8", NULL},
                                             {"1.2.3.4/", NULL},
                                             {"1.2.3.4/08", NULL},
                                             {"::1/129", NULL}};
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
        check_form(domain_rule_form, domains[i][0], domains[i][1]);
    static const char *const ports[][2] = {{"25", "25"}, {"1-65535", "1-65535"}, {"7-7", "7"},
                                           {"0", NULL},  {"65536", NULL},        {"9-8", NULL},
                                           {"-1", NULL}, {"1-", NULL},           {"", NULL}};
    for (size_t i = 0; i < sizeof ports / sizeof *ports; i++)
        check_form(port_rule_form, ports[i][0], ports[i][1]);
    static const char *const published[][2] = {{"3000", "3000:3000"},
                                               {"8080:80", "8080:80"},
                                               {"0.0.0.0:8080:80", "0.0.0.0:8080:80"},
                                               {"127.0.0.1:80", "127.0.0.1:80:80"},
                                               {"[::1]:1:2", "[::1]:1:2"},
                                               {"x:1", NULL},
                                               {"1:2:3", NULL},
                                               {"0:1", NULL},
                                               {"[::1]", NULL},
                                               {"[::1", NULL},
                                               {"", NULL}};
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        check_form(publish_form, published[i][0], published[i][1]);
    static const char *const reached[][2] = {
        {"DB:5432", "db:5432"}, {"[::1]:1", "[::1]:1"}, {"10.0.0.1:80", "10.0.0.1:80"},
        {"db", NULL},           {"*.x:1", NULL},        {"10.0.0.0/8", NULL}};
    for (size_t i = 0; i < sizeof reached / sizeof *reached; i++)
        check_form(reach_form, reached[i][0], reached[i][1]);
    char label[80], name[300];
    memset(label, 'a', 64);
    label[64] = 0;
    check_form(domain_rule_form, label, NULL);
    label[63] = 0;
    check_form(domain_rule_form, label, label);
    for (int i = 0; i < 255; i++)
        name[i] = i % 2 ? '.' : 'a';
    name[255] = 0;
    check_form(domain_rule_form, name, NULL);
    name[253] = 0;
    check_form(domain_rule_form, name, name);
}

static void rules_cover_places(void **state)
{
    (void)state;
    struct path_rule fixed = {.path = "/a/b"}, any = {.path = ".env", .any_depth = true, .below = "/"},
                     below = {.path = "x/*.pem", .any_depth = true, .pattern = true, .below = "/w"},
                     last = {.path = "/a*/k?y", .pattern = true};
    assert_true(path_rule_covers(&fixed, "/a/b") && path_rule_covers(&fixed, "/a/b/c"));
    assert_false(path_rule_covers(&fixed, "/a/bc") || path_rule_covers(&fixed, "/a"));
    assert_true(path_rule_covers(&any, "/.env") && path_rule_covers(&any, "/a/.env/b"));
    assert_false(path_rule_covers(&any, "/a/.envx"));
    assert_true(path_rule_covers(&below, "/w/x/a.pem") && path_rule_covers(&below, "/w/y/x/a.pem/z"));
    assert_false(path_rule_covers(&below, "/v/x/a.pem") || path_rule_covers(&below, "/w/a.pem"));
    assert_true(path_rule_covers(&last, "/a*/key/below"));
    assert_false(path_rule_covers(&last, "/ab/key"));
    assert_true(path_at_or_below("/a", "/") && path_at_or_below("/a/b", "/a") && path_at_or_below("/a", "/a"));
    assert_false(path_at_or_below("/ab", "/a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(durations),
                                       cmocka_unit_test(processors_and_counts), cmocka_unit_test(network_rules),
                                       cmocka_unit_test(rules_cover_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
