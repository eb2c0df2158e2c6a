/*
 * Parses a path into two parallel runs of bytes: the characters, and for each whether it is special (an unescaped
 * wildcard). Only then it is split into components, so that nothing from a variable or after a backslash can become
 * syntax.
 */
#include "policy/path.h"

#include <errno.h>

enum { PATH_SHOWN = 160, MAX_NAME = 255 };
#define PATH_SAID(s) (int)((s).n < PATH_SHOWN ? (s).n : PATH_SHOWN), (s).p

struct piece {               /* the text under construction */
    struct buf bytes, marks; /* marks: WILD, TAKEN (from a variable or after a backslash) or PLAIN */
    struct str said;
};

enum mark { PLAIN = '.', WILD = 'w', TAKEN = 't' };

static void put_piece(struct piece *p, struct str s, char mark)
{
    buf_str(&p->bytes, s);
    for (size_t i = 0; i < s.n; i++)
        buf_char(&p->marks, mark);
}

static bool is_name_char(char c, bool first)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || (!first && c >= '0' && c <= '9');
}

/* The value of a variable; NULL if unset. */
static const char *variable_value(const struct path_context *c, const char *name)
{
    const struct policy_world *w = c->world;
    if (same(name, "HOME"))
        return w->home;
    if (same(name, "WORKSPACE"))
        return c->workspace;
    if (same(name, "PWD"))
        return w->cwd;
    if (same(name, "USER") && w->user_name)
        return w->user_name;
    return w->variable ? w->variable(w->ctx, name) : NULL;
}

/* Expands "$NAME" or "${NAME}" at the start of `s` and advances past it. */
static int put_variable(const struct path_context *c, struct piece *p, struct str *s, struct err *e)
{
    char name[64];
    size_t n = 0;
    struct str at = str_skip(*s, 1);
    bool braced = at.n && at.p[0] == '{';

    if (braced)
        at = str_skip(at, 1);
    while (n < at.n && is_name_char(at.p[n], n == 0))
        n++;
    if (n == 0 || n >= sizeof name || (braced && (n == at.n || at.p[n] != '}')))
        return err_say(e, ERR_POLICY, "'%.*s': '$' begins a variable, as in ${HOME}; write \\$ for the character",
                       PATH_SAID(p->said));
    memcpy(name, at.p, n);
    name[n] = 0;
    *s = str_skip(at, n + braced);
    if (!c) {
        put_piece(p, STR("v"), TAKEN);
        return 0;
    }
    const char *value = variable_value(c, name);
    if (!value)
        return err_say(e, ERR_POLICY, "'%.*s': the variable %s is not set", PATH_SAID(p->said), name);
    put_piece(p, str_of(value), TAKEN);
    return 0;
}

/* Expands "~" and "~/..." at the start of the text. */
static int put_home(const struct path_context *c, struct piece *p, struct str *s, bool flag, struct err *e)
{
    if (!s->n || s->p[0] != '~' || (flag && s->n > 1 && s->p[1] != '/'))
        return 0;
    if (s->n > 1 && s->p[1] != '/')
        return err_say(e, ERR_POLICY,
                       "'%.*s': only ~ and ~/ are supported, not another user's home; write \\~ for the character",
                       PATH_SAID(p->said));
    if (c && (!c->world->home || c->world->home[0] != '/'))
        return err_say(e, ERR_POLICY, "'%.*s': ~ needs a home directory; set HOME", PATH_SAID(p->said));
    put_piece(p, c ? str_of(c->world->home) : STR("/h"), TAKEN);
    *s = str_skip(*s, 1);
    return 0;
}

static int unfold(const struct path_context *c, struct piece *p, enum path_forms forms, struct err *e)
{
    struct str s = p->said;
    bool flag = forms == PATH_FLAG || forms == PATH_FLAG_PATTERN, wild = forms != PATH_FLAG && forms != PATH_PLACE;
    int r = put_home(c, p, &s, flag, e);

    while (r == 0 && s.n) {
        char ch = s.p[0];
        if (ch == 0)
            return err_say(e, ERR_POLICY, "'%.*s' contains a NUL byte", PATH_SAID(p->said));
        if (ch == '$' && !flag) {
            r = put_variable(c, p, &s, e);
            continue;
        }
        if (ch == '\\' && forms != PATH_FLAG) {
            if (s.n < 2 || s.p[1] == 0 || s.p[1] == '/')
                return err_say(e, ERR_POLICY, "'%.*s': a backslash escapes the next character; there is none",
                               PATH_SAID(p->said));
            put_piece(p, (struct str){s.p + 1, 1}, TAKEN);
            s = str_skip(s, 2);
            continue;
        }
        put_piece(p, (struct str){s.p, 1}, wild && (ch == '*' || ch == '?' || ch == '[') ? WILD : PLAIN);
        s = str_skip(s, 1);
    }
    return r;
}

