/* Names in repositories and on the way to them: see layout.h.
   Pure; where a name means something only in a repository, the guard looks at the directory. */
#include "judge/layout.h"

#include "git/gitconfig.h"
#include "match/spelling.h"

const char *const layout_own_files[] = {"objects", "refs", "logs", "hooks", "info", "lfs", NULL};

static bool is_one_of(struct str name, const char *const *names)
{
    for (; *names; names++)
        if (fold_eq(name, str_of(*names)))
            return true;
    return false;
}

bool layout_is_own_file(struct str name)
{
    return is_one_of(name, layout_own_files);
}

bool layout_holds_remotes(struct str name)
{
    return fold_eq(name, STR("remotes")) || fold_eq(name, STR("branches"));
}

bool layout_is_half(struct str name, const char **ret_other)
{
    const bool objects = fold_eq(name, STR("objects"));
    *ret_other = objects ? "refs" : "objects";
    return objects || fold_eq(name, STR("refs"));
}

bool layout_is_hook_sample(struct str path, size_t end, bool directory, bool file)
{
    if (end == path.n)
        return directory;
    return file && str_ends(path, STR(".sample")) && !memchr(path.p + end + 1, '/', path.n - end - 1);
}

bool layout_has(struct str path, struct str part)
{
    struct str one;
    for (size_t at = 0; part_next(path, &at, &one);)
        if (fold_eq(one, part))
            return true;
    return false;
}

bool layout_has_git(struct str path)
{
    return layout_has(path, STR(".git"));
}

bool layout_is_reserved(struct str path)
{
    struct str part;
    for (size_t at = 0; part_next(path, &at, &part);)
        if (part.n >= sizeof GUARD_TEMP - 1 && fold_eq((struct str){part.p, sizeof GUARD_TEMP - 1}, STR(GUARD_TEMP)))
            return true;
    return false;
}

struct str layout_last(struct str path)
{
    const char *slash = memrchr(path.p, '/', path.n);
    return slash ? str_skip(path, (size_t)(slash - path.p) + 1) : path;
}

/* ---- where ---- */

bool rules_outside(const struct rules *r, struct str path)
{
    const struct rule *decider = rules_decider(r, path);
    if (!decider || decider->said->kind == GUARD_RULE_ROOT || decider->said->kind == GUARD_RULE_PRIVATE)
        return !decider;
    return rules_root(r, path).n == 0; /* protected or hidden, perhaps in a writable tree */
}

bool rules_of_host(const struct rules *r, struct str path)
{
    return rules_root(r, path).n && !rules_private(r, path);
}

static bool in_tree(const struct rules *r, struct str path)
{
    return rules_root(r, path).n && !rules_free(r, path);
}

bool rules_judges_git(const struct rules *r, struct str path)
{
    return r->git && r->mode == GUARD_STRICT && in_tree(r, path);
}

bool rules_exclusive(const struct rules *r, struct str path)
{
    static const char *const names[] = {"objects", "refs", "config", "config.worktree", "commondir", NULL};
    return (rules_may(r, path) & MAY_BE_GITS) &&
           (is_one_of(layout_last(path), names) || layout_has(path, STR("hooks")));
}

bool rules_of_git(const struct rules *r, struct str path, bool or_at)
{
    if (!rules_judges_git(r, path))
        return false;
    for (struct str rest = path; rest.n;)
        if (fold_eq(str_until(&rest, '/'), STR(".git")) && (rest.n || or_at))
            return true;
    return false;
}

bool rules_is_option_ref(const struct rules *r, struct str path)
{
    const struct str name = layout_last(path);
    if (!str_starts(name, STR("-")) || !r->git)
        return false;
    const struct str kind = {path.p, path.n - name.n - 1}, last = layout_last(kind),
                     refs = {path.p, kind.n - last.n - 1};
    return last.n < kind.n && fold_eq(layout_last(refs), STR("refs")) && in_tree(r, path);
}

