/*
 * Names of the `root` list at the roots of repositories. A directory in a writable tree is such a root if it contains
 * one of `markers`: that is where people open an editor, start an agent or a shell. A root that this box created (by
 * device, inode and creation time of the marker) is free until the box ends, so that clones and submodules can check
 * out what they track; then the names in it are reported.
 *
 * The box could make a foreign repository its own by creating it again. So the path of a root that it did not create
 * keeps its names if the marker or the directory is moved away (`lost`), and what is moved there may bring none. If no
 * more such paths can be remembered, the call that would need another is refused.
 *
 * All this costs nothing unless a component of the path is a name of the list, or the call creates, moves or removes a
 * marker or moves a directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "base/buf.h"
#include "base/fd.h"
#include "guard/rules/rules.h"
#include "sys/fd.h"

/* Whether the names of the list apply around this path. */
static bool speaks_of(struct guard *g, struct str path)
{
    return g->rules.n_rooted && rules_of_host(&g->rules, path);
}

bool reporoot_marks(struct guard *g, const struct place *p)
{
    return rules_is_marker(place_last(p)) && speaks_of(g, place_path(p));
}

/* ---- kinds of directories ---- */

/* Whether it has a marker that this box did not create. What cannot be examined counts. */
static bool is_foreign(struct guard *g, int dir, const char *const *names)
{
    return root_kind_at(g, dir, names) == ROOT_OTHERS;
}

/* Whether the name that `w` has found in `path` applies there; at the top of a tree the others are rules of fixed place. */
static bool tree_holds(struct guard *g, const struct rooted *w, struct str path)
{
    if (!w->rule->in_repository && rules_is_root(&g->rules, w->directory))
        return w->rule->pattern;
    return rule_is_deep(w->rule) ? deep_holds(g, w, path) : root_kind_of(g, w->directory) == ROOT_OTHERS;
}

const struct rule *reporoot_guarded(struct guard *g, struct str path, size_t *ret_end)
{
    for (struct rooted w = {0}; rules_rooted(&g->rules, path, &w);) {
        if (!tree_holds(g, &w, path))
            continue;
        *ret_end = w.end;
        return w.rule;
    }
    return NULL;
}

const struct rule *reporoot_below(struct guard *g, struct str path, struct rooted *w)
{
    while (rules_rooted_below(&g->rules, path, w))
        if (tree_holds(g, w, path))
            return w->rule;
    return NULL;
}

static bool stands_in(int dir, const char *name)
{
    struct sys_stat st;
    return sys_stat_at(dir, name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) != -ENOENT;
}

/* The first rule with a pattern that a name in the directory matches; any of them if the directory cannot be read. */
static const struct rule *pattern_in(struct guard *g, int dir)
{
    _Alignas(8) char records[4096];
    auto_fd int fd = sys_openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    struct sys_entries entries = SYS_ENTRIES(fd, records);
    const struct sys_dirent *d;
    do {
        d = fd < 0 ? NULL : sys_next_entry(&entries);
        const int no = fd < 0 ? fd : entries.no;
        for (size_t i = 0; (d || (no < 0 && no != -ENOENT)) && i < g->rules.n_rooted; i++)
            if (g->rules.rooted[i].pattern && (!d || name_fits(g->rules.rooted[i].parts[0], true, str_of(d->name))))
                return &g->rules.rooted[i];
    } while (d);
    return NULL;
}

/* A name of the list directly in the directory; NULL: none. If given, calls `each` for all of them, including a
   repository's own files, which are otherwise skipped. */
static const struct rule *name_in(struct guard *g, int dir, void (*each)(void *ctx, struct str name), void *ctx)
{
    const struct rule *found = NULL;
    for (size_t i = 0; i < g->rules.n_rooted && (each || !found); i++) {
        const struct rule *r = &g->rules.rooted[i];
        char name[NAME_MAX + 1];
        if (r->pattern || (rules_is_marker(r->parts[0]) && !(each && r->in_repository)) ||
            !str_copy(r->path, name, sizeof name) || !stands_in(dir, name))
            continue;
        found = r;
        if (each)
            each(ctx, r->path);
    }
    if (!g->rules.n_patterns || (found && !each))
        return found;
    const struct rule *pattern = pattern_in(g, dir);
    if (pattern && each)
        each(ctx, pattern->path);
    return found ? found : pattern;
}

