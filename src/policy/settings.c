/*
 * Several settings of other sandboxes, one after the other: a user's and a container's, say. A restriction of one must
 * not vanish because of the next, so the next is divided into what is new and what may only tighten. Allowed hosts and
 * writable paths are those of all that name any.
 */
#include "policy/settings.h"
#include <errno.h>
#include "match/host.h"
#include "match/path.h"
#include "policy/path.h"
#include "policy/text/keys.h"

/* Keys about the same thing: who speaks of one of them speaks of all. */
static enum key_id topic(uint16_t key)
{
    switch (key) {
    case KEY_READ_ONLY:
    case KEY_RO:
    case KEY_RW:
    case KEY_HIDE:
    case KEY_PROTECT:
    case KEY_CACHE:
        return KEY_RW;
    case KEY_NET:
    case KEY_ALLOW:
    case KEY_NET_ASK:
    case KEY_REACH:
        return KEY_NET;
    default:
        return (enum key_id)key;
    }
}

static bool speaks(const struct layer_text *t, enum key_id of)
{
    for (size_t i = 0; i < t->n; i++) {
        if (topic(t->said[i].key) == of)
            return true;
    }
    return false;
}

static bool is_said_before(const struct settings_before *before, const struct said *s)
{
    for (size_t i = 0; i < before->n; i++) {
        if (speaks(before->texts[i], topic(s->key)))
            return true;
    }
    return false;
}

/* Whether every host of `b` is one of `a`; what is no rule (a set) only covers itself. */
static bool covers(struct str a, struct str b)
{
    struct host_rule x, y;
    if (str_eq(a, b))
        return true;
    return host_rule_parse(a, RULE_ALLOW, &x, NULL) == 0 && host_rule_parse(b, RULE_ALLOW, &y, NULL) == 0 &&
           host_rule_covers(&x, &y);
}

static bool allows_any(const struct layer_text *t)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->said[i].key == KEY_ALLOW)
            return true;
    }
    return false;
}

static bool allows(const struct layer_text *t, struct str host)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->said[i].key == KEY_ALLOW && covers(t->said[i].a, host))
            return true;
    }
    return false;
}

/* Whether each of those before that speaks of the network allows it. */
static bool all_allow(const struct settings_before *before, struct str host)
{
    for (size_t i = 0; i < before->n; i++) {
        if (speaks(before->texts[i], KEY_NET) && !allows(before->texts[i], host))
            return false;
    }
    return true;
}

/* The path of a statement about exactly one; NULL: it is a pattern, or cannot be expanded (which merging will say). */
static const char *path_at(const struct policy_world *world, const struct layer_text *t, const struct said *s,
                           struct arena *mem)
{
    const struct path_context c = {.world = world, .base = t->base};
    struct path_text path;
    struct err why = {0};
    if (path_expand(&c, s->a, path_forms_of(false, s->bits & SAID_FLAG), mem, &path, &why) < 0 || path.any_depth ||
        path.pattern)
        return NULL;
    return path.path;
}

/* Whether `t` makes `path`, or something above it, writable; with `exactly` that very path. */
static bool writes_at(const struct policy_world *world, const struct layer_text *t, const char *path, bool exactly,
                      struct arena *mem)
{
    for (size_t i = 0; path && i < t->n; i++) {
        const char *own = t->said[i].key == KEY_RW ? path_at(world, t, &t->said[i], mem) : NULL;
        if (own && (exactly ? same(path, own) : path_at_or_below(path, own)))
            return true;
    }
    return false;
}

/* Whether each of those before that speaks of paths makes this very one writable: no rule of theirs is exempted then. */
static bool all_write(const struct settings_before *before, const char *path, struct arena *mem)
{
    for (size_t i = 0; i < before->n; i++) {
        if (speaks(before->texts[i], KEY_RW) && !writes_at(before->world, before->texts[i], path, true, mem))
            return false;
    }
    return path != NULL;
}

/* Whether it says where may be written: sandboxes whose settings do so mean nowhere else. */
static bool says_writable(const struct layer_text *t)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->said[i].key == KEY_RW || t->said[i].key == KEY_READ_ONLY)
            return true;
    }
    return false;
}

/* Removes from `t` the hosts and the writable paths that `next` does not allow, where it names any. */
static int narrow(const struct settings_before *before, struct layer_text *t, const struct layer_text *next,
                  struct arena *mem)
{
    const bool hosts = allows_any(next), paths = says_writable(next);
    struct said *kept = arena_zero(mem, (t->n + 1) * sizeof *kept);
    size_t n = 0;
    for (size_t i = 0; kept && i < t->n; i++) {
        const struct said *s = &t->said[i];
        if (hosts && s->key == KEY_ALLOW && !allows(next, s->a))
            continue;
        if (paths && s->key == KEY_RW && !writes_at(before->world, next, path_at(before->world, t, s, mem), false, mem))
            continue;
        kept[n++] = *s;
    }
    if (!kept)
        return -ENOMEM;
    t->said = kept;
    t->n = n;
    return 0;
}

static int not_allowed(struct layer_text *t, const struct said *s, struct arena *mem)
{
    struct foreign_key *all = arena_zero(mem, (t->n_ignored + 1) * sizeof *all);
    const char *key = arena_printf(mem, "the allowed host %.*s", (int)s->a.n, s->a.p);
    if (!all || !key)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_ignored; i++)
        all[i] = t->ignored[i];
    all[t->n_ignored++] = (struct foreign_key){
        .key = key, .why = "the settings before these do not allow it", .line = s->line, .column = s->column};
    t->ignored = all;
    return 0;
}

int settings_divide(const struct settings_before *before, struct layer_text *next, struct layer_text *ret_rest,
                    struct arena *mem, struct err *e)
{
    struct said *fresh = arena_zero(mem, (next->n + 1) * sizeof *fresh);
    struct said *rest = arena_zero(mem, (next->n + 1) * sizeof *rest);
    size_t n_fresh = 0, n_rest = 0;
    int r = fresh && rest ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < next->n; i++) {
        const struct said *s = &next->said[i];
        if (s->key == KEY_ALLOW && is_said_before(before, s)) {
            if (all_allow(before, s->a))
                fresh[n_fresh++] = *s;
            else
                r = not_allowed(next, s, mem);
        } else if (s->key == KEY_RW && is_said_before(before, s) &&
                   all_write(before, path_at(before->world, next, s, mem), mem)) {
            fresh[n_fresh++] = *s;
        } else if (is_said_before(before, s)) {
            rest[n_rest++] = *s;
        } else {
            fresh[n_fresh++] = *s;
        }
    }
    for (size_t i = 0; r == 0 && i < before->n; i++)
        r = narrow(before, before->texts[i], next, mem);
    if (r < 0)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot build the policy");
    *ret_rest = *next;
    ret_rest->trusted = false;
    ret_rest->said = rest;
    ret_rest->n = n_rest;
    ret_rest->ignored = NULL;
    ret_rest->n_ignored = 0;
    next->said = fresh;
    next->n = n_fresh;
    return 0;
}
