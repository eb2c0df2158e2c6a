/*
 * Options in a model's call: those that restrict the box apply, the user is asked about the others. The library
 * decides which ones restrict (pinfold_policy_options.wishes); nothing is guessed here.
 */
#include "mcp/tools/wishes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"

#define MAX_WISHES 256

static const struct pinfold_option_info *option(const char *name)
{
    const struct pinfold_option_info *o;
    for (size_t i = 0; (o = pinfold_option_at(i)) != NULL; i++) {
        if (o->name && same(o->name, name))
            return o;
    }
    return NULL;
}

static void choices(struct json *w, const char *list)
{
    json_array(w, "enum");
    for (struct str rest = str_of(list); rest.n;)
        json_str(w, NULL, str_until(&rest, '|'));
    json_array_end(w);
}

static void text_schema(struct json *w, const struct pinfold_option_info *o)
{
    json_text(w, "type", "string");
    if (o->choices)
        choices(w, o->choices);
}

void wishes_schema(struct json *w)
{
    const struct pinfold_option_info *o;

    json_object(w, "properties");
    for (size_t i = 0; (o = pinfold_option_at(i)) != NULL; i++) {
        if (!o->name)
            continue;
        json_object(w, o->name);
        if (!o->takes_value) {
            json_text(w, "type", "boolean");
        } else if (o->repeats) {
            json_text(w, "type", "array");
            json_object(w, "items");
            text_schema(w, o);
            json_object_end(w);
        } else {
            text_schema(w, o);
        }
        json_text(w, "description", o->help);
        json_object_end(w);
    }
    json_object_end(w);
    json_bool(w, "additionalProperties", false);
}

static bool is_plain_text(const json_t *v)
{
    return json_is_string(v) && strlen(json_string_value(v)) == json_string_length(v);
}

static bool check_one(const char *name, const json_t *v, char *why, size_t room)
{
    const struct pinfold_option_info *o = option(name);
    bool good = false;

    if (!o) {
        snprintf(why, room, "options: unknown option '%.64s'", name);
        return false;
    }
    if (!o->takes_value) {
        good = json_is_boolean(v);
    } else if (o->repeats) {
        good = json_is_array(v);
        for (size_t i = 0; good && i < json_array_size(v); i++)
            good = is_plain_text(json_array_get(v, i));
    } else {
        good = is_plain_text(v);
    }
    if (!good)
        snprintf(why, room, "options.%s must be %s", name,
                 !o->takes_value ? "true or false"
                 : o->repeats    ? "an array of strings"
                                 : "a text");
    return good;
}

bool wishes_check(const json_t *options, char *why, size_t room)
{
    size_t n = 0;
    for (void *at = json_object_iter((json_t *)(uintptr_t)options); at;
         at = json_object_iter_next((json_t *)(uintptr_t)options, at)) {
        const json_t *v = json_object_iter_value(at);
        n += json_is_array(v) ? json_array_size(v) : 1;
        if (!check_one(json_object_iter_key(at), v, why, room))
            return false;
    }
    if (n > MAX_WISHES)
        snprintf(why, room, "options: more than %d values", MAX_WISHES);
    return n <= MAX_WISHES;
}

static void add_wish(struct arena *mem, struct pinfold_option **list, size_t *n, const char *name, const char *value)
{
    struct pinfold_option *o = arena_push(mem, list, n, sizeof *o);
    if (o)
        *o = (struct pinfold_option){name, value};
}

static const struct pinfold_option *gather(const struct mcp_job *j, struct arena *mem, uint64_t timeout_ms)
{
    struct pinfold_option *list = NULL;
    size_t n = 0;
    json_t *options = json_object_get(j->arguments, "options");

    for (void *at = json_object_iter(options); at; at = json_object_iter_next(options, at)) {
        const char *name = json_object_iter_key(at);
        const json_t *v = json_object_iter_value(at);
        if (json_is_array(v)) {
            for (size_t i = 0; i < json_array_size(v); i++)
                add_wish(mem, &list, &n, name, json_string_value(json_array_get(v, i)));
        } else {
            add_wish(mem, &list, &n, name, json_is_string(v) ? json_string_value(v) : json_is_true(v) ? NULL : "false");
        }
    }
    if (timeout_ms)
        add_wish(mem, &list, &n, "timeout", arena_printf(mem, "%llums", (unsigned long long)timeout_ms));
    bool any = n > 0;
    add_wish(mem, &list, &n, NULL, NULL);
    return any && !arena_failed(mem) ? list : NULL;
}

