/*
 * Answers from a compiled table (load.c). Trees are absolute paths there, any-depth rules lists of components; so are
 * GUARD_ROOT names, which apply below the top of each writable tree, and a second time for the roots of repositories, which
 * the caller finds. A query first compares the absolute paths: of the trees (ROOT, PROTECT, HIDE, PRIVATE) the longest at
 * or above the path decides; names apply in addition. Then it goes once over the components of the path, where a small bitmap of hashes skips the many components that no any-depth rule begins with.
 */
#include "judge/judge.h"
#include <stdint.h>

/* Where they stand, and what of them is asked: guard/rules/hold.c and verdict.c. */
const char *const rules_gits[] = {"hooks",  "remotes",         "branches",  "objects",     "refs",
                                  "config", "config.worktree", "commondir", ".gitmodules", "modules",
                                  "index",  "attributes",      NULL};

/* ---- names ---- */

/* The whole text is compared, up to the case, which the hashes ignore, too: so nothing is ever said of another path. */
unsigned rules_may(const struct rules *r, struct str path)
{
    struct rules_seen *seen = r->seen;
    struct str part;
    if (fold_eq(path, (struct str){seen->text, seen->n}))
        return seen->may;
    unsigned may = 0;
    for (size_t at = 0; part_next(path, &at, &part);)
        may |= r->may[rule_hash(part)];
    if (path.n <= sizeof seen->text) {
        memcpy(seen->text, path.p, path.n);
        seen->n = path.n;
        seen->may = may;
    }
    return may;
}

static bool part_match(const struct rule *r, size_t i, struct str part)
{
    if (r->last && i + 1 == r->n_parts && (!part.n || rule_fold((unsigned char)part.p[part.n - 1]) != r->last))
        return false;
    return name_fits(r->parts[i], r->pattern && i + 1 == r->n_parts, part);
}

/* ---- queries ---- */

/* Whether a tree or name of this length could be `path` or above it. */
static bool may_be_in(struct str path, size_t n)
{
    return n == 1 || (n <= path.n && (n == path.n || path.p[n] == '/'));
}

const struct rule *rules_decider(const struct rules *r, struct str path)
{
    for (size_t i = 0; i < r->n_trees; i++) {
        if (!may_be_in(path, r->trees[i].n))
            continue;
        const struct rule *one = r->trees[i].rule;
        const bool permits = one->said->kind == GUARD_RULE_ROOT || one->said->kind == GUARD_RULE_PRIVATE;
        if ((permits ? path_in_exactly : path_in)(path, one->path))
            return one;
    }
    return NULL;
}

static bool decided_by(const struct rule *decider, unsigned kind)
{
    return decider && decider->said->kind == kind;
}

static bool has_no_links(const struct rule *tree)
{
    return decided_by(tree, GUARD_RULE_ROOT) && tree->said->flags & GUARD_RULE_NO_LINKS;
}

bool rules_no_links(const struct rules *r, struct str path)
{
    return has_no_links(rules_decider(r, path));
}

bool rules_may_bring_links(const struct rules *r, struct str from, struct str to)
{
    bool may = rules_no_links(r, to) && rules_decider(r, from) != rules_decider(r, to);
    for (size_t i = 0; !may && i < r->n_roots; i++)
        may = has_no_links(&r->roots[i]) && path_in(r->roots[i].path, to);
    return may;
}

/* A private tree that is on the host, so that somebody could be led there. */
static bool is_kept(const struct rule *decider)
{
    return decided_by(decider, GUARD_RULE_PRIVATE) && decider->said->flags & GUARD_RULE_KEPT;
}

/* The workspace of a box with a copy-on-write layer. */
static bool is_layered(const struct rule *decider)
{
    return decided_by(decider, GUARD_RULE_ROOT) && decider->said->flags & GUARD_RULE_LAYERED;
}

struct str rules_root(const struct rules *r, struct str path)
{
    bool kept = false; /* thousands of rules may decide, but few trees are kept */
    for (size_t i = 0; !kept && i < r->n_private; i++)
        kept = is_kept(&r->private_trees[i]) && path_in(path, r->private_trees[i].path);
    const struct rule *root = kept ? rules_decider(r, path) : NULL;
    if (kept && is_kept(root))
        return root->path;
    root = NULL;
    for (size_t i = 0; i < r->n_roots; i++)
        if ((!root || r->roots[i].path.n > root->path.n) && path_in(path, r->roots[i].path))
            root = &r->roots[i];
    return root ? root->path : (struct str){"", 0};
}

