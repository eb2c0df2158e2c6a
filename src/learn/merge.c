/*
 * Adds rules to the text of a project's policy and keeps every byte that is there: comments, order, blanks. What it does not
 * surely understand it refuses. The result is read by the library before it is kept (save.c).
 */
#include <errno.h>
#include <string.h>

#include "learn/learn.h"

enum { MAX_LINES = 4096 };

struct merge_text {
    struct str lines[MAX_LINES]; /* without their ends */
    size_t n;
    struct arena *mem;
};

/* Spaces before the first other byte; SIZE_MAX of a line with nothing but blanks and a comment. */
static size_t indent_of(struct str line)
{
    size_t n = 0;
    while (n < line.n && line.p[n] == ' ')
        n++;
    return n == line.n || line.p[n] == '#' ? SIZE_MAX : n;
}

static bool is_item(struct str line, size_t indent)
{
    return line.n > indent && line.p[indent] == '-' && (line.n == indent + 1 || line.p[indent + 1] == ' ');
}

/* Whether the line is "KEY:" at this indentation; `ret_rest`: what follows it, without blanks and comment. */
static bool is_key_line(struct str line, size_t indent, struct str key, struct str *ret_rest)
{
    if (indent_of(line) != indent)
        return false;
    struct str rest = str_skip(line, indent);
    if (!str_starts(rest, key) || rest.n <= key.n || rest.p[key.n] != ':')
        return false;
    rest = str_trim(str_skip(rest, key.n + 1));
    if (rest.n && rest.p[0] == '#')
        rest.n = 0;
    *ret_rest = rest;
    return true;
}

static bool insert(struct merge_text *t, size_t at, const char *line)
{
    if (!line || t->n == MAX_LINES)
        return false;
    memmove(&t->lines[at + 1], &t->lines[at], (t->n - at) * sizeof *t->lines);
    t->lines[at] = str_of(line);
    t->n++;
    return true;
}

/* One past the last line of the block that the line `head` begins, whose lines have more than `indent` (a list: as much). */
static size_t block_end(const struct merge_text *t, size_t head, size_t indent, bool list)
{
    size_t end = head + 1;
    for (size_t i = head + 1; i < t->n; i++) {
        size_t in = indent_of(t->lines[i]);
        if (in == SIZE_MAX)
            continue;
        if (in < indent || (in == indent && !(list && is_item(t->lines[i], indent))))
            break;
        end = i + 1;
    }
    return end;
}

/* A value as YAML: quoted where it could be read as something else; learn_can_write() lets no quote into it. */
static const char *yaml_of(struct arena *mem, const char *value)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
    const char *rest = value[0] == '~' && value[1] == '/' ? value + 1 : value;
    bool quoted = rest[strspn(rest, plain)] != 0 || strchr("-+.0123456789", rest[0]);
    if (rest[0] == '.' && strchr(rest, '/') && !rest[strspn(rest, plain)])
        quoted = false;
    return quoted ? arena_printf(mem, "\"%s\"", value) : value;
}

/* Adds to a list in brackets on one line. */
static const char *in_brackets(struct merge_text *t, struct str line, const char *value)
{
    size_t close = 0, open = 0;
    char quote = 0;
    for (size_t i = 0; i < line.n; i++) {
        char c = line.p[i];
        if (quote) {
            quote = c == quote ? 0 : quote;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '[' || (c == '#' && open)) { /* a list in a list, or a comment that takes the rest */
            if (open)
                return NULL;
            open = i;
        } else if (c == ']' && open) {
            close = i;
            break;
        }
    }
    if (!open || !close)
        return NULL;
    struct str after = str_trim(str_skip(line, close + 1)),
               in = str_trim((struct str){line.p + open + 1, close - open - 1});
    if (after.n && after.p[0] != '#')
        return NULL;
    const char *comma = !in.n || in.p[in.n - 1] == ',' ? in.n ? " " : "" : ", ";
    return arena_printf(t->mem, "%.*s%s%s%.*s", (int)(in.n ? (size_t)(in.p + in.n - line.p) : open + 1), line.p, comma,
                        value, (int)(line.n - close), line.p + close);
}

/* Adds to the list of the line `at`, whose key is at `indent`. */
static bool add_item(struct merge_text *t, size_t at, size_t indent, struct str rest, const char *value,
                     const char *reason)
{
    const char *yaml = yaml_of(t->mem, value);
    if (!yaml)
        return false;
    if (rest.n) {
        const char *line = rest.p[0] == '[' ? in_brackets(t, t->lines[at], yaml) : NULL;
        if (line)
            t->lines[at] = str_of(line);
        return line != NULL;
    }
    size_t end = block_end(t, at, indent, true), first = at + 1;
    while (first < end && indent_of(t->lines[first]) == SIZE_MAX)
        first++;
    size_t in = first < end ? indent_of(t->lines[first]) : indent + 2;
    if (first < end && !is_item(t->lines[first], in))
        return false;
    return insert(t, end, arena_printf(t->mem, "%*s- %s # %s", (int)in, "", yaml, reason));
}

