/*
 * judge/: what rules say about names, and what names mean in a repository. judge/ is pure, so each rule is tried on
 * each kind of name without a box.
 */
#include "unit.h"
#include <errno.h>
#include <stdio.h>
#include "judge/judge.h"
#include "judge/layout.h"

struct said {
    uint8_t kind, place, judge, flags;
    const char *text, *below;
};

static struct {
    struct arena *mem;
    char strings[64 << 10];
    size_t n;
    struct rules rules;
} t;

static uint32_t put(const char *s)
{
    size_t at = t.n, n = strlen(s) + 1;
    memcpy(t.strings + at, s, n);
    t.n += n;
    return (uint32_t)at;
}

static int load(const struct said *said, size_t n, enum guard_mode mode)
{
    size_t bytes = sizeof(struct guard_table) + n * sizeof(struct guard_rule);
    struct guard_table *table = calloc(1, bytes);
    arena_free(t.mem);
    t.mem = arena_new(2 << 20);
    t.n = 0;
    (void)put("");
    table->n_rules = (uint32_t)n;
    table->mode = mode;
    for (size_t i = 0; i < n; i++)
        table->rules[i] = (struct guard_rule){said[i].kind,  said[i].place,     said[i].judge,
                                              said[i].flags, put(said[i].text), put(said[i].below ? said[i].below : ""),
                                              (uint32_t)i};
    int r = rules_load(&t.rules, table, bytes, t.strings, t.n, t.mem);
    /* The rules point at the table: it lives as long as the arena. */
    struct guard_table *kept = arena_zero(t.mem, bytes);
    memcpy(kept, table, bytes);
    if (r == 0)
        r = rules_load(&t.rules, kept, bytes, t.strings, t.n, t.mem);
    free(table);
    return r;
}

static const struct said usual[] = {
    {GUARD_RULE_ROOT, 0, 0, 0, "/w/p", NULL},
    {GUARD_RULE_PRIVATE, 0, 0, 0, "/tmp", NULL},
    {GUARD_RULE_PRIVATE, 0, 0, 0, "/w/p/private", NULL},
    {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_REFUSE, 1, ".git/hooks", NULL},
    {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_GIT_CONFIG, 0, ".git/config", NULL},
    {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_REFUSE, 1, ".vscode", NULL},
    {GUARD_RULE_NAME, GUARD_ROOT, GUARD_REFUSE, 0, ".envrc", NULL},
    {GUARD_RULE_NAME, GUARD_ROOT, GUARD_REFUSE, 0, ".agent/ctx.json", NULL},
    {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_REFUSE, 0, "a/b/c", NULL},
    {GUARD_RULE_PROTECT, 0, 0, 1, "/w/p/keep", NULL},
    {GUARD_RULE_HIDE, 0, 0, 1, "/w/p/secret/deep", NULL},
    {GUARD_RULE_HIDE_NAME, 0, 0, GUARD_RULE_PATTERN, "*.env", "/w"},
    {GUARD_RULE_HIDE_NAME, 0, 0, GUARD_RULE_PATTERN, "keys/*.pem", "/w/p"},
    {GUARD_RULE_PIN, 0, 0, 0, "/w/p/x/y", NULL},
    {GUARD_RULE_SOCKET, 0, 0, 0, "/run/s", NULL},
};
#define N_USUAL (sizeof usual / sizeof *usual)

static const char *guarded(const char *path)
{
    size_t end = 0;
    const struct rule *r = rules_guarded(&t.rules, str_of(path), &end);
    static char text[128];
    if (!r)
        return "";
    snprintf(text, sizeof text, "%s@%zu", t.strings + r->said->text, end);
    return text;
}

static void names_at_every_depth_and_at_the_top(void **state)
{
    (void)state;
    assert_int_equal(load(usual, N_USUAL, GUARD_STRICT), 0);
    assert_string_equal(guarded("/w/p/.vscode"), ".vscode@12");
    assert_string_equal(guarded("/w/p/x/.vscode/y/z"), ".vscode@14");
    assert_string_equal(guarded("/w/p/.VsCode"), ".vscode@12");
    assert_string_equal(guarded("/w/p/.vscode2"), "");
    assert_string_equal(guarded("/w/p/x.vscode"), "");
    assert_string_equal(guarded("/w/.vscode"), "");
    assert_string_equal(guarded("/w/pp/.vscode"), "");
    assert_string_equal(guarded("/w/p"), "");
    assert_string_equal(guarded("/"), "");
    assert_string_equal(guarded("/tmp/.vscode"), "");
    assert_string_equal(guarded("/w/p/private/.vscode"), "");
    assert_string_equal(guarded("/w/p/.git/hooks"), ".git/hooks@15");
    assert_string_equal(guarded("/w/p/s/.git/hooks/pre-commit"), ".git/hooks@17");
    assert_string_equal(guarded("/w/p/.git"), "");
    assert_string_equal(guarded("/w/p/.git/x/hooks"), "");
    assert_string_equal(guarded("/w/p/.git/config"), ".git/config@16");
    assert_string_equal(guarded("/w/p/.git/config/x"), "");
    assert_string_equal(guarded("/w/p/.git/.git/config"), ".git/config@21");
    assert_string_equal(guarded("/w/p/.envrc"), ".envrc@11");
    assert_string_equal(guarded("/w/p/sub/.envrc"), "");
    assert_string_equal(guarded("/w/p/.agent/ctx.json"), ".agent/ctx.json@20");
    assert_string_equal(guarded("/w/p/a/a/b/c"), "a/b/c@12");
    assert_string_equal(guarded("/w/p/keep"), "/w/p/keep@9");
    assert_string_equal(guarded("/w/p/keep/x"), "/w/p/keep@9");
    assert_string_equal(guarded("/w/p/session daemon"), "");
}

static void one_more_rule_guards_no_less(void **state)
{
    /* Names of the same place, in other words and with another judge: first in the list, as a project may say them. */
    static const struct said rules[] = {
        {GUARD_RULE_ROOT, 0, 0, 0, "/w/p", NULL},
        {GUARD_RULE_NAME, GUARD_ROOT, GUARD_REFUSE, 0, ".claude", NULL},
        {GUARD_RULE_NAME, GUARD_ROOT, GUARD_REFUSE, 0, ".CLAUDE/x", NULL},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_GIT_CONFIG, 0, ".CLAUDE/y", NULL},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_GIT_CONFIG, 0, "s/.git/hooks/x", NULL},
        {GUARD_RULE_NAME, GUARD_ROOT, GUARD_REFUSE, GUARD_RULE_DIRECTORY, ".claude", NULL},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_REFUSE, GUARD_RULE_DIRECTORY, ".git/hooks", NULL},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_REFUSE, GUARD_RULE_ALWAYS, ".git/hooks/x", NULL},
    };
    (void)state;
    assert_int_equal(load(rules, sizeof rules / sizeof *rules, GUARD_STRICT), 0);
    assert_string_equal(guarded("/w/p/.claude"), ".claude@12");
    assert_string_equal(guarded("/w/p/.claude/x"), ".claude@12");
    assert_string_equal(guarded("/w/p/.claude/y"), ".claude@12");
    assert_string_equal(guarded("/w/p/.claude/z"), ".claude@12");
    assert_string_equal(guarded("/w/p/s/.git/hooks/x"), ".git/hooks/x@19");
    assert_string_equal(guarded("/w/p/s/.git/hooks/y"), ".git/hooks@17");
}

