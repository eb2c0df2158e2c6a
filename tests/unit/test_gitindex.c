/*
 * git/gitindex.c on indexes that git wrote (the fuzz corpus), and on those that name what git would not. A refusal
 * says what is wrong.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "unit.h"
#include "base/buf.h"
#include "git/gitconfig.h"

static struct buf of_git(const char *name)
{
    char path[4096];
    const char *top = getenv("PINFOLD_SOURCE");
    struct buf bytes = BUF(1 << 20);
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/gitindex/%s", top ? top : ".", name);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    char *room = buf_space(&bytes, 4096);
    buf_grew(&bytes, fread(room, 1, 4096, file));
    fclose(file);
    return bytes;
}

static void indexes_of_git_pass(void **state)
{
    (void)state;
    static const char *const names[] = {"version2", "version3", "version4", "sha256"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct buf bytes = of_git(names[i]), why = BUF(4096);
        if (gitindex_judge(buf_view(&bytes), &why) != 0)
            fail_msg("%s: %s", names[i], buf_cstr(&why));
        buf_free(&bytes);
        buf_free(&why);
    }
    assert_int_equal(gitindex_judge(STR(""), NULL), 0);
}

static void refused(const struct buf *bytes, const char *clause)
{
    struct buf why = BUF(4096);
    assert_int_equal(gitindex_judge(buf_view(bytes), &why), -EACCES);
    if (!strstr(buf_cstr(&why), clause))
        fail_msg("expected '%s', got '%s'", clause, buf_cstr(&why));
    buf_free(&why);
}

static void others_of_git_are_refused(void **state)
{
    (void)state;
    struct buf hook = of_git("hook"), split = of_git("split");
    refused(&hook, "an index that names '.git/hooks/post-checkout'");
    refused(&split, "core.splitIndex");
    buf_free(&hook);
    buf_free(&split);
}

static void put_number(struct buf *b, uint32_t v, unsigned bytes)
{
    for (unsigned i = bytes; i > 0; i--)
        buf_char(b, (char)(v >> (i - 1) * 8));
}

/* An index of version 2 with these names (of `n` bytes each, if that is not 0), for a hash of this size. */
static struct buf index_of(const char *const *names, size_t n, size_t hash)
{
    struct buf b = BUF(1 << 20);
    uint32_t count = 0;
    for (const char *const *name = names; *name; name++)
        count++;
    buf_text(&b, "DIRC");
    put_number(&b, 2, 4);
    put_number(&b, count, 4);
    for (; *names; names++) {
        const size_t start = b.n, k = n ? n : strlen(*names);
        for (unsigned i = 0; i < 10; i++)
            put_number(&b, i == 6 ? 0100644 : 0, 4);
        for (size_t i = 0; i < hash; i++)
            buf_char(&b, 1);
        put_number(&b, (uint32_t)(k < 0xfff ? k : 0xfff), 2);
        buf_put(&b, *names, k);
        do
            buf_char(&b, 0);
        while ((b.n - start) % 8);
    }
    for (size_t i = 0; i < hash; i++)
        buf_char(&b, 2);
    return b;
}

static void only_paths_of_the_work_tree_pass(void **state)
{
    (void)state;
    static const char *const good[] = {"a",     ".gitignore", ".github/x", "x/.gitmodules", "x.git/hooks/y", "...",
                                       "a/..b", "git~10",     NULL};
    static const char *const bad[] = {"/etc/passwd",
                                      "../x",
                                      "a/../../x",
                                      "a/..",
                                      ".git",
                                      ".git/hooks/x",
                                      "a/.GIT/config",
                                      "a/.git",
                                      "a/git~1/hooks/x",
                                      "a//b",
                                      "./a",
                                      "a/",
                                      "",
                                      NULL};
    for (size_t hash = 20; hash <= 32; hash += 12) {
        struct buf all = index_of(good, 0, hash);
        assert_int_equal(gitindex_judge(buf_view(&all), NULL), 0);
        buf_free(&all);
        for (const char *const *name = bad; *name; name++) {
            if (strcmp(*name, "a/") == 0)
                continue; /* a directory of a sparse checkout */
            const char *const one[] = {"a", *name, "z", NULL};
            struct buf b = index_of(one, 0, hash);
            refused(&b, "an index");
            buf_free(&b);
        }
    }
    const char *const nul[] = {"x\0/../y", NULL}, *const cut[] = {".git\0abc", NULL};
    struct buf b = index_of(nul, 7, 20);
    refused(&b, "an index");
    buf_free(&b);
    b = index_of(cut, 8, 20);
    refused(&b, "an index that names '.git");
    buf_free(&b);
}

/* What git finds by other ways than from entry to entry. */
static void tables_of_places_must_fit(void **state)
{
    (void)state;
    struct buf bytes = of_git("version4");
    unsigned changed = 0;
    for (size_t at = 0; at + 4 < bytes.n; at++) {
        const bool parts = memcmp(bytes.p + at, "IEOT", 4) == 0, end = memcmp(bytes.p + at, "EOIE", 4) == 0;
        if (!parts && !end)
            continue;
        for (size_t i = at + 8; i < at + (parts ? 20u : 12u); i++) {
            bytes.p[i] ^= 1;
            refused(&bytes, "an index that git would not read");
            bytes.p[i] ^= 1;
            changed++;
        }
    }
    assert_int_equal(changed, 16);
    unsigned passed = 0; /* where an extension ends: they may be missing */
    for (size_t n = 1; n < bytes.n; n++)
        passed += gitindex_judge((struct str){bytes.p, n}, NULL) == 0;
    assert_true(passed <= 4);
    buf_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indexes_of_git_pass),
        cmocka_unit_test(others_of_git_are_refused),
        cmocka_unit_test(only_paths_of_the_work_tree_pass),
        cmocka_unit_test(tables_of_places_must_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
