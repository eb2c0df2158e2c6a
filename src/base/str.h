/*
 * Slices of text. A struct str borrows its bytes: it owns nothing and need not end in NUL. File names may hold any byte
 * but NUL, so nothing here assumes UTF-8.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

struct str {
    const char *p;
    size_t n;
};

#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})

/* The NUL-terminated string `s` as a slice; NULL gives the empty slice. */
static inline struct str str_of(const char *s)
{
    return (struct str){s, s ? strlen(s) : 0};
}
/* The text with a NUL behind it; false, and nothing is copied, if `to` has no room for both. */
static inline bool str_copy(struct str s, char *to, size_t room)
{
    if (s.n >= room)
        return false;
    memcpy(to, s.p, s.n);
    to[s.n] = 0;
    return true;
}
static inline bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}
static inline bool str_is(struct str a, const char *s)
{
    return str_eq(a, str_of(s));
}
static inline bool str_starts(struct str a, struct str head)
{
    return a.n >= head.n && (head.n == 0 || memcmp(a.p, head.p, head.n) == 0);
}
static inline bool str_ends(struct str a, struct str tail)
{
    return a.n >= tail.n && (tail.n == 0 || memcmp(a.p + a.n - tail.n, tail.p, tail.n) == 0);
}
static inline bool str_is_nocase(struct str a, const char *s)
{
    return a.n == strlen(s) && (a.n == 0 || strncasecmp(a.p, s, a.n) == 0);
}
static inline struct str str_skip(struct str a, size_t n)
{
    return n > a.n ? (struct str){a.p + a.n, 0} : (struct str){a.p + n, a.n - n};
}
/* Strips spaces and tabs at both ends: the optional whitespace of HTTP fields (RFC 9110 5.6.3). */
static inline struct str str_trim(struct str a)
{
    while (a.n && (a.p[0] == ' ' || a.p[0] == '\t'))
        a = str_skip(a, 1);
    while (a.n && (a.p[a.n - 1] == ' ' || a.p[a.n - 1] == '\t'))
        a.n--;
    return a;
}

/* Cuts off and returns what precedes the first `c`, and drops that `c`; without one, returns all. */
static inline struct str str_until(struct str *s, char c)
{
    const char *at = s->n ? (const char *)memchr(s->p, c, s->n) : NULL;
    struct str head = {s->p, at ? (size_t)(at - s->p) : s->n};
    *s = str_skip(*s, head.n + (at ? 1 : 0));
    return head;
}

/* Whether two NUL-terminated strings are equal; NULL equals only NULL. */
static inline bool same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Whether `s` is one of the list, which NULL ends; NULL, or no list: no. */
static inline bool same_as_one(const char *s, const char *const *list)
{
    for (; s && list && *list; list++) {
        if (strcmp(s, *list) == 0)
            return true;
    }
    return false;
}

/* For qsort(3) of a list of texts, by their bytes. */
static inline int text_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* -1: it is none. */
static inline int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Optimal string alignment distance of two names, at most 99; used to suggest the nearest valid name. */
unsigned str_distance(struct str a, struct str b);

/* Two arguments for "%.*s" in a message: at most the first 120 bytes. */
#define STR_SAID(s) (int)((s).n < 120 ? (s).n : 120), (s).p
