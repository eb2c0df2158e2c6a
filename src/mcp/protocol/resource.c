/*
 * URIs of resources, read and written. A session's name and a path are encoded, so that each resource has one URI
 * alone.
 */
#include "mcp/protocol/resource.h"

#include <stdlib.h>
#include <string.h>

#define HEAD  "pinfold://session/"
#define AUDIT "audit"
#define FILES "files"

static bool is_plain(char c, bool slashes)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~", c) ||
           (slashes && c == '/');
}

static void encode(struct buf *out, const char *text, bool slashes)
{
    for (const char *c = text; *c; c++) {
        if (is_plain(*c, slashes))
            buf_char(out, *c);
        else
            buf_printf(out, "%%%02X", (unsigned char)*c);
    }
}

/* NULL: it is not encoded well, is no UTF-8, or holds NUL. */
static const char *decode_uri(struct str s, struct arena *mem)
{
    char *to = arena_str(mem, s), *at = to;
    for (size_t i = 0; to && i < s.n; i++) {
        int c = (unsigned char)s.p[i];
        if (c == '%') {
            int high = i + 2 < s.n ? hex_digit(s.p[i + 1]) : -1, low = i + 2 < s.n ? hex_digit(s.p[i + 2]) : -1;
            c = high < 0 || low < 0 ? 0 : high * 16 + low;
            i += 2;
        }
        if (!c)
            return NULL;
        *at++ = (char)c;
    }
    if (!to || !utf8_valid((struct str){to, (size_t)(at - to)}))
        return NULL;
    *at = 0;
    return to;
}

bool resource_parse(const char *uri, struct arena *mem, struct resource *ret)
{
    struct str rest = str_of(uri);

    *ret = (struct resource){0};
    if (rest.n > RESOURCE_MAX_URI || !str_starts(rest, STR(HEAD)))
        return false;
    rest = str_skip(rest, sizeof HEAD - 1);
    struct str session = str_until(&rest, '/');
    ret->session = decode_uri(session, mem);
    if (!ret->session || !ret->session[0])
        return false;
    if (str_is(rest, AUDIT))
        return true;
    if (!str_starts(rest, STR(FILES "/")))
        return false;
    ret->path = decode_uri(str_skip(rest, sizeof FILES - 1), mem);
    return ret->path != NULL;
}

void resource_uri(struct buf *out, const char *session, const char *path)
{
    buf_text(out, HEAD);
    encode(out, session, false);
    buf_text(out, path ? "/" FILES : "/" AUDIT);
    if (path)
        encode(out, path, true);
}

static const struct template
{
    const char *uri, *name, *title, *description, *type;
}
templates[] = {{HEAD "{session}/" AUDIT, "audit", "Denials of a session",
                "The newest events of a session's audit log, one JSON object per line.", RESOURCE_AUDIT_TYPE},
               {HEAD "{session}/" FILES "{+path}", "file", "A file of a session",
                "A file or directory by its absolute path in the box, under the rules of 'read_file'.", NULL}};

bool resource_has(const char *uri, const char *variable)
{
    for (size_t i = 0; variable && i < sizeof templates / sizeof *templates; i++) {
        if (strcmp(uri, templates[i].uri) == 0)
            return strcmp(variable, "session") == 0 || (!templates[i].type && strcmp(variable, "path") == 0);
    }
    return false;
}

void resource_templates(struct json *w)
{
    json_array(w, "resourceTemplates");
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        json_object(w, NULL);
        json_text(w, "uriTemplate", templates[i].uri);
        json_text(w, "name", templates[i].name);
        json_text(w, "title", templates[i].title);
        json_text(w, "description", templates[i].description);
        if (templates[i].type)
            json_text(w, "mimeType", templates[i].type);
        json_object_end(w);
    }
    json_array_end(w);
}