/* Whoever asks by the last component alone misses no rule that judges by content. */
static void names_that_may_be_configurations(void **state)
{
    (void)state;
    static const struct said some[] = {
        {GUARD_RULE_ROOT, 0, 0, 0, "/w/p", NULL},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_GIT_CONFIG, 0, ".git/config.x", NULL},
        {GUARD_RULE_NAME, GUARD_ROOT, GUARD_GIT_CONFIG, 0, ".top", NULL},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_REFUSE, 0, ".refused", NULL},
    };
    static const struct said pattern[] = {
        {GUARD_RULE_ROOT, 0, 0, 0, "/w/p", NULL},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_GIT_CONFIG, GUARD_RULE_PATTERN, "*.conf", NULL},
    };
    assert_int_equal(load(some, sizeof some / sizeof *some, GUARD_STRICT), 0);
    assert_true(rules_may_be_config(&t.rules, STR("config.x")) && rules_may_be_config(&t.rules, STR("CONFIG.X")));
    assert_true(rules_may_be_config(&t.rules, STR(".top")));
    assert_false(rules_may_be_config(&t.rules, STR(".refused")) || rules_may_be_config(&t.rules, STR(".git")) ||
                 rules_may_be_config(&t.rules, STR("main.c")));
    assert_int_equal(load(pattern, sizeof pattern / sizeof *pattern, GUARD_STRICT), 0);
    assert_true(rules_may_be_config(&t.rules, STR("main.c"))); /* a pattern: any name */
    assert_string_equal(guarded("/w/p/a/b.CoNF"), "*.conf@13");
    assert_string_equal(guarded("/w/p/a/b.cong"), "");
}

static void foreign_code_may_hold_what_its_editors_like(void **state)
{
    (void)state;
    assert_int_equal(load(usual, N_USUAL, GUARD_STRICT), 0);
    assert_string_equal(guarded("/w/p/node_modules/x/.vscode"), "");
    assert_string_equal(guarded("/w/p/a/vendor/x/.vscode/y"), "");
    assert_string_equal(guarded("/w/p/node_modules/x/.git/hooks"), ".git/hooks@30");
    assert_string_equal(guarded("/w/p/my_node_modules/.vscode"), ".vscode@28");
    assert_non_null(rules_crossing(&t.rules, STR("/w/p/node_modules/x"), STR("/w/p/x")));
    assert_non_null(rules_crossing(&t.rules, STR("/w/p/node_modules"), STR("/w/p/x")));
    assert_null(rules_crossing(&t.rules, STR("/w/p/node_modules/x"), STR("/w/p/node_modules/y")));
    assert_null(rules_crossing(&t.rules, STR("/w/p/x"), STR("/w/p/node_modules/x")));
    assert_null(rules_crossing(&t.rules, STR("/w/p/x"), STR("/w/p/y")));
    assert_non_null(rules_crossing(&t.rules, STR("/w/p/private/x"), STR("/w/p/x")));
    assert_non_null(rules_crossing(&t.rules, STR("/w/p/x"), STR("/v/x"))); /* out of reach of "*.env" below /w */
}

static void modes(void **state)
{
    (void)state;
    assert_int_equal(load(usual, N_USUAL, GUARD_OFF), 0);
    assert_string_equal(guarded("/w/p/.vscode"), "");
    assert_string_equal(guarded("/w/p/keep/x"), "/w/p/keep@9");
    assert_int_equal(load(usual, N_USUAL, GUARD_EXISTING), 0);
    assert_string_equal(guarded("/w/p/.vscode"), ".vscode@12");
}

static const char *below(const char *path)
{
    static char text[512];
    struct below b;
    size_t n = 0;
    text[0] = 0;
    for (b.at = 0; rules_below(&t.rules, str_of(path), &b);)
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s;", (int)b.rest.n, b.rest.p);
    return text;
}

static void what_lies_below_a_name(void **state)
{
    (void)state;
    assert_int_equal(load(usual, N_USUAL, GUARD_STRICT), 0);
    assert_string_equal(below("/w/p/.git"), "hooks;config;");
    assert_string_equal(below("/w/p/s/.GIT"), "hooks;config;");
    assert_string_equal(below("/w/p/.agent"), "ctx.json;");
    assert_string_equal(below("/w/p/s/.agent"), "");
    assert_string_equal(below("/w/p/a"), "b/c;");
    assert_string_equal(below("/w/p/a/b"), "c;");
    assert_string_equal(below("/w/p/a/a"), "b/c;");
    assert_string_equal(below("/w/p/a/x"), "");
    assert_string_equal(below("/w/p/b"), "");
    assert_string_equal(below("/w/p/x"), "y;");
    assert_string_equal(below("/w/p/secret"), "deep;");
    assert_string_equal(below("/w/p"), ".envrc;.agent/ctx.json;keep;secret/deep;x/y;");
    assert_string_equal(below("/w"), "p/.envrc;p/.agent/ctx.json;p/keep;p/secret/deep;p;p/x/y;");
    assert_string_equal(below("/w/p/node_modules/n/a"), "");
    assert_string_equal(below("/w/p/node_modules/n/.git"), "hooks;config;");
    assert_string_equal(below("/tmp/.git"), "");
    assert_string_equal(below("/w/p/.vscode"), "");
}

#define TREES 4000

/* Names at the top are kept once, however many trees there are: all of this is within what load() gives. */
static void many_trees(void **state)
{
    static struct said said[TREES + 4];
    static char text[TREES][32];
    (void)state;
    size_t n = 0;
    for (size_t i = 0; i < TREES; i++) {
        snprintf(text[i], sizeof text[i], i % 2 ? "/w/%zu/in" : "/w/%zu", i / 2);
        said[n++] = (struct said){GUARD_RULE_ROOT, 0, 0, 0, text[i], NULL};
    }
    said[n++] = (struct said){GUARD_RULE_NAME, GUARD_ROOT, GUARD_REFUSE, GUARD_RULE_DIRECTORY, ".vscode", NULL};
    said[n++] = (struct said){GUARD_RULE_NAME, GUARD_ROOT, GUARD_REFUSE, 0, "in/.envrc", NULL};
    said[n++] = (struct said){GUARD_RULE_NAME, GUARD_ROOT, GUARD_REFUSE, 0, ".envrc", NULL};
    assert_int_equal(load(said, n, GUARD_STRICT), 0);
    assert_string_equal(guarded("/w/1999/.vscode/x"), ".vscode@15");
    assert_string_equal(guarded("/w/1999/in/.Vscode"), ".vscode@18");
    assert_string_equal(guarded("/w/1999/in/x/.vscode"), "");
    assert_string_equal(guarded("/w/1999/in/.envrc"), "in/.envrc@17"); /* of two the first of the table */
    assert_string_equal(guarded("/w/0/.envrc"), ".envrc@11");
    assert_string_equal(guarded("/w/2000/.envrc"), "");
    assert_string_equal(below("/w/1999"), ".vscode;in/.envrc;.envrc;in/.vscode;in/in/.envrc;in/.envrc;");
    assert_string_equal(below("/w/1999/in"), ".envrc;.vscode;in/.envrc;.envrc;");
    assert_string_equal(below("/w/2000"), "");
    char whole[RULE_WHOLE];
    size_t at = 0, length, all = 0;
    while (rules_top(&t.rules, &at, whole, &length))
        all += length > 0;
    assert_int_equal(all, 3 * TREES);
}

