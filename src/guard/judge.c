/*
 * How it works: a table is compiled once. Rules of fixed place become absolute paths (a GUARD_ROOT name once per
 * writable tree), any-depth rules lists of components. A question goes over the absolute ones by comparison, and over
 * the components of the path once; a small bitmap of hashes keeps any-depth rules out of the way of the many
 * components no rule begins with.
 */
#include "guard/judge.h"
#include <errno.h>
#include <stdint.h>

/* ---- slices of paths ---- */

static int fold(int c)
{
    return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

bool fold_eq(struct str a, struct str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (fold((unsigned char)a.p[i]) != fold((unsigned char)b.p[i]))
            return false;
    return true;
}

static unsigned fold_hash(struct str s)
{
    unsigned h = 2166136261u;
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned)fold((unsigned char)s.p[i])) * 16777619u;
    return (h ^ h >> 16) & 255;
}

bool path_in(struct str path, struct str tree)
{
    if (tree.n == 1) /* "/" */
        return true;
    return path.n >= tree.n && fold_eq((struct str){path.p, tree.n}, tree) &&
           (path.n == tree.n || path.p[tree.n] == '/');
}

/* The next component from *at on; false at the end. */
static bool part_next(struct str path, size_t *at, struct str *ret)
{
    while (*at < path.n && path.p[*at] == '/')
        ++*at;
    size_t from = *at;
    while (*at < path.n && path.p[*at] != '/')
        ++*at;
    *ret = (struct str){path.p + from, *at - from};
    return ret->n > 0;
}

/* One [set] at `p`; returns where it ends (after the ]) or NULL when it is no set. */
static const char *set_match(const char *p, const char *end, int c, bool *ret)
{
    bool inverted = p < end && (*p == '!' || *p == '^');
    bool in = false;
    p += inverted;
    for (const char *first = p; p < end && (*p != ']' || p == first); p++) {
        int from = fold((unsigned char)*p), to = from;
        if (p + 2 < end && p[1] == '-' && p[2] != ']') {
            to = fold((unsigned char)p[2]);
            p += 2;
        }
        in |= c >= from && c <= to;
    }
    if (p >= end)
        return NULL;
    *ret = in != inverted;
    return p + 1;
}

/* One character of the name against what stands at `p` (no star); returns what follows in the pattern, or NULL. */
static const char *one_match(const char *p, const char *end, int c)
{
    if (p >= end)
        return NULL;
    if (*p == '?')
        return p + 1;
    if (*p == '[') {
        bool in = false;
        const char *after = set_match(p + 1, end, fold(c), &in);
        if (after)
            return in ? after : NULL;
    }
    if (*p == '\\' && p + 1 < end)
        p++;
    return fold((unsigned char)*p) == fold(c) ? p + 1 : NULL;
}

bool pattern_match(struct str pattern, struct str name)
{
    const char *p = pattern.p, *end = p + pattern.n, *star = NULL;
    size_t i = 0, star_at = 0;
    while (i < name.n) {
        if (p < end && *p == '*') {
            star = ++p;
            star_at = i;
            continue;
        }
        const char *after = one_match(p, end, (unsigned char)name.p[i]);
        if (after) {
            p = after;
            i++;
        } else if (star) {
            p = star;
            i = ++star_at;
        } else {
            return false;
        }
    }
    while (p < end && *p == '*')
        p++;
    return p == end;
}

static bool part_match(const struct rule *r, size_t i, struct str part)
{
    return r->pattern ? pattern_match(r->parts[i], part) : fold_eq(r->parts[i], part);
}

/* ---- loading ---- */

static int text_at(const char *strings, size_t bytes, uint32_t at, struct str *ret)
{
    if (at >= bytes || !memchr(strings + at, 0, bytes - at))
        return -EBADMSG;
    *ret = str_of(strings + at);
    while (ret->n > 1 && ret->p[ret->n - 1] == '/')
        ret->n--;
    return 0;
}

static int split(struct rule *r)
{
    size_t at = 0;
    struct str part;
    while (part_next(r->path, &at, &part)) {
        if (r->n_parts == RULE_PARTS)
            return -EBADMSG;
        if (str_is(part, "**"))
            continue;
        r->parts[r->n_parts++] = part;
    }
    return r->n_parts ? 0 : -EBADMSG;
}

