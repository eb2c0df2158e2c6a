/*
 * Parses YAML into a tree of nodes with their locations, without anchors, tags and aliases. JSON is a part of YAML
 * and read by it, too; depth and size have ceilings, since the text may be a stranger's.
 */
#include "policy/text/node.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <yaml.h>

#include "base/json.h"
#include "policy/build.h"
#include "policy/text/table.h"

struct yaml_reader {
    yaml_parser_t yaml;
    const char *file, *hint;
    struct arena *mem;
    struct err *e;
    struct str text;
    bool bytes;              /* the text contains a \x: scalars are checked again */
    size_t at_char, at_byte; /* how far character positions have been converted to bytes */
    size_t n_nodes;
};

/* Untrusted text in a message must not reach a terminal unchanged. */
static void make_printable(char *text, size_t room)
{
    auto_buf struct buf out = BUF(4 * room);
    utf8_safe(&out, str_of(text));
    if (buf_ok(&out))
        snprintf(text, room, "%s", buf_cstr(&out));
}

int place_wrap(struct err *e, int r, const char *file, uint32_t line, uint32_t column)
{
    if (line)
        r = err_wrap(e, r, "%s:%u:%u", file, line, column);
    else
        r = err_wrap(e, r, "%s", file);
    if (e)
        make_printable(e->text, sizeof e->text);
    return r;
}

