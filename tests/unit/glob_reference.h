/*
 * Patterns once more, written from the text in the manual and from nothing else: slow, recursive, a set as a list of
 * ranges, "in any case of letters" as what it says: some spelling of the name matches. For tests to hold src/match against.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { REFERENCE_MAX = 512, REFERENCE_LETTERS = 10 };

struct reference_text {
    uint32_t at[REFERENCE_MAX];
    size_t n;
};

/* Code points; a byte that belongs to none is 0x110000 and its value. */
static inline struct reference_text reference_decode(const char *bytes, size_t n)
{
    static const struct {
        uint32_t lead, mask, least, most;
        size_t more;
    } forms[] = {{0x00, 0x80, 0, 0x7f, 0},
                 {0xc0, 0xe0, 0x80, 0x7ff, 1},
                 {0xe0, 0xf0, 0x800, 0xffff, 2},
                 {0xf0, 0xf8, 0x10000, 0x10ffff, 3}};
    struct reference_text t = {.n = 0};
    for (size_t i = 0; i < n;) {
        uint32_t lead = (unsigned char)bytes[i], c = 0x110000 + lead;
        size_t width = 1;
        for (size_t f = 0; f < 4; f++) {
            if ((lead & forms[f].mask) != forms[f].lead || n - i <= forms[f].more)
                continue;
            uint32_t v = lead & ~forms[f].mask;
            bool good = true;
            for (size_t k = 1; k <= forms[f].more; k++) {
                uint32_t next = (unsigned char)bytes[i + k];
                good = good && next >= 0x80 && next <= 0xbf;
                v = v * 64 + next % 64;
            }
            if (good && v >= forms[f].least && v <= forms[f].most && !(v >= 0xd800 && v <= 0xdfff)) {
                c = v;
                width = forms[f].more + 1;
            }
        }
        if (t.n == REFERENCE_MAX)
            abort();
        t.at[t.n++] = c;
        i += width;
    }
    return t;
}

struct reference_item {
    enum { REFERENCE_MANY, REFERENCE_IS, REFERENCE_IS_NOT } kind; /* a run; one of the ranges; one of none of them */
    uint32_t low[REFERENCE_MAX], high[REFERENCE_MAX];
    size_t n;
};
struct reference_pattern {
    struct reference_item *items;
    size_t n;
    bool wrong;
};

static inline bool reference_is_class(const struct reference_text *t, size_t i)
{
    return i + 1 < t->n && t->at[i] == '[' && (t->at[i + 1] == ':' || t->at[i + 1] == '=' || t->at[i + 1] == '.');
}

static inline struct reference_pattern reference_parse(const char *bytes, size_t n)
{
    struct reference_text t = reference_decode(bytes, n);
    struct reference_pattern p = {.items = calloc(t.n + 1, sizeof *p.items)};
    if (!p.items)
        abort();
    for (size_t i = 0; i < t.n; i++)
        p.wrong = p.wrong || t.at[i] == '/' || t.at[i] == 0;
    for (size_t i = 0; i < t.n && !p.wrong;) {
        struct reference_item *item = &p.items[p.n++];
        uint32_t c = t.at[i++];
        *item = (struct reference_item){.kind = REFERENCE_IS};
        if (c == '*') {
            item->kind = REFERENCE_MANY;
        } else if (c == '?') {
            item->kind = REFERENCE_IS_NOT; /* none of nothing */
        } else if (c == '\\' || c != '[') {
            if (c == '\\' && i == t.n)
                p.wrong = true;
            else
                item->low[0] = item->high[0] = c == '\\' ? t.at[i++] : c;
            item->n = 1;
        } else {
            if (i < t.n && (t.at[i] == '!' || t.at[i] == '^')) {
                item->kind = REFERENCE_IS_NOT;
                i++;
            }
            size_t first = i;
            while (i < t.n && (i == first || t.at[i] != ']') && !p.wrong) {
                uint32_t end[2];
                size_t ends = 0;
                /* One character, and if a '-' follows that is not the last in the set, another. */
                do {
                    i += ends; /* the '-' */
                    if (reference_is_class(&t, i))
                        p.wrong = true;
                    if (i < t.n && t.at[i] == '\\')
                        i++;
                    if (i == t.n)
                        p.wrong = true;
                    else
                        end[ends++] = t.at[i++];
                } while (!p.wrong && ends == 1 && i + 1 < t.n && t.at[i] == '-' && t.at[i + 1] != ']');
                if (p.wrong)
                    break;
                item->low[item->n] = end[0];
                item->high[item->n++] = end[ends - 1];
                p.wrong = end[0] > end[ends - 1] || (ends == 2 && (end[0] >= 0x110000 || end[1] >= 0x110000));
            }
            p.wrong = p.wrong || i == t.n;
            i++; /* ']' */
        }
    }
    return p;
}

static inline void reference_free(struct reference_pattern *p)
{
    free(p->items);
}

static inline bool reference_from(const struct reference_pattern *p, size_t i, const struct reference_text *name,
                                  size_t at)
{
    if (i == p->n)
        return at == name->n;
    const struct reference_item *item = &p->items[i];
    if (item->kind == REFERENCE_MANY)
        return reference_from(p, i + 1, name, at) ||
               (at < name->n && name->at[at] != '/' && name->at[at] != 0 && reference_from(p, i, name, at + 1));
    if (at == name->n || name->at[at] == '/' || name->at[at] == 0)
        return false;
    bool in = false;
    for (size_t k = 0; k < item->n; k++)
        in = in || (name->at[at] >= item->low[k] && name->at[at] <= item->high[k]);
    return in == (item->kind == REFERENCE_IS) && reference_from(p, i + 1, name, at + 1);
}

static inline bool reference_is_letter(uint32_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Every spelling of the name from its character `at` on; names of more letters than REFERENCE_LETTERS are not for this. */
static inline bool reference_spelt(const struct reference_pattern *p, struct reference_text *name, size_t at)
{
    while (at < name->n && !reference_is_letter(name->at[at]))
        at++;
    if (at == name->n)
        return reference_from(p, 0, name, 0);
    if (reference_spelt(p, name, at + 1))
        return true;
    name->at[at] ^= 32;
    bool found = reference_spelt(p, name, at + 1);
    name->at[at] ^= 32;
    return found;
}

static inline bool reference_match(const struct reference_pattern *p, const char *bytes, size_t n, bool any_case)
{
    struct reference_text name = reference_decode(bytes, n);
    return any_case ? reference_spelt(p, &name, 0) : reference_from(p, 0, &name, 0);
}
