/*
 * git/reftable.c on tables that git wrote (the fuzz corpus). And on what a box can make of them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "unit.h"
#include "base/buf.h"
#include "git/gitconfig.h"

enum { INDEXED = 2486, SHA256 = 196, FOOTER = 68 };

static struct buf table(const char *name, size_t n)
{
    char path[4096];
    const char *top = getenv("PINFOLD_SOURCE");
    struct buf bytes = BUF(1 << 20);
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/reftable/%s", top ? top : ".", name);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    char *room = buf_space(&bytes, n + 1);
    assert_int_equal(fread(room, 1, n + 1, file), n);
    fclose(file);
    buf_grew(&bytes, n);
    return bytes;
}

struct found {
    unsigned n, options;
    char first[200], option[200];
};

static int note(void *ctx, struct str name, struct str target)
{
    struct found *f = ctx;
    f->n++;
    if (f->n == 1)
        snprintf(f->first, sizeof f->first, "%.*s %.*s", STR_SAID(name), STR_SAID(target));
    if (gitref_is_option(name) || gitref_is_option(target)) {
        f->options++;
        snprintf(f->option, sizeof f->option, "%.*s", STR_SAID(gitref_is_option(name) ? name : target));
    }
    return 0;
}

static void tables_of_git_are_read(void **state)
{
    (void)state;
    struct found f = {0};
    struct buf bytes = table("indexed", INDEXED);
    assert_int_equal(gitref_table(buf_view(&bytes), note, &f), 0);
    assert_int_equal(f.n, 65); /* HEAD, main, --mirror, 61 topics, a tag */
    assert_string_equal(f.first, "HEAD refs/heads/main");
    assert_string_equal(f.option, "refs/heads/--mirror");
    assert_int_equal(f.options, 1);
    buf_free(&bytes);
    f = (struct found){0};
    bytes = table("sha256", SHA256);
    assert_int_equal(gitref_table(buf_view(&bytes), note, &f), 0);
    assert_string_equal(f.option, "refs/heads/--upload-pack=x");
    assert_int_equal(f.n, 2);
    buf_free(&bytes);
}

/* The bytes with one changed: whether the table is still read. */
static int changed(const struct buf *bytes, size_t at, char to)
{
    struct found f = {0};
    char old = bytes->p[at];
    bytes->p[at] = to;
    int no = gitref_table(buf_view(bytes), note, &f);
    bytes->p[at] = old;
    return no;
}

static void what_git_could_read_otherwise_is_refused(void **state)
{
    (void)state;
    struct buf bytes = table("indexed", INDEXED);
    const size_t footer = INDEXED - FOOTER;
    assert_int_equal(changed(&bytes, 0, 'r'), -EBADMSG);
    assert_int_equal(changed(&bytes, 4, 3), -EBADMSG);          /* version */
    assert_int_equal(changed(&bytes, 7, 5), -EBADMSG);          /* the size of blocks is the footer's for git */
    assert_int_equal(changed(&bytes, footer + 7, 5), -EBADMSG); /* the same */
    assert_int_equal(changed(&bytes, 24 + 3, 3), -EBADMSG);     /* the first block's length */
    const size_t index = (size_t)(uint8_t)bytes.p[footer + 24 + 6] << 8 | (uint8_t)bytes.p[footer + 24 + 7];
    assert_int_equal(bytes.p[index], 'i');
    assert_int_equal(changed(&bytes, footer + 24 + 7, (char)(bytes.p[footer + 24 + 7] + 1)), -EBADMSG);
    unsigned refused = 0, length = (unsigned)(uint8_t)bytes.p[index + 2] << 8 | (uint8_t)bytes.p[index + 3];
    for (size_t at = index + 4; at < index + length; at++)
        refused += changed(&bytes, at, (char)(bytes.p[at] ^ 4)) == -EBADMSG;
    assert_true(refused > 20); /* places of blocks, of restart points, lengths; not letters of names */
    /* The restart points of the first block. */
    const size_t end = (size_t)(uint8_t)bytes.p[26] << 8 | (uint8_t)bytes.p[27];
    for (size_t at = end - 5; at < end - 2; at++)
        assert_int_equal(changed(&bytes, at, (char)(bytes.p[at] ^ 1)), -EBADMSG);
    buf_free(&bytes);
}

static void cut_tables_are_refused(void **state)
{
    (void)state;
    struct buf bytes = table("indexed", INDEXED);
    struct found f = {0};
    for (size_t n = 0; n < INDEXED; n += 7)
        assert_int_equal(gitref_table((struct str){bytes.p, n}, note, &f), -EBADMSG);
    buf_free(&bytes);
}