int place_say(struct err *e, enum err_kind kind, const char *file, uint32_t line, uint32_t column, const char *format,
              ...)
{
    char text[sizeof e->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return place_wrap(e, err_say(e, kind, "%s", text), file, line, column);
}

static int node_no_memory(const struct yaml_reader *r)
{
    return err_sys(r->e, ERR_SYSTEM, ENOMEM, "%s", r->file);
}

static int node_say(const struct yaml_reader *r, yaml_mark_t at, const char *sentence)
{
    return place_say(r->e, ERR_POLICY, r->file, (uint32_t)at.line + 1, (uint32_t)at.column + 1, "%s", sentence);
}

/* The text at `mark`, whose index counts characters. */
static const char *text_at_mark(const struct yaml_reader *r, const yaml_mark_t *mark)
{
    size_t at = 0;
    for (size_t line = 0; line < mark->line && at < r->text.n; at++)
        line += r->text.p[at] == '\n';
    for (size_t column = 0; column < mark->column && at < r->text.n && r->text.p[at] != '\n'; column++) {
        at++;
        while (at < r->text.n && ((unsigned char)r->text.p[at] & 0xC0) == 0x80)
            at++;
    }
    return at < r->text.n ? r->text.p + at : "";
}

/* Clearer messages for common mistakes; NULL: use the parser's. */
static const char *usual_mistake(const struct yaml_reader *r, char room[80])
{
    const yaml_parser_t *y = &r->yaml;
    const char *here = text_at_mark(r, &y->problem_mark), *context = y->context ? y->context : "";
    char c = here[0];
    if (strstr(context, "an alias"))
        c = '*';
    else if (strstr(context, "an anchor"))
        c = '&';
    else if (strstr(context, "a tag"))
        c = '!';
    if (c == '\t' || strstr(y->problem ? y->problem : "", "found a tab"))
        return "tab character; YAML is indented with spaces";
    if (c == '@')
        return "a YAML string that begins with '@' needs quotes, as in \"@npm\"";
    if (c == '*')
        return "a YAML string that begins with '*' needs quotes, as in \"**/.env\"";
    if (strstr(y->problem ? y->problem : "", "expected <document start>"))
        return "neither YAML nor JSON: something follows the end of the policy";
    if (strstr(context, "a block mapping") || strstr(context, "a block collection"))
        return "neither YAML nor JSON: the line does not belong to the section above it (keys of one section begin in "
               "the "
               "same column, those of a section in it further right)";
    if (!c || !strchr("&!%`", c))
        return NULL;
    snprintf(room, 80, "a YAML string that begins with '%c' needs quotes, as in \"%cname\"", c, c);
    return room;
}

/* The line, from 1, of a merge that is not finished (git-merge(1), "how conflicts are presented"); 0: none. */
static uint32_t conflict_line(struct str text)
{
    for (uint32_t line = 1; text.n; line++) {
        struct str one = str_until(&text, '\n');
        if (str_starts(one, STR("<<<<<<< ")))
            return line;
    }
    return 0;
}

static int next_event(struct yaml_reader *r, yaml_event_t *ev)
{
    const yaml_parser_t *y = &r->yaml;
    if (yaml_parser_parse(&r->yaml, ev))
        return 0;
    if (y->error == YAML_MEMORY_ERROR)
        return node_no_memory(r);
    if (y->error == YAML_READER_ERROR) {
        uint32_t line = 1, column = 1;
        for (size_t i = 0; i < y->problem_offset && i < r->text.n; i++) {
            column++;
            if (r->text.p[i] == '\n') {
                line++;
                column = 1;
            }
        }
        bool utf16 = y->problem_offset == 0 && r->text.n > 1 &&
                     (memcmp(r->text.p, "\xff\xfe", 2) == 0 || memcmp(r->text.p, "\xfe\xff", 2) == 0);
        if (utf16)
            return place_say(r->e, ERR_POLICY, r->file, 1, 1, "this is UTF-16: save the file as UTF-8");
        return place_say(r->e, ERR_POLICY, r->file, line, column,
                         "%s here: a policy is UTF-8 text (write other bytes of a name as \"\\xNN\" in double quotes)",
                         y->problem);
    }
    const uint32_t conflict = conflict_line(r->text);
    if (conflict)
        return place_say(r->e, ERR_POLICY, r->file, conflict, 1,
                         "git could not merge what follows: keep one of the two sides, and remove the lines that begin "
                         "with '<<<<<<<', '=======' and '>>>>>>>'");
    char room[80];
    const char *usual = usual_mistake(r, room);
    if (usual)
        return place_say(r->e, ERR_POLICY, r->file, (uint32_t)y->problem_mark.line + 1,
                         (uint32_t)y->problem_mark.column + 1, "%s", usual);
    return place_say(r->e, ERR_POLICY, r->file, (uint32_t)y->problem_mark.line + 1,
                     (uint32_t)y->problem_mark.column + 1, "neither YAML nor JSON: %s%s%s",
                     y->context ? y->context : "", y->context ? ", " : "", y->problem ? y->problem : "unreadable");
}

/* The byte offset of character `index`; calls must have rising indices. */
static size_t byte_of(struct yaml_reader *r, size_t index)
{
    while (r->at_char < index && r->at_byte < r->text.n) {
        r->at_byte++;
        while (r->at_byte < r->text.n && ((unsigned char)r->text.p[r->at_byte] & 0xC0) == 0x80)
            r->at_byte++;
        r->at_char++;
    }
    return r->at_byte;
}

static int hex_digits(const char *p, size_t n, uint32_t *ret)
{
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++) {
        char c = p[i];
        if (c >= '0' && c <= '9')
            v = v << 4 | (uint32_t)(c - '0');
        else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
            v = v << 4 | (uint32_t)((c | 0x20) - 'a' + 10);
        else
            return -EINVAL;
    }
    *ret = v;
    return 0;
}

static void put_utf8(struct buf *out, uint32_t c)
{
    if (c < 0x80) {
        buf_char(out, (char)c);
    } else if (c < 0x800) {
        buf_char(out, (char)(0xC0 | c >> 6));
        buf_char(out, (char)(0x80 | (c & 0x3F)));
    } else if (c < 0x10000) {
        buf_char(out, (char)(0xE0 | c >> 12));
        buf_char(out, (char)(0x80 | (c >> 6 & 0x3F)));
        buf_char(out, (char)(0x80 | (c & 0x3F)));
    } else {
        buf_char(out, (char)(0xF0 | c >> 18));
        buf_char(out, (char)(0x80 | (c >> 12 & 0x3F)));
        buf_char(out, (char)(0x80 | (c >> 6 & 0x3F)));
        buf_char(out, (char)(0x80 | (c & 0x3F)));
    }
}