static struct rule *add(struct rule **list, size_t *n, const struct guard_rule *said, uint32_t index, struct str text,
                        struct arena *mem)
{
    struct rule *r = arena_push(mem, list, n, sizeof *r);
    if (r)
        *r = (struct rule){.said = said, .index = index, .path = text};
    return r;
}

static int add_name(struct rules *all, const struct guard_rule *said, uint32_t index, struct str text,
                    struct arena *mem)
{
    all->git |= said->judge == GUARD_GIT_CONFIG;
    if (said->place == GUARD_ANY_DEPTH) {
        struct rule *r = add(&all->guarded, &all->n_guarded, said, index, text, mem);
        if (!r)
            return -ENOMEM;
        r->any_depth = all->any_depth = true;
        int no = split(r);
        if (no == 0)
            all->first[fold_hash(r->parts[0]) / 64] |= 1ull << fold_hash(r->parts[0]) % 64;
        return no;
    }
    for (size_t i = 0; i < all->n_roots; i++) {
        struct str root = all->roots[i].path;
        const char *whole = arena_printf(mem, "%.*s/%.*s", root.n == 1 ? 0 : (int)root.n, root.p, (int)text.n, text.p);
        if (!whole || !add(&all->guarded, &all->n_guarded, said, index, str_of(whole), mem))
            return -ENOMEM;
    }
    return 0;
}

static int add_hide_name(struct rules *all, const struct guard_rule *said, uint32_t index, struct str text,
                         struct str below, struct arena *mem)
{
    struct rule *r = add(&all->hidden, &all->n_hidden, said, index, text, mem);
    if (!r)
        return -ENOMEM;
    r->any_depth = r->pattern = true;
    r->below = below.n ? below : STR("/");
    return split(r);
}

static int add_rule(struct rules *all, const struct guard_rule *said, uint32_t index, struct str text, struct str below,
                    struct arena *mem)
{
    bool absolute = str_starts(text, STR("/"));
    if (text.n == 0 || (said->kind != GUARD_RULE_NAME && said->kind != GUARD_RULE_HIDE_NAME && !absolute))
        return -EBADMSG;
    switch (said->kind) {
    case GUARD_RULE_ROOT:
        return 0; /* was the first pass */
    case GUARD_RULE_NAME:
        return all->mode == GUARD_OFF ? 0 : add_name(all, said, index, text, mem);
    case GUARD_RULE_PROTECT:
        return add(&all->guarded, &all->n_guarded, said, index, text, mem) ? 0 : -ENOMEM;
    case GUARD_RULE_HIDE:
        return add(&all->hidden, &all->n_hidden, said, index, text, mem) ? 0 : -ENOMEM;
    case GUARD_RULE_HIDE_NAME:
        return add_hide_name(all, said, index, text, below, mem);
    case GUARD_RULE_PIN:
        return add(&all->pinned, &all->n_pinned, said, index, text, mem) ? 0 : -ENOMEM;
    case GUARD_RULE_SOCKET:
        return add(&all->sockets, &all->n_sockets, said, index, text, mem) ? 0 : -ENOMEM;
    case GUARD_RULE_PRIVATE:
        return add(&all->private_trees, &all->n_private, said, index, text, mem) ? 0 : -ENOMEM;
    default:
        return -EBADMSG;
    }
}

int rules_load(struct rules *ret, const struct guard_table *table, size_t bytes, const char *strings,
               size_t strings_bytes, struct arena *mem)
{
    struct rules all = {.mode = (enum guard_mode)table->mode};
    if (bytes < sizeof *table || table->n_rules > (bytes - sizeof *table) / sizeof(struct guard_rule) ||
        table->mode > GUARD_OFF)
        return -EBADMSG;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < table->n_rules; i++) {
            const struct guard_rule *said = &table->rules[i];
            struct str text, below;
            int no = text_at(strings, strings_bytes, said->text, &text);
            if (no == 0)
                no = text_at(strings, strings_bytes, said->below, &below);
            if (no == 0 && pass == 0 && said->kind == GUARD_RULE_ROOT)
                no = add(&all.roots, &all.n_roots, said, i, text, mem) ? 0 : -ENOMEM;
            if (no == 0 && pass == 1)
                no = add_rule(&all, said, i, text, below, mem);
            if (no < 0)
                return no;
        }
    }
    *ret = all;
    return 0;
}