struct component {
    struct str bytes;
    const char *marks;
    bool wild, deep; /* has wildcards; is exactly ** */
};

/* Cuts off the next component; false at the end. */
static bool next_component(struct str *bytes, const char **marks, struct component *ret)
{
    while (bytes->n && bytes->p[0] == '/') {
        *bytes = str_skip(*bytes, 1);
        ++*marks;
    }
    if (!bytes->n)
        return false;
    const char *slash = memchr(bytes->p, '/', bytes->n);
    size_t n = slash ? (size_t)(slash - bytes->p) : bytes->n;
    *ret = (struct component){.bytes = {bytes->p, n}, .marks = *marks, .wild = memchr(*marks, WILD, n) != NULL};
    ret->deep = n == 2 && ret->marks[0] == WILD && ret->marks[1] == WILD && str_is(ret->bytes, "**");
    *bytes = str_skip(*bytes, n);
    *marks += n;
    return true;
}

static bool is_dot(struct component c)
{
    return str_is(c.bytes, ".");
}

/* Appends one literal component to the clean path in `out` ("" is the root). */
static void append_name(struct buf *out, struct str name)
{
    if (str_is(name, "."))
        return;
    if (str_is(name, "..")) {
        while (out->n && out->p[--out->n] != '/')
            ;
        if (out->p)
            out->p[out->n] = 0;
        return;
    }
    buf_char(out, '/');
    buf_str(out, name);
}

/* The component in the syntax of match/glob.h, where literal characters stay literal. */
static int append_pattern(struct buf *out, struct component c, struct str said, struct err *e)
{
    const size_t from = out->n;
    for (size_t i = 0; i < c.bytes.n; i++) {
        if (i && c.bytes.p[i] == '*' && c.bytes.p[i - 1] == '*' && c.marks[i] == WILD && c.marks[i - 1] == WILD)
            return err_say(e, ERR_POLICY,
                           "'%.*s': ** stands alone between slashes, as DIR/**/*.pem; within a name write *",
                           PATH_SAID(said));
        if (c.marks[i] == TAKEN)
            glob_put_literal(out, c.bytes.p[i]);
        else
            buf_char(out, c.bytes.p[i]);
    }
    const char *wrong = glob_wrong(str_skip(buf_view(out), from));
    return wrong && buf_ok(out) ? err_say(e, ERR_POLICY, "'%.*s' %s", PATH_SAID(said), wrong) : 0;
}

/* What follows "**": plain components, the last of which may be a pattern. */
static int read_deep(struct str bytes, const char *marks, struct str said, struct buf *out, bool *ret_pattern,
                     struct err *e)
{
    struct component c;
    bool pattern = false;

    while (next_component(&bytes, &marks, &c)) {
        if (pattern || c.deep)
            return err_say(e, ERR_POLICY,
                           "'%.*s': only the last part of a path can have wildcards, and ** can be used once",
                           PATH_SAID(said));
        if (is_dot(c) || str_is(c.bytes, ".."))
            return err_say(e, ERR_POLICY, "'%.*s': '.' and '..' cannot follow **", PATH_SAID(said));
        if (c.bytes.n > MAX_NAME)
            return err_say(e, ERR_POLICY, "'%.*s' has a component longer than %d bytes", PATH_SAID(said), MAX_NAME);
        if (out->n)
            buf_char(out, '/');
        if (c.wild) {
            int r = append_pattern(out, c, said, e);
            if (r < 0)
                return r;
            pattern = true;
        } else {
            buf_str(out, c.bytes);
        }
    }
    if (!out->n)
        return err_say(e, ERR_POLICY,
                       "'%.*s': ** must be followed by a name; a directory's name already includes everything below it",
                       PATH_SAID(said));
    *ret_pattern = pattern;
    return 0;
}

static char first_wildcard(struct component c)
{
    size_t i = 0;
    while (c.marks[i] != WILD)
        i++;
    return c.bytes.p[i];
}

struct reading {
    struct buf fixed, deep;
    bool any_depth, pattern, everywhere;
};