/* Whether the double-quoted text has an escape for a byte from 80 on. */
static bool has_byte_escape(struct str s)
{
    for (size_t i = 0; i + 3 < s.n; i++) {
        if (s.p[i] != '\\')
            continue;
        uint32_t v;
        if (s.p[i + 1] == 'x' && hex_digits(s.p + i + 2, 2, &v) == 0 && v >= 0x80)
            return true;
        i++;
    }
    return false;
}

/* YAML 1.1, 5.7: escapes of double quotes, except that \xNN is a byte. libyaml has accepted the text. */
static int unescape(struct str s, struct buf *out)
{
    static const char plain[] = "0abt\tnvfre \"/\\N_LP", names[] = "xuU";
    static const uint32_t chars[] = {0,  7,   8,   9,   9,    10,   11,   12,     13,
                                     27, ' ', '"', '/', '\\', 0x85, 0xA0, 0x2028, 0x2029};

    while (s.n) {
        if (s.p[0] == '\n' || s.p[0] == '\r')
            return -EINVAL;
        if (s.p[0] != '\\') {
            buf_char(out, s.p[0]);
            s = str_skip(s, 1);
            continue;
        }
        if (s.n < 2 || !s.p[1])
            return -EINVAL;
        const char *simple = strchr(plain, s.p[1]), *hex = strchr(names, s.p[1]);
        if (simple) {
            put_utf8(out, chars[simple - plain]);
            s = str_skip(s, 2);
            continue;
        }
        size_t n = hex ? (size_t)2 << (hex - names) : 0;
        uint32_t v;
        if (!n || s.n < 2 + n || hex_digits(s.p + 2, n, &v) < 0)
            return -EINVAL;
        if (n == 2)
            buf_char(out, (char)v);
        else
            put_utf8(out, v);
        s = str_skip(s, 2 + n);
    }
    return 0;
}

/* The scalar's text; or, with hexadecimal bytes, parsed again from the source. */
static int scalar_text(struct yaml_reader *r, const yaml_event_t *ev, struct str *ret)
{
    struct str text = {(const char *)ev->data.scalar.value, ev->data.scalar.length};

    if (r->bytes && ev->data.scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE) {
        size_t from = byte_of(r, ev->start_mark.index), to = byte_of(r, ev->end_mark.index);
        struct str source = {r->text.p + from, to - from};
        if (source.n >= 2 && source.p[0] == '"' && source.p[source.n - 1] == '"' && has_byte_escape(source)) {
            auto_buf struct buf out = BUF(MAX_POLICY_TEXT);
            if (unescape((struct str){source.p + 1, source.n - 2}, &out) < 0)
                return node_say(r, ev->start_mark, "a string with \\xNN bytes must be on one line");
            const char *copy = buf_ok(&out) ? arena_str(r->mem, buf_view(&out)) : NULL;
            if (!copy)
                return node_no_memory(r);
            *ret = (struct str){copy, out.n};
            return 0;
        }
    }
    const char *copy = arena_str(r->mem, text);
    if (!copy)
        return node_no_memory(r);
    *ret = (struct str){copy, text.n};
    return 0;
}

static int read_node(struct yaml_reader *r, yaml_event_t *ev, unsigned depth, struct node *ret);

static int check_key(struct yaml_reader *r, struct table *seen, const struct node *key, uint32_t *ret_line)
{
    bool fresh;
    if (key->kind != NODE_SCALAR)
        return place_say(r->e, ERR_POLICY, r->file, key->line, key->column, "a key must be a string, not %s",
                         node_kind_name(key));
    uint32_t *line = table_put(seen, 0, key->text, key->line, &fresh);
    if (!line)
        return node_no_memory(r);
    *ret_line = *line;
    return fresh
               ? 0
               : place_say(r->e, ERR_POLICY, r->file, key->line, key->column, "duplicate key '%.*s', first in line %u",
                           (int)(key->text.n < 80 ? key->text.n : 80), key->text.p, *line);
}

