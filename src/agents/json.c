/*
 * Settings and logins in JSON: what of them a box gets, what both sides have changed, and one change taken over. Called in the
 * process of layer.c, because what a box wrote is parsed here.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "agents/agents.h"
#include "agents/expires.h"

enum { KEY_DEPTH = 32, SHOWN_VALUE = 16 << 10 };

static json_t *parsed(struct str text)
{
    json_t *j = json_loadb(text.p ? text.p : "", text.n, 0, NULL);
    if (j && !json_is_object(j)) {
        json_decref(j);
        j = NULL;
    }
    return j;
}

static int printed(json_t *j, char **ret, size_t *ret_n)
{
    *ret = j ? json_dumps(j, JSON_INDENT(2)) : NULL;
    *ret_n = *ret ? strlen(*ret) : 0;
    return *ret ? 0 : -ENOMEM;
}

/* ---- what a box gets ---- */

static bool is_key(const char *path, size_t n, const char *key)
{
    return (n == 1 && path[0] == '*') || (strlen(key) == n && strncmp(key, path, n) == 0);
}

/* Whether a "!a.b" of `blank` names the key: it stays as it is. `above`: the key that it is in; NULL: none. */
static bool is_kept(const char **blank, const char *above, const char *key)
{
    for (; blank && *blank; blank++) {
        const char *path = *blank + 1;
        const size_t n = strcspn(path, ".");
        if (**blank == '!' && above && path[n] && is_key(path, n, above) && strcmp(path + n + 1, key) == 0)
            return true;
    }
    return false;
}

/* `path` is "a.b"; "*" is every key. A value that is there becomes an empty text, whatever it was. */
static void blank_at(json_t *object, const char *path, const char **blank, const char *above)
{
    size_t n = strcspn(path, ".");
    const char *key;
    json_t *value;
    void *next;
    if (!json_is_object(object))
        return;
    json_object_foreach_safe(object, next, key, value)
    {
        if (!is_key(path, n, key))
            continue;
        if (path[n])
            blank_at(value, path + n + 1, blank, key);
        else if (!is_kept(blank, above, key))
            (void)json_object_set_new(object, key, json_string(""));
    }
}

int agent_json_shown(const struct agent_kept *f, const char *directory, struct str host, char **ret, size_t *ret_n)
{
    json_t *j = parsed(host);
    if (!j)
        return -EINVAL;
    for (size_t i = 0; f->only && f->only[i]; i++) {
        json_t *all = json_object_get(j, f->only[i]),
               *one = json_is_object(all) ? json_object_get(all, directory) : NULL;
        if (!all)
            continue;
        json_t *left = json_object();
        if (one)
            (void)json_object_set(left, directory, one);
        (void)json_object_set_new(j, f->only[i], left);
    }
    for (size_t i = 0; f->blank && f->blank[i]; i++)
        blank_at(j, f->blank[i], f->blank, NULL);
    int no = printed(j, ret, ret_n);
    json_decref(j);
    return no;
}

static bool filled_at(const json_t *object, const char *path, const char **blank, const char *above)
{
    size_t n = strcspn(path, ".");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (!is_key(path, n, key))
            continue;
        if (path[n] ? json_is_object(value) && filled_at(value, path + n + 1, blank, key)
                    : json_is_string(value) && json_string_length(value) > 0 && !is_kept(blank, above, key))
            return true;
    }
    return false;
}

/* A box that has logged in by itself has what it never gets from the host. */
bool agent_json_own_login(const struct agent_kept *f, struct str box)
{
    json_t *j = parsed(box);
    bool own = false;
    for (size_t i = 0; j && f->blank && f->blank[i]; i++)
        own = own || filled_at(j, f->blank[i], f->blank, NULL);
    json_decref(j);
    return own;
}

int agent_json_which_login(const struct agent_kept *f, struct str box)
{
    json_t *j = parsed(box);
    int i = 0;
    const struct agent_renew *w = j ? f->renew : NULL;
    for (; w && !filled_at(j, w->refresh, NULL, NULL); w = w->next)
        i++;
    json_decref(j);
    return w ? i : -1;
}

/* ---- registers of projects ---- */

char *agent_json_registered(struct str text, const char *directory)
{
    json_t *j = parsed(text);
    const char *name = json_string_value(json_object_get(json_object_get(j, "projects"), directory));
    char *copy = name ? strdup(name) : NULL;
    json_decref(j);
    return copy;
}

bool agent_json_is_taken(struct str text, const char *name, const char *directory)
{
    json_t *j = parsed(text), *one;
    const char *path;
    bool taken = false;
    json_object_foreach(json_object_get(j, "projects"), path, one)
    {
        const char *has = json_string_value(one);
        taken |= has && strcmp(has, name) == 0 && strcmp(path, directory) != 0;
    }
    json_decref(j);
    return taken;
}

int64_t agent_json_expires(const struct agent_kept *f, struct str host)
{
    return agent_login_expires(host, f->expires);
}

/* ---- three texts ---- */

static bool alike(const json_t *a, const json_t *b)
{
    return (!a && !b) || (a && b && json_equal(a, b));
}

/* Into `box`: what the host has changed since `base` and the box has not. */
static void join(const json_t *base, json_t *host, json_t *box)
{
    const char *key;
    json_t *value;
    json_object_foreach(host, key, value)
    {
        json_t *was = json_object_get(base, key), *now = json_object_get(box, key);
        if (alike(was, value))
            continue;
        if (alike(was, now))
            (void)json_object_set(box, key, value);
        else if (json_is_object(value) && json_is_object(now))
            join(json_is_object(was) ? was : NULL, value, now);
    }
    json_object_foreach((json_t *)(uintptr_t)base, key, value)
    {
        if (!json_object_get(host, key) && alike(value, json_object_get(box, key)))
            (void)json_object_del(box, key);
    }
}

