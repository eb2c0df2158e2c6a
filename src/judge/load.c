/* Compiles a guard table into the lists and bitmaps that judge.c answers from.
   Once for each guard; judge.c then asks few rules of thousands. */
#include "judge/judge.h"
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include "git/gitconfig.h"

static int parsed_text(const char *strings, size_t bytes, uint32_t at, struct str *ret)
{
    if (at >= bytes || !memchr(strings + at, 0, bytes - at))
        return -EBADMSG;
    *ret = str_of(strings + at);
    while (ret->n > 1 && ret->p[ret->n - 1] == '/')
        ret->n--;
    return 0;
}

static int split(struct rule *r, struct arena *mem)
{
    struct str parts[RULE_PARTS], part;
    size_t at = 0, n = 0;
    while (part_next(r->path, &at, &part)) {
        if (n == RULE_PARTS)
            return -EBADMSG;
        parts[n++] = part;
    }
    if (n == 0 || (r->pattern && glob_wrong(parts[n - 1])))
        return -EBADMSG;
    r->parts = arena_zero(mem, n * sizeof *r->parts);
    if (!r->parts)
        return -ENOMEM;
    memcpy(r->parts, parts, n * sizeof *parts);
    r->n_parts = n;
    r->begins = r->pattern && n == 1 ? RULE_ANY : rule_hash(parts[0]);
    const struct str pattern = r->pattern ? parts[n - 1] : (struct str){"", 0};
    const int last = pattern.n ? rule_fold((unsigned char)pattern.p[pattern.n - 1]) : 0;
    if (last >= 'a' && last <= 'z' && !memchr(pattern.p, '[', pattern.n) && !memchr(pattern.p, '\\', pattern.n))
        r->last = (char)last;
    return 0;
}

static struct rule *add(struct rule **list, size_t *n, const struct guard_rule *said, uint32_t index, struct str text,
                        struct arena *mem)
{
    struct rule *r = arena_push(mem, list, n, sizeof *r);
    if (r)
        *r = (struct rule){.said = said, .index = index, .path = text};
    return r;
}

/* A rule of components. Its tree is pinned: moving it would take its names out of reach. */
static int add_any_depth(struct rules *all, struct rule **list, size_t *n, const struct guard_rule *said,
                         uint32_t index, struct str text, struct str below, struct arena *mem)
{
    struct rule *r = add(list, n, said, index, text, mem);
    if (!r)
        return -ENOMEM;
    r->any_depth = true;
    r->pattern = said->flags & GUARD_RULE_PATTERN;
    r->direct = said->flags & GUARD_RULE_DIRECT;
    r->below = below.n ? below : STR("/");
    if (r->below.n > 1 && !add(&all->pinned, &all->n_pinned, said, index, r->below, mem))
        return -ENOMEM;
    return split(r, mem);
}

bool rules_is_marker(struct str name)
{
    for (size_t i = 0; repository_markers[i]; i++)
        if (fold_eq(name, str_of(repository_markers[i])))
            return true;
    return false;
}

/* A name at the root of repositories. Patterns have one component, and also apply to the top of a tree by this rule. */
static int add_rooted(struct rules *all, const struct guard_rule *said, uint32_t index, struct str text,
                      struct arena *mem)
{
    struct rule *r = add(&all->rooted, &all->n_rooted, said, index, text, mem);
    if (r)
        r->pattern = said->flags & GUARD_RULE_PATTERN;
    int no = r ? split(r, mem) : -ENOMEM;
    if (no < 0)
        return no;
    r->any_depth = true;
    r->below = STR("/");
    r->in_repository = rules_is_marker(r->parts[0]) && !fold_eq(r->parts[0], STR(".git"));
    if (r->pattern && (r->n_parts > 1 || said->flags & GUARD_RULE_DIRECTORY))
        return -EBADMSG;
    if (rule_is_deep(r) && (r->n_parts > 1 || r->in_repository))
        return -EBADMSG;
    all->deep |= rule_is_deep(r);
    if (!r->pattern)
        all->may[r->begins] |= MAY_BEGIN_ROOTED;
    return 0;
}

static void mark(struct rules *all, struct str part, enum rule_may may)
{
    all->may[rule_hash(part)] |= (unsigned char)may;
}

/* Any name may match. */
static void mark_any(struct rules *all, enum rule_may may)
{
    for (size_t i = 0; i < RULE_HASHES; i++)
        all->may[i] |= (unsigned char)may;
}