static int read_children(struct yaml_reader *r, yaml_event_type_t end, unsigned depth, struct node *ret)
{
    bool map = ret->kind == NODE_MAP;
    struct table seen = {.mem = r->mem};
    size_t n = 0;

    for (;;) {
        yaml_event_t ev;
        struct node child;
        uint32_t line;
        int no = next_event(r, &ev);
        if (no < 0)
            return no;
        if (ev.type == end) {
            yaml_event_delete(&ev);
            break;
        }
        no = read_node(r, &ev, depth, &child);
        if (no == 0 && map && n % 2 == 0)
            no = check_key(r, &seen, &child, &line);
        if (no < 0)
            return no;
        struct node *slot = arena_push(r->mem, &ret->items, &n, sizeof *slot);
        if (!slot)
            return node_no_memory(r);
        *slot = child;
    }
    ret->n = map ? n / 2 : n;
    return 0;
}

static int refuse_marked(struct yaml_reader *r, const yaml_event_t *ev, const unsigned char *anchor,
                         const unsigned char *tag)
{
    if (anchor)
        return node_say(r, ev->start_mark, "anchors (&name) are not supported; write the value out");
    if (tag)
        return node_say(r, ev->start_mark, "tags (!name) are not supported; remove the tag");
    return 0;
}

/* Reads the node that `ev` begins; takes ownership of the event. */
static int read_node(struct yaml_reader *r, yaml_event_t *ev, unsigned depth, struct node *ret)
{
    yaml_mark_t at = ev->start_mark;
    struct node n = {.line = (uint32_t)at.line + 1, .column = (uint32_t)at.column + 1};
    yaml_event_type_t type = ev->type;
    int no = 0;

    if (++r->n_nodes > MAX_POLICY_NODES)
        no = node_say(r, at, "the policy has too many values");
    else if (depth >= MAX_POLICY_DEPTH)
        no = node_say(r, at, "the policy is nested too deeply");
    else if (type == YAML_ALIAS_EVENT)
        no = node_say(r, at, "aliases (*name) are not supported; write the value out, in quotes if it begins with '*'");
    else if (type == YAML_SCALAR_EVENT) {
        no = refuse_marked(r, ev, ev->data.scalar.anchor, ev->data.scalar.tag);
        n.plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        if (no == 0)
            no = scalar_text(r, ev, &n.text);
    } else if (type == YAML_SEQUENCE_START_EVENT) {
        no = refuse_marked(r, ev, ev->data.sequence_start.anchor, ev->data.sequence_start.tag);
        n.kind = NODE_LIST;
    } else {
        no = refuse_marked(r, ev, ev->data.mapping_start.anchor, ev->data.mapping_start.tag);
        n.kind = NODE_MAP;
    }
    yaml_event_delete(ev);
    if (no == 0 && n.kind != NODE_SCALAR)
        no = read_children(r, n.kind == NODE_LIST ? YAML_SEQUENCE_END_EVENT : YAML_MAPPING_END_EVENT, depth + 1, &n);
    if (no == 0)
        *ret = n;
    return no;
}

/* Reads an event that needs no further inspection. */
static int take_event(struct yaml_reader *r, yaml_event_type_t *ret_type, yaml_mark_t *ret_at)
{
    yaml_event_t ev;
    int no = next_event(r, &ev);
    if (no < 0)
        return no;
    *ret_type = ev.type;
    *ret_at = ev.start_mark;
    yaml_event_delete(&ev);
    return 0;
}

