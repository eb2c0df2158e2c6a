/*
 * Compares the keys of two texts of a package.json from which hooks of git take commands. It reads no more of JSON than that needs, because
 * a start looks at the file twice; what it cannot read counts as changed.
 */
#include "match/manifest.h"

/* No addresses, which would be written into a page of each process. */
static const char hook_keys[][20] = {"lint-staged",  "nano-staged", "simple-git-hooks", "husky",    "gitHooks",
                                     "git-hooks",    "pre-commit",  "precommit",        "pre-push", "prettier",
                                     "eslintConfig", "stylelint",   "commitlint"};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_blanks(struct str *s)
{
    while (s->n && is_blank(*s->p))
        *s = str_skip(*s, 1);
}

/* Behind the string that begins at `*s`; `ret`: it, without its quotes. False: it has no end. */
static bool skip_string(struct str *s, struct str *ret)
{
    for (size_t i = 1; i < s->n; i++) {
        if (s->p[i] == '\\') {
            i++;
        } else if (s->p[i] == '"') {
            *ret = (struct str){s->p + 1, i - 1};
            *s = str_skip(*s, i + 1);
            return true;
        }
    }
    return false;
}

/* Behind the value that begins at `*s`: up to the ',' or '}' of the object that has it. */
static bool take_value(struct str *s, struct str *ret)
{
    const char *from = s->p;
    struct str string;
    for (size_t depth = 0; s->n;) {
        const char c = *s->p;
        if (c == '"') {
            if (!skip_string(s, &string))
                return false;
            continue;
        }
        if (depth == 0 && (c == ',' || c == '}')) {
            *ret = (struct str){from, (size_t)(s->p - from)};
            return true;
        }
        if ((c == '}' || c == ']') && depth-- == 0)
            return false;
        depth += c == '{' || c == '[';
        *s = str_skip(*s, 1);
    }
    return false;
}

/* The value of the last member of this name, as JSON's readers take it; no text without one. False: no object, or one in which a name that
   is written with an escape may be this one. */
static bool value_of(struct str text, const char *key, struct str *ret)
{
    *ret = (struct str){0};
    if (str_starts(text, STR("\xef\xbb\xbf")))
        text = str_skip(text, 3);
    skip_blanks(&text);
    if (!text.n)
        return true; /* there is none */
    if (*text.p != '{')
        return false;
    text = str_skip(text, 1);
    for (;;) {
        struct str name, value;
        skip_blanks(&text);
        if (text.n && *text.p == '}')
            return true;
        if (!text.n || *text.p != '"' || !skip_string(&text, &name))
            return false;
        skip_blanks(&text);
        if (!text.n || *text.p != ':' || (name.n && memchr(name.p, '\\', name.n)))
            return false;
        text = str_skip(text, 1);
        if (!take_value(&text, &value))
            return false;
        if (str_is(name, key))
            *ret = value;
        if (*text.p == ',')
            text = str_skip(text, 1);
    }
}

/* The next character that is no blank between the parts of a value, one behind a backslash as another than the bare one; -1 at its end. */
static int next_char(struct str *s, bool *in_string)
{
    while (s->n && !*in_string && is_blank(*s->p))
        *s = str_skip(*s, 1);
    if (!s->n)
        return -1;
    const bool escaped = *in_string && *s->p == '\\' && s->n > 1;
    if (escaped)
        *s = str_skip(*s, 1);
    const int c = (unsigned char)*s->p;
    if (c == '"' && !escaped)
        *in_string = !*in_string;
    *s = str_skip(*s, 1);
    return escaped ? 256 + c : c;
}

static bool same_value(struct str a, struct str b)
{
    bool in_a = false, in_b = false;
    for (;;) {
        const int x = next_char(&a, &in_a), y = next_char(&b, &in_b);
        if (x != y)
            return false;
        if (x < 0)
            return true;
    }
}

bool manifest_changed(struct str before, struct str after, struct buf *to)
{
    bool changed = false;
    if (str_eq(before, after))
        return false;
    for (size_t i = 0; i < sizeof hook_keys / sizeof *hook_keys; i++) {
        const char *key = hook_keys[i];
        struct str was, is;
        const bool read = value_of(before, key, &was) && value_of(after, key, &is);
        if (!read) {
            buf_text(to, "it cannot be read");
            return true;
        }
        if (same_value(was, is))
            continue;
        buf_printf(to, "%s%s", changed ? ", " : "", key);
        changed = true;
    }
    return changed;
}
