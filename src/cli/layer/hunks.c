/*
 * `apply --hunks`: asks about each hunk of the texts and each other change, as `git add -p` does, from a terminal or from standard input as it
 * is; then applies what was chosen. What is not chosen stays in the layer.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/cli.h"

#define QUESTION_MAX ((size_t)1 << 28)
#define CHOICES_MAX  ((size_t)1 << 26)

static const char keys_help[] = "y - apply this\n"
                                "n - leave this in the layer\n"
                                "a - apply this and all later hunks of the file\n"
                                "d - leave this and all later hunks of the file in the layer\n"
                                "q - leave this and all that follows; apply what was chosen\n"
                                "? - this help\n";

struct hunk_questions {
    bool colours;
    char *line; /* of getline() */
    size_t room;
    char **choices; /* NULL-terminated */
    size_t n;
    bool quit, failed;
};

static const char *hunk_text(const struct pinfold_value *o, const char *name)
{
    const char *text = pinfold_value_text(pinfold_value_get(o, name), NULL);
    return text ? text : "";
}

/* Lines of a patch with their colours; no byte of them is obeyed by a terminal. */
static void put_lines(const struct hunk_questions *q, struct buf *out, const char *text)
{
    while (*text) {
        const size_t n = strcspn(text, "\n");
        const char *colour = *text == '+' ? "32" : *text == '-' ? "31" : *text == '@' ? "36" : NULL;
        if (q->colours && colour)
            buf_printf(out, "\033[%sm", colour);
        for (size_t at = 0; at < n;) {
            const size_t part = strcspn(text + at, "\t\n");
            utf8_safe(out, (struct str){text + at, part});
            at += part;
            if (at < n)
                buf_char(out, text[at++]);
        }
        buf_text(out, q->colours && colour ? "\033[0m\n" : "\n");
        text += n + (text[n] == '\n');
    }
}

/* One of y, n, a, d and q; the end of the input is q. */
static char ask_one(struct hunk_questions *q, const char *shown, const char *what)
{
    auto_buf struct buf out = BUF(QUESTION_MAX);
    put_lines(q, &out, shown);
    for (;;) {
        buf_printf(&out, "%s [y,n,a,d,q,?]? ", what);
        if (!buf_ok(&out) || print(buf_cstr(&out)) != STATUS_YES)
            return 'q';
        buf_free(&out);
        if (getline(&q->line, &q->room, stdin) <= 0) {
            (void)print("\n");
            return 'q';
        }
        const char key = q->line[0];
        if (key && strchr("ynadq", key) && (!q->line[1] || q->line[1] == '\n'))
            return key;
        buf_text(&out, keys_help);
    }
}

static void choose_one(struct hunk_questions *q, const struct buf *words)
{
    char **more = realloc(q->choices, (q->n + 2) * sizeof *more);
    char *copy = buf_ok(words) ? strdup(buf_cstr(words)) : NULL;
    q->failed |= !more || !copy;
    if (more)
        q->choices = more;
    if (!more || !copy) {
        free(copy);
        return;
    }
    q->choices[q->n++] = copy;
    q->choices[q->n] = NULL;
}

static void ask_whole(struct hunk_questions *q, const struct pinfold_value *change, const char *path)
{
    auto_buf struct buf word = BUF(CHOICES_MAX), what = BUF(QUESTION_MAX);
    buf_printf(&what, "Apply all of '%s' (%s)", path, hunk_text(change, "whole"));
    const char key = ask_one(q, hunk_text(change, "text"), buf_cstr(&what));
    q->quit = key == 'q';
    if (key != 'y' && key != 'a')
        return;
    buf_text(&word, hunk_text(change, "word"));
    choose_one(q, &word);
}

static void ask_hunks(struct hunk_questions *q, const struct pinfold_value *change, const char *path)
{
    const struct pinfold_value *hunks = pinfold_value_get(change, "hunks");
    const size_t n = pinfold_value_count(hunks);
    size_t i = 0, taken = 0;
    char key = 0;
    auto_buf struct buf some = BUF(CHOICES_MAX), what = BUF(QUESTION_MAX);
    buf_printf(&some, "%s:", hunk_text(change, "word"));
    for (const struct pinfold_value *h = pinfold_value_first(hunks); h; h = pinfold_value_next(h)) {
        const char *shown = pinfold_value_text(h, NULL);
        i++;
        if (key != 'a' && key != 'd' && key != 'q') {
            buf_free(&what);
            buf_printf(&what, "(%zu/%zu) Apply this hunk of '%s'", i, n, path);
            key = ask_one(q, shown ? shown : "", buf_cstr(&what));
        }
        if (key == 'y' || key == 'a')
            buf_printf(&some, "%s%zu", taken++ ? "," : "", i);
    }
    q->quit = key == 'q';
    if (taken == n) { /* then it is the layer's file, with its time */
        buf_free(&some);
        buf_text(&some, hunk_text(change, "word"));
    }
    if (taken)
        choose_one(q, &some);
}

static void ask_all(struct hunk_questions *q, const struct pinfold_value *changes)
{
    const struct pinfold_value *c = pinfold_value_first(changes);
    for (; c && !q->quit && !q->failed; c = pinfold_value_next(c)) {
        auto_buf struct buf path = BUF(QUESTION_MAX);
        utf8_safe(&path, str_of(hunk_text(c, "path")));
        if (pinfold_value_text(pinfold_value_get(c, "whole"), NULL))
            ask_whole(q, c, buf_cstr(&path));
        else
            ask_hunks(q, c, buf_cstr(&path));
    }
}

static void questions_free(struct hunk_questions *q)
{
    for (size_t i = 0; i < q->n; i++)
        free(q->choices[i]);
    free(q->choices);
    free(q->line);
}

int apply_hunks(const struct pinfold_layer_options *o, struct pinfold_report **ret, struct pinfold_error *error)
{
    struct hunk_questions q = {.colours = isatty(1) && !getenv("NO_COLOR")};
    struct pinfold_report *report;
    int r = pinfold_layer_hunks_report(o, &report, error);
    *ret = NULL;
    if (r < 0)
        return r;
    const struct pinfold_value *all = pinfold_report_value(report);
    struct pinfold_layer_options of = *o;
    (void)complain_left(pinfold_value_get(all, "refused"), "why");
    if (!pinfold_value_count(pinfold_value_get(all, "changes")))
        complain("there is nothing to choose from");
    ask_all(&q, pinfold_value_get(all, "changes"));
    of.layer = hunk_text(pinfold_value_get(all, "layer"), "id");
    of.choices = (const char *const *)q.choices;
    if (q.failed)
        complain("out of memory for so many choices; nothing was applied");
    else if (q.n)
        r = pinfold_layer_apply_report(&of, ret, error);
    else
        complain("nothing was chosen");
    questions_free(&q);
    pinfold_report_free(report);
    return r;
}