static bool hidden(const char *path)
{
    return rules_hidden(&t.rules, str_of(path)) != NULL;
}

static void hidden_names(void **state)
{
    (void)state;
    assert_int_equal(load(usual, N_USUAL, GUARD_STRICT), 0);
    assert_true(hidden("/w/p/secret/deep"));
    assert_true(hidden("/w/p/secret/deep/x"));
    assert_false(hidden("/w/p/secret"));
    assert_true(hidden("/w/.env"));
    assert_true(hidden("/w/p/q/prod.ENV"));
    assert_true(hidden("/w/p/q/x.env/below"));
    assert_false(hidden("/v/.env"));
    assert_false(hidden("/w/p/.envrc"));
    assert_true(hidden("/w/p/a/keys/k.pem"));
    assert_false(hidden("/w/keys/k.pem"));
    assert_false(hidden("/w/p/keys/sub/k.pem"));
    assert_non_null(rules_pattern_prefix(&t.rules, STR("/w/p/a/keys"), false));
    assert_null(rules_pattern_prefix(&t.rules, STR("/w/p/a/keys"), true));
    assert_null(rules_pattern_prefix(&t.rules, STR("/w/p/a/locks"), false));
}

/* What has to be held against other boxes: names that count or not by what is above them, and those above such. */
static void names_behind_others(void **state)
{
    static const char *const later[] = {"hooks", "HOOKS", "config", "ctx.json", "b", "c", "deep", "a.pem"};
    static const char *const not [] = {".git", "a", ".vscode", ".envrc", "keep", "secret", "x", "w", "p", "main.c"};
    (void)state;
    assert_int_equal(load(usual, N_USUAL, GUARD_STRICT), 0);
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        assert_true(rules_later(&t.rules, str_of(later[i])));
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++)
        assert_false(rules_later(&t.rules, str_of(not [i])));
    assert_true(rules_counts(&t.rules, STR("/w/p/.git")));
    assert_true(rules_counts(&t.rules, STR("/w/p/d/a/b")));
    assert_true(rules_counts(&t.rules, STR("/w/p/.agent")));
    assert_true(rules_counts(&t.rules, STR("/w/p/secret")));
    assert_true(rules_counts(&t.rules, STR("/w/p/x")));
    assert_false(rules_counts(&t.rules, STR("/w/p/d/b")));
    assert_false(rules_counts(&t.rules, STR("/w/p/d/.agent")));
    assert_false(rules_counts(&t.rules, STR("/w/p/d")));
}

static void pins_sockets_trees(void **state)
{
    (void)state;
    assert_int_equal(load(usual, N_USUAL, GUARD_STRICT), 0);
    assert_non_null(rules_pinned(&t.rules, STR("/w/p/x/y")));
    assert_non_null(rules_pinned(&t.rules, STR("/w/p/x")));
    assert_null(rules_pinned(&t.rules, STR("/w/p/x/y/z")));
    assert_null(rules_pinned(&t.rules, STR("/w/p/x2")));
    assert_non_null(rules_socket(&t.rules, STR("/run/s")));
    assert_null(rules_socket(&t.rules, STR("/run/S")));
    assert_null(rules_socket(&t.rules, STR("/run/s/t")));
    assert_true(rules_private(&t.rules, STR("/tmp/x")));
    assert_true(rules_private(&t.rules, STR("/w/p/private/x")));
    assert_false(rules_private(&t.rules, STR("/w/p/x")));
    assert_false(rules_private(&t.rules, STR("/tmpx")));
    assert_true(str_is(rules_root(&t.rules, STR("/w/p/x")), "/w/p"));
    assert_true(str_is(rules_root(&t.rules, STR("/x")), ""));
}

/* A private tree that lies on the host: git's names hold in it as in foreign code, and nothing else does. */
static void kept_trees(void **state)
{
    (void)state;
    static const struct said said[] = {
        {GUARD_RULE_ROOT, 0, 0, 1, "/w", NULL},
        {GUARD_RULE_PRIVATE, 0, 0, GUARD_RULE_DIRECTORY | GUARD_RULE_KEPT, "/c", NULL},
        {GUARD_RULE_PRIVATE, 0, 0, GUARD_RULE_DIRECTORY | GUARD_RULE_KEPT, "/w/s", NULL},
        {GUARD_RULE_PRIVATE, 0, 0, 1, "/c/free", NULL},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_REFUSE, 1, ".git/hooks", NULL},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_GIT_CONFIG, 0, ".git/config", NULL},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_REFUSE, 0, ".hg/hgrc", NULL},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_REFUSE, 1, ".vscode", NULL},
        {GUARD_RULE_NAME, GUARD_ROOT, GUARD_REFUSE, 0, ".envrc", NULL},
    };
    assert_int_equal(load(said, sizeof said / sizeof *said, GUARD_STRICT), 0);
    assert_string_equal(guarded("/c/.git/hooks/x"), ".git/hooks@13");
    assert_string_equal(guarded("/c/a/.git/config"), ".git/config@16");
    assert_string_equal(guarded("/w/s/a/.git/hooks"), ".git/hooks@17");
    assert_string_equal(guarded("/c/.vscode/x"), "");
    assert_string_equal(guarded("/c/a/.hg/hgrc"), ".hg/hgrc@13");
    assert_string_equal(guarded("/w/vendor/a/.hg/hgrc"), ".hg/hgrc@20");
    assert_string_equal(guarded("/w/s/.envrc"), "");
    assert_string_equal(guarded("/c/free/.git/hooks"), "");
    assert_string_equal(below("/c/a/.git"), "hooks;config;");
    assert_true(rules_private(&t.rules, STR("/c/a")));
    assert_false(rules_free(&t.rules, STR("/c/a")));
    assert_true(rules_free(&t.rules, STR("/c/free/a")));
    assert_true(str_is(rules_root(&t.rules, STR("/c/a/b")), "/c"));
    assert_true(str_is(rules_root(&t.rules, STR("/w/s/b")), "/w/s"));
    assert_null(rules_crossing(&t.rules, STR("/w/node_modules/a"), STR("/w/s/a")));
    assert_non_null(rules_crossing(&t.rules, STR("/w/s/a"), STR("/w/a")));
    assert_non_null(rules_crossing(&t.rules, STR("/c/free/a"), STR("/c/a")));
}

static void root_of_everything(void **state)
{
    (void)state;
    static const struct said said[] = {
        {GUARD_RULE_ROOT, 0, 0, 0, "/", NULL},
        {GUARD_RULE_NAME, GUARD_ROOT, GUARD_REFUSE, 0, ".envrc", NULL},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_REFUSE, 0, ".x", NULL},
    };
    assert_int_equal(load(said, 3, GUARD_STRICT), 0);
    assert_string_equal(guarded("/.envrc"), ".envrc@7");
    assert_string_equal(guarded("/a/.envrc"), "");
    assert_string_equal(guarded("/.x"), ".x@3");
    assert_string_equal(guarded("/a/.x"), ".x@5");
    assert_string_equal(below("/"), ".envrc;");
}

/* ---- trees in trees ---- */

