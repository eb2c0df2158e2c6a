/*
 * A policy text of anybody: what is read can be printed and read again as an equal policy; said by an untrusted project it
 * gives the box nothing. With a zero byte in front, the text is taken apart into flags, one a line.
 */
#include "fuzz.h"
#include "policy/build.h"

static const struct policy_world world = {.home = "/home/u", .cwd = "/home/u/p", .user_name = "u"};

static struct policy *build(enum policy_layer layer, struct str text, bool trusted)
{
    struct policy_builder *b = policy_builder_new(&world);
    struct policy *p = NULL;
    struct err e;
    /* What somebody trusted says stands on an empty ground: the default one would only slow the fuzzer down. */
    if (trusted)
        MUST(policy_add_text(b, LAYER_BUILTIN, POLICY_YAML, "ground", STR("version: 1\n"), true, &e) == 0);
    if (policy_add_text(b, layer, POLICY_YAML, "/home/u/p/.pinfold/f", text, trusted, &e) < 0 ||
        policy_build(b, &p, &e) < 0)
        MUST(e.text[0] && e.kind != ERR_NONE && e.kind != ERR_BUG);
    policy_builder_free(b);
    return p;
}

static void check_print(const struct policy *p)
{
    struct buf text = BUF(64u << 20), again = BUF(64u << 20);
    MUST(policy_print(p, true, &text) == 0);
    if (text.n <= MAX_POLICY_TEXT) {
        struct policy *q = build(LAYER_FLAGS, buf_view(&text), true);
        MUST(q && policy_equal(p, q));
        text.n = 0;
        MUST(policy_canonical(p, &text) == 0 && policy_canonical(q, &again) == 0);
        MUST(str_eq(buf_view(&text), buf_view(&again)));
        policy_free(q);
    }
    buf_free(&text);
    buf_free(&again);
}

static void check_untrusted(const struct policy *p)
{
    MUST(policy_access(p, "/home/u/.ssh/id", NULL) == PATH_HIDE);
    MUST(policy_access(p, "/home/u/.config/pinfold/x", NULL) == PATH_HIDE);
    MUST(policy_access(p, "/home/u/p/.pinfold/f", NULL) != PATH_RW);
    MUST(policy_access(p, "/etc/passwd", NULL) != PATH_RW && policy_access(p, "/home/u/x", NULL) != PATH_RW);
    MUST(p->net == NET_NONE && p->n_mounts == 0 && p->n_unix_sockets == 0 && p->guard == GUARD_STRICT);
    MUST(p->limits.processes.value <= 4096 && p->limits.open_files.value <= 65536);
    MUST(!p->allow_nested_userns && p->user == USER_KEEP && p->may_lose == (p->may_lose & FEATURES_BUILTIN_MAY_LOSE));
    MUST(p->n_guards >= 70);
    for (size_t i = 0; i < p->n_net_rules; i++)
        MUST(p->net_rules[i].verb == NET_RULE_DENY || p->net_rules[i].verb == NET_RULE_DENY_PORT);
}

static void flags(struct str text)
{
    struct policy_builder *b = policy_builder_new(&world);
    struct policy *p = NULL;
    struct err e;
    int r = 0;
    while (r == 0 && text.n) {
        const char *end = memchr(text.p, '\n', text.n);
        struct str line = {text.p, end ? (size_t)(end - text.p) : text.n};
        const char *space = memchr(line.p, ' ', line.n);
        size_t n = space ? (size_t)(space - line.p) : line.n;
        char *key = strndup(line.p, n), *value = space ? strndup(space + 1, line.n - n - 1) : NULL;
        r = policy_add_flag(b, key, value, "--flag", &e);
        free(key);
        free(value);
        text = str_skip(text, line.n + 1);
    }
    if (r == 0)
        r = policy_build(b, &p, &e);
    MUST(r == 0 || (e.text[0] && e.kind != ERR_BUG));
    if (p)
        check_print(p);
    policy_free(p);
    policy_builder_free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    if (size && data[0] == 0) {
        flags(str_skip(text, 1));
        return 0;
    }
    struct policy *p = build(LAYER_USER, text, true);
    if (p)
        check_print(p);
    policy_free(p);
    p = build(LAYER_PROJECT, text, false);
    if (p)
        check_untrusted(p);
    policy_free(p);
    return 0;
}