static int add_name(struct rules *all, const struct guard_rule *said, uint32_t index, struct str text, struct str below,
                    struct arena *mem)
{
    all->git |= said->judge == GUARD_GIT_CONFIG;
    if (said->place == GUARD_ANY_DEPTH) {
        int no = add_any_depth(all, &all->guarded, &all->n_guarded, said, index, text, below, mem);
        if (no < 0)
            return no;
        const struct rule *r = &all->guarded[all->n_guarded - 1];
        all->any_depth = true;
        if (r->pattern)
            mark_any(all, MAY_BEGIN);
        else
            all->may[r->begins] |= MAY_BEGIN;
        return 0;
    }
    int no = add_rooted(all, said, index, text, mem);
    if (no < 0 || said->flags & GUARD_RULE_PATTERN || all->rooted[all->n_rooted - 1].in_repository)
        return no;
    for (size_t i = 0; i < all->n_roots; i++)
        if (all->roots[i].path.n + text.n + 2 > RULE_WHOLE)
            return -EBADMSG;
    struct rule *name = arena_push(mem, &all->names, &all->n_names, sizeof *name);
    if (!name)
        return -ENOMEM;
    *name = all->rooted[all->n_rooted - 1];
    name->any_depth = false;
    return 0;
}

static int add_rule(struct rules *all, const struct guard_rule *said, uint32_t index, struct str text, struct str below,
                    struct arena *mem)
{
    bool absolute = str_starts(text, STR("/"));
    if (text.n == 0 || (said->kind != GUARD_RULE_NAME && said->kind != GUARD_RULE_HIDE_NAME &&
                        said->kind != GUARD_RULE_BRANCH && !absolute))
        return -EBADMSG;
    switch (said->kind) {
    case GUARD_RULE_ROOT:
        return 0; /* this was the first pass */
    case GUARD_RULE_NAME:
        return all->mode == GUARD_OFF && !(said->flags & GUARD_RULE_ALWAYS)
                   ? 0
                   : add_name(all, said, index, text, below, mem);
    case GUARD_RULE_PROTECT:
        return add(&all->guarded, &all->n_guarded, said, index, text, mem) ? 0 : -ENOMEM;
    case GUARD_RULE_HIDE:
        return add(&all->hidden, &all->n_hidden, said, index, text, mem) ? 0 : -ENOMEM;
    case GUARD_RULE_HIDE_NAME:
        return add_any_depth(all, &all->hidden, &all->n_hidden, said, index, text, below, mem);
    case GUARD_RULE_PIN:
        return add(&all->pinned, &all->n_pinned, said, index, text, mem) ? 0 : -ENOMEM;
    case GUARD_RULE_SOCKET:
        return add(&all->sockets, &all->n_sockets, said, index, text, mem) ? 0 : -ENOMEM;
    case GUARD_RULE_PRIVATE:
        return add(&all->private_trees, &all->n_private, said, index, text, mem) ? 0 : -ENOMEM;
    case GUARD_RULE_BRANCH:
        if (!add(&all->branches, &all->n_branches, said, index, text, mem))
            return -ENOMEM;
        all->branches[all->n_branches - 1].below = below;
        return below.n > 1 ? 0 : -EBADMSG;
    default:
        return -EBADMSG;
    }
}

/* The components of a rule; for an absolute path those below its writable tree, which cannot be moved. */
static struct str parts_of(const struct rules *all, const struct rule *r)
{
    const bool whole = !r->any_depth && r->said->kind != GUARD_RULE_NAME;
    struct str root = whole ? rules_root(all, r->path) : (struct str){0};
    return str_skip(r->path, !whole ? 0 : root.n ? root.n : r->path.n);
}

static void mark_parts(struct rules *all, struct rule *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct str path = parts_of(all, &list[i]), part;
        size_t at = 0;
        (void)part_next(path, &at, &part);
        list[i].tail = str_skip(path, at);
        if (list[i].pattern && list[i].tail.n) {
            mark_any(all, MAY_BE_LATER);
            mark_any(all, MAY_BE_ABOVE);
        }
        for (struct str above = part; list[i].tail.n && part_next(path, &at, &part); above = part) {
            mark(all, above, MAY_BE_ABOVE);
            mark(all, part, MAY_BE_LATER);
        }
    }
}

static void mark_configs(struct rules *all, const struct rule *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *slash = memrchr(list[i].path.p, '/', list[i].path.n);
        if (rule_is_git_config(&list[i]) && list[i].pattern)
            mark_any(all, MAY_BE_CONFIG);
        else if (rule_is_git_config(&list[i]))
            mark(all, str_skip(list[i].path, slash ? (size_t)(slash - list[i].path.p) + 1 : 0), MAY_BE_CONFIG);
    }
}

