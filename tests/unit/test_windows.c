/*
 * plan/windows.h: every spelling of a path. And every one that is refused.
 */
#include "unit.h"

#include <string.h>

#include "plan/windows.h"

static struct arena *mem;

static int begin(void **state)
{
    (void)state;
    mem = arena_new(1u << 20);
    return mem ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    mem = arena_free(mem);
    return 0;
}

static void translations(void **state)
{
    (void)state;
    static const struct {
        const char *windows, *docker, *wsl, *back; /* back: from docker's form, NULL where that is another spelling */
    } cases[] = {
        {"C:\\Users\\x", "/c/Users/x", "/mnt/c/Users/x", "C:\\Users\\x"},
        {"c:\\Users\\x", "/c/Users/x", "/mnt/c/Users/x", "C:\\Users\\x"},
        {"C:/Users/x", "/c/Users/x", "/mnt/c/Users/x", "C:\\Users\\x"},
        {"C:/Users\\x/", "/c/Users/x", "/mnt/c/Users/x", "C:\\Users\\x"},
        {"C:\\Users\\\\x\\.\\y\\..\\z", "/c/Users/x/z", "/mnt/c/Users/x/z", "C:\\Users\\x\\z"},
        {"D:", "/d", "/mnt/d", "D:\\"},
        {"Z:\\", "/z", "/mnt/z", "Z:\\"},
        {"C:\\Program Files\\a b", "/c/Program Files/a b", "/mnt/c/Program Files/a b", "C:\\Program Files\\a b"},
        {"C:\\Users\\J\xc3\xb6rg", "/c/Users/J\xc3\xb6rg", "/mnt/c/Users/J\xc3\xb6rg", "C:\\Users\\J\xc3\xb6rg"},
        {"\\\\?\\C:\\deep", "/c/deep", "/mnt/c/deep", "C:\\deep"},
        {"C:\\.git\\config", "/c/.git/config", "/mnt/c/.git/config", "C:\\.git\\config"},
        {"C:\\console\\com10\\nullable", "/c/console/com10/nullable", "/mnt/c/console/com10/nullable",
         "C:\\console\\com10\\nullable"},
        {"/work//src/.", "/work/src", "/work/src", NULL},
        {"/c/Users", "/c/Users", "/c/Users", "C:\\Users"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = NULL;
        struct err e = {0};
        if (windows_to_linux(cases[i].windows, WINDOWS_DOCKER, mem, &got, &e) < 0)
            fail_msg("%s: %s", cases[i].windows, e.text);
        assert_string_equal(got, cases[i].docker);
        assert_int_equal(windows_to_linux(cases[i].windows, WINDOWS_WSL, mem, &got, &e), 0);
        assert_string_equal(got, cases[i].wsl);
        int r = windows_from_linux(cases[i].docker, WINDOWS_DOCKER, mem, &got);
        assert_int_equal(r, cases[i].back ? 0 : -ENOENT);
        if (cases[i].back)
            assert_string_equal(got, cases[i].back);
    }
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *path, *words;
    } cases[] = {
        {"\\\\server\\share\\x", "network path"},
        {"//server/share", "network path"},
        {"\\/server/share", "network path"},
        {"\\\\?\\UNC\\server\\share", "network path"},
        {"\\\\.\\PhysicalDrive0", "network path or a device"},
        {"\\\\?\\Volume{0123}\\x", "network path or a device"},
        {"C:Users", "relative to the current directory"},
        {"C:..", "relative to the current directory"},
        {"\\Users\\x", "no drive letter"},
        {"Users\\x", "no drive letter"},
        {"1:\\x", "no drive letter"},
        {"", "no drive letter"},
        {"C:\\x\\file:stream", "stream"},
        {"C:\\C:\\x", "stream"},
        {"C:\\a|b", "names cannot contain"},
        {"C:\\a\nb", "names cannot contain"},
        {"C:\\what?", "names cannot contain"},
        {"C:\\x.\\y", "drops a dot"},
        {"C:\\x \\y", "drops a dot"},
        {"C:\\...", "drops a dot"},
        {"C:\\NUL", "is a device"},
        {"C:\\dir\\con.txt", "is a device"},
        {"C:\\dir\\Com1.tar.gz", "is a device"},
        {"C:\\dir\\aux .x", "is a device"},
        {"C:\\..\\x", "leads above the drive"},
        {"C:\\a\\..\\..\\d\\x", "leads above the drive"},
        {"/a\\b", "no drive letter"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = NULL;
        struct err e = {0};
        if (windows_to_linux(cases[i].path, WINDOWS_DOCKER, mem, &got, &e) == 0)
            fail_msg("%s became %s", cases[i].path, got);
        if (!strstr(e.text, cases[i].words))
            fail_msg("%s: '%s' does not say '%s'", cases[i].path, e.text, cases[i].words);
        assert_null(got);
    }
}

static void backwards(void **state)
{
    (void)state;
    static const char *const none[] = {"/", "/work", "/C/x", "/cc", "/c\\x", "c/x", "", "/c/a:b", "/c/nul", "/c/x."};
    const char *got = NULL;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(windows_from_linux(none[i], WINDOWS_DOCKER, mem, &got), -ENOENT);
    assert_int_equal(windows_from_linux("/c/x", WINDOWS_WSL, mem, &got), -ENOENT);
    assert_null(got);
    assert_int_equal(windows_from_linux("/mnt/e/x", WINDOWS_WSL, mem, &got), 0);
    assert_string_equal(got, "E:\\x");
}

static void mounts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *src, *dst;
        bool read_only;
    } good[] = {{"C:\\Users\\x:/work", "/c/Users/x", "/work", false},
                {"C:\\Users\\x:/work:ro", "/c/Users/x", "/work", true},
                {"d:/data:/data:rw", "/d/data", "/data", false},
                {"\\\\?\\D:\\data:/data", "/d/data", "/data", false},
                {"/srv/x:/work//y:ro", "/srv/x", "/work/y", true}};
    static const char *const bad[] = {"C:\\x",     "C:\\x:work", "C:\\x:D:\\y",      "C:\\x:/work:rx", ":/work",
                                      "C:\\x:\\y", "",           "\\\\srv\\x:/work", "C:x:/work",      "C:\\x:"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const char *src = NULL, *dst = NULL;
        bool ro = !good[i].read_only;
        struct err e = {0};
        if (windows_split_mount(good[i].text, WINDOWS_DOCKER, mem, &src, &dst, &ro, &e) < 0)
            fail_msg("%s: %s", good[i].text, e.text);
        assert_string_equal(src, good[i].src);
        assert_string_equal(dst, good[i].dst);
        assert_int_equal(ro, good[i].read_only);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *src = NULL, *dst = NULL;
        bool ro = false;
        struct err e = {0};
        if (windows_split_mount(bad[i], WINDOWS_DOCKER, mem, &src, &dst, &ro, &e) == 0)
            fail_msg("%s became %s at %s", bad[i], src, dst);
        assert_true(e.text[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(translations), cmocka_unit_test(refusals),
                                       cmocka_unit_test(backwards), cmocka_unit_test(mounts)};
    return cmocka_run_group_tests(tests, begin, end);
}
