/*
 * Values in one piece of memory: made through the JSON writer, checked when they came from elsewhere, and read. The
 * reports and results of libpinfold are such values; they go through a socket as they are, without being parsed.
 */
#include "base/value.h"

#define UNIT 8u

static size_t padded(size_t n)
{
    return (n + UNIT - 1) / UNIT * UNIT;
}

static struct value_node *at_offset(struct values *t, uint32_t offset)
{
    return (struct value_node *)(void *)(t->b.p + offset);
}

static void put_padded(struct buf *b, const void *bytes, size_t n)
{
    static const char zero[UNIT];
    buf_put(b, bytes, n);
    buf_put(b, zero, padded(n) - n);
}

/* The head of a value with `more` bytes after its name. */
static void put_head(struct values *t, const char *name, enum value_type type, uint64_t number, size_t more)
{
    size_t n = name ? strlen(name) + 1 : 0, at = t->b.n, bytes = sizeof(struct value_node) + padded(n) + padded(more);
    if (n > UINT16_MAX || at + bytes > UINT32_MAX || (t->depth == 0 && at != 0))
        t->b.broken = true;
    const struct value_node head = {
        .bytes = (uint32_t)bytes, .type = (uint8_t)type, .last = 1, .name = (uint16_t)n, .number = number};
    put_padded(&t->b, &head, sizeof head);
    if (n)
        put_padded(&t->b, name, n);
    if (!buf_ok(&t->b) || t->depth == 0)
        return;
    struct value_node *container = at_offset(t, t->open[t->depth - 1]);
    if (container->number++)
        at_offset(t, t->newest[t->depth])->last = 0;
    t->newest[t->depth] = (uint32_t)at;
}

void values_put(struct values *t, const char *name, enum value_type type, uint64_t number)
{
    put_head(t, name, type, number, 0);
}

void values_text(struct values *t, const char *name, struct str text)
{
    static const char zero[UNIT];
    put_head(t, name, VALUE_TEXT, text.n, text.n + 1);
    buf_str(&t->b, text);
    buf_put(&t->b, zero, padded(text.n + 1) - text.n);
}

void values_open(struct values *t, const char *name, enum value_type type)
{
    uint32_t at = (uint32_t)t->b.n;
    if (t->depth == VALUE_DEPTH)
        t->b.broken = true;
    put_head(t, name, type, 0, 0);
    if (buf_ok(&t->b))
        t->open[t->depth++] = at;
}

void values_close(struct values *t)
{
    if (!buf_ok(&t->b) || t->depth == 0) {
        t->b.broken = true;
        return;
    }
    const uint32_t at = t->open[--t->depth];
    at_offset(t, at)->bytes = (uint32_t)(t->b.n - at);
}

const struct value_node *values_whole(const struct values *t)
{
    return buf_ok(&t->b) && t->b.n && t->depth == 0 ? (const struct value_node *)(const void *)t->b.p : NULL;
}

/* ---- reading */

static const char *behind_name(const struct value_node *v)
{
    return (const char *)(v + 1) + padded(v->name);
}

const struct value_node *value_first(const struct value_node *container)
{
    if (!container || container->type < VALUE_ARRAY || container->number == 0)
        return NULL;
    return (const struct value_node *)(const void *)behind_name(container);
}

const struct value_node *value_next(const struct value_node *v)
{
    return !v || v->last ? NULL : (const struct value_node *)(const void *)((const char *)v + v->bytes);
}

const char *value_name(const struct value_node *v)
{
    return v && v->name ? (const char *)(v + 1) : NULL;
}

const struct value_node *value_member(const struct value_node *object, const char *name)
{
    const struct value_node *v = object && object->type == VALUE_OBJECT ? value_first(object) : NULL;
    while (v && strcmp(value_name(v), name) != 0)
        v = value_next(v);
    return v;
}

const char *value_string(const struct value_node *v, size_t *ret_n)
{
    if (ret_n)
        *ret_n = v && v->type == VALUE_TEXT ? (size_t)v->number : 0;
    return v && v->type == VALUE_TEXT ? behind_name(v) : NULL;
}

/* One value at the start of `s`, whose last child says so and no other; false: it is none. */
static bool check(struct str s, bool named, unsigned depth, struct str *ret_rest)
{
    const struct value_node *v = (const struct value_node *)(const void *)s.p;
    if (s.n < sizeof *v || v->bytes > s.n || v->bytes % UNIT || v->type > VALUE_OBJECT || v->last > 1 ||
        (v->name != 0) != named)
        return false;
    size_t head = sizeof *v + padded(v->name);
    if (v->bytes < head || (named && strnlen((const char *)(v + 1), v->name) != v->name - 1u))
        return false;
    struct str rest = {s.p + head, v->bytes - head};
    *ret_rest = str_skip(s, v->bytes);
    if (v->type == VALUE_TEXT)
        return v->number < rest.n && rest.n == padded((size_t)v->number + 1) && rest.p[v->number] == 0;
    if (v->type < VALUE_ARRAY)
        return rest.n == 0;
    if (depth == VALUE_DEPTH)
        return false;
    for (uint64_t i = 0; i < v->number; i++) {
        const struct value_node *child = (const struct value_node *)(const void *)rest.p;
        if (rest.n < sizeof *child || child->last != (i + 1 == v->number) ||
            !check(rest, v->type == VALUE_OBJECT, depth + 1, &rest))
            return false;
    }
    return rest.n == 0;
}

const struct value_node *value_check(struct str image)
{
    struct str rest;
    if ((uintptr_t)image.p % UNIT || image.n < sizeof(struct value_node) || !check(image, false, 0, &rest) || rest.n)
        return NULL;
    const struct value_node *v = (const struct value_node *)(const void *)image.p;
    return v->last ? v : NULL;
}