bool rules_private(const struct rules *r, struct str path)
{
    const struct rule *decider = rules_decider(r, path);
    return decided_by(decider, GUARD_RULE_PRIVATE) || is_layered(decider);
}

bool rules_free(const struct rules *r, struct str path)
{
    const struct rule *decider = rules_decider(r, path);
    return (decided_by(decider, GUARD_RULE_PRIVATE) && !is_kept(decider)) || is_layered(decider);
}

bool rules_foreign(struct str path)
{
    return path_is_foreign(path, false);
}

bool rule_is_git_hooks(const struct rule *r)
{
    return r->said->kind == GUARD_RULE_NAME && !(r->said->flags & GUARD_RULE_ALWAYS) &&
           (fold_eq(r->path, STR(".git/hooks")) ||
            (!r->any_depth && r->path.n > 11 && fold_eq(str_skip(r->path, r->path.n - 11), STR("/.git/hooks"))));
}

bool rule_is_git_config(const struct rule *r)
{
    return r->said->kind == GUARD_RULE_NAME && r->said->judge == GUARD_GIT_CONFIG;
}

bool rules_may_be_config(const struct rules *r, struct str last)
{
    return rules_part_may(r, last, MAY_BE_CONFIG);
}

/* Names of git and similar tools. */
static bool is_repository_name(const struct rule *r)
{
    static const char *const first[] = {".git", ".hg", ".jj", "rebase-merge", "rebase-apply", "sequencer", "MERGE_RR"};
    for (size_t i = 0; r->n_parts && i < sizeof first / sizeof *first; i++)
        if (fold_eq(r->parts[0], str_of(first[i])))
            return true;
    return false;
}

/* Whether any-depth names apply in `path`, and from which offset on: from the outermost writable tree, so that a tree
   inside a tree does not cut a name in two. A kept tree is like foreign code. */
struct scope {
    size_t from; /* start of the relevant part of the path */
    bool none, foreign, kept, layered;
};

/* In foreign code any-depth names do not apply, except those of repositories and of the policy's own rules; behind a
   layer only the latter do: the others wait for apply. */
static bool holds_in(const struct rule *r, const struct scope *s)
{
    if (s->layered || s->foreign)
        return r->said->flags & GUARD_RULE_ALWAYS || (!s->layered && is_repository_name(r));
    return true;
}

static bool in_git(struct str path)
{
    struct str part;
    for (size_t at = 0; part_next(path, &at, &part);)
        if (fold_eq(part, STR(".git")))
            return true;
    return false;
}

static struct scope scope_under(const struct rules *r, struct str path, const struct rule *decider)
{
    const struct rule *root = NULL;
    if (is_kept(decider))
        return (struct scope){.from = decider->path.n, .foreign = true, .kept = true};
    for (size_t i = 0; i < r->n_roots; i++)
        if (path_in(path, r->roots[i].path) && (!root || r->roots[i].path.n < root->path.n))
            root = &r->roots[i];
    if (!root || decided_by(decider, GUARD_RULE_PRIVATE))
        return (struct scope){.none = true};
    struct scope s = {.from = root->path.n == 1 ? 0 : root->path.n};
    /* What lies in a repository's own files is no package's: in vendor/lib/.git, nor in .git/modules/vendor/lib. */
    s.foreign = rules_may(r, path) & MAY_BE_FOREIGN && rules_foreign(str_skip(path, s.from)) && !in_git(path);
    s.layered = is_layered(decider);
    return s;
}
static struct scope scope_of(const struct rules *r, struct str path)
{
    return scope_under(r, path, rules_decider(r, path));
}

/* Whether the first component of an any-depth rule may be one with this hash. */
static bool may_begin(unsigned begins, unsigned h)
{
    return begins == h || begins == RULE_ANY;
}

/* Start of the components that `r` refers to; false if `path` is not below its tree. */
static bool starts_at(const struct rule *r, struct str path, size_t *from)
{
    size_t below = r->below.n == 1 ? 0 : r->below.n;
    if (!path_in(path, r->below))
        return false;
    if (r->direct || *from < below)
        *from = below;
    return true;
}

/* Whether the components from `at` on begin with all of the rule's, which end at *ret_end. */
static bool run_match(const struct rule *r, struct str path, size_t at, size_t *ret_end)
{
    struct str part;
    for (size_t i = 0; i < r->n_parts; i++)
        if (!part_next(path, &at, &part) || !part_match(r, i, part))
            return false;
    *ret_end = at;
    return true;
}