/* A block that nothing but the index leads to: git finds its names when it looks for one, and the walk does not. */
static void blocks_beside_the_walk_are_refused(void **state)
{
    (void)state;
    struct buf bytes = table("indexed", INDEXED), made = BUF(1 << 20);
    const size_t footer = INDEXED - FOOTER;
    const size_t index = (size_t)(uint8_t)bytes.p[footer + 24 + 6] << 8 | (uint8_t)bytes.p[footer + 24 + 7];
    struct found f = {0};
    buf_put(&made, bytes.p, index); /* the blocks of refs, something else, one more, an index of that one alone */
    const size_t beside = made.n + 4;
    buf_put(&made, "o\0\0\4", 4);
    buf_put(&made, "r\0\0\x30\0\xa0refs/heads/--hidden1\0", 4 + 2 + 20 + 1);
    while (made.n < beside + 0x30 - 5)
        buf_char(&made, 0);
    buf_put(&made, "\0\0\4\0\1", 5);
    const size_t top = made.n;
    char places[2] = {(char)(0x80 | (((beside >> 7) - 1) & 0x7f)), (char)(beside & 0x7f)};
    buf_put(&made, "i\0\0\x10\0\x08z", 7);
    buf_put(&made, places, 2);
    while (made.n < top + 0x10 - 5)
        buf_char(&made, 0);
    buf_put(&made, "\0\0\4\0\1", 5);
    const size_t end = made.n;
    buf_put(&made, bytes.p + footer, FOOTER);
    for (unsigned i = 0; i < 8; i++)
        made.p[end + 24 + i] = (char)(i < 6 ? 0 : top >> (i == 6 ? 8 : 0));
    assert_int_equal(gitref_table(buf_view(&made), note, &f), -EBADMSG);
    assert_int_equal(f.n, 65);
    buf_free(&bytes);
    buf_free(&made);
}

#define A40 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B40 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static void loose_refs_are_ids(void **state)
{
    static const struct {
        const char *text;
        bool is;
    } rows[] = {{A40 "\n", true},
                {A40, true},
                {A40 A40, false},
                {A40 "\n\n", false},
                {A40 " " B40, false},
                {A40 "\r\n", false},
                {"ref: refs/heads/x\n", false},
                {"", false},
                {"\n", false},
                {"A" A40, false},
                {A40 "aaaaaaaaaaaaaaaaaaaaaaaa\n", true}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct str id;
        if (gitref_loose(str_of(rows[i].text), &id) != rows[i].is)
            fail_msg("'%s'", rows[i].text);
        assert_true(!rows[i].is || id.n == 40 || id.n == 64);
    }
}

/* How many entries there are; -EBADMSG. */
static int entries(const char *text)
{
    struct str rest = str_of(text), id, name;
    int n = 0, more;
    for (bool begins = true; (more = gitref_entry(&rest, begins, &id, &name)) > 0; begins = false)
        n++;
    return more < 0 ? more : n;
}

static void packed_refs_are_as_git_writes_them(void **state)
{
    static const struct {
        const char *text;
        int n;
    } rows[] = {{"", 0},
                {"# pack-refs with: peeled fully-peeled sorted \n", 0},
                {"# pack-refs with: peeled \n" A40 " refs/heads/x\n" B40 " refs/tags/v\n^" A40 "\n", 2},
                {A40 " refs/heads/x\n", 1},
                {A40 " refs/heads/x", -EBADMSG},
                {A40 "\trefs/heads/x\n", -EBADMSG},
                {A40 "  refs/heads/x\n", -EBADMSG},
                {A40 " refs/heads/x\r\n", -EBADMSG},
                {A40 " refs/heads/x y\n", -EBADMSG},
                {A40 " \n", -EBADMSG},
                {A40 "\n", -EBADMSG},
                {"\n", -EBADMSG},
                {"^" A40 " x\n", -EBADMSG},
                {A40 " refs/heads/x\n# more\n", -EBADMSG},
                {A40 "a refs/heads/x\n", -EBADMSG}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (entries(rows[i].text) != rows[i].n)
            fail_msg("'%s': %d", rows[i].text, entries(rows[i].text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_of_git_are_read), cmocka_unit_test(what_git_could_read_otherwise_is_refused),
        cmocka_unit_test(cut_tables_are_refused), cmocka_unit_test(blocks_beside_the_walk_are_refused),
        cmocka_unit_test(loose_refs_are_ids),     cmocka_unit_test(packed_refs_are_as_git_writes_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
