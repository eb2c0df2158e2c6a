/*
 * Lines of the control connection, and the rules that change. What a line says and what it answers, also to lines
 * that are none.
 */
#include <stdio.h>

#include "unit.h"

#include "base/arena.h"
#include "supervisor/network/live.h"

static int parse(const char *text, struct control_line *ret, struct err *e)
{
    static struct arena *mem;
    mem = arena_free(mem);
    mem = arena_new(16u << 20);
    assert_non_null(mem);
    return control_parse(str_of(text), mem, ret, e);
}

static void good_lines(void **state)
{
    struct control_line l;
    struct err e = {0};
    (void)state;
    assert_int_equal(parse("{\"op\":\"allow\",\"host\":\"a.test:443\"}", &l, &e), 0);
    assert_true(l.op == CONTROL_ALLOW && l.n_allow == 1 && l.n_deny == 0 && str_is(l.allow[0], "a.test:443"));
    assert_int_equal(parse("  { \"host\" : [\"a.test\", \"*.b.test\"], \"op\" : \"deny\" } \r", &l, &e), 0);
    assert_true(l.op == CONTROL_DENY && l.n_deny == 2 && str_is(l.deny[1], "*.b.test"));
    assert_int_equal(parse("{\"op\":\"replace\",\"allow\":[]}", &l, &e), 0);
    assert_true(l.op == CONTROL_REPLACE && l.n_allow == 0 && l.n_deny == 0);
    assert_int_equal(parse("{\"op\":\"replace\",\"deny\":\"a.test\",\"allow\":[\"b.test\"]}", &l, &e), 0);
    assert_true(l.n_allow == 1 && l.n_deny == 1);
    assert_int_equal(parse("{\"op\":\"list\"}", &l, &e), 0);
    assert_int_equal(l.op, CONTROL_LIST);
    assert_int_equal(parse("{\"op\":\"answer\",\"id\":4294967295,\"allow\":false}", &l, &e), 0);
    assert_true(l.op == CONTROL_ANSWER && l.id == UINT32_MAX && !l.answer.allow && !l.answer.run);
    assert_int_equal(parse("{\"op\":\"answer\",\"id\":1,\"allow\":true,\"remember\":\"run\"}", &l, &e), 0);
    assert_true(l.answer.allow && l.answer.run);
    assert_int_equal(parse("{\"op\":\"answer\",\"id\":1,\"allow\":true,\"remember\":\"once\"}", &l, &e), 0);
    assert_true(l.answer.allow && !l.answer.run);
    assert_int_equal(parse("{\"op\":\"allow\",\"host\":\"\\u0061.test\"}", &l, &e), 0);
    assert_true(str_is(l.allow[0], "a.test"));
}