int agent_json_join(struct str base, struct str host, struct str box, char **ret, size_t *ret_n)
{
    json_t *b = base.n ? parsed(base) : json_object(), *h = parsed(host), *x = parsed(box);
    int no = b && h && x ? 0 : -EINVAL;
    if (no == 0) {
        join(b, h, x);
        no = printed(x, ret, ret_n);
    }
    json_decref(b);
    json_decref(h);
    json_decref(x);
    return no;
}

struct change_walk {
    const char *name;
    const char *const *keys; /* of the top; NULL: all */
    const char *path[KEY_DEPTH];
    size_t depth;
    struct buf *lines;  /* or NULL */
    const char *wanted; /* the change that is taken over into `host` */
    bool all;           /* or all of them, but for what was removed */
    size_t removed;
    json_t *host;
    int found;
};

static void put_key(struct buf *out, const char *const *path, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool plain = path[i][0] &&
                     !path[i][strspn(path[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-@/")];
        json_t *text = json_string(path[i]);
        char *quoted = text && !plain ? json_dumps(text, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
        buf_text(out, i ? "." : "");
        buf_text(out, quoted ? quoted : path[i]);
        free(quoted);
        json_decref(text);
    }
}

static char *value_text(const json_t *value)
{
    return value ? json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_COMPACT) : NULL;
}

/* Whole, because the person decides by it; what is longer is not taken over. */
static void put_value(struct buf *out, const json_t *value)
{
    char *text = value_text(value);
    size_t n = text ? strlen(text) : 0;
    if (n > SHOWN_VALUE)
        buf_printf(out, "%.80s... (%zu bytes, too long to be shown and merged)", text, n);
    else
        buf_text(out, text ? text : "(none)");
    free(text);
}

static bool can_be_shown(const json_t *value)
{
    char *text = value_text(value);
    const bool fits = !value || (text && strlen(text) <= SHOWN_VALUE);
    free(text);
    return fits;
}

/* Into the host's text, whose objects on the way are made when they are missing. What a box removed stays there. */
static int take_over(struct change_walk *w, json_t *value)
{
    json_t *at = w->host;
    if (!value)
        return -ENODATA;
    if (!can_be_shown(value))
        return -EFBIG;
    for (size_t i = 0; i + 1 < w->depth; i++) {
        json_t *next = json_object_get(at, w->path[i]);
        if (next && !json_is_object(next))
            return -EINVAL;
        if (!next) {
            next = json_object();
            (void)json_object_set_new(at, w->path[i], next);
        }
        at = next;
    }
    return json_object_set(at, w->path[w->depth - 1], value) < 0 ? -ENOMEM : 1;
}

static void walk(struct change_walk *w, const json_t *base, const json_t *box);

static void one_change(struct change_walk *w, const char *key, json_t *was, json_t *now)
{
    if (alike(was, now) || w->depth == KEY_DEPTH)
        return;
    if (w->depth == 0 && w->keys) {
        const char *const *k = w->keys;
        while (*k && strcmp(*k, key) != 0)
            k++;
        if (!*k)
            return;
    }
    w->path[w->depth++] = key;
    if (json_is_object(was) && json_is_object(now)) {
        walk(w, was, now);
        w->depth--;
        return;
    }
    auto_buf struct buf name = BUF(1 << 16);
    put_key(&name, w->path, w->depth);
    if (w->lines) {
        buf_printf(w->lines, "%s:%s\t", w->name, buf_cstr(&name));
        put_value(w->lines, was);
        buf_text(w->lines, " -> ");
        put_value(w->lines, now);
        buf_char(w->lines, '\n');
    }
    w->removed += !now;
    if (w->wanted ? w->found == 0 && strcmp(buf_cstr(&name), w->wanted) == 0 : w->all && now && w->found >= 0)
        w->found = take_over(w, now);
    w->depth--;
}

static void walk(struct change_walk *w, const json_t *base, const json_t *box)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)box, key, value) one_change(w, key, json_object_get(base, key), value);
    json_object_foreach((json_t *)(uintptr_t)base, key, value)
    {
        if (!json_object_get(box, key))
            one_change(w, key, value, NULL);
    }
}

int agent_json_changes(const struct agent_kept *f, const char *name, struct str base, struct str box, struct buf *ret)
{
    json_t *b = base.n ? parsed(base) : json_object(), *x = parsed(box);
    int no = b && x ? 0 : -EINVAL;
    if (no == 0) {
        struct change_walk w = {.name = name, .keys = f->keys, .lines = ret};
        walk(&w, b, x);
    }
    json_decref(b);
    json_decref(x);
    return no;
}

int agent_json_take(const struct agent_kept *f, const char *key, struct str base, struct str box, struct str host,
                    struct buf *ret)
{
    json_t *b = base.n ? parsed(base) : json_object(), *x = parsed(box), *h = host.n ? parsed(host) : json_object();
    int no = b && x && h ? 0 : -EINVAL;
    if (no == 0) {
        struct change_walk w = {.name = "", .keys = f->keys, .wanted = key, .all = !key, .host = h};
        char *text = NULL;
        size_t n = 0;
        walk(&w, b, x);
        if (w.found < 0)
            no = w.found;
        else if (!key && w.removed && !w.found)
            no = -ENODATA;
        else if (key ? w.found == 1 : w.removed > 0)
            no = printed(h, &text, &n);
        else
            no = -ENOENT;
        buf_put(ret, text, n);
        if (text)
            buf_char(ret, '\n');
        free(text);
    }
    json_decref(b);
    json_decref(x);
    json_decref(h);
    return no;
}