/* ---- removals ---- */

static int lose(struct guard *g, struct str directory, enum denial_action action, struct str path)
{
    if (rules_is_root(&g->rules, directory) || places_add(g, &g->shared->lost, directory))
        return 0;
    return deny(g, action, NULL, path, "too many repositories were moved or removed in this box");
}

int reporoot_marker_leaves(struct guard *g, const struct place *p, enum denial_action action)
{
    const char *const one[] = {place_bare(p), NULL};
    return reporoot_marks(g, p) && is_foreign(g, p->dir, one)
               ? lose(g, (struct str){p->path, p->dir_n}, action, place_path(p))
               : 0;
}

/*
 * Repositories in a directory that is moved, SCAN_DEPTH levels down and at most SCAN_ENTRIES directories: further down
 * the box could make one its own by creating it again at the old path; that is only reported. The first level is always
 * read to its end, because its markers decide about the directory itself. An unreadable directory counts as a
 * repository: its owner, the box, can remove and restore the permission.
 */
#define MOVED_DEPTH   4
#define MOVED_ENTRIES 4096
struct moved_scan {
    struct guard *g;
    unsigned left;
    size_t n;
    char path[PLACE_PATH + NAME_MAX + 2];
};

static int moved_scan(struct moved_scan *s, int dir, unsigned depth);

static int lose_scanned(struct moved_scan *s)
{
    struct str path = {s->path, s->n};
    return lose(s->g, path, DENIAL_RENAME, path);
}

static int moved_entry(struct moved_scan *s, int dir, const char *name, unsigned depth)
{
    static const char *const git[] = {".git", NULL};
    const size_t before = s->n, n = strlen(name);
    if (s->left == 0 || before + 1 + n >= PLACE_PATH || rules_foreign((struct str){s->path, before}))
        return 0;
    s->left--;
    auto_fd int fd = sys_openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
        return 0;
    s->path[s->n++] = '/';
    memcpy(s->path + s->n, name, n);
    s->n += n;
    int no = fd < 0 || is_foreign(s->g, fd, git) ? lose_scanned(s) : moved_scan(s, fd, depth - 1);
    s->n = before;
    return no;
}

static int moved_scan(struct moved_scan *s, int dir, unsigned depth)
{
    _Alignas(8) char records[2048];
    const bool first = depth == MOVED_DEPTH;
    struct sys_entries entries = SYS_ENTRIES(dir, records);
    for (const struct sys_dirent *d; depth && (first || s->left) && (d = sys_next_entry(&entries));) {
        const char *const name[] = {d->name, NULL};
        if (first && rules_is_marker(str_of(d->name)) && is_foreign(s->g, dir, name))
            return lose_scanned(s);
        const int no =
            d->type == 4 || d->type == 0 ? moved_entry(s, dir, d->name, depth) : 0; /* a directory, or unknown */
        if (no < 0)
            return no;
    }
    return entries.no < 0 ? lose_scanned(s) : 0;
}