static bool guarded_from(const struct rule *r, struct str path, size_t here, struct scope s, size_t *ret_end)
{
    size_t from = s.from;
    return r->any_depth && holds_in(r, &s) && starts_at(r, path, &from) && (r->direct ? here == from : here >= from) &&
           run_match(r, path, here, ret_end) && (*ret_end == path.n || (r->said->flags & GUARD_RULE_DIRECTORY));
}

/* Of several rules for a path the strictest applies, so that an additional one never guards less: first those of every
   mode, then refusal, then judging the content; of equals the one that matches further up. */
static int strictness(const struct rule *r)
{
    return r->said->flags & GUARD_RULE_ALWAYS ? 2 : rule_is_git_config(r) ? 0 : 1;
}
struct found {
    const struct rule *rule;
    size_t end;
};
static void find_stricter(struct found *f, const struct rule *r, size_t end)
{
    int more = f->rule ? strictness(r) - strictness(f->rule) : 1;
    if (more > 0 || (more == 0 && end < f->end))
        *f = (struct found){r, end};
}

static void any_depth_guarded(const struct rules *r, struct str path, const struct rule *decider, struct found *f)
{
    struct scope s = scope_under(r, path, decider);
    struct str part;
    size_t at = s.from, here = s.from, end;
    if (s.none)
        return;
    for (; part_next(path, &at, &part); here = at) {
        const unsigned h = rule_hash(part);
        if (!(r->may[h] & MAY_BEGIN))
            continue;
        for (size_t i = 0; i < r->n_runs; i++)
            if (may_begin(r->runs[i].begins, h) && guarded_from(r->runs[i].rule, path, here, s, &end))
                find_stricter(f, r->runs[i].rule, end);
    }
}

/* Behind a layer only the policy's own names hold at the top: the others wait for apply. */
static bool holds_at(const struct rule *name, const struct rule *root)
{
    return !(root->said->flags & GUARD_RULE_LAYERED) || name->said->flags & GUARD_RULE_ALWAYS;
}

/* What of `path` is below `root`; "" if it is not strictly below it. */
static struct str under(struct str path, const struct rule *root)
{
    const size_t above = root->path.n == 1 ? 1 : root->path.n + 1;
    return path.n > above && path_in(path, root->path) ? str_skip(path, above) : str_skip(path, path.n);
}

/* The names at the tops of the trees around `path`. Of those that are equally strict and end alike the first of the table is reported. */
static void top_guarded(const struct rules *r, struct str path, struct found *f)
{
    for (size_t i = 0; i < r->n_roots; i++) {
        const struct str in = under(path, &r->roots[i]);
        struct str first;
        size_t at = 0;
        if (!part_next(in, &at, &first))
            continue;
        const unsigned h = rule_hash(first);
        for (size_t k = 0; k < r->n_names; k++) {
            const struct rule *one = &r->names[k];
            if (one->begins != h || !may_be_in(in, one->path.n) || !path_in(in, one->path) ||
                !holds_at(one, &r->roots[i]))
                continue;
            const size_t end = path.n - in.n + one->path.n;
            const bool same = f->rule && end == f->end && strictness(one) == strictness(f->rule);
            if (end != path.n && !(one->said->flags & GUARD_RULE_DIRECTORY))
                continue;
            if (same && one->index < f->rule->index)
                f->rule = one;
            find_stricter(f, one, end);
        }
    }
}

const struct rule *rules_guarded(const struct rules *r, struct str path, size_t *ret_end)
{
    const struct rule *decider = rules_decider(r, path);
    const bool kept = is_kept(decider);
    if (decided_by(decider, GUARD_RULE_PRIVATE) && !kept)
        return NULL;
    if (decided_by(decider, GUARD_RULE_PROTECT) || decided_by(decider, GUARD_RULE_HIDE)) {
        *ret_end = decider->path.n;
        return decider;
    }
    struct found f = {0};
    if (!kept)
        top_guarded(r, path, &f);
    if (r->any_depth && rules_may(r, path) & MAY_BEGIN)
        any_depth_guarded(r, path, decider, &f);
    if (f.rule)
        *ret_end = f.end;
    return f.rule;
}