static int read_document(struct yaml_reader *r, struct node *ret)
{
    yaml_event_type_t type;
    yaml_mark_t at;
    yaml_event_t ev;
    struct node root;

    int no = take_event(r, &type, &at); /* stream start */
    if (no == 0)
        no = take_event(r, &type, &at);
    if (no < 0)
        return no;
    if (type != YAML_DOCUMENT_START_EVENT)
        return err_say(r->e, ERR_POLICY, "%s: there is nothing in it%s", r->file, r->hint);
    no = next_event(r, &ev);
    if (no == 0)
        no = read_node(r, &ev, 0, &root);
    if (no == 0)
        no = take_event(r, &type, &at); /* document end */
    if (no == 0)
        no = take_event(r, &type, &at);
    if (no < 0)
        return no;
    if (type != YAML_STREAM_END_EVENT)
        return node_say(r, at, "a second document begins here; a policy is a single document");
    *ret = root;
    return 0;
}

/*
 * Makes JSON readable for libyaml: removes tabs before the first brace, and turns surrogate pairs into \UXXXXXXXX. Text
 * that does not begin with a brace is passed on unchanged.
 */
static struct str json_as_yaml(struct str text, struct buf *out)
{
    size_t i = str_starts(text, STR("\xEF\xBB\xBF")) ? 3 : 0;
    bool quoted = false;
    uint32_t high, low;

    while (i < text.n && strchr(" \t\r\n", text.p[i]) && text.p[i])
        i++;
    if (i == text.n || (text.p[i] != '{' && text.p[i] != '['))
        return text;
    for (size_t k = 0; k < i; k++)
        buf_char(out, text.p[k] == '\t' ? ' ' : text.p[k]);
    while (i < text.n) {
        const char *p = text.p + i;
        size_t left = text.n - i;
        if (*p == '"')
            quoted = !quoted;
        if (quoted && *p == '\\' && left >= 12 && p[1] == 'u' && p[6] == '\\' && p[7] == 'u' &&
            hex_digits(p + 2, 4, &high) == 0 && hex_digits(p + 8, 4, &low) == 0 && high >> 10 == 0x36 &&
            low >> 10 == 0x37) {
            buf_printf(out, "\\U%08X", 0x10000 + ((high & 0x3FF) << 10 | (low & 0x3FF)));
            i += 12;
            continue;
        }
        size_t n = quoted && *p == '\\' && left >= 2 ? 2 : 1;
        buf_put(out, p, n);
        i += n;
    }
    return buf_view(out);
}

int node_read(const char *file, struct str text, const char *hint, struct arena *mem, struct node *ret, struct err *e)
{
    auto_buf struct buf json = BUF(2 * MAX_POLICY_TEXT);
    struct yaml_reader r = {.file = file, .hint = hint, .mem = mem, .e = e};

    if (text.n > MAX_POLICY_TEXT)
        return err_say(e, ERR_POLICY, "%s: the file has %zu bytes; a policy can have at most %u", file, text.n,
                       MAX_POLICY_TEXT);
    if (str_starts(text, STR("\xef\xbb\xbf"))) /* a byte order mark, which the parser would count as a column */
        text = str_skip(text, 3);
    r.text = json_as_yaml(text, &json);
    if (!buf_ok(&json) || !yaml_parser_initialize(&r.yaml))
        return node_no_memory(&r);
    for (size_t i = 0; i + 1 < r.text.n && !r.bytes; i++)
        r.bytes = r.text.p[i] == '\\' && r.text.p[i + 1] == 'x';
    yaml_parser_set_encoding(&r.yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.yaml, (const unsigned char *)r.text.p, r.text.n);
    int no = read_document(&r, ret);
    yaml_parser_delete(&r.yaml);
    return no;
}

const struct node *node_get(const struct node *map, const char *key)
{
    for (size_t i = 0; map->kind == NODE_MAP && i < map->n; i++) {
        if (str_is(map->items[2 * i].text, key))
            return &map->items[2 * i + 1];
    }
    return NULL;
}

bool node_is_null(const struct node *n)
{
    return n->kind == NODE_SCALAR && n->plain && (!n->text.n || str_is(n->text, "~") || str_is(n->text, "null"));
}

const char *node_kind_name(const struct node *n)
{
    return n->kind == NODE_SCALAR ? "text" : n->kind == NODE_LIST ? "a list" : "a mapping";
}