static int read_components(struct piece *p, const char *base, enum path_forms forms, struct reading *o, struct err *e)
{
    struct str bytes = buf_view(&p->bytes);
    const char *marks = buf_cstr(&p->marks);
    bool absolute = bytes.p[0] == '/', first = true;
    struct component c;

    if (!absolute && base && !same(base, "/"))
        buf_text(&o->fixed, base);
    for (; next_component(&bytes, &marks, &c); first = false) {
        if (o->pattern)
            return err_say(e, ERR_POLICY, "'%.*s': only the last part of a path can have wildcards",
                           PATH_SAID(p->said));
        if (c.wild && forms == PATH_NO_PATTERN)
            return err_say(e, ERR_POLICY, "'%.*s': only hide and protect take patterns; write \\%c for the character",
                           PATH_SAID(p->said), first_wildcard(c));
        if (c.deep) {
            o->any_depth = true;
            o->everywhere = !absolute && first;
            return read_deep(bytes, marks, p->said, &o->deep, &o->pattern, e);
        }
        if (c.bytes.n > MAX_NAME)
            return err_say(e, ERR_POLICY, "'%.*s' has a component longer than %d bytes", PATH_SAID(p->said), MAX_NAME);
        if (c.wild) {
            buf_char(&o->fixed, '/');
            int r = append_pattern(&o->fixed, c, p->said, e);
            if (r < 0)
                return r;
            o->pattern = true;
        } else {
            append_name(&o->fixed, c.bytes);
        }
    }
    return 0;
}

static int finish_reading(struct reading *o, struct str said, struct arena *mem, struct path_text *ret, struct err *e)
{
    if (!buf_ok(&o->fixed) || !buf_ok(&o->deep) || o->fixed.n > MAX_PATH_TEXT)
        return err_say(e, ERR_POLICY, "'%.*s' is longer than %d bytes, the maximum for a path", PATH_SAID(said),
                       MAX_PATH_TEXT);
    struct str fixed = o->fixed.n ? buf_view(&o->fixed) : STR("/");
    struct path_text t = {.any_depth = o->any_depth, .pattern = o->pattern};
    t.path = arena_str(mem, o->any_depth ? buf_view(&o->deep) : fixed);
    if (o->any_depth)
        t.below = o->everywhere ? "/" : arena_str(mem, fixed);
    if (!t.path || (o->any_depth && !t.below))
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read a path");
    *ret = t;
    return 0;
}

/* Whether the first component of `s` is "." or "..". */
static bool is_dots(struct str s)
{
    size_t n = 0;
    while (n < s.n && s.p[n] == '.')
        n++;
    return n <= 2 && (n == s.n || s.p[n] == '/');
}

/* The common case in profiles: "~/x", "/x" or "x" without special characters. */
static bool is_plain(struct str text)
{
    bool boundary = true;

    for (size_t i = 0; i < text.n; i++) {
        char ch = text.p[i];
        if (ch == 0 || ch == '$' || ch == '\\' || ch == '*' || ch == '?' || ch == '[' || (ch == '~' && i > 0) ||
            (ch == '.' && boundary && is_dots(str_skip(text, i))) || (ch == '/' && boundary && i > 0))
            return false;
        boundary = ch == '/';
    }
    return text.n && text.n < 255 && (!boundary || text.n == 1) &&
           !(text.p[0] == '~' && text.n > 1 && text.p[1] != '/');
}

static bool expand_plain(const struct path_context *c, struct str text, struct arena *mem, struct path_text *ret)
{
    struct str head = {"", 0}, rest = text;

    if (text.p[0] == '~') {
        if (!c->world->home || c->world->home[0] != '/')
            return false;
        head = str_of(c->world->home);
        rest = str_skip(text, 2);
    } else if (text.p[0] != '/') {
        head = str_of(c->base);
    } else {
        rest = str_skip(text, 1);
    }
    if (head.n == 1)
        head.n = 0; /* "/" */
    if (head.n + rest.n > MAX_PATH_TEXT - 1)
        return false;
    char *p = arena_zero(mem, head.n + rest.n + 2);
    if (!p)
        return false;
    if (head.n)
        memcpy(p, head.p, head.n);
    if (rest.n || !head.n)
        p[head.n] = '/';
    if (rest.n)
        memcpy(p + head.n + 1, rest.p, rest.n);
    *ret = (struct path_text){.path = p};
    return true;
}

int path_expand(const struct path_context *c, struct str text, enum path_forms forms, struct arena *mem,
                struct path_text *ret, struct err *e)
{
    struct piece p = {.bytes = BUF(4 * MAX_PATH_TEXT), .marks = BUF(4 * MAX_PATH_TEXT), .said = text};
    struct reading o = {.fixed = BUF(8 * MAX_PATH_TEXT), .deep = BUF(4 * MAX_PATH_TEXT)};

