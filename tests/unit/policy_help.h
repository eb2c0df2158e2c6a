/* What tests of policy/ share: a world, and one line to build or to fail. */
#pragma once
#include "unit.h"
#include <stdio.h>
#include "policy/build.h"

static const char *test_variable(void *ctx, const char *name)
{
    (void)ctx;
    return same(name, "DATA") ? "/data/with*star" : same(name, "REL") ? "sub/dir" : NULL;
}

/* Files that `extends` finds: NAME\0TEXT pairs set by the test. */
static const char *const *test_files;

static int test_fetch(void *ctx, const char *name, const char *from, const char **ret_file, struct str *ret_text,
                      struct err *e)
{
    (void)ctx;
    (void)from;
    (void)e;
    for (const char *const *f = test_files; f && *f; f += 2) {
        if (same(f[0], name)) {
            *ret_file = f[0];
            *ret_text = str_of(f[1]);
            return 0;
        }
    }
    return -ENOENT;
}

__attribute__((unused)) static const struct policy_world test_world = {
    .home = "/home/u", .cwd = "/home/u/p", .user_name = "u", .variable = test_variable, .fetch = test_fetch};

struct layer_said {
    enum policy_layer layer;
    enum policy_format format;
    const char *file, *text;
    bool trusted;
};

/* Builds from texts (ended by a NULL text) and flags ("rw", "/data", ..., NULL). */
__attribute__((unused)) static int build_in(const struct policy_world *w, const struct layer_said *texts,
                                            const char *const *flags, struct policy **ret, struct err *e)
{
    struct policy_builder *b = policy_builder_new(w);
    assert_non_null(b);
    *e = (struct err){0};
    int r = 0;
    for (; r == 0 && texts && texts->text; texts++)
        r = policy_add_text(b, texts->layer, texts->format, texts->file, str_of(texts->text), texts->trusted, e);
    for (; r == 0 && flags && *flags; flags += 2) {
        char said[64];
        snprintf(said, sizeof said, "--%s", flags[0]);
        r = policy_add_flag(b, flags[0], flags[1], said, e);
    }
    if (r == 0)
        r = policy_build(b, ret, e);
    b = policy_builder_free(b);
    return r;
}

/* A user's file over the ground `none`. */
__attribute__((unused)) static struct policy *good(const char *text)
{
    struct policy *p = NULL;
    struct err e;
    struct layer_said said[] = {{LAYER_BUILTIN, POLICY_YAML, "ground", "version: 1\n", true},
                                {LAYER_USER, POLICY_YAML, "/home/u/p/f", text, true},
                                {0}};
    if (build_in(&test_world, said, NULL, &p, &e) < 0)
        fail_msg("'%s': %s", text, e.text);
    return p;
}

__attribute__((unused)) static void bad(const char *text, const char *sentence)
{
    struct policy *p = NULL;
    struct err e;
    struct layer_said said[] = {{LAYER_BUILTIN, POLICY_YAML, "ground", "version: 1\n", true},
                                {LAYER_USER, POLICY_YAML, "/home/u/p/f", text, true},
                                {0}};
    if (build_in(&test_world, said, NULL, &p, &e) == 0)
        fail_msg("'%s' was taken", text);
    assert_null(p);
    if (!same(e.text, sentence))
        fail_msg("\n text: %s\n says: %s\nwants: %s", text, e.text, sentence);
}

/* Flags over the default profile. */
__attribute__((unused)) static struct policy *flags_good(const char *const *flags)
{
    struct policy *p = NULL;
    struct err e;
    if (build_in(&test_world, NULL, flags, &p, &e) < 0)
        fail_msg("--%s: %s", flags[0], e.text);
    return p;
}

__attribute__((unused)) static void flags_bad(const char *const *flags, const char *sentence)
{
    struct policy *p = NULL;
    struct err e;
    if (build_in(&test_world, NULL, flags, &p, &e) == 0)
        fail_msg("--%s was taken", flags[0]);
    if (!same(e.text, sentence))
        fail_msg("\n flag: %s\n says: %s\nwants: %s", flags[0], e.text, sentence);
}

__attribute__((unused)) static const struct path_rule *rule_for(const struct policy *p, const char *path)
{
    for (size_t i = 0; i < p->n_paths; i++) {
        if (same(p->paths[i].path, path))
            return &p->paths[i];
    }
    return NULL;
}

__attribute__((unused)) static char *printed(const struct policy *p)
{
    struct buf out = BUF(8 << 20);
    assert_int_equal(policy_print(p, false, &out), 0);
    return buf_take(&out);
}