static void trees_in_trees(void **state)
{
    (void)state;
    static const struct said said[] = {
        {GUARD_RULE_ROOT, 0, 0, 1, "/w", NULL},
        {GUARD_RULE_PROTECT, 0, 0, 1, "/w/a", NULL},
        {GUARD_RULE_ROOT, 0, 0, 1, "/w/a/b", NULL},
        {GUARD_RULE_HIDE, 0, 0, 1, "/w/a/b/c", NULL},
        {GUARD_RULE_ROOT, 0, 0, 1, "/w/a/b/c/d", NULL},
        {GUARD_RULE_PRIVATE, 0, 0, 1, "/w/a/b/c/d/p", NULL},
        {GUARD_RULE_PROTECT, 0, 0, 1, "/w/a/b/k", NULL},
        {GUARD_RULE_PROTECT, 0, 0, 1, "/w/a/b/c/e", NULL},
        {GUARD_RULE_HIDE, 0, 0, 1, "/w/same", NULL},
        {GUARD_RULE_ROOT, 0, 0, 1, "/w/same", NULL},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, 0, 1, ".x/y", NULL},
    };
    assert_int_equal(load(said, sizeof said / sizeof *said, GUARD_STRICT), 0);
    assert_string_equal(guarded("/w/f"), "");
    assert_string_equal(guarded("/w/a/f"), "/w/a@4");
    assert_string_equal(guarded("/w/a/b"), "");
    assert_string_equal(guarded("/w/a/b/f"), "");
    assert_string_equal(guarded("/w/a/bb"), "/w/a@4");
    assert_string_equal(guarded("/w/a/b/k/f"), "/w/a/b/k@8");
    assert_string_equal(guarded("/w/a/b/c/f"), "/w/a/b/c@8"); /* what hides protects */
    assert_true(hidden("/w/a/b/c/f"));
    assert_false(hidden("/w/a/b/c/d/f"));
    assert_string_equal(guarded("/w/a/b/c/d/f"), "");
    assert_false(hidden("/w/a/b/c/e/f"));
    assert_string_equal(guarded("/w/a/b/c/e/f"), "/w/a/b/c/e@10");
    assert_true(hidden("/w/same/f"));
    assert_string_equal(guarded("/w/a/b/.x/y"), ".x/y@11");
    assert_string_equal(guarded("/w/a/b/c/d/p/.x/y"), "");
    assert_true(rules_private(&t.rules, STR("/w/a/b/c/d/p/q")));
    assert_false(rules_private(&t.rules, STR("/w/a/b/c/d")));
}

static void names_by_rules_of_the_policy(void **state)
{
    (void)state;
    static const struct said said[] = {
        {GUARD_RULE_ROOT, 0, 0, 1, "/w", NULL},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, 0, 1, ".git/hooks", NULL},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, 0, 1 | GUARD_RULE_ALWAYS, "kept", "/w/d"},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, 0, 1 | GUARD_RULE_ALWAYS | GUARD_RULE_PATTERN | GUARD_RULE_DIRECT, "k*y",
         "/w/e"},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, 0, 1 | GUARD_RULE_ALWAYS | GUARD_RULE_PATTERN, "q/*.pem", NULL},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, 0, 1 | GUARD_RULE_ALWAYS, "[lit]*", NULL},
        {GUARD_RULE_HIDE_NAME, 0, 0, 1 | GUARD_RULE_PATTERN | GUARD_RULE_DIRECT, "s*", "/w/f"},
        {GUARD_RULE_HIDE_NAME, 0, 0, 1, "h?", NULL},
    };
    for (enum guard_mode mode = GUARD_STRICT; mode <= GUARD_OFF; mode++) {
        assert_int_equal(load(said, sizeof said / sizeof *said, mode), 0);
        assert_string_equal(guarded("/w/x/.git/hooks"), mode == GUARD_OFF ? "" : ".git/hooks@15");
        assert_string_equal(guarded("/w/d/x/kept/y"), "kept@11");
        assert_string_equal(guarded("/w/d/node_modules/x/kept"), "kept@24");
        assert_string_equal(guarded("/w/x/kept"), "");
        assert_string_equal(guarded("/w/e/key/below"), "k*y@8");
        assert_string_equal(guarded("/w/e/x/key"), "");
        assert_string_equal(guarded("/w/key"), "");
        assert_string_equal(guarded("/w/x/q/a.pem"), "q/*.pem@12");
        assert_string_equal(guarded("/w/[lit]*"), "[lit]*@9");
        assert_string_equal(guarded("/w/l"), "");
        assert_true(hidden("/w/f/s1/x"));
        assert_false(hidden("/w/f/x/s1"));
        assert_false(hidden("/w/s1"));
        assert_true(hidden("/w/x/h?"));
        assert_false(hidden("/w/x/hx"));
        /* What a rule holds below stays there, and nothing comes in without being looked at. */
        assert_non_null(rules_crossing(&t.rules, STR("/w/d/x"), STR("/w/x")));
        assert_non_null(rules_crossing(&t.rules, STR("/w/x"), STR("/w/d/x")));
        assert_null(rules_crossing(&t.rules, STR("/w/d/x"), STR("/w/d/y")));
        assert_non_null(rules_pinned(&t.rules, STR("/w/d")));
        assert_non_null(rules_pattern_prefix(&t.rules, STR("/w/x/q"), true));
        assert_null(rules_pattern_prefix(&t.rules, STR("/w/x/r"), true));
    }
}

/* The same questions answered by another algorithm: from the path upward, and by trying every place of a name. */
static const struct said *model_decider(const struct said *said, size_t n, const char *path)
{
    static const uint8_t order[] = {GUARD_RULE_HIDE, GUARD_RULE_PROTECT, GUARD_RULE_ROOT, GUARD_RULE_PRIVATE};
    char at[64];
    snprintf(at, sizeof at, "%s", path);
    for (;;) {
        for (size_t k = 0; k < sizeof order; k++)
            for (size_t i = 0; i < n; i++)
                if (said[i].kind == order[k] && strcmp(said[i].text, at) == 0)
                    return &said[i];
        char *slash = strrchr(at, '/');
        if (slash == at)
            return NULL; /* no table here speaks of "/" */
        *slash = 0;
    }
}

static bool model_inside(const char *path, const char *tree)
{
    size_t n = tree ? strlen(tree) : 0;
    return strncmp(path, tree ? tree : "", n) == 0 && (path[n] == 0 || path[n] == '/');
}

static bool model_named(const struct said *said, size_t n, const struct said *one, const char *path)
{
    bool in_root = one->kind == GUARD_RULE_HIDE_NAME;
    size_t from = 0, length = strlen(one->text);
    for (size_t i = 0; one->kind == GUARD_RULE_NAME && i < n; i++)
        in_root |= said[i].kind == GUARD_RULE_ROOT && model_inside(path, said[i].text);
    for (size_t i = 0; one->kind == GUARD_RULE_NAME && i < n; i++)
        if (said[i].kind == GUARD_RULE_ROOT && model_inside(path, said[i].text) &&
            (from == 0 || strlen(said[i].text) < from))
            from = strlen(said[i].text);
    if (!in_root || !model_inside(path, one->below))
        return false;
    size_t below = one->below ? strlen(one->below) : 0;
    for (size_t at = from > below ? from : below; path[at]; at++) {
        if (path[at] != '/' || ((one->flags & GUARD_RULE_DIRECT) && at != below))
            continue;
        if (strncmp(path + at + 1, one->text, length) == 0 &&
            (path[at + 1 + length] == 0 || (path[at + 1 + length] == '/' && (one->flags & GUARD_RULE_DIRECTORY))))
            return true;
    }
    return false;
}