static void bad_lines(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "}",
        "{}",
        "[]",
        "null",
        "op: list",
        "{op: list}",
        "{\"op\":\"list\"} {\"op\":\"list\"}",
        "{\"op\":\"list\"",
        "{\"op\":list}",
        "{\"op\":[\"list\"]}",
        "{\"op\":\"LIST\"}",
        "{\"op\":\"\"}",
        "{\"op\":null}",
        "{\"op\":\"list\",\"op\":\"list\"}",
        "{\"op\":\"list\",\"host\":\"a.test\"}",
        "{\"op\":\"allow\"}",
        "{\"op\":\"allow\",\"host\":null}",
        "{\"op\":\"allow\",\"host\":true}",
        "{\"op\":\"allow\",\"host\":12}",
        "{\"op\":\"allow\",\"host\":{\"a\":\"b\"}}",
        "{\"op\":\"allow\",\"host\":[[\"a.test\"]]}",
        "{\"op\":\"allow\",\"host\":[\"a.test\",1]}",
        "{\"op\":\"allow\",\"hosts\":\"a.test\"}",
        "{\"op\":\"allow\",\"allow\":\"a.test\"}",
        "{\"op\":\"replace\"}",
        "{\"op\":\"replace\",\"host\":\"a.test\"}",
        "{\"op\":\"answer\"}",
        "{\"op\":\"answer\",\"id\":1}",
        "{\"op\":\"answer\",\"allow\":true}",
        "{\"op\":\"answer\",\"id\":0,\"allow\":true}",
        "{\"op\":\"answer\",\"id\":-1,\"allow\":true}",
        "{\"op\":\"answer\",\"id\":1.0,\"allow\":true}",
        "{\"op\":\"answer\",\"id\":4294967296,\"allow\":true}",
        "{\"op\":\"answer\",\"id\":99999999999,\"allow\":true}",
        "{\"op\":\"answer\",\"id\":\"1\",\"allow\":true}",
        "{\"op\":\"answer\",\"id\":1,\"allow\":\"true\"}",
        "{\"op\":\"answer\",\"id\":1,\"allow\":1}",
        "{\"op\":\"answer\",\"id\":1,\"allow\":yes}",
        "{\"op\":\"answer\",\"id\":1,\"allow\":true,\"remember\":\"always\"}",
        "{\"op\":\"answer\",\"id\":1,\"allow\":true,\"remember\":true}",
        "{\"op\":\"list\",\"\\n\":1}",
        "{\"op\":&a \"list\"}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct control_line l;
        struct err e = {0};
        if (parse(bad[i], &l, &e) == 0)
            fail_msg("taken: %s", bad[i]);
        if (strlen(e.text) < 5 || strchr(e.text, '\n'))
            fail_msg("not one sentence for %s: '%s'", bad[i], e.text);
    }
}

/* What only a new box can follow is said so. */
static void settled_at_the_start(void **state)
{
    struct control_line l;
    struct err e = {0};
    (void)state;
    assert_true(parse("{\"op\":\"reach\",\"host\":\"127.0.0.1:5432\"}", &l, &e) < 0);
    assert_non_null(strstr(e.text, "'reach' cannot be changed while the box runs"));
    e = (struct err){0};
    assert_true(parse("{\"op\":\"publish\",\"host\":\"3000\"}", &l, &e) < 0);
    assert_non_null(strstr(e.text, "--publish"));
}

static void too_much(void **state)
{
    struct control_line l;
    struct err e = {0};
    auto_buf struct buf b = BUF(4u << 20);
    (void)state;
    buf_text(&b, "{\"op\":\"allow\",\"host\":[\"a\"");
    for (int i = 1; i < CONTROL_HOSTS_MAX; i++)
        buf_text(&b, ",\"a\"");
    buf_text(&b, "]}");
    assert_int_equal(parse(buf_cstr(&b), &l, &e), 0);
    assert_int_equal(l.n_allow, CONTROL_HOSTS_MAX);
    b.n -= 2;
    buf_text(&b, ",\"a\"]}");
    assert_true(parse(buf_cstr(&b), &l, &e) < 0);
    b.n = 0;
    buf_text(&b, "{\"op\":");
    for (int i = 0; i < 10000; i++)
        buf_char(&b, '[');
    buf_text(&b, "}");
    assert_true(parse(buf_cstr(&b), &l, &e) < 0);
}

/* Whatever bytes come, there is an answer. */
static void any_bytes(void **state)
{
    static const char seed[] =
        "{\"op\":\"answer\",\"id\":12,\"allow\":true,\"remember\":\"run\",\"host\":[\"a.test\"]}";
    uint32_t x = 88172645;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        char text[sizeof seed];
        struct control_line l;
        struct err e = {0};
        memcpy(text, seed, sizeof seed);
        for (int k = 0; k < 3; k++) {
            x ^= x << 13, x ^= x >> 17, x ^= x << 5;
            text[x % (sizeof seed - 1)] = (char)(x >> 16);
        }
        if (parse(text, &l, &e) < 0)
            assert_true(e.text[0] != 0 && !strchr(e.text, '\n'));
    }
}

static size_t held(const struct live *l)
{
    size_t n;
    free(rules_held(l, &n));
    return n;
}