/* By what an option of this call is said: an argument of the tool's own, or one of its options. */
static void put_argument(const struct mcp_job *j, struct str name, struct buf *out)
{
    if (str_is(name, "timeout") && json_object_get(j->arguments, "timeout_ms"))
        buf_text(out, "timeout_ms");
    else
        buf_printf(out, "options.%.*s", (int)name.n, name.p);
}

/* The name of an option that `text` begins with. */
static struct str option_at(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz-");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    return (struct str){text, n < sizeof name && option(name) ? n : 0};
}

/* " 4s" behind the option timeout, as the argument takes it; 0: it is something else. */
static size_t put_milliseconds(const char *text, struct buf *out)
{
    char *end;
    unsigned long long seconds = *text == ' ' ? strtoull(text + 1, &end, 10) : 0;
    if (!seconds || *end != 's')
        return 0;
    buf_printf(out, "timeout_ms %llu", seconds * 1000);
    return (size_t)(end + 1 - text);
}

void wishes_words(const struct mcp_job *j, const char *text, struct buf *out)
{
    static const char wish[] = "request ", more[] = "allow more with --";
    while (*text) {
        bool of_wish = strncmp(text, wish, sizeof wish - 1) == 0, of_limit = strncmp(text, more, sizeof more - 1) == 0;
        struct str name = of_wish    ? option_at(text + sizeof wish - 1)
                          : of_limit ? option_at(text + sizeof more - 1)
                                     : (struct str){text, 0};
        if (!name.n) {
            buf_char(out, *text++);
            continue;
        }
        text = name.p + name.n;
        if (of_limit)
            buf_text(out, "allow more with ");
        size_t taken = of_limit && str_is(name, "timeout") ? put_milliseconds(text, out) : 0;
        if (!taken)
            put_argument(j, name, out);
        text += taken;
    }
}

/* ---- remedies */

/* {"NAME": VALUE}, as the argument `options` takes it. */
static void put_wish(const struct pinfold_option_info *o, struct str value, struct buf *out)
{
    struct json w = JSON(out);
    json_object(&w, NULL);
    if (!o->takes_value) {
        json_bool(&w, o->name, !str_is(value, "false"));
    } else if (o->repeats) {
        json_array(&w, o->name);
        json_str(&w, NULL, value);
        json_array_end(&w);
    } else {
        json_str(&w, o->name, value);
    }
    json_object_end(&w);
}

/* The value behind an option's name: "=VALUE", or what is left of the text, which may have blanks. */
static struct str remedy_value(const struct pinfold_option_info *o, struct str rest)
{
    if (rest.n && rest.p[0] == '=')
        return (struct str){rest.p + 1, strcspn(rest.p + 1, " ;,")};
    return o->takes_value && rest.n && rest.p[0] == ' ' ? str_skip(rest, 1) : STR("");
}

/* A value that is quoted for a shell, without its quotes. */
static struct str bare_value(struct str quoted, struct buf *room)
{
    if (!quoted.n || quoted.p[0] != '\'')
        return quoted;
    bool inside = false;
    for (size_t i = 0; i < quoted.n; i++) {
        if (quoted.p[i] == '\'')
            inside = !inside;
        else if (inside || quoted.p[i] != '\\' || ++i < quoted.n)
            buf_char(room, quoted.p[i]);
    }
    return buf_ok(room) ? buf_view(room) : quoted;
}

/* One option of a remedy, as the caller of the tool can say it; what of `text` it took. */
static size_t put_offer(struct str name, bool asks, struct buf *out)
{
    auto_buf struct buf room = BUF(1u << 16);
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)name.n, name.p);
    const struct pinfold_option_info *o = option(text);
    const struct str rest = str_of(name.p + name.n), value = o ? remedy_value(o, rest) : STR("");
    if (!o)
        return 0;
    const size_t taken = name.n + (value.n ? value.n + 1 : 0);
    if (asks && (value.n || !o->takes_value)) {
        buf_text(out, "options ");
        put_wish(o, bare_value(value, &room), out);
    } else {
        buf_printf(out, asks ? "options.%.*s" : "--%.*s", (int)taken, name.p);
    }
    return taken;
}