/* ---- asking ---- */

static const struct rule *deepest(const struct rule *list, size_t n, struct str path)
{
    const struct rule *best = NULL;
    for (size_t i = 0; i < n; i++)
        if (path_in(path, list[i].path) && (!best || list[i].path.n > best->path.n))
            best = &list[i];
    return best;
}

struct str rules_root(const struct rules *r, struct str path)
{
    const struct rule *root = deepest(r->roots, r->n_roots, path);
    return root ? root->path : (struct str){"", 0};
}

bool rules_private(const struct rules *r, struct str path)
{
    const struct rule *tree = deepest(r->private_trees, r->n_private, path);
    return tree && tree->path.n > rules_root(r, path).n;
}

/* `inside`: what is in the directory `path`; otherwise the name itself. */
static bool foreign_code(struct str path, bool inside)
{
    size_t at = 0;
    struct str part;
    while (part_next(path, &at, &part))
        if ((inside || at < path.n) &&
            (fold_eq(part, STR("node_modules")) || fold_eq(part, STR("vendor")) || fold_eq(part, STR("site-packages"))))
            return true;
    return false;
}

bool rules_foreign(struct str path)
{
    return foreign_code(path, false);
}

bool rule_is_git_hooks(const struct rule *r)
{
    return r->said->kind == GUARD_RULE_NAME &&
           (fold_eq(r->path, STR(".git/hooks")) ||
            (!r->any_depth && r->path.n > 11 && fold_eq(str_skip(r->path, r->path.n - 11), STR("/.git/hooks"))));
}

bool rule_is_git_config(const struct rule *r)
{
    return r->said->kind == GUARD_RULE_NAME && r->said->judge == GUARD_GIT_CONFIG;
}

static bool is_git_name(const struct rule *r)
{
    return r->n_parts && fold_eq(r->parts[0], STR(".git"));
}

/* Whether a rule holds for any-depth names in `path` at all: below a root, and in foreign code only git's own. */
struct scope {
    size_t from; /* where the part of the path that counts begins */
    bool none, foreign;
};
static struct scope scope_of(const struct rules *r, struct str path)
{
    struct str root = rules_root(r, path);
    if (root.n == 0 || rules_private(r, path))
        return (struct scope){.none = true};
    struct scope s = {.from = root.n == 1 ? 0 : root.n};
    s.foreign = rules_foreign(str_skip(path, s.from));
    return s;
}

/* The components from `at` on begin with all of the rule's, which end at *ret_end. */
static bool run_match(const struct rule *r, struct str path, size_t at, size_t *ret_end)
{
    struct str part;
    for (size_t i = 0; i < r->n_parts; i++)
        if (!part_next(path, &at, &part) || !part_match(r, i, part))
            return false;
    *ret_end = at;
    return true;
}

static const struct rule *any_depth_guarded(const struct rules *r, struct str path, size_t *ret_end)
{
    struct scope s = scope_of(r, path);
    struct str part;
    size_t at = s.from, here = s.from;
    if (s.none)
        return NULL;
    for (; part_next(path, &at, &part); here = at) {
        unsigned h = fold_hash(part);
        if (!(r->first[h / 64] >> h % 64 & 1))
            continue;
        for (size_t i = 0; i < r->n_guarded; i++) {
            const struct rule *one = &r->guarded[i];
            if (!one->any_depth || (s.foreign && !is_git_name(one)) || !run_match(one, path, here, ret_end))
                continue;
            if (*ret_end == path.n || (one->said->flags & 1))
                return one;
        }
    }
    return NULL;
}

const struct rule *rules_guarded(const struct rules *r, struct str path, size_t *ret_end)
{
    for (size_t i = 0; i < r->n_guarded; i++) {
        const struct rule *one = &r->guarded[i];
        if (one->any_depth || !path_in(path, one->path))
            continue;
        if (path.n == one->path.n || one->said->kind == GUARD_RULE_PROTECT || (one->said->flags & 1)) {
            *ret_end = one->path.n;
            return one;
        }
    }
    return r->any_depth ? any_depth_guarded(r, path, ret_end) : NULL;
}

