/*
 * Settings of other sandboxes; the first byte says whose. What is read prints as a policy of ours that reads as
 * equal.
 */
#include "fuzz.h"
#include "policy/build.h"

static const struct policy_world world = {.home = "/home/u", .cwd = "/home/u/p", .user_name = "u"};

static struct policy *build(enum policy_format format, struct str text)
{
    struct policy_builder *b = policy_builder_new(&world);
    struct policy *p = NULL;
    struct err e;
    if (policy_add_text(b, LAYER_FLAGS, format, "/home/u/p/settings", text, true, &e) < 0 ||
        policy_build(b, &p, &e) < 0)
        MUST(e.text[0] && e.kind != ERR_NONE && e.kind != ERR_BUG);
    policy_builder_free(b);
    return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum policy_format formats[] = {POLICY_SRT, POLICY_DIVE, POLICY_MYCODE, POLICY_DAYCARE};
    if (!size)
        return 0;
    struct policy *p = build(data[0] == 'b'   ? POLICY_BWRAP
                             : data[0] == 'S' ? POLICY_SRT_STRICT
                                              : formats[data[0] % 4],
                             (struct str){(const char *)data + 1, size - 1});
    if (!p)
        return 0;
    struct buf text = BUF(64u << 20);
    MUST(policy_print(p, false, &text) == 0);
    if (text.n <= MAX_POLICY_TEXT) {
        struct policy *q = build(POLICY_YAML, buf_view(&text));
        MUST(q && policy_equal(p, q));
        policy_free(q);
    }
    /* The parts that no setting of another tool opens. */
    MUST(policy_access(p, "/home/u/.config/pinfold/x", NULL) == PATH_HIDE);
    for (size_t i = 0; i < p->n_ignored; i++)
        MUST(p->ignored[i].key && p->ignored[i].why && p->ignored[i].origin < p->n_origins);
    buf_free(&text);
    policy_free(p);
    return 0;
}
