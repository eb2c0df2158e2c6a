/*
 * Writes JSON into a buffer, compact or indented, and checks and cleans UTF-8 text. What pinfold reads as JSON is
 * read by policy/text/ and jansson; nothing here parses.
 */
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The length of the valid UTF-8 sequence at the start of `s` (1 to 4), or 0. RFC 3629, section 4. */
static size_t utf8_sequence(struct str s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    unsigned char low = 0x80, high = 0xBF;
    size_t n;

    if (s.n == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xC2 || p[0] > 0xF4)
        return 0;
    n = p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    if (s.n < n)
        return 0;
    if (p[0] == 0xE0)
        low = 0xA0;
    else if (p[0] == 0xED)
        high = 0x9F;
    else if (p[0] == 0xF0)
        low = 0x90;
    else if (p[0] == 0xF4)
        high = 0x8F;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++) {
        if (p[i] < 0x80 || p[i] > 0xBF)
            return 0;
    }
    return n;
}

bool utf8_valid(struct str s)
{
    while (s.n) {
        size_t n = utf8_sequence(s);
        if (n == 0)
            return false;
        s = str_skip(s, n);
    }
    return true;
}

bool utf8_is_text(struct str s)
{
    size_t escaped = 0;
    for (size_t i = 0; i < s.n; i++)
        escaped += (unsigned char)s.p[i] < ' ' && s.p[i] != '\n' && s.p[i] != '\r' && s.p[i] != '\t';
    return escaped <= s.n / 5 * 2 && utf8_valid(s);
}

/* U+0080 to U+009F are control characters as well (ECMA-48). */
static bool is_control(struct str s, size_t n)
{
    unsigned char c = (unsigned char)s.p[0];
    return c < 0x20 || c == 0x7F || (n == 2 && c == 0xC2 && (unsigned char)s.p[1] < 0xA0);
}

/* The character of a valid sequence of `n` bytes. */
static uint32_t utf8_code(struct str s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s.p;
    uint32_t c = n == 1 ? p[0] : p[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (p[i] & 0x3F);
    return c;
}

/*
 * Characters that nobody sees, or that reorder those around them: with them one name looks like another. These are those that
 * Unicode has programs ignore (DerivedCoreProperties.txt, Default_Ignorable_Code_Point), line and paragraph separators and
 * annotations. Not U+200C, U+200D, U+FE0E and U+FE0F, which words and emoji need.
 */
static bool is_deceptive(struct str s, size_t n)
{
    static const uint32_t ranges[][2] = {
        {0xAD, 0xAD},       {0x34F, 0x34F},     {0x61C, 0x61C},     {0x115F, 0x1160}, {0x17B4, 0x17B5},
        {0x180B, 0x180F},   {0x200B, 0x200B},   {0x200E, 0x200F},   {0x2028, 0x202E}, {0x2060, 0x206F},
        {0x3164, 0x3164},   {0xFE00, 0xFE0D},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB},
        {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
    };
    const uint32_t c = utf8_code(s, n);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges && c >= ranges[i][0]; i++) {
        if (c <= ranges[i][1])
            return true;
    }
    return false;
}

size_t utf8_plain(struct str s)
{
    const size_t n = s.n ? utf8_sequence(s) : 0;
    return n && !is_control(s, n) && !is_deceptive(s, n) ? n : 0;
}

void utf8_safe(struct buf *out, struct str s)
{
    while (s.n) {
        const size_t n = utf8_sequence(s), shown = n ? n : 1, plain = utf8_plain(s);
        buf_put(out, s.p, plain);
        for (size_t i = 0; i < shown && !plain; i++)
            buf_printf(out, "\\x%02x", (unsigned char)s.p[i]);
        s = str_skip(s, shown);
    }
}

void utf8_line(struct buf *out, const char *head, const char *format, va_list args)
{
    char text[4096];
    (void)vsnprintf(text, sizeof text, format, args);
    buf_text(out, head);
    utf8_safe(out, str_of(text));
    buf_char(out, '\n');
}

static void newline(struct json *j)
{
    if (!j->pretty)
        return;
    buf_char(j->out, '\n');
    for (int i = 0; i < j->depth; i++)
        buf_text(j->out, "  ");
}

/* Number of bytes at the start of `s` that need no escape in a string. */
static size_t plain_run(struct str s)
{
    size_t n = 0;
    while (n < s.n && (unsigned char)s.p[n] >= 0x20 && (unsigned char)s.p[n] < 0x7F && s.p[n] != '"' && s.p[n] != '\\')
        n++;
    return n;
}

static void quote(struct json *j, struct str s)
{
    buf_char(j->out, '"');
    while (s.n) {
        size_t plain = plain_run(s);
        if (plain) {
            buf_put(j->out, s.p, plain);
            s = str_skip(s, plain);
            continue;
        }
        unsigned char c = (unsigned char)s.p[0];
        size_t n = utf8_sequence(s);
        if (n == 0) {
            buf_text(j->out, "\xEF\xBF\xBD");
            n = 1;
        } else if (c == '"' || c == '\\') {
            buf_char(j->out, '\\');
            buf_char(j->out, (char)c);
        } else if (c == '\n') {
            buf_text(j->out, "\\n");
        } else if (c == '\t') {
            buf_text(j->out, "\\t");
        } else if (is_control(s, n)) { /* two-byte controls, U+0080 on: C2 and the number itself */
            buf_printf(j->out, "\\u%04x", (unsigned char)s.p[n - 1]);
        } else if (is_deceptive(s, n)) { /* JSON is shown on terminals, too (pinfold log) */
            const uint32_t code = utf8_code(s, n);
            if (code > 0xFFFF && j->toml)
                buf_printf(j->out, "\\U%08x", code);
            else if (code > 0xFFFF)
                buf_printf(j->out, "\\u%04x\\u%04x", 0xD800 + ((code - 0x10000) >> 10), 0xDC00 + (code & 0x3FF));
            else
                buf_printf(j->out, "\\u%04x", code);
        } else {
            buf_put(j->out, s.p, n);
        }
        s = str_skip(s, n);
    }
    buf_char(j->out, '"');
}

