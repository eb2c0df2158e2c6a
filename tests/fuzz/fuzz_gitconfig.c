/*
 * git/gitconfig.c on arbitrary bytes. The input is two contents, split at the first 0xff: old and new. Asserted:
 * a content may always replace itself; what an inert content replaces nothing protected with passes both ways; a verdict
 * never lets a protected key in that is not in the old content; reading twice gives the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "git/gitconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct list {
    struct buf text;
    bool program; /* a key no new content may bring */
};

static int note(void *ctx, const struct gitconfig_entry *e)
{
    struct list *l = ctx;
    buf_str(&l->text, e->key);
    buf_text(&l->text, e->value.p ? "=" : "!");
    buf_str(&l->text, e->value);
    buf_char(&l->text, '\n');
    static const char *const names[] = {"core.fsmonitor", "core.hookspath", "core.sshcommand",   "include.path",
                                        "core.pager",     "diff.external",  "credential.helper", "gpg.program"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        l->program |= str_is(e->key, names[i]);
    return 0;
}

static int judge(enum gitconfig_kind kind, struct str old, struct str new)
{
    struct gitconfig_ask ask = {kind, old, new, STR("/w/.git/modules/m"), STR("/w")};
    struct buf why = BUF(4096);
    int r = gitconfig_judge(&ask, &why);
    if ((r == 0) != (why.n == 0))
        abort(); /* a refusal is told, a pass is silent */
    buf_free(&why);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *cut = size ? memchr(data, 0xff, size) : NULL;
    struct str old = {(const char *)data, cut ? (size_t)(cut - data) : 0};
    struct str new =
        cut ? (struct str){(const char *)cut + 1, size - old.n - 1} : (struct str){(const char *)data, size};
    struct list a = {.text = BUF(4 << 20)}, b = {.text = BUF(4 << 20)}, c = {.text = BUF(4 << 20)};
    int ra = gitconfig_parse(new, note, &a, NULL), rb = gitconfig_parse(new, note, &b, NULL);
    int rc = gitconfig_parse(old, note, &c, NULL);
    if (ra != rb || !str_eq(buf_view(&a.text), buf_view(&b.text)))
        abort();
    for (int kind = GITCONFIG_REPOSITORY; kind <= GITCONFIG_MODULES; kind++) {
        int r = judge((enum gitconfig_kind)kind, old, new);
        if (ra < 0 && r == 0)
            abort(); /* what git cannot read does not pass */
        if (r == 0 && a.program && (rc < 0 || !c.program))
            abort();
        if (ra == 0 && judge((enum gitconfig_kind)kind, new, new) != 0)
            abort();
        if (gitconfig_inert((enum gitconfig_kind)kind, new, STR("/w/.git/modules/m"), STR("/w")) && a.program)
            abort();
    }
    buf_free(&a.text);
    buf_free(&b.text);
    buf_free(&c.text);
    return 0;
}
