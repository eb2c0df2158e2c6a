/*
 * Reads the JSON that a session daemon answers with (jansson) and writes it on as values. The daemon may be of
 * another version, so members that are missing or new are no errors.
 */
#include <errno.h>
#include <jansson.h>

#include "session/said.h"

#include "base/json.h"

/* As deep as jansson let it be: jansson's ceiling is its own, that of values is lower and breaks them. */
static void put_said(struct json *j, const char *name, const json_t *v)
{
    const char *key;
    json_t *one;
    size_t i;
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        json_object(j, name);
        json_object_foreach((json_t *)(uintptr_t)v, key, one) put_said(j, key, one);
        json_object_end(j);
        break;
    case JSON_ARRAY:
        json_array(j, name);
        json_array_foreach(v, i, one) put_said(j, NULL, one);
        json_array_end(j);
        break;
    case JSON_STRING:
        json_str(j, name, (struct str){json_string_value(v), json_string_length(v)});
        break;
    case JSON_INTEGER:
        json_int(j, name, json_integer_value(v));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        json_bool(j, name, json_is_true(v));
        break;
    default: /* no session daemon says anything with a point in it */
        json_null(j, name);
    }
}

int said_put(struct json *j, const char *name, struct str said)
{
    json_t *v = json_loadb(said.n ? said.p : "", said.n, JSON_ALLOW_NUL, NULL);
    if (!v)
        return -EBADMSG;
    put_said(j, name, v);
    json_decref(v);
    return 0;
}

void said_text(struct str said, const char *key, struct buf *out)
{
    json_t *v = json_loadb(said.n ? said.p : "", said.n, JSON_ALLOW_NUL, NULL);
    buf_text(out, json_is_string(json_object_get(v, key)) ? json_string_value(json_object_get(v, key)) : "");
    json_decref(v);
}
