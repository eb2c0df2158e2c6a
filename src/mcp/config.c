/*
 * Finds the MCP servers in JSON and TOML settings files and replaces texts in place. All else of the file, comments
 * too, stays byte by byte as it was.
 */
#include "mcp/config.h"

#include <errno.h>
#include <stdio.h>

#include "mcp/protocol/value.h"

#define MAX_NESTING  64
#define MAX_PROPERTY 1024

struct config_cursor {
    const struct config_walk *to;
    struct arena *mem;
    const char *begin, *at, *end;
    const char *kept; /* what stands before it is in `out` */
    struct buf *out;
    const char *path[MAX_NESTING]; /* names of what the value lies in */
    size_t depth, table;           /* of TOML's table */
    bool toml;
    int replaced;
    const char *wrong; /* NULL: well so far */
};

static bool fail(struct config_cursor *w, const char *what)
{
    if (!w->wrong)
        w->wrong = what;
    return false;
}

static int peek(const struct config_cursor *w)
{
    return w->at < w->end ? (unsigned char)*w->at : -1;
}

static bool enter_value(struct config_cursor *w, const char *name)
{
    if (!name)
        return fail(w, "out of memory");
    if (w->depth == MAX_NESTING)
        return fail(w, "it is nested too deeply");
    w->path[w->depth++] = name;
    return true;
}

static bool enter_element(struct config_cursor *w, size_t i)
{
    return enter_value(w, arena_printf(w->mem, "[%zu]", i));
}

/* Where the text stands in its server: "args[1]". */
static const char *place_of(const struct config_cursor *w)
{
    auto_buf struct buf place = BUF(1u << 16);
    for (size_t i = 2; i < w->depth; i++)
        buf_printf(&place, "%s%s", i > 2 && w->path[i][0] != '[' ? "." : "", w->path[i]);
    return buf_ok(&place) ? arena_str(w->mem, buf_view(&place)) : NULL;
}

/* A text that was read from `from` to here: asked about where it is a server's. */
static bool found(struct config_cursor *w, const char *root, const char *from, const char *text)
{
    auto_buf struct buf to = BUF(1u << 16);
    const char *place = w->depth > 2 && same(w->path[0], root) ? place_of(w) : NULL;

    if (!place || !w->to->text(w->to->ctx, w->path[1], place, text, &to))
        return true;
    struct json j = JSON(w->out);
    j.toml = w->toml;
    buf_put(w->out, w->kept, (size_t)(from - w->kept));
    json_str(&j, NULL, buf_view(&to)); /* a text of JSON is one of TOML */
    w->kept = w->at;
    w->replaced++;
    return buf_ok(&to) || fail(w, "out of memory");
}

/* ---- JSON, with comments and commas at ends, as these agents read it */

static void json_space(struct config_cursor *w)
{
    while (w->at < w->end) {
        if (strchr(" \t\r\n", *w->at) && *w->at) {
            w->at++;
        } else if (w->end - w->at > 1 && w->at[0] == '/' && w->at[1] == '/') {
            while (w->at < w->end && *w->at != '\n')
                w->at++;
        } else if (w->end - w->at > 1 && w->at[0] == '/' && w->at[1] == '*') {
            const char *close = memmem(w->at + 2, (size_t)(w->end - w->at - 2), "*/", 2);
            w->at = close ? close + 2 : w->end;
        } else {
            return;
        }
    }
}

static const char *json_string_here(struct config_cursor *w)
{
    char why[128];
    const char *from = w->at++;
    while (w->at < w->end && *w->at != '"')
        w->at += *w->at == '\\' && w->end - w->at > 1 ? 2 : 1;
    if (w->at >= w->end) {
        fail(w, "a string is not terminated");
        return NULL;
    }
    w->at++;
    auto_value json_t *v = value_read((struct str){from, (size_t)(w->at - from)}, why, sizeof why);
    const char *text = json_string_value(v);
    if (!text || strlen(text) != json_string_length(v)) {
        fail(w, "a string is malformed");
        return NULL;
    }
    return arena_text(w->mem, text);
}

static bool json_value(struct config_cursor *w);

static bool json_members(struct config_cursor *w, char close)
{
    for (size_t i = 0;; i++) {
        json_space(w);
        if (peek(w) == close)
            break;
        const char *name = NULL;
        if (close == '}') {
            name = peek(w) == '"' ? json_string_here(w) : NULL;
            json_space(w);
            if (!name || peek(w) != ':')
                return fail(w, "a name and ':' are expected");
            w->at++;
        }
        if (!(name ? enter_value(w, name) : enter_element(w, i)) || !json_value(w))
            return false;
        w->depth--;
        json_space(w);
        if (peek(w) == ',')
            w->at++;
        else if (peek(w) != close)
            return fail(w, "',' or an end is expected");
    }
    w->at++;
    return true;
}