/* A key at the top that is no list; one that is there says something else. */
static size_t add_switch(struct merge_text *t, const struct learn_rule *rule, const char *reason)
{
    struct str rest;
    for (size_t at = 0; at < t->n; at++)
        if (is_key_line(t->lines[at], 0, str_of(rule->key), &rest))
            return at + 2;
    if (t->n && t->lines[t->n - 1].n && !insert(t, t->n, ""))
        return t->n + 1;
    return insert(t, t->n, arena_printf(t->mem, "%s: %s # %s", rule->key, rule->written, reason)) ? 0 : t->n + 1;
}

/* 0: added; otherwise one more than the number of the line at which it cannot be. */
static size_t add_rule(struct merge_text *t, const struct learn_rule *rule, const char *reason)
{
    struct str key = str_of(rule->key), section = str_until(&key, '.'), rest;
    size_t at = 0;
    if (!key.n)
        return add_switch(t, rule, reason);
    while (at < t->n && !is_key_line(t->lines[at], 0, section, &rest))
        at++;
    if (at == t->n) {
        if (t->n && t->lines[t->n - 1].n && !insert(t, t->n, ""))
            return t->n + 1;
        if (!insert(t, t->n, arena_printf(t->mem, "%.*s:", (int)section.n, section.p)))
            return t->n + 1;
        at = t->n - 1;
        rest.n = 0;
    }
    if (rest.n)
        return at + 2;
    size_t end = block_end(t, at, 0, false), line = at + 1, in = 2;
    end = end > at + 1 ? end : at + 1;
    while (line < end && indent_of(t->lines[line]) == SIZE_MAX)
        line++;
    if (line < end)
        in = indent_of(t->lines[line]);
    if (in == 0)
        return line + 2;
    while (line < end && !is_key_line(t->lines[line], in, key, &rest))
        line++;
    if (line < end)
        return add_item(t, line, in, rest, rule->written, reason) ? 0 : line + 2;
    if (!insert(t, end, arena_printf(t->mem, "%*s%.*s:", (int)in, "", (int)key.n, key.p)))
        return end + 2;
    rest.n = 0;
    return add_item(t, end, in, rest, rule->written, reason) ? 0 : end + 2;
}

/* Splits; the number of the line that no text of ours may stand beside, or 0. */
static size_t split(struct merge_text *t, const char *old)
{
    struct str rest = str_of(old);
    size_t documents = 0;
    while (rest.n && t->n < MAX_LINES) {
        struct str line = str_until(&rest, '\n');
        documents += str_starts(line, STR("---")) || str_starts(line, STR("...")) || (line.n && line.p[0] == '{');
        t->lines[t->n++] = line;
        if (memchr(line.p, '\r', line.n) || memchr(line.p, '\t', line.n) || (documents && t->n > 1 && documents != 1) ||
            str_starts(line, STR("...")) || (line.n && (line.p[0] == '{' || line.p[0] == '"' || line.p[0] == '?')))
            return t->n;
    }
    return rest.n ? t->n : 0;
}

int learn_merge(const struct learn *l, const char *old, struct buf *out, struct pinfold_error *error)
{
    static const char begin[] = "# What pinfold learn found: what a box for this project may do beyond the default "
                                "(pinfold-policy(5)).\nversion: 1\n";
    auto_arena struct arena *mem = arena_new(8u << 20);
    struct merge_text *t = mem ? arena_zero(mem, sizeof *t) : NULL;
    if (!t)
        return learn_memory(error);
    t->mem = mem;
    size_t wrong = split(t, old ? old : begin);
    for (size_t i = 0; i < l->n_rules && !wrong; i++) {
        const struct learn_rule *rule = l->rules[i];
        auto_buf struct buf reason = BUF(1024);
        if (rule->answer != LEARN_ALLOW || rule->gone)
            continue;
        learn_reason(l, rule, &reason);
        wrong = add_rule(t, rule, arena_text(mem, buf_cstr(&reason)));
    }
    if (arena_failed(mem))
        return learn_memory(error);
    if (wrong)
        return learn_fail(error, EINVAL,
                          "'%s/" LEARN_POLICY "' is written in a form to which nothing can be added without changing "
                          "what is there (near line %zu); add the lines by hand",
                          l->workspace, wrong > 1 && old ? wrong - 1 : wrong);
    for (size_t i = 0; i < t->n; i++) {
        buf_str(out, t->lines[i]);
        buf_char(out, '\n');
    }
    return buf_ok(out) ? 0 : learn_memory(error);
}
