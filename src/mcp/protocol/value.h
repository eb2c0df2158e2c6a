/*
 * Reads untrusted JSON with jansson: strict UTF-8, no duplicate names in an object, limited depth (jansson's 2,048).
 * Objects are borrowed from the root that value_read() returns, to be freed with value_free().
 */
#pragma once
#include <stdio.h>
#include <jansson.h>
#include "base/buf.h"
#include "base/json.h"

/* NULL, with the error and its location in `why` of `room` bytes. Any value may be at the top. */
json_t *value_read(struct str text, char *why, size_t room);
static inline void value_free(json_t **v)
{
    json_decref(*v);
    *v = NULL;
}
#define auto_value __attribute__((cleanup(value_free)))

/* The member as text; NULL if it is missing or not a string. Texts with NUL are accepted only with `ret_n`. */
const char *value_text(const json_t *object, const char *name, size_t *ret_n);
/* Writes `v` unchanged. */
void value_write(struct json *j, const char *name, const json_t *v);