void wishes_remedy(const struct mcp_job *j, const char *remedy, const char *origin, struct buf *out)
{
    bool said = false;
    const bool asks = j->offers != OFFERS_SERVER && j->can_ask;
    const size_t n = origin && origin[0] ? strlen(origin) : 0;
    for (const char *at = remedy; *at;) {
        if (n && strncmp(at, " (", 2) == 0 && strncmp(at + 2, origin, n) == 0 && at[2 + n] == ')') {
            at += n + 3;
            continue;
        }
        const bool begins = !said && strncmp(at, "--", 2) == 0 && (at == remedy || at[-1] == ' ');
        const struct str name = begins ? option_at(at + 2) : STR("");
        if (!name.n) {
            buf_char(out, *at++);
            continue;
        }
        at = name.p + put_offer(name, asks, out);
        said = true;
    }
    if (said)
        buf_text(out, !asks                         ? " (an option of pinfold mcp, which the person can start it with)"
                      : j->offers == OFFERS_SESSION ? " (of session_start, with 'recreate'; the person is asked)"
                                                    : " (of this tool; the person is asked)");
}

/* All that is wished, in one sentence. */
static void put_question(struct buf *out, const struct mcp_job *j, const struct pinfold_option *wishes,
                         const char *refusal)
{
    const char *command = value_text(j->arguments, "command", NULL);
    const json_t *milliseconds = json_object_get(j->arguments, "timeout_ms");
    buf_printf(out, "The model asks for more than the policy allows (%s). It requests:", refusal);
    for (const struct pinfold_option *o = wishes; o->name; o++) {
        buf_text(out, o == wishes ? " " : ", ");
        if (milliseconds && same(o->name, "timeout")) {
            buf_printf(out, "timeout_ms %lld", (long long)json_integer_value(milliseconds));
            continue;
        }
        buf_text(out, o->name);
        if (o->value) {
            buf_char(out, ' ');
            words_of(out, str_of(o->value));
        }
    }
    buf_text(out, ". Allow it for this one call");
    if (command) {
        buf_text(out, ", the command: ");
        words_of(out, (struct str){command, strnlen(command, 400)});
    }
    buf_text(out, "?");
}

static int load_with_wishes(const struct mcp_job *j, const struct pinfold_option *wishes, bool granted,
                            struct arena *mem, struct pinfold_policy **ret, struct pinfold_error *error)
{
    struct pinfold_policy_options o = j->keeps ? *j->place->kept_options : *j->place->options->policy;
    struct pinfold_option *all = NULL;
    size_t n = 0;

    if (!granted) {
        o.wishes = wishes;
        return pinfold_policy_load(&o, ret, error);
    }
    for (const struct pinfold_option *f = o.options; f && f->name; f++)
        add_wish(mem, &all, &n, f->name, f->value);
    for (const struct pinfold_option *f = wishes; f->name; f++)
        add_wish(mem, &all, &n, f->name, f->value);
    add_wish(mem, &all, &n, NULL, NULL);
    o.options = all;
    return pinfold_policy_load(&o, ret, error);
}

int wishes_policy(struct mcp_job *j, uint64_t timeout_ms, struct pinfold_policy **ret, bool *ret_own)
{
    auto_arena struct arena *mem = arena_new(4u << 20);
    auto_buf struct buf asked = BUF(1u << 20);
    struct pinfold_error error = {0};
    const struct pinfold_option *wishes = mem ? gather(j, mem, timeout_ms) : NULL;

    *ret_own = false;
    *ret = j->keeps ? j->place->kept : j->place->policy;
    if (mem && !wishes && !arena_failed(mem))
        return 0;
    if (!wishes) {
        job_fail(j, "out of memory");
        return -ENOMEM;
    }
    int r = load_with_wishes(j, wishes, false, mem, ret, &error);
    auto_buf struct buf said = BUF(1u << 16);
    wishes_words(j, r < 0 ? error.text : "", &said);
    if (r < 0 && error.kind == PINFOLD_ERROR_REFUSED) {
        put_question(&asked, j, wishes, buf_cstr(&said));
        job_tell(j, buf_cstr(&asked));
        if (!job_ask(j, buf_cstr(&asked), 0)) {
            job_tell(j, "refused");
            job_fail(j, "%s. The person was %s; ask for less, or ask the person to change pinfold's policy.",
                     buf_cstr(&said),
                     j->can_ask
                         ? "asked and did not allow it"
                         : "not asked, because the client does not support questions and pinfold has no terminal");
            return -EPERM;
        }
        job_tell(j, "allowed for this call");
        r = load_with_wishes(j, wishes, true, mem, ret, &error);
        said.n = 0;
        wishes_words(j, r < 0 ? error.text : "", &said);
    }
    if (r < 0) {
        job_fail(j, "%s", buf_cstr(&said));
        return r;
    }
    *ret_own = true;
    return 0;
}
