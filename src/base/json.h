/*
 * Writing JSON into a buf. Commas are placed by the writer; the caller opens, closes and names. Strings that are not
 * valid UTF-8 must be given as base64 (json_bytes decides and says so); names of files are written with invalid bytes
 * as U+FFFD plus, where exactness matters, the caller adds a base64 member. With `tree` instead of `out` the same calls make
 * values for a reader in this process (base/value.h).
 */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/value.h"

/* jansson, with which mcp/ reads JSON, defines functions of these names (include it first). */
#define json_object json_write_object
#define json_array  json_write_array
#define json_null   json_write_null

struct json {
    struct buf *out; /* or */
    struct values *tree;
    bool comma;  /* a value stands before the next one in this container */
    bool pretty; /* two-space indentation, for people */
    bool toml;   /* a text of it is one of TOML, which has no surrogates */
    int depth;
};

#define JSON(buffer)      ((struct json){.out = (buffer)})
#define JSON_TREE(values) ((struct json){.tree = (values)})

/* `name` is NULL inside arrays and at the top. */
void json_object(struct json *j, const char *name);
void json_object_end(struct json *j);
void json_array(struct json *j, const char *name);
void json_array_end(struct json *j);
void json_str(struct json *j, const char *name, struct str value); /* invalid UTF-8 becomes U+FFFD */
static inline void json_text(struct json *j, const char *name, const char *value)
{
    json_str(j, name, str_of(value));
}
void json_int(struct json *j, const char *name, int64_t value);
void json_uint(struct json *j, const char *name, uint64_t value);
void json_bool(struct json *j, const char *name, bool value);
void json_raw(struct json *j, const char *name, struct str value); /* a value that is JSON already; not into a tree */
/* The value `v` under this name; NULL: null. */
void json_put(struct json *j, const char *name, const struct value_node *v);
/* The same without the members of the names in `skip`, ended by NULL, wherever they stand in it. */
void json_put_without(struct json *j, const char *name, const struct value_node *v, const char *const *skip);
void json_null(struct json *j, const char *name);
static inline void json_text_or_null(struct json *j, const char *name, const char *value)
{
    if (value)
        json_text(j, name, value);
    else
        json_null(j, name);
}
void json_base64(struct json *j, const char *name, struct str bytes);
/* Whether all of `s` is valid UTF-8 (RFC 3629: no surrogates, no overlong forms). */
bool utf8_valid(struct str s);
/* The same, and read as text by somebody: of control characters, each of which takes six bytes in JSON, colours have a
   quarter at most, UTF-16 a half. */
bool utf8_is_text(struct str s);
/* Appends `s` so that a terminal shows it and obeys nothing: control characters (C0, DEL, C1) and invalid UTF-8 as
   \xNN. */
void utf8_safe(struct buf *out, struct str s);
/* Bytes of the character at the beginning; 0 if it would be shown as numbers. */
size_t utf8_plain(struct str s);
/* Appends a line for a terminal: `head`, then the formatted text as utf8_safe() gives it (names in it may be a box's). */
void utf8_line(struct buf *out, const char *head, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