const struct rule *rules_hidden(const struct rules *r, struct str path)
{
    if (r->n_hidden == 0)
        return NULL;
    const struct rule *decider = rules_decider(r, path);
    size_t end;
    if (decided_by(decider, GUARD_RULE_HIDE))
        return decider;
    if (decided_by(decider, GUARD_RULE_PRIVATE))
        return NULL;
    for (size_t i = 0; i < r->n_hidden; i++) {
        const struct rule *one = &r->hidden[i];
        size_t from = 0;
        if (!one->any_depth || !starts_at(one, path, &from))
            continue;
        struct str part;
        for (size_t next = from; part_next(path, &next, &part); from = next) {
            if (run_match(one, path, from, &end))
                return one;
            if (one->direct)
                break;
        }
    }
    return NULL;
}

/* How many of a rule's first components (at most all but one) the path ends in; the longest such run. */
static size_t prefix_run(const struct rule *r, struct str path, size_t from)
{
    struct str part;
    for (size_t here = from, next = from; part_next(path, &next, &part); here = next) {
        size_t at = here, i = 0;
        /* `at` stays after the last match. */
        for (size_t end = at; i + 1 < r->n_parts && part_next(path, &end, &part) && part_match(r, i, part); at = end)
            i++;
        if (i && at >= path.n)
            return i;
        next = here;
        (void)part_next(path, &next, &part);
    }
    return 0;
}

/* The longest run of the rule's first components that `path` ends in, where the rule applies. */
static size_t prefix_of(const struct rule *r, struct str path, struct scope s)
{
    size_t from = s.from;
    return r->n_parts < 2 || s.none || !holds_in(r, &s) || !starts_at(r, path, &from) ? 0 : prefix_run(r, path, from);
}

static bool below_path(struct str one, struct str path, struct str *ret_rest)
{
    if (!path_in(one, path) || one.n == path.n)
        return false;
    *ret_rest = str_skip(one, path.n == 1 ? 1 : path.n + 1);
    return true;
}

static size_t write_top(const struct rule *root, const struct rule *name, char text[RULE_WHOLE])
{
    size_t n = root->path.n == 1 ? 0 : root->path.n;
    memcpy(text, root->path.p, n);
    text[n++] = '/';
    memcpy(text + n, name->path.p, name->path.n);
    n += name->path.n;
    text[n] = 0;
    return n;
}

const struct rule *rules_top(const struct rules *r, size_t *at, char text[RULE_WHOLE], size_t *ret_n)
{
    while (*at < r->n_names * r->n_roots) {
        const struct rule *root = &r->roots[*at / r->n_names], *name = &r->names[*at % r->n_names];
        ++*at;
        if (!holds_at(name, root))
            continue;
        *ret_n = write_top(root, name, text);
        return name;
    }
    return NULL;
}

/* The next name at the top of a tree that is below `path`, or in whose tree `path` is the beginning of the name. */
static const struct rule *top_below(const struct rules *r, struct str path, struct below *b)
{
    while (b->at < r->n_names * r->n_roots) {
        const size_t tree = b->at / r->n_names;
        const struct rule *root = &r->roots[tree], *name = &r->names[b->at % r->n_names];
        const struct str in = under(path, root);
        if (!in.n && !path_in(root->path, path)) {
            b->at = (tree + 1) * r->n_names;
            continue;
        }
        b->at++;
        if (!holds_at(name, root) || (in.n && (!path_in(name->path, in) || name->path.n == in.n)))
            continue;
        const struct str whole = {b->text, write_top(root, name, b->text)};
        if (below_path(whole, path, &b->rest) && !rules_private(r, whole))
            return name;
    }
    return NULL;
}

static const struct rule *guarded_below(const struct rules *r, struct str path, struct below *b, size_t from)
{
    struct scope s = {.none = true};
    bool known = false;
    while (b->at - from < r->n_guarded) {
        const struct rule *one = &r->guarded[b->at++ - from];
        if (!one->any_depth) {
            if (!below_path(one->path, path, &b->rest) || rules_private(r, one->path))
                continue;
            return one;
        }
        if (one->n_parts < 2 || one->pattern)
            continue;
        if (!known) {
            s = scope_of(r, path);
            known = true;
        }
        size_t run = prefix_of(one, path, s);
        if (run == 0)
            continue;
        b->rest = str_skip(one->path, (size_t)(one->parts[run].p - one->path.p));
        return one;
    }
    return NULL;
}