static bool json_value(struct config_cursor *w)
{
    json_space(w);
    const char *from = w->at;
    int c = peek(w);
    if (c == '{' || c == '[') {
        w->at++;
        return json_members(w, c == '{' ? '}' : ']');
    }
    if (c == '"') {
        const char *text = json_string_here(w);
        return text && found(w, "mcpServers", from, text);
    }
    while (w->at < w->end && *w->at && !strchr(",]} \t\r\n/\"", *w->at))
        w->at++;
    return w->at > from || fail(w, "a value is expected");
}

/* ---- TOML */

static void toml_space(struct config_cursor *w, bool lines)
{
    while (w->at < w->end) {
        if (*w->at == ' ' || *w->at == '\t' || *w->at == '\r' || (lines && *w->at == '\n')) {
            w->at++;
        } else if (*w->at == '#') {
            while (w->at < w->end && *w->at != '\n')
                w->at++;
        } else {
            return;
        }
    }
}

static void put_code(struct buf *out, unsigned long c)
{
    if (c < 0x80)
        buf_char(out, (char)c);
    else if (c < 0x800)
        buf_printf(out, "%c%c", (int)(0xC0 | c >> 6), (int)(0x80 | (c & 63)));
    else if (c < 0x10000)
        buf_printf(out, "%c%c%c", (int)(0xE0 | c >> 12), (int)(0x80 | (c >> 6 & 63)), (int)(0x80 | (c & 63)));
    else
        buf_printf(out, "%c%c%c%c", (int)(0xF0 | c >> 18), (int)(0x80 | (c >> 12 & 63)), (int)(0x80 | (c >> 6 & 63)),
                   (int)(0x80 | (c & 63)));
}

