/* Unit tests of base/: slices, buffers with ceilings, arenas, errors, JSON. */
#include "unit.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"

static void distance_counts_edits_and_swaps(void **state)
{
    (void)state;
    assert_int_equal(str_distance(STR("memory"), STR("memory")), 0);
    assert_int_equal(str_distance(STR("memroy"), STR("memory")), 1);
    assert_int_equal(str_distance(STR("pid"), STR("pids")), 1);
    assert_int_equal(str_distance(STR(""), STR("abc")), 3);
}

static void buffer_stops_at_its_ceiling_and_says_so(void **state)
{
    (void)state;
    struct buf b = BUF(10);
    buf_text(&b, "0123456789");
    assert_true(buf_ok(&b));
    buf_char(&b, 'x');
    assert_false(buf_ok(&b));
    assert_string_equal(buf_cstr(&b), "0123456789");
    assert_null(buf_take(&b));
}

static void buffer_formats(void **state)
{
    (void)state;
    struct buf b = BUF(1000);
    buf_printf(&b, "%d %s", 7, "seven");
    assert_string_equal(buf_cstr(&b), "7 seven");
    char *taken = buf_take(&b);
    assert_string_equal(taken, "7 seven");
    free(taken);
}

static void arena_zeroes_grows_and_has_a_ceiling(void **state)
{
    (void)state;
    struct arena *a = arena_new(1 << 20);
    int *numbers = NULL;
    size_t n = 0;
    for (int i = 0; i < 1000; i++) {
        int *p = arena_push(a, &numbers, &n, sizeof *numbers);
        assert_non_null(p);
        assert_int_equal(*p, 0);
        *p = i;
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(numbers[i], i);
    assert_null(arena_zero(a, 2 << 20));
    assert_true(arena_failed(a));
    arena_free(a);
}

/* What is given back is everything but the pages of the object. */
static void arena_keeps_one_object(void **state)
{
    enum { OBJECT = 9000, OTHER = 12000 };
    (void)state;
    struct arena *a = arena_new(8 << 20);
    struct span spans[16];
    char *before = arena_zero(a, OTHER), *object = arena_zero(a, OBJECT), *after = arena_zero(a, OTHER);
    memset(before, 1, OTHER);
    memset(object, 2, OBJECT);
    memset(after, 3, OTHER);
    size_t n = arena_spans(a, object, OBJECT, spans, 16), bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const char *from = spans[i].at, *end = from + spans[i].bytes;
        assert_true(end <= object || from >= object + OBJECT);
        bytes += spans[i].bytes;
    }
    assert_true(bytes >= 2 * OTHER - 4 * 4096);
    arena_keep(a, object, OBJECT);
    for (size_t i = 0; i < OBJECT; i++)
        assert_int_equal(object[i], 2);
    assert_int_equal(before[OTHER / 2], 0);
    assert_null(arena_zero(a, 1));
    arena_free(a);
}

static void arenas_come_zeroed_again(void **state)
{
    (void)state;
    arenas_reuse();
    for (int round = 0; round < 3; round++) {
        struct arena *a[6];
        for (size_t i = 0; i < 6; i++) {
            a[i] = arena_new(1 << 20);
            for (size_t bytes = 16; bytes < 70000; bytes *= 3) {
                char *p = arena_zero(a[i], bytes);
                assert_non_null(p);
                for (size_t k = 0; k < bytes; k++)
                    assert_int_equal(p[k], 0);
                memset(p, 0xff, bytes);
            }
        }
        for (size_t i = 0; i < 6; i++)
            arena_free(a[i]);
    }
}

static void errors_gain_context(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(err_sys(&e, ERR_SYSTEM, ENOENT, "open '%s'", "x"), -ENOENT);
    assert_int_equal(err_wrap(&e, -ENOENT, "in profile '%s'", "p"), -ENOENT);
    assert_string_equal(e.text, "in profile 'p': open 'x': No such file or directory");
    assert_int_equal(err_say(NULL, ERR_CANNOT, "nobody listens"), -EOPNOTSUPP);
}

static void json_is_json_whatever_the_bytes(void **state)
{
    (void)state;
    struct buf b = BUF(1000);
    struct json j = JSON(&b);
    json_object(&j, NULL);
    json_str(&j, "a", STR("q\"\\\n\x01\xff\xed\xa0\x80ok\xc3\xa4"));
    json_array(&j, "b");
    json_int(&j, NULL, -1);
    json_bool(&j, NULL, true);
    json_array_end(&j);
    json_base64(&j, "c", STR("\xff\xfe\x00z"));
    json_str(&j, "d", STR("\x7f\xc2\x80\xc2\x9f\xc2\xa0"));
    json_object_end(&j);
    assert_string_equal(buf_cstr(&b),
                        "{\"a\":\"q\\\"\\\\\\n\\u0001\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDok\xc3\xa4\","
                        "\"b\":[-1,true],\"c\":\"//4Aeg==\",\"d\":\"\\u007f\\u0080\\u009f\xc2\xa0\"}");
    buf_free(&b);
}

static void terminals_get_nothing_to_obey(void **state)
{
    (void)state;
    struct buf b = BUF(1000);
    utf8_safe(&b, STR("a\x1b[2J\n\x7f\xc2\x9b\xc2\xa0\x9b\xff\xed\xa0\x80\xf0\x9f\x90\x91\\"));
    assert_string_equal(buf_cstr(&b),
                        "a\\x1b[2J\\x0a\\x7f\\xc2\\x9b\xc2\xa0\\x9b\\xff\\xed\\xa0\\x80\xf0\x9f\x90\x91\\");
    buf_free(&b);
}

static void utf8_refuses_what_rfc_3629_refuses(void **state)
{
    (void)state;
    assert_true(utf8_valid(STR("gr\xc3\xbc\xc3\x9f \xf0\x9f\x90\x91")));
    assert_false(utf8_valid(STR("\xc0\x80")));
    assert_false(utf8_valid(STR("\xf4\x90\x80\x80")));
    assert_false(utf8_valid(STR("\xe2\x82")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distance_counts_edits_and_swaps),
        cmocka_unit_test(buffer_stops_at_its_ceiling_and_says_so),
        cmocka_unit_test(buffer_formats),
        cmocka_unit_test(arena_zeroes_grows_and_has_a_ceiling),
        cmocka_unit_test(arena_keeps_one_object),
        cmocka_unit_test(arenas_come_zeroed_again),
        cmocka_unit_test(errors_gain_context),
        cmocka_unit_test(json_is_json_whatever_the_bytes),
        cmocka_unit_test(terminals_get_nothing_to_obey),
        cmocka_unit_test(utf8_refuses_what_rfc_3629_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
