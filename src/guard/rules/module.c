/*
 * Submodules. git keeps the repository of each below X/.git/modules, where X is the work tree it belongs to.
 * core.worktree in its configuration says where the files are, and a person's `git -C SUBMODULE checkout` writes there.
 * By its text that is a place in X (gitconfig.c). This file keeps it so: no component may be a link when it is set or
 * become one later, and no such repository may move to where its text means another place.
 *
 * Nothing is remembered, because the host and other boxes write there, too. Creating a link or moving a directory
 * therefore looks at .git/modules of each directory above, which usually does not exist. A repository's own files are
 * not searched, so no submodule's repository may be among them. What cannot be examined (a box can remove permissions
 * and restore them later) counts as found.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/fd.h"
#include "git/gitconfig.h"
#include "guard/rules/rules.h"
#include "sys/fd.h"

#define MODULES      "/.git/modules"
#define SCAN_FOLDERS 4096u
#define SCAN_DEPTH   32u

/* ---- the configurations below a directory ---- */

struct scan {
    struct guard *g;
    /* Called for each core.worktree: whether it is one we look for. `directory`: where the repository is, or will
       be. */
    bool (*wanted)(struct scan *s, struct str directory, struct str value);
    const struct place *to, *moved;
    bool all; /* also search repositories' own files */
    unsigned left;
    size_t n;
    char path[PLACE_PATH];
};

static int scan_entry(void *ctx, const struct gitconfig_entry *e)
{
    struct scan *s = ctx;
    return gitconfig_is_worktree(e) && e->value.n && s->wanted(s, (struct str){s->path, s->n}, e->value);
}

static bool scan_file(struct scan *s, int dir, const char *name)
{
    char *bytes;
    size_t n;
    auto_fd int fd = git_text_open(dir, name);
    if (fd < 0)
        return fd == -ELOOP ? git_is_common(dir) : !git_is_nothing(fd) && fd != -ENXIO; /* a socket */
    int no = git_text_read(fd, GITCONFIG_REPOSITORY, &bytes, &n);
    if (no < 0)
        return no != -EINVAL; /* no file */
    no = gitconfig_parse((struct str){bytes, n}, scan_entry, s, NULL);
    free(bytes);
    return no != 0 && no != -EBADMSG; /* git uses nothing of such a text */
}

enum { TYPE_UNKNOWN = 0, TYPE_DIRECTORY = 4 };

static bool scan_directory(struct scan *s, int dir, unsigned depth);

static bool is_no_directory(int no)
{
    return git_is_nothing(no) || no == -ELOOP;
}

