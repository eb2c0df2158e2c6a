/* When a login ends. Agents write it as seconds, as milliseconds, or leave it to the token; also for pinfold-login (login/text.c). */
#include "agents/expires.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t milliseconds_from = 100000000000;

static int sextet(char c)
{
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const char *p = c ? strchr(all, c) : NULL;
    return p ? (int)(p - all) : -1;
}

static int64_t whole(const json_t *v)
{
    return json_is_integer(v) ? json_integer_value(v) : 0;
}

/* "exp" of a JSON web token, whose signature is its issuer's matter. */
static int64_t token_expires(const char *token)
{
    const char *from = strchr(token, '.');
    char *text = from ? malloc(strlen(from) + 1) : NULL;
    size_t n = 0;
    unsigned bits = 0, have = 0;
    if (!text)
        return 0;
    for (from++; sextet(*from) >= 0; from++) {
        bits = bits << 6 | (unsigned)sextet(*from);
        if ((have += 6) >= 8)
            text[n++] = (char)(bits >> (have -= 8));
    }
    json_t *j = *from == '.' ? json_loadb(text, n, 0, NULL) : NULL;
    int64_t ends = whole(json_object_get(j, "exp"));
    json_decref(j);
    free(text);
    return ends;
}

int64_t agent_login_expires(struct str json, const char *place)
{
    json_t *j = place ? json_loadb(json.p ? json.p : "", json.n, 0, NULL) : NULL, *at = j;
    for (const char *p = place; at && p && *p; p += p[strcspn(p, ".")] ? strcspn(p, ".") + 1 : strlen(p)) {
        char name[128]; /* as strings end: jansson before 2.14 (Ubuntu 22.04) takes no length */
        const int n = snprintf(name, sizeof name, "%.*s", (int)strcspn(p, "."), p);
        at = n < (int)sizeof name ? json_object_get(at, name) : NULL;
    }
    int64_t t = json_is_string(at) ? token_expires(json_string_value(at)) : whole(at);
    json_decref(j);
    return t > milliseconds_from ? t / 1000 : t;
}