const struct rule *rules_below(const struct rules *r, struct str path, struct below *b)
{
    size_t from = r->n_names * r->n_roots; /* of the list that comes next: they are numbered one after another */
    const struct rule *found = top_below(r, path, b);
    if (!found)
        found = guarded_below(r, path, b, from);
    if (found)
        return found;
    from += r->n_guarded;
    for (; b->at - from < r->n_hidden;) {
        const struct rule *one = &r->hidden[b->at++ - from];
        if (!one->any_depth && below_path(one->path, path, &b->rest))
            return one;
    }
    from += r->n_hidden;
    for (; b->at - from < r->n_pinned;) {
        const struct rule *one = &r->pinned[b->at++ - from];
        if (below_path(one->path, path, &b->rest))
            return one;
    }
    return NULL;
}

/* ---- names at the roots of repositories ---- */

/* Whether a name of the list may begin with this component; patterns are about the last one of a path. */
static bool may_begin_rooted(const struct rules *r, struct str part, bool last)
{
    if (rules_part_may(r, part, MAY_BEGIN_ROOTED))
        return true;
    for (size_t i = 0; last && i < r->n_patterns; i++)
        if (part_match(r->patterns[i].rule, 0, part))
            return true;
    return false;
}

/* Whether a name of the list may occur in `path`: usually the hashes of its components rule that out. */
static bool may_be_rooted(const struct rules *r, struct str path)
{
    const char *slash = memrchr(path.p, '/', path.n);
    return rules_may(r, path) & MAY_BEGIN_ROOTED ||
           may_begin_rooted(r, str_skip(path, slash ? (size_t)(slash - path.p) + 1 : 0), true);
}

/* `rest`: the remainder of a name whose first components the path ends in. */
static bool run_begins(const struct rule *r, struct str path, size_t at, struct str *ret_rest)
{
    struct str part;
    for (size_t i = 0; i + 1 < r->n_parts; i++) {
        if (!part_next(path, &at, &part) || !part_match(r, i, part))
            return false;
        if (at < path.n)
            continue;
        *ret_rest = str_skip(r->path, (size_t)(r->parts[i + 1].p - r->path.p));
        return true;
    }
    return false;
}

static bool rooted_begin(const struct rules *r, struct str path, struct rooted *w)
{
    if (w->begun)
        return true;
    if (r->n_rooted == 0 || !may_be_rooted(r, path))
        return false;
    struct scope s = scope_of(r, path);
    w->begun = true;
    w->from = s.from;
    w->directory = (struct str){path.p, s.from};
    return !s.none && !s.kept && !s.layered;
}

/* The next name of the list that `path` contains, or (below) whose beginning it ends in, in a directory above it. */
static bool rooted_next(const struct rules *r, struct str path, struct rooted *w, bool below)
{
    struct str part;
    if (!rooted_begin(r, path, w))
        return false;
    for (;; w->i = 0) {
        const size_t here = w->directory.n;
        size_t after = here;
        if (!part_next(path, &after, &part))
            return false;
        const bool may = may_begin_rooted(r, part, after == path.n);
        const unsigned h = rule_hash(part);
        while (may && w->i < r->n_rooted) {
            const struct rule *one = w->rule = &r->rooted[w->i++];
            if (!may_begin(one->begins, h))
                continue;
            if (below ? run_begins(one, path, here, &w->rest)
                      : run_match(one, path, here, &w->end) &&
                            (w->end == path.n || (one->said->flags & GUARD_RULE_DIRECTORY)))
                return true;
        }
        w->directory.n = after;
    }
}

bool rules_rooted(const struct rules *r, struct str path, struct rooted *w)
{
    return rooted_next(r, path, w, false);
}

bool rules_rooted_below(const struct rules *r, struct str path, struct rooted *w)
{
    return rooted_next(r, path, w, true);
}

const struct rule *rules_deep(const struct rules *r, struct str name)
{
    if (!r->deep || !may_begin_rooted(r, name, true))
        return NULL;
    for (size_t i = 0; i < r->n_rooted; i++)
        if (rule_is_deep(&r->rooted[i]) && part_match(&r->rooted[i], 0, name))
            return &r->rooted[i];
    return NULL;
}

bool rules_is_root(const struct rules *r, struct str path)
{
    for (size_t i = 0; i < r->n_roots; i++)
        if (path.n ? fold_eq(r->roots[i].path, path) : r->roots[i].path.n == 1)
            return true;
    return false;
}