static void model_ask(const struct said *said, size_t n, const char *path, bool *ret_hidden, bool *ret_guarded)
{
    const struct said *decider = model_decider(said, n, path);
    uint8_t kind = decider ? decider->kind : 255;
    *ret_hidden = kind == GUARD_RULE_HIDE;
    *ret_guarded = kind == GUARD_RULE_HIDE || kind == GUARD_RULE_PROTECT;
    for (size_t i = 0; kind != GUARD_RULE_PRIVATE && i < n; i++) {
        *ret_hidden |= said[i].kind == GUARD_RULE_HIDE_NAME && model_named(said, n, &said[i], path);
        *ret_guarded |= said[i].kind == GUARD_RULE_NAME && model_named(said, n, &said[i], path);
    }
}

static uint32_t chance(uint32_t n)
{
    static uint32_t x = 2463534242u;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return x % n;
}

static void some_path(char *ret, size_t parts)
{
    for (size_t i = 0; i < parts; i++) {
        *ret++ = '/';
        *ret++ = (char)('a' + chance(2));
    }
    *ret = 0;
}

static void any_table_as_the_model(void **state)
{
    (void)state;
    static const uint8_t kinds[] = {GUARD_RULE_ROOT,    GUARD_RULE_ROOT, GUARD_RULE_PROTECT,  GUARD_RULE_HIDE,
                                    GUARD_RULE_PRIVATE, GUARD_RULE_NAME, GUARD_RULE_HIDE_NAME};
    enum { RULES = 8, TABLES = 3000, ASKED = 64 };
    static char texts[RULES][16], below[RULES][16];
    size_t differ_by_kind[4] = {0};
    for (int round = 0; round < TABLES; round++) {
        struct said said[RULES] = {{GUARD_RULE_ROOT, 0, 0, 1, "/a", NULL}};
        for (size_t i = 1; i < RULES; i++) {
            said[i].kind = kinds[chance(sizeof kinds)];
            bool name = said[i].kind == GUARD_RULE_NAME || said[i].kind == GUARD_RULE_HIDE_NAME;
            some_path(texts[i], 1 + chance(name ? 2 : 5));
            some_path(below[i], 1 + chance(3));
            said[i].text = texts[i] + name;
            said[i].place = GUARD_ANY_DEPTH;
            said[i].flags = GUARD_RULE_DIRECTORY;
            if (name && chance(2)) {
                said[i].below = below[i];
                said[i].flags |= chance(2) ? GUARD_RULE_DIRECT : 0;
            }
        }
        assert_int_equal(load(said, RULES, GUARD_STRICT), 0);
        for (int k = 0; k < ASKED; k++) {
            char path[32];
            bool hides, guards;
            some_path(path, 1 + chance(6));
            model_ask(said, RULES, path, &hides, &guards);
            size_t end;
            if (hidden(path) != hides || (rules_guarded(&t.rules, str_of(path), &end) != NULL) != guards) {
                for (size_t i = 0; i < RULES; i++)
                    print_message("kind %d flags %d %s below %s\n", said[i].kind, said[i].flags, said[i].text,
                                  said[i].below ? said[i].below : "-");
                fail_msg("%s: expected hidden %d, guarded %d", path, hides, guards);
            }
            differ_by_kind[hides * 2 + guards]++;
        }
    }
    assert_true(differ_by_kind[0] > 1000 && differ_by_kind[1] > 1000 && differ_by_kind[3] > 1000);
}

static void tables_that_cannot_be(void **state)
{
    (void)state;
    static const struct said bad[] = {{GUARD_RULE_ROOT, 0, 0, 0, "relative", NULL},
                                      {GUARD_RULE_PROTECT, 0, 0, 0, "relative", NULL},
                                      {GUARD_RULE_NAME, GUARD_ANY_DEPTH, 0, 0, "", NULL},
                                      {99, 0, 0, 0, "/x", NULL},
                                      {GUARD_RULE_NAME, GUARD_ANY_DEPTH, 0, 0, "a/b/c/d/e/f/g/h/i", NULL},
                                      {GUARD_RULE_HIDE, 0, 0, 0, "", NULL}};
    for (size_t i = 1; i < sizeof bad / sizeof *bad; i++)
        assert_true(load(&bad[i], 1, GUARD_STRICT) < 0);
    struct guard_table short_one = {.n_rules = 3};
    assert_true(rules_load(&t.rules, &short_one, sizeof short_one, "", 1, t.mem) < 0);
    short_one = (struct guard_table){.mode = 9};
    assert_true(rules_load(&t.rules, &short_one, sizeof short_one, "", 1, t.mem) < 0);
}

/* The directories in which a name of the list would stand, and where it ends, in the order they are found. */
static const char *rooted(const char *path, bool below)
{
    static char text[256];
    struct rooted w = {0};
    size_t n = 0;
    text[0] = 0;
    while (below ? rules_rooted_below(&t.rules, str_of(path), &w) : rules_rooted(&t.rules, str_of(path), &w))
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s>%.*s ", (int)w.directory.n, w.directory.p,
                              below ? (int)w.rest.n : (int)(w.end - w.directory.n),
                              below ? w.rest.p : path + w.directory.n);
    return text;
}

