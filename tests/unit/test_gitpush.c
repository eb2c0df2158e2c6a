/*
 * git/gitpush.c: commands of a push as bytes. And project/name.c: names of branches.
 */
#include "unit.h"

#include <errno.h>

#include "git/gitpush.h"
#include "project/branch.h"
#include "project/rules.h"

#define A "1111111111111111111111111111111111111111"
#define Z "0000000000000000000000000000000000000000"

static int one(const char *bytes, size_t n, struct gitpush_command *ret, size_t *left)
{
    struct str text = {bytes, n};
    int r = gitpush_next(&text, ret);
    *left = text.n;
    return r;
}
#define ONE(bytes) one(bytes, sizeof(bytes) - 1, &c, &left)

static void lines_are_gits(void **state)
{
    struct gitpush_command c;
    size_t left;
    (void)state;
    assert_int_equal(ONE("0000PACK"), GITPUSH_FLUSH);
    assert_int_equal(left, 4);
    assert_int_equal(ONE("007f" Z " " A " refs/heads/x\0report-status side-band-64k"), GITPUSH_MORE);
    assert_int_equal(ONE("007e" Z " " A " refs/heads/x\0report-status side-band-64k"), GITPUSH_COMMAND);
    assert_int_equal(left, 0);
    assert_true(str_is(c.ref, "refs/heads/x") && str_is(c.new_id, A));
    assert_true(gitpush_wants(c.wants, "report-status") && gitpush_wants(c.wants, "side-band-64k"));
    assert_false(gitpush_wants(c.wants, "report"));
    assert_false(gitpush_deletes(&c));
    assert_int_equal(ONE("0063" A " " Z " refs/heads/x\n0000"), GITPUSH_COMMAND);
    assert_int_equal(left, 4);
    assert_true(gitpush_deletes(&c) && str_is(c.ref, "refs/heads/x"));
    assert_int_equal(ONE("0035shallow " A), GITPUSH_MORE);
    assert_int_equal(ONE("0034shallow " A), GITPUSH_OTHER);
    static const char *const wrong[] = {
        "0001", "0004", "zzzz", "0008abcd", "005cshallow " Z Z, "000dpush-cert", "0063" A " " Z "\trefs/heads/x\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(one(wrong[i], strlen(wrong[i]), &c, &left), -EBADMSG);
    assert_int_equal(one("00", 2, &c, &left), GITPUSH_MORE);
}

static void names_are_judged(void **state)
{
    static const struct {
        const char *ref;
        bool good;
    } rows[] = {{"refs/heads/x", true},        {"refs/tags/v1", true},           {"refs/heads/-x", false},
                {"refs/tags/--exec=x", false}, {"refs/heads/a/-b", true},        {"refs/notes/x", false},
                {"refs/replace/" A, false},    {"refs/remotes/origin/x", false}, {"HEAD", false},
                {"refs/stash", false},         {"refs/heads/a\033[2J", false},   {"refs/headsx/y", false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct gitpush_rules none = {.protect = NULL};
        const struct gitpush_command c = {.old_id = STR(Z), .new_id = STR(A), .ref = str_of(rows[i].ref)};
        if ((gitpush_refusal(&none, &c) == NULL) != rows[i].good)
            fail_msg("%s", rows[i].ref);
    }
}

/* By the policy: which branch or tag may be deleted, or moved back. */
static void changes_are_judged(void **state)
{
    static const char *const names[] = {"main", "release/*", "Mixed"};
    static const struct gitpush_rules all = {.allow_force = true, .allow_delete = true},
                                      none = {.protect = names, .n_protect = 3},
                                      some = {
                                          .protect = names, .n_protect = 3, .allow_force = true, .allow_delete = true};
    static const struct {
        const char *ref;
        bool protects;
    } rows[] = {{"refs/heads/main", true},
                {"refs/heads/MAIN", true},
                {"refs/heads/mixed", true},
                {"refs/heads/release/1", true},
                {"refs/heads/release/1/x", true},
                {"refs/heads/main/x", true},
                {"refs/heads/release", false},
                {"refs/heads/maintain", false},
                {"refs/heads/x/main", false},
                {"refs/tags/main", false},
                {"refs/heads/", false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct gitpush_command adds = {.old_id = STR(Z), .new_id = STR(A), .ref = str_of(rows[i].ref)},
                                     moves = {.old_id = STR(A), .new_id = STR(A), .ref = adds.ref},
                                     deletes = {.old_id = STR(A), .new_id = STR(Z), .ref = adds.ref};
        bool tag = str_starts(adds.ref, STR("refs/tags/")), p = rows[i].protects;
        if (gitpush_protects(&some, adds.ref) != p || !gitpush_protects(&all, adds.ref))
            fail_msg("%s: protected", rows[i].ref);
        if (gitpush_may_rewrite(&some, &moves) != !p || gitpush_may_rewrite(&none, &moves) ||
            gitpush_may_rewrite(&all, &moves))
            fail_msg("%s: rewritten", rows[i].ref);
        if (gitpush_refusal(&some, &adds) || gitpush_refusal(&none, &adds) || gitpush_refusal(&all, &adds))
            fail_msg("%s: added", rows[i].ref);
        if (!gitpush_refusal(&some, &moves) != (!tag || !p) || !gitpush_refusal(&none, &moves) != !tag)
            fail_msg("%s: moved", rows[i].ref);
        if (!gitpush_refusal(&some, &deletes) != !p || !gitpush_refusal(&none, &deletes) ||
            !gitpush_refusal(&all, &deletes))
            fail_msg("%s: deleted", rows[i].ref);
    }
}

static void rules_are_words(void **state)
{
    char force[] = "force", delete[] = "delete", end[] = "--", main_[] = "main", x[] = "-x";
    char *words[] = {force, delete, end, main_, x, NULL}, *wrong[] = {force, main_, NULL};
    struct gitpush_rules r;
    (void)state;
    assert_true(push_rules_said(words, &r));
    assert_true(r.allow_force && r.allow_delete && r.n_protect == 2 && same(r.protect[1], "-x"));
    assert_true(push_rules_said(words + 2, &r));
    assert_true(!r.allow_force && !r.allow_delete && r.n_protect == 2);
    assert_false(push_rules_said(wrong, &r));
    assert_false(push_rules_said(wrong + 2, &r));
}

static void written_places_are_found(void **state)
{
    static char places[2][PATH_MAX];
    (void)state;
    assert_int_equal(
        rules_written(
            STR("version: 1\nfiles:\n  hide:\n    - /h\n  rw:\n    - \"/a b\\x01\"\n  cache:\n    - /c\n  ro:\n    - "
                "/r\nnet:\n  cache:\n    - /n\n"),
            places, 2),
        2);
    assert_string_equal(places[0], "/a b\001");
    assert_string_equal(places[1], "/c");
    assert_int_equal(rules_written(STR("files:\n  cache:\n    - /c\n    - /d\n    - /e\n"), places, 2), -E2BIG);
    assert_true(rules_mounts_read_only(STR("files:\n  mounts:\n    - {from: \"/a\", to: \"/b\", read_only: true}\n  "
                                           "rw:\n    - /c\nlimits:\n  memory: 1\n")));
    assert_false(rules_mounts_read_only(STR("files:\n  mounts:\n    - {from: \"/a\", to: \"/b\", read_only: true}\n    "
                                            "- {from: \"/, read_only: true}\", to: \"/d\"}\n")));
    assert_int_equal(rules_written(STR("limits:\n  memory: 1\n"), places, 2), 0);
}

static void packets_are_written(void **state)
{
    struct buf out = BUF(200000);
    static char large[70000];
    (void)state;
    gitpush_put(&out, 0, STR("unpack ok\n"));
    gitpush_put(&out, 1, STR("x"));
    assert_string_equal(buf_cstr(&out), "000eunpack ok\n0006\001x");
    memset(large, 'a', sizeof large);
    gitpush_put(&out, 2, (struct str){large, sizeof large});
    assert_int_equal(out.n, 20 + 65520);
    assert_memory_equal(out.p + 20, "fff0\002aaa", 8);
    buf_free(&out);
}

static void branches_have_names(void **state)
{
    static const char *const good[] = {"x",           "a/b",     "a-b", "a.b",  "release/1.0",
                                       "feature/ünï", "x.locks", "a@b", "=bind"};
    static const char *const bad[] = {"",         "-x",  "a b",  "a..b", ".x",  "a/.b", "x.",   "x.lock",
                                      "x.lock/y", "/x",  "x/",   "a//b", "a~b", "a^{}", "a:b",  "a?b",
                                      "a*b",      "a[b", "a\\b", "a\tb", "@",   "HEAD", "a@{b", "a\nb"};
    char word[PROJECT_WORD], name[PROJECT_NAME], large[300];
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (branch_refused(good[i]))
            fail_msg("%s: %s", good[i], branch_refused(good[i]));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (!branch_refused(bad[i]))
            fail_msg("'%s' passes", bad[i]);
    }
    memset(large, 'x', sizeof large);
    large[240] = 0;
    assert_null(branch_refused(large));
    large[240] = 'x', large[241] = 0;
    assert_non_null(branch_refused(large));
    branch_word("feature/a/b", word);
    assert_string_equal(word, "feature__a__b");
    project_session("/home/u/my proj", "feature/one", name); /* md5sum of the path */
    assert_string_equal(name, "agent-sandbox-my_proj-feature__one-277056d6723d");
    project_session("/home/u/my proj", NULL, name);
    assert_string_equal(name, "agent-sandbox-my_proj-277056d6723d");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_are_gits),          cmocka_unit_test(names_are_judged),
                                       cmocka_unit_test(changes_are_judged),      cmocka_unit_test(rules_are_words),
                                       cmocka_unit_test(packets_are_written),     cmocka_unit_test(branches_have_names),
                                       cmocka_unit_test(written_places_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
