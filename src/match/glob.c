/*
 * The grammar is implemented once, in read_member() and glob_next(), which matching, checking and translating use. A
 * star first matches as little as possible and then one character more at a time; only the last star ever needs to be
 * retried.
 */
#include "match/glob.h"

static const char NO_END[] = "has a '[' without a ']'; write \\[ for the character";
static const char BAD_RANGE[] =
    "has a range in its [...] that ends before it begins; write the lower character first, or "
    "\\- for the character";
static const char NO_RANGE[] =
    "has a byte that is not UTF-8 at an end of a range in its [...]; list such bytes one by one";
static const char CLASS[] =
    "has [:, [= or [. in its [...]: classes such as [:alpha:] are not known; write the characters, as "
    "[A-Za-z], or \\[ for the character";
static const char NO_MORE[] = "ends in a backslash, which escapes the next character; there is none";
static const char NO_NAME[] = "contains a '/' or a NUL byte; a name cannot, and wildcards match within one name";

/* Size of the character at the start, 1 for an invalid byte. `s` is not empty. */
static size_t read_character(struct str s, uint32_t *ret)
{
    const unsigned char *p = (const unsigned char *)s.p;
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
    uint32_t c = n == 1 ? p[0] : p[0] & (0x7fu >> n);

    if (n == 1) {
        *ret = c;
        return 1;
    }
    *ret = GLOB_BYTES + p[0];
    if (n == 0 || s.n < n)
        return 1;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 1;
        c = c << 6 | (p[i] & 0x3fu);
    }
    if ((n == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) || (n == 4 && (c < 0x10000 || c > 0x10ffff)))
        return 1;
    *ret = c;
    return n;
}

static uint32_t take_character(struct str *s)
{
    uint32_t c = (unsigned char)s->p[0];
    if (c < 0x80) { /* mostly */
        *s = (struct str){s->p + 1, s->n - 1};
        return c;
    }
    *s = str_skip(*s, read_character(*s, &c));
    return c;
}

/* One character, perhaps after a backslash; returns NULL, or what is wrong. `line`: '/' is a character as others. */
static const char *take_literal(struct str *s, bool line, uint32_t *ret)
{
    if (s->n && s->p[0] == '\\')
        *s = str_skip(*s, 1);
    if (!s->n)
        return NO_MORE;
    *ret = take_character(s);
    return (*ret == '/' && !line) || *ret == 0 ? NO_NAME : NULL;
}

/* A member of a set: a character or a range. `s` is not empty. */
static const char *read_member(struct str *s, bool line, uint32_t *low, uint32_t *high)
{
    if (s->n > 1 && s->p[0] == '[' && (s->p[1] == ':' || s->p[1] == '=' || s->p[1] == '.'))
        return CLASS;
    const char *wrong = take_literal(s, line, low);
    *high = *low;
    if (wrong || s->n < 2 || s->p[0] != '-' || s->p[1] == ']')
        return wrong;
    *s = str_skip(*s, 1);
    if (s->n > 1 && s->p[0] == '[' && (s->p[1] == ':' || s->p[1] == '=' || s->p[1] == '.'))
        return CLASS;
    wrong = take_literal(s, line, high);
    return wrong ? wrong : *low >= GLOB_BYTES || *high >= GLOB_BYTES ? NO_RANGE : *low > *high ? BAD_RANGE : NULL;
}

/* A set; `s` begins after its '['. */
static const char *read_set(struct str *s, bool line, struct glob_part *ret)
{
    uint32_t low, high;

    ret->negated = s->n && (s->p[0] == '!' || s->p[0] == '^');
    *s = str_skip(*s, ret->negated);
    ret->members = *s;
    for (bool first = true; s->n && (first || s->p[0] != ']'); first = false) {
        const char *wrong = read_member(s, line, &low, &high);
        if (wrong)
            return wrong == NO_MORE ? NO_END : wrong;
    }
    if (!s->n)
        return NO_END;
    ret->members.n -= s->n;
    *s = str_skip(*s, 1);
    return NULL;
}