const struct rule *rules_pattern_prefix(const struct rules *r, struct str path, bool guarded_only)
{
    struct scope s = scope_of(r, path), everywhere = {.from = 0};
    for (size_t i = 0; r->any_depth && i < r->n_guarded; i++)
        if (r->guarded[i].pattern && prefix_of(&r->guarded[i], path, s))
            return &r->guarded[i];
    for (size_t i = 0; !guarded_only && i < r->n_hidden; i++)
        if (r->hidden[i].any_depth && prefix_of(&r->hidden[i], path, everywhere))
            return &r->hidden[i];
    return NULL;
}

/* Whether moving a directory takes it out of the tree of a rule, or (guarded) into it. */
static bool crosses(const struct rule *r, struct str from, struct str to)
{
    bool left = path_in(from, r->below), arrives = path_in(to, r->below);
    return r->any_depth && (r->said->kind == GUARD_RULE_NAME ? left != arrives : left && !arrives);
}

const struct rule *rules_crossing(const struct rules *r, struct str from, struct str to)
{
    for (size_t i = 0; i < r->n_hidden; i++)
        if (crosses(&r->hidden[i], from, to))
            return &r->hidden[i];
    if (!r->any_depth)
        return NULL;
    for (size_t i = 0; i < r->n_guarded; i++)
        if (crosses(&r->guarded[i], from, to))
            return &r->guarded[i];
    struct scope a = scope_of(r, from), b = scope_of(r, to);
    if (!a.none && !a.kept)
        a.foreign = path_is_foreign(str_skip(from, a.from), true);
    if (!b.none && !b.kept)
        b.foreign = path_is_foreign(str_skip(to, b.from), true);
    if (b.none || b.layered || (!a.none && !a.layered && a.foreign <= b.foreign))
        return NULL; /* the rules at the old place have refused the same names */
    for (size_t i = 0; i < r->n_guarded; i++)
        if (r->guarded[i].any_depth)
            return &r->guarded[i];
    return NULL;
}

static bool has_later(const struct rule *list, size_t n, struct str part)
{
    for (size_t i = 0; i < n; i++) {
        struct str one;
        size_t at = 0;
        while (part_next(list[i].tail, &at, &one))
            if (name_fits(one, list[i].pattern && at == list[i].tail.n, part))
                return true;
    }
    return false;
}

bool rules_later(const struct rules *r, struct str part)
{
    return rules_part_may(r, part, MAY_BE_LATER) &&
           (has_later(r->guarded, r->n_guarded, part) || has_later(r->names, r->n_names, part) ||
            has_later(r->hidden, r->n_hidden, part));
}

bool rules_counts(const struct rules *r, struct str path)
{
    struct below w;
    struct str last;
    size_t from = path.n;
    w.at = 0;
    while (from > 0 && path.p[from - 1] != '/')
        from--;
    last = str_skip(path, from);
    return rules_part_may(r, last, MAY_BE_ABOVE) && (rules_below(r, path, &w) || rules_pattern_prefix(r, path, true));
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

/* ---- protected branches ---- */

#define HEADS "refs/heads"

/* No branch: git refuses such names, and makes its lock files so. */
static bool is_lock(struct str ref)
{
    struct str part;
    size_t at = 0;
    while (part_next(ref, &at, &part))
        if (str_ends(part, STR(".lock")))
            return true;
    return false;
}

const struct rule *rules_branch(const struct rules *r, const struct rule *of, struct str ref)
{
    size_t end;
    if (!path_in(ref, STR(HEADS)) || ref.n <= sizeof HEADS || is_lock(ref))
        return NULL;
    for (size_t i = 0; i < r->n_branches; i++)
        if (str_eq(r->branches[i].below, of->below) && names_fit(r->branches[i].path, true, ref, sizeof HEADS, &end))
            return &r->branches[i];
    return NULL;
}

enum rules_refs rules_refs(const struct rules *r, struct str path, const struct rule **ret_rule)
{
    for (size_t i = 0; i < r->n_branches; i++) {
        const struct rule *of = &r->branches[i];
        if (!path_in(path, of->below) || path.n == of->below.n)
            continue;
        const struct str name = str_skip(path, of->below.n + 1);
        const struct rule *rule = rules_branch(r, of, name);
        *ret_rule = rule ? rule : of;
        return rule                                                     ? REFS_BRANCH
               : fold_eq(name, STR("packed-refs"))                      ? REFS_PACKED
               : path_in(name, STR("reftable"))                         ? REFS_TABLE
               : path_in(STR(HEADS), name) || path_in(name, STR(HEADS)) ? REFS_DIRECTORY
                                                                        : REFS_NONE;
    }
    return REFS_NONE;
}
