/*
 * Judges what is removed, renamed or linked: what may leave its place, and what may arrive at another one, with all that a directory
 * has in it. The name lock is held, and directories that the verdict depends on (hold.c).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/fd.h"
#include "guard/rules/rules.h"
#include "judge/layout.h"

int verdict_remove(struct guard *g, const struct place *p, bool directory)
{
    struct str path = place_path(p);
    size_t end;
    bool config;
    if (!p->plain)
        return 0;
    if (p->frozen || place_mounted(g, p))
        return p->frozen ? -EROFS : -EBUSY;
    const struct rule *rule = rules_hidden(&g->rules, path);
    if (rule)
        return deny(g, DENIAL_REMOVE, rule, path, "a hidden name");
    const char *why = verdict_claimed(g, path, &rule, &end, &config);
    if (why && !(rule && end == p->n && point_is(g, p, rule)) && !repository_inert(g, rule, path, end, p->dir, p->name))
        return deny(g, DENIAL_REMOVE, rule, path, why);
    if (rules_outside(&g->rules, path))
        return verdict_outside_at(g, DENIAL_REMOVE, p);
    /* In a cache everything hides the host's name of that place. */
    rule = directory || rules_private(&g->rules, path) ? rules_pinned(&g->rules, path) : NULL;
    if (rule && rule->path.n == path.n)
        return deny(g, DENIAL_REMOVE, rule, path, GUARD_WHY_PIN);
    return layout_is_reserved(path) ? deny(g, DENIAL_REMOVE, NULL, path, "a name that belongs to pinfold")
                                    : reporoot_marker_leaves(g, p, DENIAL_REMOVE);
}

/* Whether `rest` exists below the directory p; a link on the path counts, because its target is unknown. */
static bool rest_stands(const struct place *p, struct str rest)
{
    char name[NAME_MAX + 2 + PATH_MAX];
    if (p->name_n + rest.n + 2 > sizeof name)
        return true;
    memcpy(name, p->name, p->name_n);
    name[p->name_n] = '/';
    memcpy(name + p->name_n + 1, rest.p, rest.n);
    name[p->name_n + 1 + rest.n] = 0;
    int fd = sys_openat2(p->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS);
    if (fd == -ENOENT || fd == -ENOTDIR)
        return false;
    (void)close_fd(fd);
    return true;
}

/* A directory may leave `from`, or arrive at `at`, unless it contains something guarded below that place. */
static int verdict_contents(struct guard *g, const struct place *from, const struct place *at, const char *why)
{
    struct below b;
    const struct rule *rule;
    for (b.at = 0; (rule = rules_below(&g->rules, place_path(at), &b));) {
        if (g->rules.mode == GUARD_EXISTING && from != at && rule->said->kind == GUARD_RULE_NAME &&
            !(rule->said->flags & GUARD_RULE_ALWAYS))
            continue;
        if (rest_stands(from, b.rest) && !repository_rest_inert(g, from, rule, b.rest, from != at))
            return deny(g, DENIAL_RENAME, rule, place_path(at), why);
    }
    for (struct rooted w = {0}; (rule = reporoot_below(g, place_path(at), &w));)
        if ((g->rules.mode == GUARD_STRICT || from == at) && rest_stands(from, w.rest) &&
            !repository_rest_inert(g, from, rule, w.rest, from != at))
            return deny(g, DENIAL_RENAME, rule, place_path(at), why);
    return 0;
}

/* The object at `from` is removed from there. */
static int verdict_leaves(struct guard *g, const struct place *from, const struct sys_stat *st)
{
    struct str path = place_path(from);
    size_t end;
    bool config;
    const struct rule *rule = rules_hidden(&g->rules, path);
    if (rule)
        return deny(g, DENIAL_RENAME, rule, path, "a hidden name");
    rule = hidden_around(g, path);
    if (rule)
        return deny(g, DENIAL_RENAME, rule, path, MOVED_AWAY);
    const char *why = verdict_claimed(g, path, &rule, &end, &config);
    if (why && !repository_inert(g, rule, path, end, from->dir, from->name))
        return deny(g, DENIAL_RENAME, rule, path, why);
    if (layout_is_reserved(path))
        return deny(g, DENIAL_RENAME, NULL, path, "a name that belongs to pinfold");
    if (g->rules.n_branches && branches_leave(g, path, S_ISDIR(st->mode)) < 0)
        return -EACCES;
    rule = rules_pinned(&g->rules, path);
    if (rule)
        return deny(g, DENIAL_RENAME, rule, path, GUARD_WHY_PIN);
    int no = reporoot_leaves(g, from, st);
    if (no < 0 || !S_ISDIR(st->mode))
        return no;
    rule = rules_pattern_prefix(&g->rules, path, false);
    if (rule)
        return deny(g, DENIAL_RENAME, rule, path, "a directory that a rule for hidden names refers to");
    return verdict_contents(g, from, from, "it contains a guarded or hidden name");
}