static void names_at_roots_of_repositories(void **state)
{
    (void)state;
    static const struct said table[] = {
        {GUARD_RULE_ROOT, 0, 0, 0, "/w", NULL},
        {GUARD_RULE_ROOT, 0, 0, 0, "/w/in", NULL},
        {GUARD_RULE_PRIVATE, 0, 0, 0, "/tmp", NULL},
        {GUARD_RULE_PRIVATE, 0, 0, GUARD_RULE_KEPT, "/w/cache", NULL},
        {GUARD_RULE_NAME, GUARD_ROOT, 0, 0, ".envrc", NULL},
        {GUARD_RULE_NAME, GUARD_ROOT, 0, 1, ".config/mise", NULL},
        {GUARD_RULE_NAME, GUARD_ROOT, 0, 1, ".vscode", NULL},
        {GUARD_RULE_NAME, GUARD_ROOT, 0, GUARD_RULE_PATTERN, "*.code-workspace", NULL},
        {GUARD_RULE_NAME, GUARD_ROOT, 0, GUARD_RULE_DEEP, "deep.toml", NULL},
        {GUARD_RULE_NAME, GUARD_ROOT, 0, GUARD_RULE_DEEP | GUARD_RULE_PATTERN, "*.deep", NULL},
    };
    assert_int_equal(load(table, sizeof table / sizeof *table, GUARD_STRICT), 0);
    static const struct {
        const char *path, *at, *below;
    } all[] = {
        {"/w/.envrc", "/w>/.envrc ", ""},
        {"/w/a/b/.envrc", "/w/a/b>/.envrc ", ""},
        {"/w/a/.ENVRC", "/w/a>/.ENVRC ", ""},
        {"/w/a/.envrc/x", "", ""},
        {"/w/a/.vscode/x/y", "/w/a>/.vscode ", ""},
        {"/w/a/.vscode/.envrc", "/w/a>/.vscode /w/a/.vscode>/.envrc ", ""},
        {"/w/a/.config", "", "/w/a>mise "},
        {"/w/a/.config/mise/x", "/w/a>/.config/mise ", ""},
        {"/w/a/.config/misery", "", ""},
        {"/w/a/x.code-workspace", "/w/a>/x.code-workspace ", ""},
        {"/w/x.code-workspace", "/w>/x.code-workspace ", ""},
        {"/w/x.code-workspace/y", "", ""},
        {"/w/in/a/.envrc", "/w/in/a>/.envrc ", ""},
        {"/w/node_modules/a/.envrc", "/w/node_modules/a>/.envrc ", ""},
        {"/w/cache/a/.envrc", "", ""},
        {"/tmp/a/.envrc", "", ""},
        {"/elsewhere/.envrc", "", ""},
        {"/w/envrc", "", ""},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_string_equal(rooted(all[i].path, false), all[i].at);
        assert_string_equal(rooted(all[i].path, true), all[i].below);
    }
    assert_non_null(rules_deep(&t.rules, str_of("deep.toml")));
    assert_non_null(rules_deep(&t.rules, str_of("DEEP.toml")));
    assert_non_null(rules_deep(&t.rules, str_of("a.deep")));
    assert_null(rules_deep(&t.rules, str_of("deep.tom")));
    assert_null(rules_deep(&t.rules, str_of(".envrc")));
    struct rooted w = {0};
    assert_true(rules_rooted(&t.rules, str_of("/w/in/vendor/deep.toml"), &w) && w.from == 2); /* the outermost tree */
    assert_true(rules_is_root(&t.rules, str_of("/w/in")));
    assert_false(rules_is_root(&t.rules, str_of("/w/in/a")));
    const struct said wrong[] = {{GUARD_RULE_NAME, GUARD_ROOT, 0, GUARD_RULE_PATTERN, "a/*", NULL}};
    assert_true(load(wrong, 1, GUARD_STRICT) < 0);
    const struct said parts[] = {{GUARD_RULE_NAME, GUARD_ROOT, 0, GUARD_RULE_DEEP, "a/b", NULL}};
    assert_int_equal(load(parts, 1, GUARD_STRICT), -EBADMSG);
}

static const char *decided(const char *path)
{
    const struct rule *r = rules_decider(&t.rules, str_of(path));
    return r ? t.strings + r->said->text : "";
}

/* What is compared without regard to case forbids; what frees goes by the bytes. */
static void case_folds_to_forbid_alone(void **state)
{
    static const struct said rules[] = {
        {GUARD_RULE_ROOT, 0, 0, 0, "/w", NULL},
        {GUARD_RULE_HIDE, 0, 0, 0, "/w/Secret", NULL},
        {GUARD_RULE_PROTECT, 0, 0, 0, "/w/Kept", NULL},
        {GUARD_RULE_ROOT, 0, 0, 0, "/w/secret/open", NULL},
        {GUARD_RULE_ROOT, 0, 0, 0, "/w/kept/open", NULL},
        {GUARD_RULE_PRIVATE, 0, 0, 0, "/w/build", NULL},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_REFUSE, 1, ".vscode", NULL},
        {GUARD_RULE_HIDE_NAME, 0, 0, GUARD_RULE_PATTERN | GUARD_RULE_DIRECT, "a[!b]c", "/w/d"},
        {GUARD_RULE_HIDE_NAME, 0, 0, GUARD_RULE_PATTERN, "[x]/*.Pem", "/w/d"},
        {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_REFUSE, GUARD_RULE_PATTERN | GUARD_RULE_ALWAYS, "k[!q]", "/w/p"},
    };
    (void)state;
    assert_int_equal(load(rules, sizeof rules / sizeof *rules, GUARD_STRICT), 0);
    assert_string_equal(decided("/w/SECRET/x"), "/w/Secret");
    assert_string_equal(decided("/w/secret/open/x"), "/w/secret/open");
    assert_string_equal(decided("/w/Secret/open/x"), "/w/Secret"); /* another directory's rule opens nothing here */
    assert_string_equal(decided("/w/Kept/open/x"), "/w/Kept");
    assert_string_equal(decided("/w/kept/OPEN"), "/w/Kept");
    assert_string_equal(decided("/W/x"), "");
    assert_true(rules_free(&t.rules, STR("/w/build/x")) && !rules_free(&t.rules, STR("/w/Build/x")));
    assert_string_equal(guarded("/w/build/.vscode"), "");
    assert_string_equal(guarded("/w/Build/.vscode"), ".vscode@16");
    assert_string_equal(guarded("/w/node_modules/x/.vscode"), "");
    assert_string_equal(guarded("/w/Node_Modules/x/.vscode"), ".vscode@25");
    assert_string_equal(guarded("/w/Vendor/.vscode"), ".vscode@17");
    assert_true(hidden("/w/d/aBc") && hidden("/w/d/abc") && hidden("/w/D/AxC") && !hidden("/w/d/ac"));
    assert_true(hidden("/w/d/s/[X]/k.pEM") && !hidden("/w/d/s/x/k.pem")); /* only the last part is a pattern */
    assert_string_equal(guarded("/w/p/s/kQ"), "k[!q]@9");
}

/* No policy has such a pattern: a box does not start with one. */
static void what_is_no_pattern_is_no_table(void **state)
{
    static const char *const no[] = {"a[", "a\\", "[z-a]", "[[:x:]]", "d/a["};
    (void)state;
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        const struct said one[] = {{GUARD_RULE_HIDE_NAME, 0, 0, GUARD_RULE_PATTERN, no[i], "/w"}};
        assert_int_equal(load(one, 1, GUARD_STRICT), -EBADMSG);
        const struct said name[] = {{GUARD_RULE_NAME, GUARD_ANY_DEPTH, 0, GUARD_RULE_PATTERN, no[i], "/w"}};
        assert_int_equal(load(name, 1, GUARD_STRICT), -EBADMSG);
    }
    const struct said named[] = {{GUARD_RULE_HIDE_NAME, 0, 0, 0, "a[", "/w"}};
    assert_int_equal(load(named, 1, GUARD_STRICT), 0);
    assert_true(hidden("/w/a["));
}

