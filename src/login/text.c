/*
 * The text of a login: JSON, of which only the places that the agent's definition names are read and changed; all else stays as the
 * agent wrote it.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/sha256.h"
#include "agents/expires.h"
#include "login/login.h"

enum { TOKEN_MAX = 32 << 10, FIELD_TEXT_MAX = 64 << 10, LIST_MAX = 64, MILLISECONDS_FROM = 100000000 };

static json_t *parsed(struct str text)
{
    json_t *j = json_loadb(text.p ? text.p : "", text.n, JSON_REJECT_DUPLICATES, NULL);
    if (j && !json_is_object(j)) {
        json_decref(j);
        j = NULL;
    }
    return j;
}

bool text_is_object(struct str json)
{
    json_t *j = parsed(json);
    json_decref(j);
    return j != NULL;
}

/* The first name of a place, as strings end: jansson before 2.14 (Ubuntu 22.04) takes no length. NULL: it is too long. */
struct first_name {
    char text[128];
};
static const char *first_name(const char *place, struct first_name *ret)
{
    const int n = snprintf(ret->text, sizeof ret->text, "%.*s", (int)strcspn(place, "."), place);
    return n < (int)sizeof ret->text ? ret->text : NULL;
}

/* Borrowed; NULL: nothing there. */
static json_t *at(json_t *j, const char *place)
{
    struct first_name name;
    while (j && place && *place) {
        size_t n = strcspn(place, ".");
        j = json_object_get(j, first_name(place, &name));
        place += n + (place[n] == '.');
    }
    return place ? j : NULL;
}

/* Takes `value` over; objects on the way are made. */
static int put(json_t *j, const char *place, json_t *value)
{
    struct first_name name;
    for (size_t n; place[n = strcspn(place, ".")] == '.'; place += n + 1) {
        const char *own = first_name(place, &name);
        json_t *next = json_object_get(j, own);
        if (!json_is_object(next)) {
            next = json_object();
            if (json_object_set_new(j, own, next) < 0) {
                json_decref(value);
                return -ENOMEM;
            }
        }
        j = next;
    }
    return json_object_set_new(j, place, value) < 0 ? -ENOMEM : 0;
}

static const char *word_at(json_t *j, const char *place)
{
    const char *s = json_string_value(at(j, place));
    return s && *s && json_string_length(at(j, place)) == strlen(s) && strlen(s) <= TOKEN_MAX ? s : NULL;
}

char *text_get(struct str json, const char *place)
{
    json_t *j = parsed(json);
    const char *s = word_at(j, place);
    char *copy = s ? strdup(s) : NULL;
    json_decref(j);
    return copy;
}

/* ---- when it ends ---- */

int64_t text_expires(const struct login_ask *a, struct str json)
{
    return agent_login_expires(json, a->expires);
}

/* ---- the request ---- */

static void put_form(char **to, const char *key, const char *value)
{
    char *p = *to + sprintf(*to, "%s=", key);
    for (; *value; value++) {
        if ((*value >= '0' && *value <= '9') || ((*value | 32) >= 'a' && (*value | 32) <= 'z') ||
            strchr("-._~", *value))
            *p++ = *value;
        else
            p += sprintf(p, "%%%02X", (unsigned char)*value);
    }
    *p++ = '&';
    *p = 0;
    *to = p;
}

/* Of a list its texts, joined by blanks; of a text itself. */
static char *scope_of(const struct login_ask *a, json_t *j)
{
    json_t *v = at(j, a->scopes), *one;
    size_t i, room = 1;
    json_array_foreach(v, i, one) room += json_is_string(one) ? json_string_length(one) + 1 : 0;
    if (json_is_string(v))
        return *json_string_value(v) ? strdup(json_string_value(v)) : NULL;
    char *all = room > 1 && room < TOKEN_MAX ? malloc(room) : NULL, *p = all;
    json_array_foreach(v, i, one)
    {
        if (all && json_is_string(one))
            p += sprintf(p, "%s%s", p == all ? "" : " ", json_string_value(one));
    }
    return all;
}