/* The object at `from` gets the name `to`. 1: done, with judged content. */
static int verdict_arrives(struct guard *g, const struct place *from, const struct place *to, const struct sys_stat *st,
                           bool may_replace)
{
    struct str path = place_path(to);
    struct below b;
    size_t end;
    bool config = false;
    const struct rule *rule = rules_hidden(&g->rules, path);
    if (rule)
        return deny(g, DENIAL_RENAME, rule, path, "a hidden name");
    const char *why = verdict_claimed(g, path, &rule, &end, &config);
    if (config && may_replace) {
        int no = git_config_replace(g, from, to, rule, false);
        return no < 0 ? no : 1;
    }
    if (why)
        return deny(g, DENIAL_RENAME, rule, path, why);
    if (layout_is_reserved(path))
        return deny(g, DENIAL_RENAME, NULL, path, "a name that belongs to pinfold");
    rule = rules_pinned(&g->rules, path);
    if (rule && rule->path.n == path.n)
        return deny(g, DENIAL_RENAME, rule, path, GUARD_WHY_PIN);
    if (rules_is_option_ref(&g->rules, path))
        return deny(g, DENIAL_RENAME, NULL, path, OPTION_REF);
    if (repository_brings(g, from, to))
        return deny(g, DENIAL_RENAME, NULL, path, REPOSITORY);
    int no = g->rules.n_branches ? branches_arrive(g, from, to, st, may_replace) : 0;
    if (no == 0)
        no = repository_completed(g, to);
    if (no == 0)
        no = reporoot_arrives(g, from, to, st);
    struct rooted w = {0};
    b.at = 0;
    if (no != 0 || S_ISREG(st->mode))
        return no;
    if (S_ISLNK(st->mode))
        return (rule = reporoot_below(g, path, &w)) || (rule = rules_below(&g->rules, path, &b)) ||
                       (rule = rules_pattern_prefix(&g->rules, path, true))
                   ? deny(g, DENIAL_LINK, rule, path, "a link in place of a directory that contains a guarded name")
               : module_behind(g, to, NULL) ? deny(g, DENIAL_LINK, NULL, path, SUBMODULE)
                                            : verdict_git_link(g, to, NULL);
    if (!S_ISDIR(st->mode))
        return 0;
    if (module_behind(g, to, from))
        return deny(g, DENIAL_LINK, NULL, path, SUBMODULE);
    if (repository_brings_links(g, from, to))
        return deny(g, DENIAL_LINK, NULL, path, GIT_LINK);
    if (module_misled(g, from, to))
        return deny(g, DENIAL_RENAME, NULL, path,
                    "the repository of a submodule, which would then refer to another path");
    rule = rules_crossing(&g->rules, place_path(from), path);
    if (!rule)
        rule = rules_pattern_prefix(&g->rules, path, true);
    if (rule)
        return deny(g, DENIAL_RENAME, rule, path, "a directory that may contain names guarded at its new path");
    return verdict_contents(g, from, to, "the directory contains what would be a guarded name there");
}

int verdict_arrived(struct guard *g, const struct place *to)
{
    const struct place from = *to; /* a new place: it has arrived, and was not there before */
    return verdict_contents(g, &from, to, "the directory contains a guarded name");
}

static bool same_mount(const struct guard *g, const struct place *a, const struct place *b)
{
    struct sys_stat x, y;
    if (!g->nested && str_eq(place_dir(a), place_dir(b)))
        return true; /* nothing can be mounted over it */
    return sys_stat_fd(a->dir, SYS_STAT_MOUNT, &x) == 0 && sys_stat_fd(b->dir, SYS_STAT_MOUNT, &y) == 0 &&
           x.mount == y.mount;
}

/* As between mounts, what programs then copy: each link in it is judged where it is made. */
static bool is_apart(const struct guard *g, const struct place *from, const struct place *to, const struct sys_stat *st)
{
    return (S_ISDIR(st->mode) && !same_mount(g, from, to)) ||
           ((S_ISDIR(st->mode) || S_ISLNK(st->mode)) &&
            rules_may_bring_links(&g->rules, place_path(from), place_path(to)));
}

int verdict_rename(struct guard *g, const struct place *from, const struct place *to, unsigned flags,
                   struct sys_stat *ret)
{
    struct sys_stat st, other = {.mode = S_IFREG};
    g->birth = g->crosses = false;
    if (!from->plain || !to->plain)
        return 0; /* EBUSY */
    if (from->frozen || to->frozen)
        return -EROFS;
    if (place_mounted(g, from) || place_mounted(g, to))
        return -EBUSY;
    int no = born_at(from, &st);
    if (no < 0)
        return no;
    *ret = st;
    if (is_apart(g, from, to, &st))
        return -EXDEV;
    no = verdict_leaves(g, from, &st);
    if (no < 0)
        return no;
    const struct place *beyond = rules_outside(&g->rules, place_path(from)) ? from
                                 : rules_outside(&g->rules, place_path(to)) ? to
                                                                            : NULL;
    if (beyond) /* programs then copy instead */
        return same_mount(g, from, to) ? verdict_outside(g, DENIAL_RENAME, beyond->dir, place_path(beyond)) : -EXDEV;
    bool exchange = flags & RENAME_EXCHANGE;
    if (exchange) {
        no = born_at(to, &other);
        if (no == 0)
            no = is_apart(g, to, from, &other) ? -EXDEV : verdict_leaves(g, to, &other);
        if (no == 0)
            no = verdict_arrives(g, to, from, &other, false);
        if (no == 0 && S_ISDIR(other.mode))
            no = deep_moves(g, to, from, to);
        if (no < 0)
            return no;
    }
    no = S_ISDIR(st.mode) ? deep_moves(g, from, to, from) : 0;
    if (no < 0)
        return no;
    bool replaces = flags == 0 || (flags == RENAME_NOREPLACE && !place_taken(to));
    return verdict_arrives(g, from, to, &st, replaces);
}

int verdict_link(struct guard *g, const struct object *from, const struct place *to)
{
    const int no = verdict_make(g, to, S_ISLNK(from->st.mode) ? MADE_LINK : MADE_FILE);
    g->birth &= !reporoot_marks(g, to); /* it exists already: it may belong to another's repository */
    return no < 0 ? no : reporoot_linked(g, to, &from->st);
}