static void mark_known(struct rules *all)
{
    for (size_t i = 0; rules_gits[i]; i++)
        mark(all, str_of(rules_gits[i]), MAY_BE_GITS);
    for (size_t i = 0; path_foreign_names[i]; i++)
        mark(all, str_of(path_foreign_names[i]), MAY_BE_FOREIGN);
}

static bool is_tree(const struct rule *r)
{
    return r->said->kind == GUARD_RULE_HIDE || r->said->kind == GUARD_RULE_PROTECT ||
           r->said->kind == GUARD_RULE_ROOT || r->said->kind == GUARD_RULE_PRIVATE;
}

static bool is_pattern(const struct rule *r)
{
    return r->pattern;
}

static int collect(struct rule_path **to, size_t *n, const struct rule *list, size_t n_list,
                   bool (*is)(const struct rule *r), struct arena *mem)
{
    for (size_t i = 0; i < n_list; i++) {
        if (!is(&list[i]))
            continue;
        struct rule_path *one = arena_push(mem, to, n, sizeof *one);
        if (!one)
            return -ENOMEM;
        *one = (struct rule_path){list[i].path.n, &list[i]};
    }
    return 0;
}

/* Of rules of equal length the first in this order decides. */
static int tree_order(const void *a, const void *b)
{
    static const unsigned char rank[] = {
        [GUARD_RULE_HIDE] = 0, [GUARD_RULE_PROTECT] = 1, [GUARD_RULE_ROOT] = 2, [GUARD_RULE_PRIVATE] = 3};
    const struct rule_path *x = a, *y = b;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    const int kinds = rank[x->rule->said->kind] - rank[y->rule->said->kind];
    return kinds ? kinds : x->rule < y->rule ? -1 : x->rule > y->rule; /* of one kind: of one list */
}

static int collect_all(struct rules *all, struct arena *mem)
{
    const struct {
        struct rule_path **to;
        size_t *n;
        const struct rule *list;
        size_t n_list;
        bool (*is)(const struct rule *r);
    } of[] = {{&all->trees, &all->n_trees, all->hidden, all->n_hidden, is_tree},
              {&all->trees, &all->n_trees, all->guarded, all->n_guarded, is_tree},
              {&all->trees, &all->n_trees, all->roots, all->n_roots, is_tree},
              {&all->trees, &all->n_trees, all->private_trees, all->n_private, is_tree},
              {&all->patterns, &all->n_patterns, all->rooted, all->n_rooted, is_pattern}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (collect(of[i].to, of[i].n, of[i].list, of[i].n_list, of[i].is, mem) < 0)
            return -ENOMEM;
    for (size_t i = 0; i < all->n_guarded; i++) {
        struct rule_run *run =
            all->guarded[i].any_depth ? arena_push(mem, &all->runs, &all->n_runs, sizeof *run) : NULL;
        if (all->guarded[i].any_depth && !run)
            return -ENOMEM;
        if (run)
            *run = (struct rule_run){all->guarded[i].begins, &all->guarded[i]};
    }
    if (all->n_trees)
        qsort(all->trees, all->n_trees, sizeof *all->trees, tree_order);
    return 0;
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
            int no = parsed_text(strings, strings_bytes, said->text, &text);
            if (no == 0)
                no = parsed_text(strings, strings_bytes, said->below, &below);
            if (no == 0 && pass == 0 && said->kind == GUARD_RULE_ROOT)
                no = add(&all.roots, &all.n_roots, said, i, text, mem) ? 0 : -ENOMEM;
            if (no == 0 && pass == 1)
                no = add_rule(&all, said, i, text, below, mem);
            if (no < 0)
                return no;
        }
    }
    all.seen = arena_zero(mem, sizeof *all.seen);
    if (!all.seen || collect_all(&all, mem) < 0)
        return -ENOMEM;
    mark_known(&all);
    mark_parts(&all, all.guarded, all.n_guarded);
    mark_parts(&all, all.names, all.n_names);
    mark_parts(&all, all.hidden, all.n_hidden);
    mark_parts(&all, all.pinned, all.n_pinned);
    mark_configs(&all, all.guarded, all.n_guarded); /* names stand in `rooted`, too */
    mark_configs(&all, all.rooted, all.n_rooted);
    *ret = all;
    return 0;
}
