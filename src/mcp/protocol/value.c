/*
 * Reads and writes JSON values (jansson) from and to pinfold's own buffers. jansson reads what clients send; what is
 * written goes through base/json.h, so that text in it is clean.
 */
#include "mcp/protocol/value.h"

#include <stdio.h>

json_t *value_read(struct str text, char *why, size_t room)
{
    json_error_t e;
    /* jansson must see a byte even of nothing. */
    json_t *v = json_loadb(text.n ? text.p : "", text.n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);
    if (!v)
        snprintf(why, room, "%s at byte %d", e.text, e.position);
    return v;
}

const char *value_text(const json_t *object, const char *name, size_t *ret_n)
{
    const json_t *v = json_object_get(object, name);
    const char *text = json_string_value(v);
    size_t n = json_string_length(v);

    if (!text || (!ret_n && strlen(text) != n))
        return NULL;
    if (ret_n)
        *ret_n = n;
    return text;
}

static int put(const char *bytes, size_t n, void *to)
{
    buf_put(to, bytes, n);
    return buf_ok(to) ? 0 : -1;
}

void value_write(struct json *j, const char *name, const json_t *v)
{
    json_raw(j, name, STR("")); /* comma and name */
    if (!v || json_dump_callback(v, put, j->out, JSON_COMPACT | JSON_ENCODE_ANY) < 0)
        buf_text(j->out, "null");
}