    if (is_plain(text) && (!c || expand_plain(c, text, mem, ret)))
        return 0;
    if (!text.n)
        return err_say(e, ERR_POLICY, "the path is empty");
    int r = unfold(c, &p, forms, e);
    if (r == 0 && (!buf_ok(&p.bytes) || !buf_ok(&p.marks)))
        r = err_say(e, ERR_POLICY, "'%.*s' is longer than %d bytes, the maximum for a path", PATH_SAID(text),
                    MAX_PATH_TEXT);
    if (r == 0 && p.bytes.n == 0)
        r = err_say(e, ERR_POLICY, "'%.*s' is empty after its variables are expanded", PATH_SAID(text));
    if (r == 0)
        r = read_components(&p, c ? c->base : NULL, forms, &o, e);
    if (r == 0 && c)
        r = finish_reading(&o, text, mem, ret, e);
    buf_free(&p.bytes);
    buf_free(&p.marks);
    buf_free(&o.fixed);
    buf_free(&o.deep);
    return r;
}

static void write_literal(const char *path, struct buf *out)
{
    for (; *path; path++) {
        if (strchr("\\*?[$", *path))
            buf_char(out, '\\');
        buf_char(out, *path);
    }
}

/* A pattern is written as stored, except that a '$' must not begin a variable. */
static void write_pattern(const char *path, struct buf *out)
{
    for (; *path; path++) {
        if (*path == '$')
            buf_char(out, '\\');
        if (*path == '\\' && path[1])
            buf_char(out, *path++);
        buf_char(out, *path);
    }
}

static void write_tail(const char *path, bool pattern, struct buf *out)
{
    const char *last = strrchr(path, '/');
    if (!pattern) {
        write_literal(path, out);
        return;
    }
    if (last) {
        for (const char *p = path; p <= last; p++)
            write_literal((const char[]){*p, 0}, out);
        path = last + 1;
    }
    write_pattern(path, out);
}

void path_write(const char *path, const char *below, bool any_depth, bool pattern, struct buf *out)
{
    if (any_depth) {
        if (!same(below, "/")) {
            write_literal(below, out);
            buf_char(out, '/');
        }
        buf_text(out, "**/");
    }
    write_tail(path, pattern, out);
}

static size_t components_of(struct str path)
{
    struct str part;
    size_t n = 0;
    for (size_t at = 0; part_next(path, &at, &part);)
        n++;
    return n;
}

/* Offset of the components after the first `skip`. */
static size_t after_parts(struct str path, size_t skip)
{
    struct str part;
    size_t at = 0;
    while (skip-- && part_next(path, &at, &part))
        ;
    return at;
}

bool path_rule_covers(const struct path_rule *r, const char *path)
{
    const struct str rule = str_of(r->path), all = str_of(path);
    const size_t least = r->any_depth ? components_of(str_of(r->below)) : 0;
    const size_t most = r->any_depth ? components_of(all) : 0;
    size_t end;

    if (!r->any_depth && !r->pattern)
        return path_at_or_below(path, r->path);
    if (r->any_depth && !path_in(all, str_of(r->below)))
        return false;
    for (size_t skip = least; skip <= most; skip++)
        if (names_fit(rule, r->pattern, all, after_parts(all, skip), &end))
            return true;
    return false;
}

int guard_name_form(struct str text, bool ends, struct err *e)
{
    const bool deep = ends && str_starts(text, STR(GUARD_DEEP));
    struct str s = str_skip(text, deep ? sizeof GUARD_DEEP - 1 : 0);

    if (s.n > 1 && s.p[s.n - 1] == '/')
        s.n--;
    if (deep && memchr(s.p, '/', s.n))
        return err_say(e, ERR_POLICY, "'%.*s': " GUARD_DEEP " must be followed by one name, without a slash",
                       PATH_SAID(text));
    if (!s.n || s.n > MAX_PATH_TEXT || memchr(s.p, 0, s.n))
        return err_say(e, ERR_POLICY, "'%.*s' is not a name", PATH_SAID(text));
    if (s.p[0] == '/' || s.p[0] == '~')
        return err_say(e, ERR_POLICY,
                       "'%.*s': a guarded name is relative to a writable tree; use files.protect for a single path",
                       PATH_SAID(text));
    for (struct str rest = s; rest.n;) {
        const char *slash = memchr(rest.p, '/', rest.n);
        struct str c = {rest.p, slash ? (size_t)(slash - rest.p) : rest.n};
        if (!c.n || str_is(c, ".") || str_is(c, "..") || c.n > MAX_NAME)
            return err_say(e, ERR_POLICY, "'%.*s' is not a plain relative name", PATH_SAID(text));
        rest = str_skip(rest, c.n + 1);
    }
    /* "*.code-workspace": any name with this end, directly at a root. */
    const size_t star =
        str_starts(s, STR("*.")) && s.n > 2 && text.p[text.n - 1] != '/' && !memchr(s.p, '/', s.n) && ends;
    for (size_t i = star; i < s.n; i++) {
        if (strchr(star ? "*?[\\" : "*?[", s.p[i]))
            return err_say(e, ERR_POLICY, "'%.*s': guarded names are exact, without wildcards", PATH_SAID(text));
    }
    return 0;
}