static void branches(void **state)
{
    static const struct said rules[] = {
        {GUARD_RULE_ROOT, 0, 0, 0, "/w", NULL},
        {GUARD_RULE_BRANCH, 0, 0, 1, "main", "/w/p/.git"},
        {GUARD_RULE_BRANCH, 0, 0, 1, "release/*", "/w/p/.git"},
        {GUARD_RULE_BRANCH, 0, 0, 1, "*", "/w/all/.git"},
    };
    static const struct {
        const char *path;
        enum rules_refs is;
        const char *by;
    } rows[] = {{"/w/p/.git/refs/heads/main", REFS_BRANCH, "main"},
                {"/w/p/.GIT/Refs/HEADS/Main", REFS_BRANCH, "main"},
                {"/w/p/.git/refs/heads/main/x", REFS_BRANCH, "main"},
                {"/w/p/.git/refs/heads/release/1", REFS_BRANCH, "release/*"},
                {"/w/p/.git/refs/heads/release", REFS_DIRECTORY, NULL},
                {"/w/p/.git/refs/heads/other", REFS_DIRECTORY, NULL},
                {"/w/p/.git/refs/heads/main.lock", REFS_DIRECTORY, NULL},
                {"/w/p/.git/refs/heads", REFS_DIRECTORY, NULL},
                {"/w/p/.git/refs", REFS_DIRECTORY, NULL},
                {"/w/p/.git/packed-refs", REFS_PACKED, NULL},
                {"/w/p/.git/PACKED-REFS", REFS_PACKED, NULL},
                {"/w/p/.git/packed-refs.lock", REFS_NONE, NULL},
                {"/w/p/.git/reftable/tables.list", REFS_TABLE, NULL},
                {"/w/p/.git/refs/remotes/origin/main", REFS_NONE, NULL},
                {"/w/p/.git/refs/headsx/main", REFS_NONE, NULL},
                {"/w/p/.git/HEAD", REFS_NONE, NULL},
                {"/w/p/.git", REFS_NONE, NULL},
                {"/w/p/.gitx/refs/heads/main", REFS_NONE, NULL},
                {"/w/q/.git/refs/heads/main", REFS_NONE, NULL},
                {"/w/all/.git/refs/heads/a/b.lock", REFS_DIRECTORY, NULL},
                {"/w/all/.git/refs/heads/a.lock/b", REFS_DIRECTORY, NULL},
                {"/w/all/.git/refs/heads/a.LOCK", REFS_BRANCH, "*"},
                {"/w/all/.git/refs/heads/a/b", REFS_BRANCH, "*"}};
    (void)state;
    assert_int_equal(load(rules, sizeof rules / sizeof *rules, GUARD_STRICT), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct rule *rule = NULL;
        const enum rules_refs is = rules_refs(&t.rules, str_of(rows[i].path), &rule);
        if (is != rows[i].is || (rows[i].by && strcmp(t.strings + rule->said->text, rows[i].by) != 0))
            fail_msg("%s: %d", rows[i].path, is);
        assert_true(is == REFS_NONE || rule != NULL);
    }
    static const struct said nowhere[] = {{GUARD_RULE_BRANCH, 0, 0, 1, "main", NULL}};
    assert_int_equal(load(nowhere, 1, GUARD_STRICT), -EBADMSG);
}

/* What rules out most names must never rule out one that counts, in whatever case, and never speak of another path. */
static void what_a_path_may_have(void **state)
{
    static const char *const gits[] = {"hooks",     "remotes",         "branches", "objects",     "refs",   "config",
                                       "commondir", "config.worktree", "modules",  ".gitmodules", "index",  "HOOKS",
                                       "Objects",   "CONFIG",          "ConfiG",   "CommonDir",   "Modules"};
    char path[1200], longer[700];
    (void)state;
    assert_int_equal(load(usual, sizeof usual / sizeof *usual, GUARD_STRICT), 0);
    for (size_t i = 0; i < sizeof gits / sizeof *gits; i++) {
        assert_true(rules_part_may(&t.rules, str_of(gits[i]), MAY_BE_GITS));
        snprintf(path, sizeof path, "/w/p/d12/%s/f1", gits[i]);
        assert_true(rules_may(&t.rules, str_of(path)) & MAY_BE_GITS);
        snprintf(path, sizeof path, "/w/p/d12/%.*s/f1", (int)strlen(gits[i]), "abcdefghijklmnop");
        assert_false(rules_may(&t.rules, str_of(path)) & MAY_BE_GITS); /* of the same length, asked next */
    }
    assert_true(rules_may(&t.rules, STR("/w/p/x/.VSCODE")) & MAY_BEGIN);
    assert_true(rules_may(&t.rules, STR("/w/p/x/.vscode")) & MAY_BEGIN);
    assert_false(rules_may(&t.rules, STR("/w/p/x/plainly")) & MAY_BEGIN);
    assert_true(rules_may(&t.rules, STR("/w/p/.envrc")) & MAY_BEGIN_ROOTED);
    assert_true(rules_may(&t.rules, STR("/w/p/B/x")) & MAY_BE_LATER);
    assert_true(rules_may(&t.rules, STR("/w/p/A")) & MAY_BE_ABOVE);
    assert_true(rules_may(&t.rules, STR("/w/p/vendor/x")) & MAY_BE_FOREIGN);
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    for (int turn = 0; turn < 2; turn++) { /* too long to be kept */
        snprintf(path, sizeof path, "/%s/refs", longer);
        assert_true(rules_may(&t.rules, str_of(path)) & MAY_BE_GITS);
        snprintf(path, sizeof path, "/%s/xxxx", longer);
        assert_false(rules_may(&t.rules, str_of(path)) & MAY_BE_GITS);
    }
    assert_int_equal(rules_may(&t.rules, STR("")), 0);
}

/* ---- layout.c ---- */

static const struct said repositories[] = {
    {GUARD_RULE_ROOT, 0, 0, 0, "/w/p", NULL},
    {GUARD_RULE_PRIVATE, 0, 0, 0, "/tmp", NULL},
    {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_REFUSE, 1, ".git/hooks", NULL},
    {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_GIT_CONFIG, 0, ".git/config", NULL},
    {GUARD_RULE_NAME, GUARD_ANY_DEPTH, GUARD_REFUSE, 0, "a/b/c", NULL},
};
#define N_REPOSITORIES (sizeof repositories / sizeof *repositories)

/* "X ends; ..." of all that the path would be: a letter for what X must be (any, an index, a repository), in capitals if it is judged by
   its content. */
static const char *names_in(const char *path)
{
    static char text[512];
    size_t n = 0;
    text[0] = 0;
    for (struct repository_name w = {0}; rules_next_repository_name(&t.rules, str_of(path), &w);)
        n += (size_t)snprintf(text + n, sizeof text - n, "%c %.*s %.*s;",
                              w.any      ? (w.config ? 'A' : 'a')
                              : w.index  ? (w.config ? 'I' : 'i')
                              : w.config ? 'R'
                                         : 'r',
                              (int)w.x, path, (int)(w.end - w.x), path + w.x);
    return text;
}