char *text_request(const struct login_ask *a, struct str login)
{
    json_t *j = parsed(login);
    const char *token = word_at(j, a->refresh), *client = word_at(j, a->client_at);
    char *scope = scope_of(a, j), *body = NULL;
    client = client ? client : a->client;
    const char *word = a->program_word ? a->program_word : "";
    if (token && a->form) {
        char *p = body =
            malloc(3 * (strlen(token) + strlen(client) + strlen(word) + (scope ? strlen(scope) : 0)) + 160);
        if (body) {
            *body = 0;
            put_form(&p, "grant_type", "refresh_token");
            put_form(&p, "refresh_token", token);
            put_form(&p, "client_id", client);
            if (*word)
                put_form(&p, "client_secret", word);
            if (scope)
                put_form(&p, "scope", scope);
            p[-1] = 0;
        }
    } else if (token) {
        json_t *ask =
            json_pack("{s:s, s:s, s:s}", "grant_type", "refresh_token", "refresh_token", token, "client_id", client);
        if (ask && *word)
            (void)json_object_set_new(ask, "client_secret", json_string(word));
        if (ask && scope)
            (void)json_object_set_new(ask, "scope", json_string(scope));
        body = ask ? json_dumps(ask, JSON_COMPACT) : NULL;
        json_decref(ask);
    }
    free(scope);
    json_decref(j);
    return body;
}

/* ---- new texts ---- */

/* As the agent writes: in lines or not. */
static int printed(json_t *j, struct str like, struct login_text *ret)
{
    const size_t flags = memchr(like.p, '\n', like.n) || !like.n ? JSON_INDENT(2) : JSON_COMPACT;
    char *text = json_dumps(j, flags);
    *ret = (struct login_text){.p = text, .n = text ? strlen(text) : 0, .mode = 0600, .there = true};
    return text ? 0 : -ENOMEM;
}

/* In the unit that was there: milliseconds, unless it was seconds. */
static int put_expires(const struct login_ask *a, json_t *j, json_t *answer, int64_t now)
{
    json_t *old = at(j, a->expires), *seconds = at(answer, "expires_in");
    if (!a->expires || json_is_string(old) || !json_is_number(seconds))
        return 0;
    const bool small =
        json_is_number(old) && json_number_value(old) > 0 && json_number_value(old) < (double)MILLISECONDS_FROM * 1000;
    double in = json_number_value(seconds);
    if (!(in >= 0 && in < 1e9))
        return 0;
    return put(j, a->expires, json_integer((now + (int64_t)in) * (small ? 1 : 1000)));
}

int text_renewed(const struct login_ask *a, struct str login, struct str answer, int64_t now, struct login_text *ret)
{
    json_t *j = parsed(login), *said = parsed(answer);
    const char *access = word_at(said, "access_token"), *refresh = word_at(said, "refresh_token"),
               *id = word_at(said, "id_token");
    int no = j && access ? 0 : -EINVAL;
    if (no == 0)
        no = put(j, a->access, json_string(access));
    if (no == 0 && refresh)
        no = put(j, a->refresh, json_string(refresh));
    if (no == 0 && id && a->id)
        no = put(j, a->id, json_string(id));
    if (no == 0)
        no = put_expires(a, j, said, now);
    if (no == 0 && a->when) {
        char text[40];
        struct tm tm;
        const time_t t = (time_t)now;
        (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
        no = put(j, a->when, json_string(text));
    }
    if (no == 0)
        no = printed(j, login, ret);
    json_decref(j);
    json_decref(said);
    return no;
}

/* A text, a number, a truth, nothing, or a list of texts: no more is in a login. */
static bool is_plain(const json_t *v)
{
    size_t i;
    json_t *one;
    if (json_is_string(v))
        return json_string_length(v) <= FIELD_TEXT_MAX;
    if (!json_is_array(v))
        return json_is_number(v) || json_is_boolean(v) || json_is_null(v);
    json_array_foreach(v, i, one)
    {
        if (!json_is_string(one) || json_string_length(one) > FIELD_TEXT_MAX || i >= LIST_MAX)
            return false;
    }
    return true;
}

static int take_field(json_t *to, json_t *from, const char *place)
{
    json_t *v = place ? at(from, place) : NULL;
    if (!v)
        return 0;
    return is_plain(v) ? put(to, place, json_incref(v)) : -EINVAL;
}

int text_stored(const struct login_ask *a, struct str login, struct str new_one, struct login_text *ret)
{
    json_t *j = login.n ? parsed(login) : json_object(), *from = parsed(new_one);
    const char *const places[] = {a->access, a->refresh, a->id, a->scopes, a->when, a->expires};
    int no = j && word_at(from, a->access) && word_at(from, a->refresh) ? 0 : -EINVAL;
    for (size_t i = 0; no == 0 && i < sizeof places / sizeof *places; i++)
        no = take_field(j, from, places[i]);
    for (size_t i = 0; no == 0 && i < a->n_fields; i++)
        no = take_field(j, from, a->fields[i]);
    if (no == 0)
        no = printed(j, login.n ? login : new_one, ret);
    json_decref(j);
    json_decref(from);
    return no;
}

void text_sum(const char *token, char ret[HASH_TEXT])
{
    sha256_hex(str_of(token), ret);
}