int reporoot_leaves(struct guard *g, const struct place *p, const struct sys_stat *st)
{
    if (!speaks_of(g, place_path(p)))
        return 0;
    int no = reporoot_marker_leaves(g, p, DENIAL_RENAME);
    if (no < 0 || !S_ISDIR(st->mode) || reporoot_marks(g, p))
        return no;
    struct moved_scan s = {.g = g, .left = MOVED_ENTRIES, .n = p->n};
    memcpy(s.path, p->path, p->n);
    auto_fd int dir = sys_openat(p->dir, place_bare(p), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (dir == -ENOENT || dir == -ENOTDIR || dir == -ELOOP)
        return 0;
    return dir < 0 ? lose_scanned(&s) : moved_scan(&s, dir, MOVED_DEPTH);
}

/* ---- arrivals ---- */

#define BRINGS "it would bring a guarded name to the root of a repository"

/* A marker: the directory becomes a root, and its contents count from now on. */
static int marker_arrives(struct guard *g, const struct place *to, const struct sys_stat *st, enum denial_action action)
{
    const bool own = born_has(g, st), lost = root_is_lost(g, (struct str){to->path, to->dir_n});
    int no = lost ? 0 : deep_marked(g, to, own);
    if (no < 0 || own || lost || rules_is_root(&g->rules, (struct str){to->path, to->dir_n}))
        return no;
    const struct rule *rule = name_in(g, to->dir, NULL, NULL);
    return rule ? deny(g, action, rule, place_path(to), BRINGS) : 0;
}

int reporoot_linked(struct guard *g, const struct place *to, const struct sys_stat *st)
{
    return reporoot_marks(g, to) ? marker_arrives(g, to, st, DENIAL_LINK) : 0;
}

/* The next lost path at or below `path`; "" if none. */
static struct str lost_below(struct guard *g, struct str path, uint32_t *at, char room[PLACE_PATH])
{
    struct str found = {"", 0};
    table_lock(g->shared);
    while (found.n == 0 && *at < g->shared->lost.n) {
        struct str one = places_next(&g->shared->lost, at);
        if (!path_in(one, path) || one.n >= PLACE_PATH)
            continue;
        memcpy(room, one.p, one.n + 1);
        found = (struct str){room, one.n};
    }
    table_unlock(g->shared);
    return found;
}

int reporoot_arrives(struct guard *g, const struct place *from, const struct place *to, const struct sys_stat *st)
{
    char room[PLACE_PATH], name[NAME_MAX + 2 + PLACE_PATH];
    if (!speaks_of(g, place_path(to)))
        return 0;
    if (reporoot_marks(g, to))
        return marker_arrives(g, to, st, DENIAL_RENAME);
    if (!S_ISDIR(st->mode))
        return 0;
    struct str lost;
    for (uint32_t at = 0; (lost = lost_below(g, place_path(to), &at, room)).n;) {
        memcpy(name, from->name, from->name_n);
        memcpy(name + from->name_n, lost.p + to->n, lost.n - to->n);
        name[from->name_n + lost.n - to->n] = 0;
        auto_fd int dir =
            sys_openat2(from->dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH);
        const struct rule *rule = dir >= 0 ? name_in(g, dir, NULL, NULL) : NULL;
        /* It returns as it left: a repository that the box did not create, whose names have applied all the time. */
        if (rule && !is_foreign(g, dir, repository_markers))
            return deny(g, DENIAL_RENAME, rule, place_path(to), BRINGS);
    }
    return 0;
}

/* ---- the report at the end ---- */

void reporoot_made(struct guard *g, const struct place *p)
{
    if (reporoot_marks(g, p) && p->dir_n)
        (void)places_add(g, &g->shared->made, (struct str){p->path, p->dir_n});
}

/* At the top of a tree only a repository's own files can be the box's: the other names were always guarded. */
struct repository_telling {
    struct buf *names;
    bool top;
};

static void append(void *ctx, struct str name)
{
    const struct repository_telling *t = ctx;
    struct buf *names = t->names;
    struct str rest = name;
    if (t->top && !rules_is_marker(str_until(&rest, '/')))
        return;
    if (names->n)
        buf_text(names, ", ");
    buf_str(names, name);
}

bool reporoot_tells(struct guard *g, int dir, struct str path, struct buf *names)
{
    struct repository_telling t = {names, rules_is_root(&g->rules, path)};
    struct sys_stat st;
    bool made = false;
    for (const char *const *name = repository_markers; *name && !made; name++) {
        int no = born_stat(dir, *name, AT_SYMLINK_NOFOLLOW, &st);
        if (no < 0 && !git_is_nothing(no)) {
            buf_text(names, TOLD_CLOSED);
            return true;
        }
        made = no == 0 && born_may_have(g, &st);
    }
    if (made)
        (void)name_in(g, dir, append, &t);
    return names->n > 0;
}
