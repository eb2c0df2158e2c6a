/*
 * Says in sentences what a layer did to the repository at the top of its workspace: branches, commits, HEAD, the
 * stash, the index. It reads lines that git printed in a box of its own (run/layer/gitbox.c), so that each name in
 * them is made safe.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "layer/repo/repo.h"
#include "layer/text.h"

#define SHOWN_MAX  50 /* refs that are named */
#define SHOWN_HASH 12
#define SAID_MAX   ((size_t)1 << 20)

static void put_safe(struct buf *out, struct str text)
{
    utf8_safe(out, text);
}

/* A hash in short, or the name of a branch. */
static void put_ref_text(struct buf *out, const char *text)
{
    if (!text)
        buf_text(out, "nothing");
    else if (text[0] == 'r')
        put_safe(out, str_of(strncmp(text + 5, "refs/heads/", 11) == 0 ? text + 16 : text + 5));
    else
        put_safe(out, (struct str){text, strlen(text) < SHOWN_HASH ? strlen(text) : SHOWN_HASH});
}

/* "branch main" of "refs/heads/main" */
static void put_name(struct buf *out, const char *name)
{
    static const char *const kinds[][2] = {
        {"refs/heads/", "branch "}, {"refs/tags/", "tag "}, {"refs/remotes/", "remote branch "}, {"refs/", "ref "}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t n = strlen(kinds[i][0]);
        if (strncmp(name, kinds[i][0], n) != 0)
            continue;
        buf_text(out, kinds[i][1]);
        put_safe(out, str_of(name + n));
        return;
    }
    put_safe(out, str_of(name));
}

static void put_change(struct buf *out, const struct repo_ref *ref)
{
    if (!ref->old)
        buf_text(out, ": new, ");
    else if (!ref->new)
        buf_text(out, ": deleted, was ");
    else
        buf_text(out, ": ");
    if (ref->old)
        put_ref_text(out, ref->old);
    if (ref->old && ref->new)
        buf_text(out, " -> ");
    if (ref->new)
        put_ref_text(out, ref->new);
}

/* "C COUNT REF" and its "L ..." lines; false: git was not asked about it. */
static bool find_commits(struct str said, const char *name, struct str *ret_count, struct str *ret_lines)
{
    struct str line;
    while (text_line(&said, &line)) {
        if (!str_starts(line, STR("C ")))
            continue;
        line = str_skip(line, 2);
        *ret_count = str_until(&line, ' ');
        if (!str_is(line, name))
            continue;
        *ret_lines = said;
        return true;
    }
    return false;
}

static void put_lines(struct buf *out, struct str text, const char *head)
{
    struct str line;
    while (text_line(&text, &line) && str_starts(line, str_of(head))) {
        buf_text(out, "  ");
        put_safe(out, str_skip(line, strlen(head)));
        buf_char(out, '\n');
    }
}

static void put_ref(struct buf *out, const struct repo_ref *ref, struct str said)
{
    struct str count = {0}, lines = {0};
    const bool asked = find_commits(said, ref->name, &count, &lines);
    put_name(out, ref->name);
    put_change(out, ref);
    if (asked && !str_is(count, "0"))
        buf_printf(out, ", %.*s new commit%s", STR_SAID(count), str_is(count, "1") ? "" : "s");
    if (ref->why)
        buf_printf(out, "; not applied: %s", ref->why);
    else if (!same(ref->lands, ref->name))
        buf_printf(out, "; %s, so it lands as %s", ref->beside, ref->lands);
    buf_char(out, '\n');
    if (asked)
        put_lines(out, lines, "L ");
}

/* What the stash has now, from its log: the last line is its newest. */
static void put_stash(struct buf *out, const struct repo *r)
{
    const struct repo_log *log = NULL;
    for (size_t i = 0; i < r->n_logs; i++)
        if (same(r->logs[i].ref, "refs/stash"))
            log = &r->logs[i];
    buf_text(out, "the stash changed\n");
    if (!log || log->why)
        return;
    struct str text = log->text, line;
    if (str_starts(text, log->old))
        text = str_skip(text, log->old.n);
    while (text_line(&text, &line)) {
        (void)str_until(&line, '\t');
        buf_text(out, "  ");
        put_safe(out, line);
        buf_char(out, '\n');
    }
}

static void put_index(struct buf *out, struct str said)
{
    size_t n = 0;
    struct str line;
    for (struct str rest = said; text_line(&rest, &line);)
        n += str_starts(line, STR("S "));
    if (!n)
        return;
    buf_printf(out, "%s%zu path%s staged\n", n >= SHOWN_MAX ? "at least " : "", n, n == 1 ? " is" : "s are");
    while (text_line(&said, &line)) {
        if (str_starts(line, STR("S ")))
            put_lines(out, (struct str){line.p, line.n}, "S ");
    }
}

void repo_put_words(const struct repo *r, int answer, struct arena *mem, struct buf *out)
{
    struct str said;
    size_t shown = 0;
    if (answer < 0 || !bundle_text(answer, "said", SAID_MAX, mem, &said))
        said = STR("");
    if (r->why) {
        buf_printf(out, "the repository is not applied: %s\n", r->why);
        return;
    }
    if (r->born)
        buf_text(out, "the box made the repository\n");
    if (r->head.name) {
        buf_text(out, "HEAD");
        put_change(out, &r->head);
        if (r->head.why)
            buf_printf(out, "; not applied: %s", r->head.why);
        buf_char(out, '\n');
    }
    for (size_t i = 0; i < r->n; i++) {
        if (same(r->refs[i].name, "refs/stash"))
            put_stash(out, r);
        else if (shown++ < SHOWN_MAX)
            put_ref(out, &r->refs[i], said);
    }
    if (shown > SHOWN_MAX)
        buf_printf(out, "%zu more branches, tags and refs\n", shown - SHOWN_MAX);
    put_index(out, said);
}