static bool scan_record(struct scan *s, int dir, const struct sys_dirent *r, bool skip, unsigned depth)
{
    struct str name = str_of(r->name);
    if ((r->type != TYPE_DIRECTORY && r->type != TYPE_UNKNOWN) || (skip && layout_is_own_file(name)))
        return false;
    if (s->left == 0 || depth == 0 || s->n + name.n + 2 > sizeof s->path)
        return true; /* too much to examine */
    auto_fd int fd = sys_openat(dir, r->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return !is_no_directory(fd);
    s->left--;
    const size_t n = s->n;
    s->path[s->n++] = '/';
    memcpy(s->path + s->n, name.p, name.n);
    s->n += name.n;
    bool found = scan_directory(s, fd, depth - 1);
    s->n = n;
    return found;
}

/* Whether some core.worktree at `dir` (open for reading; s->path by name) or below is wanted. */
static bool scan_directory(struct scan *s, int dir, unsigned depth)
{
    _Alignas(8) char records[4096];
    if (scan_file(s, dir, "config") || scan_file(s, dir, "config.worktree"))
        return true;
    const bool skip = !s->all && git_is_common(dir);
    struct sys_entries entries = SYS_ENTRIES(dir, records);
    for (const struct sys_dirent *d; (d = sys_next_entry(&entries));)
        if (scan_record(s, dir, d, skip, depth))
            return true;
    return entries.no < 0;
}

/* `dir`: or the errno of opening it. */
static bool scan_begin(struct scan *s, int dir, struct str path)
{
    if (dir < 0)
        return !is_no_directory(dir);
    s->left = SCAN_FOLDERS;
    s->n = path.n;
    memcpy(s->path, path.p, path.n);
    return scan_directory(s, dir, SCAN_DEPTH);
}

/* ---- a path that is set ---- */

/* Whether scans from X/.git/modules reach the directory. */
static bool is_seen(struct str directory, struct str owner)
{
    for (size_t at = owner.n + 1; at < directory.n;) {
        const char *slash = memchr(directory.p + at, '/', directory.n - at);
        size_t end = slash ? (size_t)(slash - directory.p) : directory.n;
        if (layout_is_own_file((struct str){directory.p + at, end - at})) {
            auto_fd int above = open_in_box((struct str){directory.p, at - 1}, O_PATH | O_DIRECTORY);
            if (git_is_common(above))
                return false;
        }
        at = end + 1;
    }
    return true;
}

/* Whether a repository, or part of one, is there; `owner` and what is above do not count. */
static bool in_repository(struct str place, struct str owner)
{
    for (size_t at = owner.n + 1; at <= place.n; at++) {
        if (at < place.n && place.p[at] != '/')
            continue;
        auto_fd int dir = open_in_box((struct str){place.p, at}, O_PATH | O_DIRECTORY);
        if (git_is_common(dir))
            return true;
    }
    return false;
}

static bool place_fits(struct guard *g, struct str directory, struct str value)
{
    size_t end;
    struct str owner, root = rules_root(&g->rules, directory);
    auto_buf struct buf place = BUF(PLACE_PATH);
    if (!gitconfig_owner(directory, root, &owner) || !gitconfig_worktree(directory, root, value, &place) ||
        !is_seen(directory, owner))
        return false;
    struct str path = buf_view(&place);
    if (rules_hidden(&g->rules, path) || rules_guarded(&g->rules, path, &end) || reporoot_guarded(g, path, &end) ||
        in_repository(path, owner))
        return false;
    int there = open_in_box(path, O_PATH);
    (void)close_fd(there);
    return there >= 0 || there == -ENOENT || there == -ENOTDIR; /* ELOOP: there is a link on the path */
}

struct module_text {
    struct guard *g;
    struct str directory, old_text, wanted;
};

static int entry_same(void *ctx, const struct gitconfig_entry *e)
{
    const struct module_text *t = ctx;
    return gitconfig_is_worktree(e) && str_eq(e->value, t->wanted);
}

static int entry_misfits(void *ctx, const struct gitconfig_entry *e)
{
    struct module_text *t = ctx;
    t->wanted = e->value;
    return gitconfig_is_worktree(e) && gitconfig_parse(t->old_text, entry_same, t, NULL) <= 0 &&
           !place_fits(t->g, t->directory, e->value);
}

bool module_text_fits(struct guard *g, struct str directory, struct str old_text, struct str new_text)
{
    struct module_text t = {.g = g, .directory = directory, .old_text = old_text};
    return gitconfig_parse(new_text, entry_misfits, &t, NULL) == 0;
}

/* ---- links created on such a path ---- */

static bool is_behind(struct scan *s, struct str directory, struct str value)
{
    auto_buf struct buf place = BUF(PLACE_PATH);
    gitconfig_follow(directory, value, &place);
    struct str path = place_path(s->to);
    if (!buf_ok(&place) || !path_in(buf_view(&place), path))
        return false;
    if (!s->moved)
        return true;
    char name[PLACE_PATH + NAME_MAX + 2];
    memcpy(name, s->moved->name, s->moved->name_n);
    memcpy(name + s->moved->name_n, place.p + path.n, place.n - path.n);
    name[s->moved->name_n + place.n - path.n] = 0;
    int there = sys_openat2(s->moved->dir, name, O_PATH | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS);
    (void)close_fd(there);
    return there == -ELOOP;
}

/* Scans .git/modules of X, by a path that ends in it, with its real path, which a link of the host's may have changed.
   Locks X/.git, as does writing a configuration below it. */
static bool modules_scan(struct scan *s, const char *name)
{
    char path[PLACE_PATH];
    size_t n;
    struct sys_stat st; /* cheaper than an open if it does not exist */
    int no = sys_stat_at(AT_FDCWD, name, 0, 0, &st);
    if (no < 0)
        return !git_is_nothing(no);
    n = strlen(name) - strlen("/modules");
    memcpy(path, name, n);
    path[n] = 0;
    if (!hold_more(s->g, AT_FDCWD, path))
        return true;
    auto_fd int dir = sys_openat(AT_FDCWD, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (dir < 0 || path_of(s->g, dir, path, &n) < 0)
        return !git_is_nothing(dir);
    return rules_root(&s->g->rules, (struct str){path, n}).n && scan_begin(s, dir, (struct str){path, n});
}

bool module_behind(struct guard *g, const struct place *to, const struct place *moved)
{
    struct str root = rules_root(&g->rules, place_path(to));
    struct scan s = {.g = g, .wanted = is_behind, .to = to, .moved = moved};
    char name[PLACE_PATH + sizeof MODULES];
    if (!g->rules.git || root.n == 0 || rules_free(&g->rules, place_path(to)))
        return false;
    for (size_t n = to->dir_n, top = root.n == 1 ? 0 : root.n; n >= top;) {
        memcpy(name, to->path, n);
        memcpy(name + n, MODULES, sizeof MODULES);
        if (modules_scan(&s, name))
            return true;
        if (n == top)
            break;
        while (to->path[--n] != '/')
            ;
    }
    return false;
}

/* ---- repositories that are moved ---- */

static bool is_misled(struct scan *s, struct str directory, struct str value)
{
    return !place_fits(s->g, directory, value);
}

static bool is_relative(struct scan *s, struct str directory, struct str value)
{
    (void)s;
    (void)directory;
    return !str_starts(value, STR("/"));
}

static bool is_any(struct scan *s, struct str directory, struct str value)
{
    (void)s;
    (void)directory;
    (void)value;
    return true;
}

bool module_misled(struct guard *g, const struct place *from, const struct place *to)
{
    struct scan s = {.g = g, .wanted = is_misled};
    const bool left = layout_has_git(place_path(from)), arrives = layout_has_git(place_path(to));
    if (!g->rules.git || (!left && !arrives && str_eq(place_dir(from), place_dir(to))))
        return false;
    auto_fd int dir = sys_openat(from->dir, place_bare(from), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (dir < 0)
        return !is_no_directory(dir);
    if (!left && arrives) { /* a work tree with submodules in it is then inside a repository */
        s.all = true;
        s.wanted = is_any;
        return scan_begin(&s, dir, place_path(to));
    }
    if (!left) {
        /* Only the host gives a repository that is not named .git such a place. */
        s.wanted = is_relative;
        return git_is_common(dir) && scan_file(&s, dir, "config");
    }
    if (!fold_eq(place_last(from), STR(".git")))
        return scan_begin(&s, dir, place_path(to));
    auto_fd int modules = sys_openat(dir, "modules", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    auto_buf struct buf path = BUF(PLACE_PATH);
    buf_str(&path, place_path(to));
    buf_text(&path, "/modules");
    return buf_ok(&path) && scan_begin(&s, modules, buf_view(&path));
}

bool module_lost(struct guard *g, int dir, struct str directory)
{
    struct str owner;
    struct scan s = {.g = g, .wanted = is_any, .all = true};
    if (!gitconfig_owner(directory, rules_root(&g->rules, directory), &owner))
        return false;
    for (const char *const *name = layout_own_files; *name; name++) {
        auto_fd int below = sys_openat(dir, *name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        if (scan_begin(&s, below, directory))
            return true;
    }
    return false;
}