static void names_of_a_repository(void **state)
{
    (void)state;
    assert_int_equal(load(repositories, N_REPOSITORIES, GUARD_STRICT), 0);
    static const struct {
        const char *path, *is;
    } all[] = {{"/w/p/x/config", "R /w/p/x /config;"},
               {"/w/p/x/CONFIG", "R /w/p/x /CONFIG;"},
               {"/w/p/x/config.worktree", "A /w/p/x /config.worktree;"},
               {"/w/p/x/index", "I /w/p/x /index;"},
               {"/w/p/x/commondir", "r /w/p/x /commondir;"},
               {"/w/p/x/hooks", "r /w/p/x /hooks;"},
               {"/w/p/x/hooks/pre-commit", "r /w/p/x /hooks;"},
               {"/w/p/hooks/hooks/x", "r /w/p /hooks;r /w/p/hooks /hooks;"},
               {"/w/p/x/hooks/config", "R /w/p/x/hooks /config;r /w/p/x /hooks;"},
               {"/w/p/x/remotes/origin", "r /w/p/x /remotes;"},
               {"/w/p/x/remotes", ""}, /* an empty one comes with git's templates */
               {"/w/p/x/branches/a", "r /w/p/x /branches;"},
               {"/w/p/x/objects", ""},
               {"/w/p/configs", ""},
               {"/tmp/x/config", ""}, /* the box's own */
               {"/etc/x/config", ""}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_string_equal(names_in(all[i].path), all[i].is);
    assert_int_equal(load(repositories, N_REPOSITORIES, GUARD_EXISTING), 0);
    assert_string_equal(names_in("/w/p/x/config"), "");
}

static const char *held_on(const char *path)
{
    static char text[512];
    size_t n = 0;
    text[0] = 0;
    for (struct held_directory w = {0}; rules_next_held(&t.rules, str_of(path), &w);)
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s;", (int)w.n, path);
    return text;
}

static void directories_that_nobody_may_change(void **state)
{
    (void)state;
    assert_int_equal(load(repositories, N_REPOSITORIES, GUARD_STRICT), 0);
    static const struct {
        const char *path, *held;
    } all[] = {{"/w/p/src/main.c", ""},
               {"/w/p/x/hooks/pre-commit", "/w/p/x;"},
               {"/w/p/.git/hooks/pre-commit", "/w/p/.git;"},
               {"/w/p/x/objects", "/w/p/x;"},
               {"/w/p/x/objects/ab", ""}, /* what makes a repository is the last name alone */
               {"/w/p/x/config", "/w/p/x;"},
               {"/w/p/.gitmodules", "/w/p;"},
               {"/w/p/.git/modules/s/config", "/w/p/.git;/w/p/.git/modules/s;"},
               {"/w/p/x/modules/s", ""},
               {"/w/p/a/b/c", "/w/p/a;/w/p/a/b;"}, /* a rule of three components */
               {"/w/p/q/b", "/w/p/q;"},
               {"/tmp/x/hooks/pre-commit", ""},
               {"/etc/hooks/x", ""}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_string_equal(held_on(all[i].path), all[i].held);
}

static void other_spellings_and_places(void **state)
{
    (void)state;
    bool is_short;
    assert_int_equal(load(repositories, N_REPOSITORIES, GUARD_STRICT), 0);
    assert_false(rules_misspelled(&t.rules, STR("/w/p/.git/hooks/x"), &is_short) || is_short);
    assert_true(rules_misspelled(&t.rules, STR("/w/p/.g\xe2\x80\x8cit/hooks/x"), &is_short) && !is_short);
    assert_true(rules_misspelled(&t.rules, STR("/w/p/.git/hooks:/x"), &is_short));
    assert_true(rules_misspelled(&t.rules, STR("/w/p/.git./hooks/x"), &is_short));
    assert_true(rules_misspelled(&t.rules, STR("/w/p/\xe2\x80\x8c" GUARD_TEMP "1"), &is_short));
    assert_false(rules_misspelled(&t.rules, STR("/w/p/caf\xc3\xa9"), &is_short) || is_short);
    assert_false(rules_misspelled(&t.rules, STR("/w/p/git~1/x"), &is_short));
    assert_true(is_short);
    assert_false(rules_misspelled(&t.rules, STR("/tmp/git~1/.g\xe2\x80\x8cit"), &is_short) || is_short);

    assert_true(rules_is_option_ref(&t.rules, STR("/w/p/.git/refs/heads/-x")));
    assert_false(rules_is_option_ref(&t.rules, STR("/w/p/.git/refs/heads/x/-y")) ||
                 rules_is_option_ref(&t.rules, STR("/w/p/-x")) ||
                 rules_is_option_ref(&t.rules, STR("/tmp/refs/heads/-x")));
    assert_true(rules_of_git(&t.rules, STR("/w/p/.GIT/x"), false) && rules_of_git(&t.rules, STR("/w/p/.git"), true));
    assert_false(rules_of_git(&t.rules, STR("/w/p/.git"), false) || rules_of_git(&t.rules, STR("/tmp/.git/x"), true));
    assert_true(rules_exclusive(&t.rules, STR("/w/p/x/objects")) && rules_exclusive(&t.rules, STR("/w/p/x/hooks/y")));
    assert_false(rules_exclusive(&t.rules, STR("/w/p/x/objects/ab")) || rules_exclusive(&t.rules, STR("/w/p/x")));
    assert_true(rules_outside(&t.rules, STR("/etc/x")));
    assert_false(rules_outside(&t.rules, STR("/w/p/x")) || rules_outside(&t.rules, STR("/tmp/x")));

    assert_true(rules_leads_out(&t.rules, STR("/w/p/x"), STR("../../../etc/passwd")));
    assert_true(rules_leads_out(&t.rules, STR("/w/p"), STR("/tmp/x"))); /* after the box it is the host's */
    assert_true(rules_leads_out(&t.rules, STR("/w/p"), STR("x/../y"))); /* x may be a link */
    assert_false(rules_leads_out(&t.rules, STR("/w/p/x"), STR("../y")) ||
                 rules_leads_out(&t.rules, STR("/w/p"), STR("/usr/bin/cc")));

    assert_true(layout_is_reserved(STR("/w/" GUARD_TEMP "1/x")) && !layout_is_reserved(STR("/w/x" GUARD_TEMP)));
    assert_true(layout_is_reserved(STR("/w/.Pinfold-GUARD-1")) && !layout_is_reserved(STR("/w/.pinfold-guar")));
    assert_true(layout_is_hook_sample(STR("/w/p/.git/hooks"), 15, true, false));
    assert_true(layout_is_hook_sample(STR("/w/p/.git/hooks/x.sample"), 15, false, true));
    assert_false(layout_is_hook_sample(STR("/w/p/.git/hooks"), 15, false, true) ||
                 layout_is_hook_sample(STR("/w/p/.git/hooks/x"), 15, false, true) ||
                 layout_is_hook_sample(STR("/w/p/.git/hooks/d/x.sample"), 15, false, true));
    assert_true(layout_is_own_file(STR("Hooks")) && !layout_is_own_file(STR("modules")));
    assert_true(layout_has_git(STR("/a/.Git/b")) && !layout_has_git(STR("/a/.gitx")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_a_repository),
        cmocka_unit_test(directories_that_nobody_may_change),
        cmocka_unit_test(other_spellings_and_places),
        cmocka_unit_test(branches),
        cmocka_unit_test(names_at_every_depth_and_at_the_top),
        cmocka_unit_test(one_more_rule_guards_no_less),
        cmocka_unit_test(case_folds_to_forbid_alone),
        cmocka_unit_test(what_is_no_pattern_is_no_table),
        cmocka_unit_test(names_that_may_be_configurations),
        cmocka_unit_test(foreign_code_may_hold_what_its_editors_like),
        cmocka_unit_test(modes),
        cmocka_unit_test(what_lies_below_a_name),
        cmocka_unit_test(many_trees),
        cmocka_unit_test(hidden_names),
        cmocka_unit_test(names_behind_others),
        cmocka_unit_test(pins_sockets_trees),
        cmocka_unit_test(kept_trees),
        cmocka_unit_test(root_of_everything),
        cmocka_unit_test(trees_in_trees),
        cmocka_unit_test(names_by_rules_of_the_policy),
        cmocka_unit_test(any_table_as_the_model),
        cmocka_unit_test(tables_that_cannot_be),
        cmocka_unit_test(names_at_roots_of_repositories),
        cmocka_unit_test(what_a_path_may_have),
    };
    int r = cmocka_run_group_tests(tests, NULL, NULL);
    arena_free(t.mem);
    return r;
}
