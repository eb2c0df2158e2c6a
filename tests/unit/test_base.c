/*
 * base/: slices, buffers with ceilings, arenas, errors, JSON. Each at its ceiling and one beyond.
 */
#include "unit.h"
#include <fcntl.h>
#include <stdio.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
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

/* What fits exactly is read whole; one byte more is none of it, and neither is what cannot be read. */
static void all_of_a_file_or_an_error(void **state)
{
    (void)state;
    static char bytes[200000];
    memset(bytes, 'x', sizeof bytes);
    for (size_t n = 0; n <= sizeof bytes; n = n < 4096 ? 4096 : n < 16385 ? n + 12289 : n * 3) {
        FILE *f = tmpfile();
        assert_non_null(f);
        assert_int_equal(fd_write_all(fileno(f), bytes, n), 0);
        for (size_t less = 0; less <= (n > 0); less++) {
            struct buf b = BUF(n - less);
            assert_int_equal(lseek(fileno(f), 0, SEEK_SET), 0);
            assert_int_equal(fd_read_all(fileno(f), &b), less ? -EFBIG : 0);
            assert_true(buf_ok(&b) == !less);
            assert_int_equal(b.n, n - less);
            buf_free(&b);
        }
        char to[64];
        assert_int_equal(lseek(fileno(f), 0, SEEK_SET), 0);
        assert_int_equal(fd_read_exactly(fileno(f), to, sizeof to), n < sizeof to ? -ECONNRESET : 0);
        (void)fclose(f);
    }
    auto_fd int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct buf none = BUF(10);
    assert_int_equal(fd_read_all(directory, &none), -EISDIR);
    buf_free(&none);
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

/* Within what was lent, and beyond. */
static void buffer_begins_in_lent_memory(void **state)
{
    (void)state;
    for (size_t n = 0; n < 100; n++) {
        char lent[32], expected[100] = "";
        memset(lent, 'l', sizeof lent);
        struct buf b = BUF_LENT(lent, 90), c = BUF_LENT(lent, 90);
        assert_string_equal(buf_cstr(&b), "");
        for (size_t i = 0; i < n; i++) {
            expected[i] = (char)('a' + i % 26);
            buf_char(&b, expected[i]);
        }
        expected[n < 90 ? n : 90] = 0;
        assert_string_equal(buf_cstr(&b), expected);
        assert_true((n < sizeof lent) == (n == 0 || b.p == lent));
        char *taken = buf_take(&b);
        assert_true(n <= 90 ? taken && taken != lent && strcmp(taken, expected) == 0 : !taken);
        free(taken);
        buf_text(&c, "more than was lent, so that it is elsewhere");
        buf_free(&c);
    }
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

/* The first block of a small arena is static or the heap's, whose pages hold more than it. */
static void small_arenas_are_arenas(void **state)
{
    enum { OBJECT = 3000 };
    (void)state;
    for (int kept = 0; kept < 2; kept++) {
        struct arena *a = arena_new_small(1 << 20);
        struct span spans[16];
        char *near = malloc(4000), *first = arena_zero(a, OBJECT), *second = arena_zero(a, OBJECT),
             *large = arena_zero(a, 60000);
        assert_true(near && first && second && large);
        memset(near, 4, 4000);
        memset(first, 1, OBJECT);
        memset(second, 2, OBJECT);
        memset(large, 3, 60000);
        for (int i = 0; i < OBJECT; i++)
            assert_true(first[i] == 1 && second[i] == 2 && large[i] == 3);
        const size_t n = arena_spans(a, second, OBJECT, spans, 16);
        for (size_t i = 0; i < n; i++) /* may be given back to the kernel */
            assert_true(first < (char *)spans[i].at || first >= (char *)spans[i].at + spans[i].bytes);
        arena_trim(a);
        assert_int_equal(large[59999], 3);
        const char *object = kept ? first : second;
        arena_keep(a, object, OBJECT);
        for (int i = 0; i < OBJECT; i++)
            assert_int_equal(object[i], kept ? 1 : 2);
        for (int i = 0; i < 4000; i++)
            assert_int_equal(near[i], 4);
        assert_null(arena_zero(a, 1));
        arena_free(a);
        free(near);
    }
    struct arena *a = arena_new_small(1000);
    assert_null(arena_zero(a, 2000));
    assert_true(arena_failed(a));
    arena_free(a);
}

/* Some in static rooms, the rest not; what comes next is zeroed, and nobody's. */
static void small_arenas_are_apart(void **state)
{
    enum { MANY = 7, BYTES = 4000 };
    (void)state;
    for (int round = 0; round < 10; round++) {
        struct arena *a[MANY];
        char *p[MANY];
        if (round == 5)
            arenas_use_rooms();
        for (int i = 0; i < MANY; i++) {
            a[i] = arena_new_small(1 << 20);
            p[i] = arena_zero(a[i], BYTES);
            assert_non_null(p[i]);
            for (int k = 0; k < BYTES; k++)
                assert_int_equal(p[i][k], 0);
            memset(p[i], i + 1, BYTES);
            if (i == round % 5) { /* one that ends among others */
                if (round % 2)
                    arena_keep(a[i], NULL, 0);
                a[i] = arena_free(a[i]);
            }
        }
        for (int i = 0; i < MANY; i++) {
            for (int k = 0; a[i] && k < BYTES; k++)
                assert_int_equal(p[i][k], i + 1);
            arena_free(a[i]);
        }
    }
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
    json_str(&j, "e", STR("\xc2\xad\xe2\x80\xae\xe2\x80\x8d\xf3\xa0\x81\x81\xf0\x9f\x90\x91"));
    json_object_end(&j);
    assert_string_equal(buf_cstr(&b),
                        "{\"a\":\"q\\\"\\\\\\n\\u0001\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDok\xc3\xa4\","
                        "\"b\":[-1,true],\"c\":\"//4Aeg==\",\"d\":\"\\u007f\\u0080\\u009f\xc2\xa0\","
                        "\"e\":\"\\u00ad\\u202e\xe2\x80\x8d\\udb40\\udc41\xf0\x9f\x90\x91\"}");
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
    /* Nothing that turns a name around, or is not seen; what joins emoji passes. */
    utf8_safe(&b,
              STR("x\xe2\x80\xaetxt.exe \xe2\x81\xa6 \xe2\x80\x8b \xd8\x9c \xef\xbb\xbf \xe2\x80\x8d \xe2\x80\x93"));
    assert_string_equal(buf_cstr(&b),
                        "x\\xe2\\x80\\xaetxt.exe \\xe2\\x81\\xa6 \\xe2\\x80\\x8b \\xd8\\x9c \\xef\\xbb\\xbf "
                        "\xe2\x80\x8d \xe2\x80\x93");
    buf_free(&b);
    utf8_safe(
        &b,
        STR("\xc2\xad \xe3\x85\xa4 \xef\xbf\xb9 \xef\xb8\x80 \xef\xb8\x8f \xf3\xa0\x81\x81 \xf3\xa1\x80\x80 \xc2\xae"));
    assert_string_equal(buf_cstr(&b), "\\xc2\\xad \\xe3\\x85\\xa4 \\xef\\xbf\\xb9 \\xef\\xb8\\x80 \xef\xb8\x8f "
                                      "\\xf3\\xa0\\x81\\x81 \xf3\xa1\x80\x80 \xc2\xae");
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

static void put_something(struct json *j)
{
    json_object(j, NULL);
    json_text(j, "text", "a \"b\" \n\x1b \xc3\xa4 \xff");
    json_str(j, "nul", STR("x\0y"));
    json_int(j, "least", INT64_MIN);
    json_uint(j, "number", 7);
    json_bool(j, "yes", true);
    json_bool(j, "no", false);
    json_null(j, "none");
    json_base64(j, "bytes", STR("\xff\xfe"));
    json_array(j, "list");
    json_text(j, NULL, "");
    json_object(j, NULL);
    json_object_end(j);
    json_array(j, NULL);
    json_array_end(j);
    json_array_end(j);
    json_object_end(j);
}

/* What is made as values is the same JSON, and is read without that. */
static void values_are_the_json(void **state)
{
    auto_buf struct buf text = BUF(1 << 16), again = BUF(1 << 16);
    auto_values struct values made = VALUES(1 << 16);
    size_t n;
    (void)state;

    put_something(&JSON(&text));
    put_something(&JSON_TREE(&made));
    const struct value_node *v = values_whole(&made);
    assert_non_null(v);
    assert_ptr_equal(value_check(value_image(v)), v);
    json_put(&JSON(&again), NULL, v);
    assert_string_equal(buf_cstr(&again), buf_cstr(&text));

    assert_string_equal(value_string(value_member(v, "text"), NULL), "a \"b\" \n\x1b \xc3\xa4 \xEF\xBF\xBD");
    assert_int_equal(memcmp(value_string(value_member(v, "nul"), &n), "x\0y", 4), 0);
    assert_int_equal(n, 3);
    assert_true((int64_t)value_member(v, "least")->number == INT64_MIN);
    assert_null(value_member(v, "missing"));
    assert_null(value_string(value_member(v, "number"), NULL));
    assert_null(value_first(value_member(v, "number")));
    const struct value_node *list = value_member(v, "list");
    assert_int_equal(list->number, 3);
    assert_string_equal(value_name(list), "list");
    assert_null(value_name(value_first(list)));
    assert_null(value_first(value_next(value_first(list))));
    assert_null(value_next(value_next(value_next(value_first(list)))));
    assert_null(value_next(NULL));

    static const char *const skip[] = {"nul", "list", NULL};
    buf_free(&again);
    json_put_without(&JSON(&again), NULL, v, skip);
    assert_null(strstr(buf_cstr(&again), "\"nul\""));
    assert_non_null(strstr(buf_cstr(&again), "\"bytes\""));
}

static unsigned walk(const struct value_node *v)
{
    unsigned n = 1;
    size_t length;
    for (const char *text = value_string(v, &length); text && length; length--)
        n += text[length - 1] != 0;
    for (const struct value_node *one = value_first(v); one; one = value_next(one))
        n += walk(one) + (value_name(one) ? (unsigned)strlen(value_name(one)) : 0);
    return n;
}

/* Bytes from elsewhere are refused, or can be read to their end. */
static void values_are_checked(void **state)
{
    auto_values struct values made = VALUES(1 << 16), small = VALUES(64), open = VALUES(1 << 16);
    (void)state;

    put_something(&JSON_TREE(&made));
    struct str image = value_image(values_whole(&made));
    for (size_t n = 0; n < image.n; n++) {
        char *cut = malloc(n ? n : 1);
        memcpy(cut, image.p, n);
        assert_null(value_check((struct str){cut, n}));
        free(cut);
    }
    char *other = malloc(image.n);
    for (size_t bit = 0; bit < 8 * image.n; bit++) {
        memcpy(other, image.p, image.n);
        other[bit / 8] ^= (char)(1 << bit % 8);
        const struct value_node *v = value_check((struct str){other, image.n});
        assert_true(!v || walk(v) > 0);
    }
    free(other);
    put_something(&JSON_TREE(&small));
    assert_null(values_whole(&small));
    json_array(&JSON_TREE(&open), NULL);
    assert_null(values_whole(&open));
    auto_values struct values deep = VALUES(1 << 16);
    for (unsigned i = 0; i < VALUE_DEPTH + 1; i++)
        json_array(&JSON_TREE(&deep), NULL);
    for (unsigned i = 0; i < VALUE_DEPTH + 1; i++)
        json_array_end(&JSON_TREE(&deep));
    assert_null(values_whole(&deep));
}

static void texts_in_lists(void **state)
{
    static const char *const list[] = {"one", "two", NULL};
    const char *texts[] = {"b", "a\xff", "a", ""};
    (void)state;
    assert_true(same_as_one("two", list) && !same_as_one("tw", list) && !same_as_one(NULL, list));
    assert_false(same_as_one("one", NULL));
    qsort(texts, 4, sizeof *texts, text_order);
    assert_string_equal(texts[0], "");
    assert_string_equal(texts[2], "a\xff");
    assert_string_equal(texts[3], "b");
    for (int c = 0; c < 256; c++) {
        const char *digits = "0123456789abcdef0123456789ABCDEF", *at = c ? strchr(digits, c) : NULL;
        assert_int_equal(hex_digit((char)c), at ? (at - digits) % 16 : -1);
    }
}

/* The same wherever it is made: names of files are of it. */
static void hashes_stay(void **state)
{
    uint64_t h[2];
    (void)state;
    assert_int_equal(hash32(HASH32, "foobar", 6), 0xbf9cf968);
    assert_true(hash64(HASH64, "foobar", 6) == 0x85944171f73967e8u);
    assert_true(hash64(hash64(HASH64, "foo", 3), "bar", 3) == hash64(HASH64, "foobar", 6));
    hash128("/home/u", 7, h);
    assert_true(h[0] == 0x840b69ea7b2b135du && h[1] == 0x5db6c5fef4668906u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_in_lists),
        cmocka_unit_test(hashes_stay),
        cmocka_unit_test(values_are_the_json),
        cmocka_unit_test(values_are_checked),
        cmocka_unit_test(distance_counts_edits_and_swaps),
        cmocka_unit_test(buffer_stops_at_its_ceiling_and_says_so),
        cmocka_unit_test(all_of_a_file_or_an_error),
        cmocka_unit_test(buffer_formats),
        cmocka_unit_test(buffer_begins_in_lent_memory),
        cmocka_unit_test(arena_zeroes_grows_and_has_a_ceiling),
        cmocka_unit_test(arena_keeps_one_object),
        cmocka_unit_test(small_arenas_are_arenas),
        cmocka_unit_test(small_arenas_are_apart),
        cmocka_unit_test(arenas_come_zeroed_again),
        cmocka_unit_test(errors_gain_context),
        cmocka_unit_test(json_is_json_whatever_the_bytes),
        cmocka_unit_test(terminals_get_nothing_to_obey),
        cmocka_unit_test(utf8_refuses_what_rfc_3629_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