static void rules_have_ids(void **state)
{
    struct live *l = live_new();
    struct box b = {.live = l};
    struct err e = {0};
    bool fresh = false;
    size_t n;
    (void)state;
    assert_int_equal(rules_add(l, STR("a.test"), RULE_ALLOW, FROM_CONTROL, 0, &fresh, &e), 0);
    assert_true(fresh);
    fresh = false;
    assert_int_equal(rules_add(l, STR("A.test"), RULE_ALLOW, FROM_CONTROL, 0, &fresh, &e), 0);
    assert_false(fresh);
    assert_int_equal(rules_add(l, STR("a.test"), RULE_ALLOW, FROM_ASKED, 0, &fresh, &e), 0);
    assert_true(fresh);
    assert_int_equal(held(l), 2);
    assert_true(rules_add(l, STR("a b"), RULE_ALLOW, FROM_CONTROL, 0, NULL, &e) < 0);
    assert_int_equal(held(l), 2);
    l->rules[0].holds = false;
    struct host_rule *list = rules_held(l, &n);
    assert_int_equal(n, 1);
    assert_int_equal(list[0].origin, 1); /* its id, although it stands first now */
    free(list);
    fresh = false;
    assert_int_equal(rules_add(l, STR("a.test"), RULE_ALLOW, FROM_CONTROL, 0, &fresh, &e), 0);
    assert_true(fresh && l->n_rules == 2 && l->rules[0].holds);
    live_end(&b);
}

static void the_policy_keeps_its_denials(void **state)
{
    struct live *l = live_new();
    struct box b = {.live = l};
    struct err e = {0};
    (void)state;
    assert_int_equal(rules_add(l, STR("a.test"), RULE_ALLOW, FROM_POLICY, 1, NULL, &e), 0);
    assert_int_equal(rules_add(l, STR("b.test"), RULE_DENY, FROM_POLICY, 2, NULL, &e), 0);
    assert_int_equal(held(l), 2);
    l->policy_allows = false; /* what "replace" does */
    assert_int_equal(held(l), 1);
    live_end(&b);
}

static void rules_are_bounded(void **state)
{
    struct live *l = live_new();
    struct box b = {.live = l};
    struct err e = {0};
    char text[40];
    (void)state;
    for (int i = 0; i < MAX_LIVE_RULES; i++) {
        snprintf(text, sizeof text, "h%d.test", i);
        assert_int_equal(rules_add(l, str_of(text), RULE_ALLOW, FROM_POLICY, 0, NULL, &e), 0);
    }
    assert_true(rules_add(l, STR("one-more.test"), RULE_ALLOW, FROM_CONTROL, 0, NULL, &e) < 0);
    assert_non_null(strstr(e.text, "more than"));
    assert_int_equal(held(l), MAX_LIVE_RULES);
    live_end(&b);
}

static void targets(void **state)
{
    struct egress_event v = {.port = 443, .name = "a.test"};
    char text[EGRESS_NAME + 64];
    (void)state;
    network_target(&v, text, sizeof text);
    assert_string_equal(text, "a.test:443");
    strcpy(v.name, "");
    strcpy(v.address, "2001:db8::1");
    network_target(&v, text, sizeof text);
    assert_string_equal(text, "[2001:db8::1]:443");
    v.port = 0;
    strcpy(v.address, "");
    network_target(&v, text, sizeof text);
    assert_string_equal(text, "(nothing)");
    assert_string_equal(network_how(HOW_SOCKS), "socks");
    assert_string_equal(network_how(200), "network");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_lines),
        cmocka_unit_test(bad_lines),
        cmocka_unit_test(settled_at_the_start),
        cmocka_unit_test(too_much),
        cmocka_unit_test(any_bytes),
        cmocka_unit_test(rules_have_ids),
        cmocka_unit_test(the_policy_keeps_its_denials),
        cmocka_unit_test(rules_are_bounded),
        cmocka_unit_test(targets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
