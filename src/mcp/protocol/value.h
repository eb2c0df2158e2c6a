/*
 * Reading JSON that strangers wrote, by jansson: strict UTF-8, no name twice in an object, a ceiling on depth (jansson's
 * 2,048). Objects are borrowed from the root that value_read() returns, which is freed with value_free().
 */
#pragma once
#include <stdio.h>
#include <jansson.h>
#include "base/buf.h"
#include "base/json.h"

/* NULL with a sentence of what is wrong and where, in `why` of `room` bytes. Any value may stand at the top. */
json_t *value_read(struct str text, char *why, size_t room);
static inline void value_free(json_t **v)
{
    json_decref(*v);
    *v = NULL;
}
#define auto_value __attribute__((cleanup(value_free)))

/* The member as text; NULL when it is missing or no string. NUL cannot stand in it unless `ret_n` is asked. */
const char *value_text(const json_t *object, const char *name, size_t *ret_n);
/* Writes `v` as it came. */
void value_write(struct json *j, const char *name, const json_t *v);