static enum glob_kind next_part(struct str *s, bool line, struct glob_part *ret, const char **wrong)
{
    *wrong = NULL;
    if (!s->n)
        return GLOB_END;
    switch (s->p[0]) {
    case '*':
        *s = str_skip(*s, 1);
        return GLOB_MANY;
    case '?':
        *s = str_skip(*s, 1);
        return GLOB_ONE;
    case '[':
        *s = str_skip(*s, 1);
        *wrong = read_set(s, line, ret);
        return *wrong ? GLOB_WRONG : GLOB_SET;
    default:
        *wrong = take_literal(s, line, &ret->character);
        return *wrong ? GLOB_WRONG : GLOB_CHARACTER;
    }
}

enum glob_kind glob_next(struct str *pattern, struct glob_part *ret)
{
    const char *wrong;
    return next_part(pattern, false, ret, &wrong);
}

bool glob_member(struct str *members, uint32_t *low, uint32_t *high)
{
    return members->n && !read_member(members, true, low, high); /* the set was read before */
}

static const char *wrong_in(struct str pattern, bool line)
{
    struct glob_part part = {0};
    const char *wrong;
    while (next_part(&pattern, line, &part, &wrong) != GLOB_END)
        if (wrong)
            return wrong;
    return NULL;
}

const char *glob_wrong(struct str pattern)
{
    return wrong_in(pattern, false);
}

const char *glob_wrong_line(struct str pattern)
{
    return wrong_in(pattern, true);
}

static uint32_t other_case(uint32_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ? c ^ 0x20 : c;
}

static bool in_set(const struct glob_part *set, uint32_t c)
{
    struct str members = set->members;
    for (uint32_t low, high; glob_member(&members, &low, &high);)
        if (c >= low && c <= high)
            return !set->negated;
    return set->negated;
}

/* Whether a part for a single character matches this one. */
static bool is_meant(enum glob_kind kind, const struct glob_part *part, uint32_t c, enum glob_case how)
{
    const bool any = how == GLOB_ANY_CASE;
    if ((c == '/' && how != GLOB_LINE) || c == 0)
        return false;
    switch (kind) {
    case GLOB_ONE:
        return true;
    case GLOB_CHARACTER:
        return c == part->character || (any && other_case(c) == part->character);
    case GLOB_SET:
        return in_set(part, c) || (any && in_set(part, other_case(c)));
    default:
        return false;
    }
}

/* Whether the pattern begins with an ordinary ASCII character, which needs no parsing: most do. */
static bool begins_plain(struct str pattern)
{
    const unsigned char c = pattern.n ? (unsigned char)pattern.p[0] : 0;
    return c && c < 0x80 && c != '*' && c != '?' && c != '[' && c != '\\' && c != '/';
}

bool glob_match(struct str pattern, struct str name, enum glob_case how)
{
    struct str behind_star = {NULL, 0}, star_at = name;
    struct glob_part part = {0};
    const char *wrong;

    for (;;) {
        struct str after = pattern, rest = name;
        enum glob_kind kind = GLOB_CHARACTER;
        if (begins_plain(pattern))
            part.character = take_character(&after);
        else
            kind = next_part(&after, how == GLOB_LINE, &part, &wrong);
        if (kind == GLOB_WRONG)
            return how == GLOB_ANY_CASE;
        if (kind == GLOB_END && !name.n)
            return true;
        if (kind == GLOB_MANY) {
            pattern = behind_star = after;
            star_at = name;
            continue;
        }
        if (name.n && is_meant(kind, &part, take_character(&rest), how)) {
            pattern = after;
            name = rest;
            continue;
        }
        /* The last star matches one more character. */
        uint32_t c = behind_star.p && star_at.n ? take_character(&star_at) : 0;
        if (c == 0 || (c == '/' && how != GLOB_LINE))
            return false;
        pattern = behind_star;
        name = star_at;
    }
}

void glob_put_literal(struct buf *out, char c)
{
    if (c && strchr("*?[]\\-!^", c))
        buf_char(out, '\\');
    buf_char(out, c);
}