bool rules_in_one_layer(const struct rules *r, struct str from, struct str to)
{
    const struct rule *a = rules_decider(r, from);
    return a && a == rules_decider(r, to) && a->said->kind == GUARD_RULE_ROOT && a->said->flags & GUARD_RULE_LAYERED;
}

/* Directories of programs and libraries: links there (as in every Python virtual environment) are harmless. */
bool layout_is_system(struct str path)
{
    static const char places[][12] = {"/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix/store"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (path_in(path, str_of(places[i])))
            return true;
    return false;
}

bool rules_leads_out(const struct rules *r, struct str directory, struct str text)
{
    auto_buf struct buf path = BUF(16u << 10);
    gitconfig_follow(directory.n == 1 ? (struct str){"", 0} : directory, text, &path);
    const struct str place = path.n ? buf_view(&path) : STR("/");
    return !buf_ok(&path) || path_climbs_again(text) || (!layout_is_system(place) && !rules_of_host(r, place));
}

/* ---- what a rule says ---- */

const char *rule_reason(const struct rule *rule)
{
    if (rule->said->kind == GUARD_RULE_PROTECT || (rule->said->flags & GUARD_RULE_ALWAYS))
        return "protected by a rule";
    if (rule_is_git_config(rule))
        return "git configuration: it can only be replaced by renaming a new file onto it, as git does";
    return "a guarded name";
}

bool rule_may_be_point(const struct rule *rule, struct str path, bool directory)
{
    return rule->said->kind == GUARD_RULE_NAME && !(rule->said->flags & GUARD_RULE_ALWAYS) &&
           !(rule_is_git_hooks(rule) && directory) &&
           (!rule_is_git_config(rule) ||
            gitconfig_kind_of(path) == GITCONFIG_MODULES) && /* an empty one says nothing */
           !rules_is_marker(layout_last(path));
}

/* ---- a repository's own names ---- */

/* By its last component: 0, or what the walk then is. */
static bool ends_in(struct str last, unsigned step, struct repository_name *w)
{
    static const struct {
        const char *name;
        bool any, index, config;
    } names[] = {{"config.worktree", true, false, true},
                 {"config", false, false, true},
                 {"index", false, true, true},
                 {"commondir", false, false, false}};
    if (!fold_eq(last, str_of(names[step].name)))
        return false;
    w->any = names[step].any;
    w->index = names[step].index;
    w->config = names[step].config;
    return true;
}

/* X/info/attributes: 0, or the length of X. */
static size_t before_attributes(struct str path, struct str last)
{
    const struct str info = layout_last((struct str){path.p, path.n - last.n - 1});
    return fold_eq(last, STR("attributes")) && fold_eq(info, STR("info")) ? path.n - last.n - info.n - 2 : 0;
}

bool rules_next_repository_name(const struct rules *r, struct str path, struct repository_name *w)
{
    enum { LAST_NAMES = 4 };
    const struct str last = layout_last(path);
    if (w->step == 0 && (!(rules_may(r, path) & MAY_BE_GITS) || !rules_judges_git(r, path)))
        return false;
    while (w->step < LAST_NAMES) {
        w->x = path.n - last.n - 1;
        w->end = path.n;
        if (ends_in(last, w->step++, w))
            return true;
    }
    w->any = w->index = w->config = false;
    if (w->step == LAST_NAMES) {
        w->step++;
        w->x = before_attributes(path, last);
        if (w->x)
            return true;
    }
    for (; w->at < path.n; w->at = w->end + 1) {
        const size_t at = w->at;
        const char *slash = memchr(path.p + at, '/', path.n - at);
        w->end = slash ? (size_t)(slash - path.p) : path.n;
        const struct str part = {path.p + at, w->end - at};
        if (at && rules_part_may(r, part, MAY_BE_GITS) &&
            (fold_eq(part, STR("hooks")) || (w->end < path.n && layout_holds_remotes(part)))) {
            w->x = at - 1;
            w->at = w->end + 1;
            return true;
        }
    }
    return false;
}

/* ---- what is locked ---- */

/* Whether the name is part of the layout of a repository; `last`: it is the last one of the path. All of these are in rules_gits. */
static bool is_gits(struct str part, struct str before, bool last)
{
    static const char *const anywhere[] = {"hooks", "remotes", "branches", NULL};
    static const char *const ends[] = {"objects",   "refs",        "config", "config.worktree",
                                       "commondir", ".gitmodules", NULL};
    return is_one_of(part, anywhere) || (last && is_one_of(part, ends)) ||
           (fold_eq(part, STR("modules")) && fold_eq(before, STR(".git")));
}

bool rules_next_held(const struct rules *r, struct str path, struct held_directory *w)
{
    const bool git = r->git && r->mode == GUARD_STRICT;
    if (!w->at && !(rules_may(r, path) & (MAY_BE_GITS | MAY_BE_LATER)))
        return false;
    for (size_t at = w->at ? w->at : 1, end; at < path.n; at = end + 1) {
        const char *slash = memchr(path.p + at, '/', path.n - at);
        end = slash ? (size_t)(slash - path.p) : path.n;
        const struct str part = {path.p + at, end - at}, before = w->before;
        const bool may = rules_part_may(r, part, MAY_BE_GITS | MAY_BE_LATER);
        const bool step = may && ((git && is_gits(part, before, end == path.n)) || (before.n && rules_later(r, part)));
        const bool below = step && git && is_gits(part, (struct str){"", 0}, false);
        w->before = part;
        if (!step)
            continue;
        if (!w->root) {
            w->root = rules_root(r, path).n;
            if (w->root == 0 || rules_free(r, path))
                return false;
        }
        /* Names of a writable tree itself and of those above it matter only inside a "hooks". */
        if (end > w->root || (end == w->root && below)) {
            w->n = at - 1;
            w->at = end + 1;
            return true;
        }
    }
    return false;
}

/* ---- spellings ---- */

/* What rules say of a path. */
static unsigned said_of(const struct rules *r, struct str path)
{
    struct rooted w = {.begun = false};
    const struct rule *rule;
    size_t end;
    return (rules_guarded(r, path, &end) ? 1u : 0) | (rules_hidden(r, path) ? 2u : 0) |
           (rules_rooted(r, path, &w) ? 4u : 0) | (rules_counts(r, path) ? 8u : 0) |
           (path_git_directory(path.p) ? 16u : 0) | (rules_refs(r, path, &rule) != REFS_NONE ? 32u : 0) |
           (layout_is_reserved(path) ? 64u : 0);
}

/* Whether the name may have several spellings: it has bytes beyond ASCII, a colon, a backslash, or dots or spaces at an end; *ret_short: or
   "~1". */
static bool is_odd(struct str path, bool *ret_short)
{
    bool odd = false;
    *ret_short = false;
    for (size_t i = 0; i < path.n; i++) {
        const char c = path.p[i], next = i + 1 < path.n ? path.p[i + 1] : '/';
        odd |= (unsigned char)c >= 0x80 || c == ':' || c == '\\' || ((c == '.' || c == ' ') && next == '/');
        *ret_short |= c == '~' && next >= '0' && next <= '9';
    }
    return odd;
}

bool rules_misspelled(const struct rules *r, struct str path, bool *ret_short)
{
    char text[8192];
    size_t n;
    const bool odd = is_odd(path, ret_short);
    if (!odd && !*ret_short)
        return false;
    const struct str root = rules_root(r, path);
    const bool judged = root.n && root.n <= path.n && !rules_free(r, path);
    if (judged)
        (void)is_odd(str_skip(path, root.n), ret_short);
    *ret_short &= judged;
    if (!judged || !odd)
        return false;
    if (path.n >= sizeof text)
        return true; /* longer than any that the kernel takes */
    if (!path_respell(path, root.n == 1 ? 0 : root.n, text, &n))
        return false;
    const struct str plain = {text, n};
    return (said_of(r, plain) & ~said_of(r, path)) || rules_decider(r, plain) != rules_decider(r, path);
}