static void start(struct json *j, const char *name)
{
    if (j->comma)
        buf_char(j->out, ',');
    if (j->depth > 0)
        newline(j);
    if (name) {
        quote(j, str_of(name));
        buf_text(j->out, j->pretty ? ": " : ":");
    }
    j->comma = true;
}

static void open_with(struct json *j, const char *name, char c)
{
    if (j->tree) {
        values_open(j->tree, name, c == '{' ? VALUE_OBJECT : VALUE_ARRAY);
        return;
    }
    start(j, name);
    buf_char(j->out, c);
    j->comma = false;
    j->depth++;
}

static void close_with(struct json *j, char c)
{
    bool empty = !j->comma;
    if (j->tree) {
        values_close(j->tree);
        return;
    }
    j->depth--;
    if (!empty)
        newline(j);
    buf_char(j->out, c);
    j->comma = true;
}

void json_object(struct json *j, const char *name)
{
    open_with(j, name, '{');
}
void json_object_end(struct json *j)
{
    close_with(j, '}');
}
void json_array(struct json *j, const char *name)
{
    open_with(j, name, '[');
}
void json_array_end(struct json *j)
{
    close_with(j, ']');
}

/* Texts of values are UTF-8, too. */
static void tree_text(struct values *tree, const char *name, struct str value)
{
    auto_buf struct buf clean = BUF(3 * value.n + 1);
    if (utf8_valid(value)) {
        values_text(tree, name, value);
        return;
    }
    while (value.n) {
        size_t n = utf8_sequence(value);
        buf_put(&clean, n ? value.p : "\xEF\xBF\xBD", n ? n : 3);
        value = str_skip(value, n ? n : 1);
    }
    tree->b.broken |= !buf_ok(&clean);
    values_text(tree, name, buf_view(&clean));
}

void json_str(struct json *j, const char *name, struct str value)
{
    if (j->tree) {
        tree_text(j->tree, name, value);
        return;
    }
    start(j, name);
    quote(j, value);
}

void json_int(struct json *j, const char *name, int64_t value)
{
    if (j->tree) {
        values_put(j->tree, name, VALUE_NUMBER, (uint64_t)value);
        return;
    }
    start(j, name);
    buf_printf(j->out, "%" PRId64, value);
}

void json_uint(struct json *j, const char *name, uint64_t value)
{
    if (j->tree) {
        values_put(j->tree, name, VALUE_NUMBER, value < INT64_MAX ? value : INT64_MAX);
        return;
    }
    start(j, name);
    buf_printf(j->out, "%" PRIu64, value);
}

void json_raw(struct json *j, const char *name, struct str value)
{
    if (j->tree) {
        j->tree->b.broken = true;
        return;
    }
    start(j, name);
    buf_str(j->out, value);
}

static void put_word(struct json *j, const char *name, enum value_type type)
{
    if (j->tree) {
        values_put(j->tree, name, type, 0);
        return;
    }
    start(j, name);
    buf_text(j->out, type == VALUE_TRUE ? "true" : type == VALUE_FALSE ? "false" : "null");
}

void json_bool(struct json *j, const char *name, bool value)
{
    put_word(j, name, value ? VALUE_TRUE : VALUE_FALSE);
}

void json_null(struct json *j, const char *name)
{
    put_word(j, name, VALUE_NULL);
}

static void base64(struct buf *out, struct str bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = (const unsigned char *)bytes.p;

    for (size_t i = 0; i < bytes.n; i += 3) {
        size_t left = bytes.n - i;
        unsigned v = (unsigned)p[i] << 16 | (left > 1 ? (unsigned)p[i + 1] << 8 : 0) | (left > 2 ? p[i + 2] : 0);
        char four[4] = {digits[v >> 18], digits[v >> 12 & 63], left > 1 ? digits[v >> 6 & 63] : '=',
                        left > 2 ? digits[v & 63] : '='};
        buf_put(out, four, 4);
    }
}

void json_base64(struct json *j, const char *name, struct str bytes)
{
    if (j->tree) {
        auto_buf struct buf text = BUF(bytes.n / 3 * 4 + 8);
        base64(&text, bytes);
        j->tree->b.broken |= !buf_ok(&text);
        values_text(j->tree, name, buf_view(&text));
        return;
    }
    start(j, name);
    buf_char(j->out, '"');
    base64(j->out, bytes);
    buf_char(j->out, '"');
}

void json_put_without(struct json *j, const char *name, const struct value_node *v, const char *const *skip)
{
    struct str text = {0};
    if (!v || v->type <= VALUE_TRUE) {
        put_word(j, name, v ? (enum value_type)v->type : VALUE_NULL);
    } else if (v->type == VALUE_NUMBER) {
        json_int(j, name, (int64_t)v->number);
    } else if (v->type == VALUE_TEXT) {
        text.p = value_string(v, &text.n);
        json_str(j, name, text);
    } else {
        open_with(j, name, v->type == VALUE_OBJECT ? '{' : '[');
        for (const struct value_node *one = value_first(v); one; one = value_next(one)) {
            if (!same_as_one(value_name(one), skip))
                json_put_without(j, value_name(one), one, skip);
        }
        close_with(j, v->type == VALUE_OBJECT ? '}' : ']');
    }
}

void json_put(struct json *j, const char *name, const struct value_node *v)
{
    json_put_without(j, name, v, NULL);
}
