/* Whether an object is another name of a guarded or hidden file: looks where the rules of fixed place lead.
   Asked about what a path's own name does not tell; what cannot be looked at counts as such a file. */
#include <errno.h>
#include <string.h>
#include "base/fd.h"
#include "guard/rules/rules.h"
#include "judge/layout.h"
#include "sys/fd.h"

struct same {
    const struct rules *rules;
    const struct rule *rule;
    const struct sys_stat *st;
    unsigned left;
    char path[PLACE_PATH];
};
#define SAME_ENTRIES 4096
#define SAME_DEPTH   32

/* Whether a longer rule than the current one decides about the first `n` bytes of s->path. */
static bool opened_again(const struct same *s, size_t n)
{
    const struct rule *decider = rules_decider(s->rules, (struct str){s->path, n});
    if (s->rule->said->kind == GUARD_RULE_NAME)
        return decider && decider->said->kind == GUARD_RULE_PRIVATE;
    return decider != s->rule;
}

/* In a tree of the box something cannot be examined: the box may have removed the permission, to restore it later. */
static bool is_closed(const struct same *s, int no, size_t n)
{
    return !git_is_nothing(no) && no != -ELOOP && rules_root(s->rules, (struct str){s->path, n}).n;
}

/* Whether the file is at s->path (its last component `name` in `dir`), or anywhere below; also true if there is too
   much to examine. */
static bool same_below(int dir, const char *name, struct same *s, size_t n, unsigned depth)
{
    struct sys_stat st;
    int no = sys_stat_at(dir, name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st);
    if (no < 0 || opened_again(s, n))
        return no < 0 && is_closed(s, no, n);
    if (!S_ISDIR(st.mode))
        return sys_same(&st, s->st);
    if (depth == 0 || s->left == 0)
        return true;
    auto_fd int fd = sys_openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return is_closed(s, fd, n);
    _Alignas(8) char records[2048];
    struct sys_entries entries = SYS_ENTRIES(fd, records);
    for (const struct sys_dirent *d; (d = sys_next_entry(&entries));) {
        const size_t k = strlen(d->name);
        if (s->left == 0 || n + k + 2 > sizeof s->path)
            return true;
        s->left--;
        s->path[n] = '/';
        memcpy(s->path + n + 1, d->name, k + 1);
        if (same_below(fd, d->name, s, n + 1 + k, depth - 1))
            return true;
    }
    return entries.no < 0 && is_closed(s, entries.no, n);
}

/* `systems`: only by rules for places of the system. */
static const struct rule *same_as(struct guard *g, const struct rule *list, size_t n, const struct sys_stat *st,
                                  bool systems)
{
    struct same s = {.rules = &g->rules, .st = st, .left = SAME_ENTRIES};
    for (size_t i = 0; i < n; i++) {
        if (list[i].any_depth || (systems && !layout_is_system(list[i].path)) ||
            !str_copy(list[i].path, s.path, sizeof s.path))
            continue;
        s.rule = &list[i];
        if (same_below(AT_FDCWD, s.path, &s, list[i].path.n, SAME_DEPTH))
            return &list[i];
    }
    return NULL;
}

/*
 * What is at the top of a tree, by the hashes of the names there, so that of some 250 rules only those are looked up that can find something. A name
 * that nobody changes meanwhile is always listed. A file system that ignores case finds a name by other bytes than ASCII, too (the Kelvin sign by
 * "k"): then, for rules of such names, and where the directory cannot be read or has many names, everything may be there.
 */
#define TOP_ENTRIES 256
struct top {
    bool all;
    uint64_t may[RULE_HASHES / 64];
};

static bool is_ascii(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] >= 0x80)
            return false;
    return true;
}

static void top_read(struct top *t, struct str tree)
{
    _Alignas(8) char records[2048];
    auto_fd int fd = open_in_box(tree, O_RDONLY | O_DIRECTORY);
    struct sys_entries entries = SYS_ENTRIES(fd, records);
    unsigned left = TOP_ENTRIES;
    *t = (struct top){.all = fd < 0};
    for (const struct sys_dirent *d; !t->all && (d = sys_next_entry(&entries));) {
        const struct str name = str_of(d->name);
        const unsigned h = rule_hash(name);
        t->may[h / 64] |= 1ull << h % 64;
        t->all = !is_ascii(name) || --left == 0;
    }
    t->all |= entries.no < 0;
}

/* Whether the first component of a name may be there. */
static bool top_may(const struct top *t, struct str name)
{
    const char *slash = memchr(name.p, '/', name.n);
    const unsigned h = rule_hash((struct str){name.p, slash ? (size_t)(slash - name.p) : name.n});
    return t->all || !is_ascii(name) || t->may[h / 64] >> h % 64 & 1;
}

/* The same about the names at the tops of writable trees. */
static const struct rule *same_as_top(struct guard *g, const struct sys_stat *st)
{
    struct same s = {.rules = &g->rules, .st = st, .left = SAME_ENTRIES};
    const struct rule *tree = NULL;
    struct top t = {.all = true};
    char text[RULE_WHOLE];
    size_t n;
    for (size_t at = 0; (s.rule = rules_top(&g->rules, &at, text, &n));) {
        const struct rule *root = &g->rules.roots[(at - 1) / g->rules.n_names];
        if (root != tree)
            top_read(&t, root->path);
        tree = root;
        if (top_may(&t, s.rule->path) && str_copy((struct str){text, n}, s.path, sizeof s.path) &&
            same_below(AT_FDCWD, s.path, &s, n, SAME_DEPTH))
            return s.rule;
    }
    return NULL;
}

/*
 * A program or library of the system that every user of this machine may read and the box can neither change nor link. If the host gives it
 * another name below a hidden one, as a profiler's cache does, it is read under its own all the same: without libc nothing runs.
 */
static bool is_common_program(struct guard *g, const struct sys_stat *st, enum denial_action action, struct str path)
{
    return action == DENIAL_READ && layout_is_system(path) && rules_outside(&g->rules, path) &&
           mount_ours(g, st->mount) && (st->mode & 0444) == 0444 && (st->uid == 0 || st->uid != sys_geteuid());
}

int verdict_identity(struct guard *g, const struct sys_stat *st, enum denial_action action, struct str path)
{
    const struct rule *rule =
        same_as(g, g->rules.hidden, g->rules.n_hidden, st, is_common_program(g, st, action, path));
    if (rule)
        return deny(g, action, rule, path, "another name of a hidden file");
    if (action == DENIAL_READ)
        return 0;
    rule = same_as(g, g->rules.guarded, g->rules.n_guarded, st, false);
    if (!rule)
        rule = same_as_top(g, st);
    if (rule && g->rules.mode == GUARD_EXISTING && rule->said->kind == GUARD_RULE_NAME &&
        !(rule->said->flags & GUARD_RULE_ALWAYS) && born_has(g, st))
        return 0; /* created in this box */
    return rule ? deny(g, action, rule, path, "another name of a guarded file") : 0;
}