const struct rule *rules_hidden(const struct rules *r, struct str path)
{
    size_t end;
    for (size_t i = 0; i < r->n_hidden; i++) {
        const struct rule *one = &r->hidden[i];
        if (!one->any_depth) {
            if (path_in(path, one->path))
                return one;
            continue;
        }
        if (!path_in(path, one->below))
            continue;
        size_t from = one->below.n == 1 ? 0 : one->below.n;
        struct str part;
        for (size_t next = from; part_next(path, &next, &part); from = next)
            if (run_match(one, path, from, &end))
                return one;
    }
    return NULL;
}

/* How many of a rule's first components the path ends in, at most all but one; the longest such run. */
static size_t prefix_run(const struct rule *r, struct str path, size_t from)
{
    struct str part;
    for (size_t here = from, next = from; part_next(path, &next, &part); here = next) {
        size_t at = here, i = 0;
        while (i + 1 < r->n_parts && part_next(path, &at, &part) && part_match(r, i, part))
            i++;
        if (i && at >= path.n)
            return i;
        next = here;
        (void)part_next(path, &next, &part);
    }
    return 0;
}

static bool below_path(const struct rule *one, struct str path, struct str *ret_rest)
{
    if (!path_in(one->path, path) || one->path.n == path.n)
        return false;
    *ret_rest = str_skip(one->path, path.n == 1 ? 1 : path.n + 1);
    return true;
}

const struct rule *rules_below(const struct rules *r, struct str path, size_t *at, struct str *ret_rest)
{
    struct scope s = {.none = true};
    bool known = false;
    for (; *at < r->n_guarded; ++*at) {
        const struct rule *one = &r->guarded[*at];
        if (!one->any_depth) {
            if (!below_path(one, path, ret_rest))
                continue;
            ++*at;
            return one;
        }
        if (one->n_parts < 2)
            continue;
        if (!known) {
            s = scope_of(r, path);
            known = true;
        }
        size_t run = s.none || (s.foreign && !is_git_name(one)) ? 0 : prefix_run(one, path, s.from);
        if (run == 0)
            continue;
        *ret_rest = str_skip(one->path, (size_t)(one->parts[run].p - one->path.p));
        ++*at;
        return one;
    }
    for (size_t i; (i = *at - r->n_guarded) < r->n_hidden;) {
        ++*at;
        if (!r->hidden[i].any_depth && below_path(&r->hidden[i], path, ret_rest))
            return &r->hidden[i];
    }
    for (size_t i; (i = *at - r->n_guarded - r->n_hidden) < r->n_pinned;) {
        ++*at;
        if (below_path(&r->pinned[i], path, ret_rest))
            return &r->pinned[i];
    }
    return NULL;
}

const struct rule *rules_pattern_prefix(const struct rules *r, struct str path)
{
    for (size_t i = 0; i < r->n_hidden; i++) {
        const struct rule *one = &r->hidden[i];
        if (one->any_depth && one->n_parts > 1 && path_in(path, one->below) &&
            prefix_run(one, path, one->below.n == 1 ? 0 : one->below.n))
            return one;
    }
    return NULL;
}

const struct rule *rules_crossing(const struct rules *r, struct str from, struct str to)
{
    for (size_t i = 0; i < r->n_hidden; i++)
        if (r->hidden[i].any_depth && path_in(from, r->hidden[i].below) && !path_in(to, r->hidden[i].below))
            return &r->hidden[i];
    if (!r->any_depth)
        return NULL;
    struct scope a = scope_of(r, from), b = scope_of(r, to);
    if (!a.none)
        a.foreign = foreign_code(str_skip(from, a.from), true);
    if (!b.none)
        b.foreign = foreign_code(str_skip(to, b.from), true);
    if (b.none || (!a.none && a.foreign <= b.foreign))
        return NULL; /* nothing there that the rules at the new place would not have refused at the old */
    for (size_t i = 0; i < r->n_guarded; i++)
        if (r->guarded[i].any_depth)
            return &r->guarded[i];
    return NULL;
}

const struct rule *rules_pinned(const struct rules *r, struct str path)
{
    for (size_t i = 0; i < r->n_pinned; i++)
        if (path_in(r->pinned[i].path, path))
            return &r->pinned[i];
    return NULL;
}

const struct rule *rules_socket(const struct rules *r, struct str path)
{
    for (size_t i = 0; i < r->n_sockets; i++)
        if (str_eq(r->sockets[i].path, path))
            return &r->sockets[i];
    return NULL;
}