/* What stands behind a backslash. */
static bool toml_escape(struct config_cursor *w, bool many, struct buf *out)
{
    static const char names[] = "btnfre\"\\", values[] = "\b\t\n\f\r\033\"\\";
    int c = peek(w);
    size_t digits = c == 'u' ? 4 : c == 'U' ? 8 : c == 'x' ? 2 : 0;
    const char *name = c > 0 ? strchr(names, c) : NULL;
    unsigned long code = 0;

    w->at++;
    if (name) {
        buf_char(out, values[name - names]);
        return true;
    }
    if (many && (c == '\n' || c == ' ' || c == '\t' || c == '\r')) { /* the line goes on where the next text begins */
        while (w->at < w->end && *w->at && strchr(" \t\r\n", *w->at))
            w->at++;
        return true;
    }
    for (size_t i = 0; i < digits; i++, w->at++) {
        int h = peek(w);
        int v = h >= '0' && h <= '9' ? h - '0' : (h | 32) >= 'a' && (h | 32) <= 'f' ? (h | 32) - 'a' + 10 : -1;
        if (v < 0)
            return fail(w, "a string is malformed");
        code = code * 16 + (unsigned long)v;
    }
    if (!digits || !code || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return fail(w, "a string is malformed");
    put_code(out, code);
    return true;
}

static const char *toml_string(struct config_cursor *w)
{
    auto_buf struct buf text = BUF(1u << 20);
    char quote = *w->at;
    bool many = w->end - w->at > 2 && w->at[1] == quote && w->at[2] == quote;

    w->at += many ? 3 : 1;
    if (many && peek(w) == '\r')
        w->at++;
    if (many && peek(w) == '\n')
        w->at++;
    for (;;) {
        int c = peek(w);
        if (c <= 0 || (c == '\n' && !many)) {
            fail(w, "a string is not terminated");
            return NULL;
        }
        bool ends = c == quote && (!many || (w->end - w->at > 2 && w->at[1] == quote && w->at[2] == quote &&
                                             !(w->end - w->at > 3 && w->at[3] == quote)));
        w->at++;
        if (ends)
            break;
        if (c != '\\' || quote == '\'')
            buf_char(&text, (char)c);
        else if (!toml_escape(w, many, &text))
            return NULL;
    }
    w->at += many ? 2 : 0;
    if (!buf_ok(&text) || !utf8_valid(buf_view(&text))) {
        fail(w, "a text is not UTF-8, or too long");
        return NULL;
    }
    return arena_text(w->mem, buf_cstr(&text));
}

static bool is_bare(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* a."b c".d: each is entered. */
static bool toml_key(struct config_cursor *w)
{
    for (;;) {
        toml_space(w, false);
        const char *from = w->at, *name = NULL;
        if (peek(w) == '"' || peek(w) == '\'') {
            name = toml_string(w);
        } else {
            while (is_bare(peek(w)))
                w->at++;
            name = w->at > from && w->at - from < MAX_PROPERTY
                       ? arena_str(w->mem, (struct str){from, (size_t)(w->at - from)})
                       : NULL;
        }
        if (!name)
            return fail(w, "a name is expected");
        if (!enter_value(w, name))
            return false;
        toml_space(w, false);
        if (peek(w) != '.')
            return true;
        w->at++;
    }
}

static bool toml_value(struct config_cursor *w);

static bool toml_pair(struct config_cursor *w)
{
    size_t depth = w->depth;
    bool good = toml_key(w);
    if (good && peek(w) != '=')
        good = fail(w, "'=' is expected");
    if (good) {
        w->at++;
        good = toml_value(w);
    }
    w->depth = depth;
    return good;
}

static bool toml_members(struct config_cursor *w, char close)
{
    for (size_t i = 0;; i++) {
        toml_space(w, true);
        if (peek(w) == close)
            break;
        if (close == '}') {
            if (!toml_pair(w))
                return false;
        } else {
            if (!enter_element(w, i) || !toml_value(w))
                return false;
            w->depth--;
        }
        toml_space(w, true);
        if (peek(w) == ',')
            w->at++;
        else if (peek(w) != close)
            return fail(w, "',' or an end is expected");
    }
    w->at++;
    return true;
}

static bool toml_value(struct config_cursor *w)
{
    toml_space(w, false);
    const char *from = w->at;
    int c = peek(w);
    if (c == '[' || c == '{') {
        if (w->depth >= MAX_NESTING - 1)
            return fail(w, "it is nested too deeply");
        w->at++;
        return toml_members(w, c == '[' ? ']' : '}');
    }
    if (c == '"' || c == '\'') {
        const char *text = toml_string(w);
        return text && found(w, "mcp_servers", from, text);
    }
    while (w->at < w->end && *w->at && !strchr(",]}#=\r\n", *w->at))
        w->at++;
    return w->at > from || fail(w, "a value is expected");
}

/* [a.b] or [[a.b]] */
static bool toml_header(struct config_cursor *w)
{
    bool array = w->end - w->at > 1 && w->at[1] == '[';
    w->depth = 0;
    w->at += array ? 2 : 1;
    if (!toml_key(w))
        return false;
    for (int i = 0; i <= array; i++) {
        if (peek(w) != ']')
            return fail(w, "']' is expected");
        w->at++;
    }
    w->table = w->depth;
    return true;
}

static bool toml_file(struct config_cursor *w)
{
    for (;;) {
        toml_space(w, true);
        if (w->at >= w->end)
            return true;
        w->depth = w->table;
        if (!(peek(w) == '[' ? toml_header(w) : toml_pair(w)))
            return false;
        toml_space(w, false);
        if (w->at < w->end && *w->at != '\n')
            return fail(w, "a line has more than one value");
    }
}

static bool json_file(struct config_cursor *w)
{
    bool good = json_value(w);
    if (good)
        json_space(w);
    return good && (w->at == w->end || fail(w, "something follows its end"));
}

int config_servers(enum config_format format, struct str file, const struct config_walk *walk, struct buf *out,
                   char *why, size_t room)
{
    auto_arena struct arena *mem = arena_new(64u << 20);
    struct config_cursor w = {.to = walk,
                              .mem = mem,
                              .begin = file.p,
                              .at = file.p,
                              .end = file.p + file.n,
                              .kept = file.p,
                              .out = out,
                              .toml = format == CONFIG_TOML};
    bool good = mem && (format == CONFIG_JSON ? json_file(&w) : toml_file(&w));

    buf_put(out, w.kept, (size_t)(w.end - w.kept));
    if (good && !arena_failed(mem) && buf_ok(out))
        return w.replaced;
    size_t line = 1;
    for (const char *c = w.begin; c < w.at && c < w.end; c++)
        line += *c == '\n';
    snprintf(why, room, "%s (line %zu)", w.wrong ? w.wrong : "out of memory", line);
    return -EBADMSG;
}
