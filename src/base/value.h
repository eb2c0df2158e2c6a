/*
 * Values in one block of memory. The JSON writer (base/json.h) makes them instead of text for a reader in the same process, and
 * they are sent between the two ends of libpinfold. A receiver checks them once with value_check() and trusts them from then on.
 *
 *     value    u32 bytes of all of it, u8 type, u8 last of its container, u16 bytes of the name with its NUL (0: none),
 *              u64 the value: a number, the length of a text, the number of children
 *              then the name, then the text with a NUL, or the children; each part padded to 8 bytes
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"

enum value_type { VALUE_NULL, VALUE_FALSE, VALUE_TRUE, VALUE_NUMBER, VALUE_TEXT, VALUE_ARRAY, VALUE_OBJECT };
#define VALUE_DEPTH 32

struct value_node {
    uint32_t bytes;
    uint8_t type, last;
    uint16_t name;
    uint64_t number; /* of a VALUE_NUMBER: an int64_t */
};

/* Values under construction, filled in through `struct json`. */
struct values {
    struct buf b;
    uint32_t open[VALUE_DEPTH], newest[VALUE_DEPTH + 1]; /* where containers begin; the newest child of each */
    int depth;
};
#define VALUES(ceiling) ((struct values){.b = BUF(ceiling)})

void values_put(struct values *t, const char *name, enum value_type type, uint64_t number);
void values_text(struct values *t, const char *name, struct str text);
void values_open(struct values *t, const char *name, enum value_type type);
void values_close(struct values *t);
/* The finished value, or NULL if it is not complete. It is valid as long as the buffer and does not change. */
const struct value_node *values_whole(const struct values *t);
static inline void values_free(struct values *t)
{
    buf_free(&t->b);
}
#define auto_values __attribute__((cleanup(values_free)))

/* Whether `image`, aligned to 8 bytes, is one value and nothing else. */
const struct value_node *value_check(struct str image);
static inline struct str value_image(const struct value_node *v)
{
    return (struct str){(const char *)v, v->bytes};
}
/* All accept NULL, as an empty value. */
const struct value_node *value_first(const struct value_node *container);
const struct value_node *value_next(const struct value_node *v);
const struct value_node *value_member(const struct value_node *object, const char *name);
const char *value_name(const struct value_node *v);                  /* of a member; otherwise NULL */
const char *value_string(const struct value_node *v, size_t *ret_n); /* NULL if it is not a text; `ret_n` may be NULL */
