/*
 * Repositories, whatever they are called: what in one is judged, what makes a directory one, and what comes into effect then. Names are
 * judge/layout.c's; here it is looked whether their directory is a repository.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/buf.h"
#include "base/fd.h"
#include "git/gitconfig.h"
#include "guard/rules/rules.h"
#include "judge/layout.h"
#include "sys/fd.h"

/* Whether the directory `path` is a repository's common directory. */
static bool common_at(struct str path)
{
    auto_fd int dir = open_in_box(path, O_PATH | O_DIRECTORY);
    return git_is_common(dir);
}

/* The same, or of a linked work tree: it has an index. */
static bool has_index(struct str path)
{
    struct sys_stat st;
    auto_fd int dir = open_in_box(path, O_PATH | O_DIRECTORY);
    return git_is_common(dir) || sys_stat_at(dir, "commondir", AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) != -ENOENT;
}

size_t repository_place(struct guard *g, struct str path, bool *ret_config)
{
    *ret_config = false;
    for (struct repository_name w = {0}; rules_next_repository_name(&g->rules, path, &w);) {
        const struct str x = {path.p, w.x};
        if (!w.any && !(w.index ? has_index(x) : common_at(x)))
            continue;
        *ret_config = w.config;
        return w.end;
    }
    return 0;
}

/*
 * Links in a repository's own files. git writes through them: `git commit` writes .git/COMMIT_EDITMSG, with a text that .git/MERGE_MSG
 * suggests; a lock file is made beside what a link leads to. So in a .git no link is made, whatever it leads to, but for the one
 * with which git tries whether there are links.
 */
int verdict_git_link(struct guard *g, const struct place *p, const char *text)
{
    const bool own = rules_judges_git(&g->rules, place_path(p)) && git_is_common(p->dir); /* whatever it is called */
    if (!p->plain || !(own || rules_of_git(&g->rules, place_path(p), false)) || (text && strcmp(text, "testing") == 0))
        return 0;
    return deny(g, DENIAL_LINK, NULL, place_path(p), GIT_LINK);
}

/* Whether there is a link below the directory `name`, or may be: it is too large or too deep to tell. Objects are written by their names. */
static bool has_links(int dir, const char *name, unsigned depth, unsigned *left)
{
    auto_fd int fd = sys_openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    _Alignas(8) char records[4096];
    struct sys_entries entries = SYS_ENTRIES(fd, records);
    for (const struct sys_dirent *d; fd >= 0 && depth && (d = sys_next_entry(&entries));) {
        struct sys_stat st;
        if (strcmp(d->name, "objects") == 0)
            continue;
        if (--*left == 0 || sys_stat_at(fd, d->name, AT_SYMLINK_NOFOLLOW, SYS_STAT_TYPE, &st) < 0 || S_ISLNK(st.mode) ||
            (S_ISDIR(st.mode) && has_links(fd, d->name, depth - 1, left)))
            return true;
    }
    return fd < 0 || depth == 0 || entries.no < 0;
}

bool repository_brings_links(struct guard *g, const struct place *from, const struct place *to)
{
    enum { DEPTH = 16, ENTRIES = 16384 };
    unsigned left = ENTRIES;
    return rules_of_git(&g->rules, place_path(to), true) && has_links(from->dir, place_bare(from), DEPTH, &left);
}

bool repository_for_remotes(struct guard *g, const struct place *p)
{
    return layout_holds_remotes(place_last(p)) && rules_judges_git(&g->rules, place_path(p)) && git_is_common(p->dir);
}

/* Also where that cannot be seen. */
static bool has_attributes(int dir, const char *name)
{
    struct sys_stat st;
    int no = sys_stat_at(dir, name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st);
    return no != -ENOENT && no != -ENOTDIR;
}

/* The directory info of a repository, with attributes in it. */
static bool brings_attributes(struct guard *g, const struct place *from, const struct place *to)
{
    if (!fold_eq(place_last(to), STR("info")) || !rules_judges_git(&g->rules, place_path(to)) ||
        !git_is_common(to->dir))
        return false;
    auto_fd int dir = sys_openat(from->dir, place_bare(from), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    return dir >= 0 && has_attributes(dir, "attributes");
}

bool repository_brings(struct guard *g, const struct place *from, const struct place *to)
{
    return (repository_for_remotes(g, to) && !git_hooks_inert(from->dir, place_bare(from))) ||
           brings_attributes(g, from, to);
}

bool verdict_counts(struct guard *g, const struct place *to)
{
    return to->plain && (rules_counts(&g->rules, place_path(to)) || repository_for_remotes(g, to));
}

int verdict_moving(struct guard *g, const struct place *to, const char *temp)
{
    return repository_for_remotes(g, to) ? git_hooks_renew(g, to->dir, temp) : 0;
}

/* The contents of a directory that becomes a repository become effective: nothing may run or be open elsewhere. */
static int begins_repository(struct guard *g, const struct place *p)
{
    struct sys_stat st;
    if (module_lost(g, p->dir, place_dir(p)))
        return deny(g, DENIAL_CREATE, NULL, place_path(p),
                    "it would hide a submodule's repository in a repository's own files");
    bool empty = git_hooks_renew(g, p->dir, "hooks") == 0 && git_hooks_renew(g, p->dir, "remotes") == 0 &&
                 git_hooks_renew(g, p->dir, "branches") == 0 &&
                 sys_stat_at(p->dir, "commondir", AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) == -ENOENT &&
                 !has_attributes(p->dir, "info/attributes");
    int no = empty ? git_config_adopt(g, p->dir, "config", place_dir(p)) : -EACCES;
    if (no == 0)
        no = git_config_adopt(g, p->dir, "index", place_dir(p));
    return no != -EACCES
               ? no
               : deny(g, DENIAL_CREATE, NULL, place_path(p),
                      "it would make a git repository out of a directory with hooks, remotes, commondir, attributes, a "
                      "configuration that names programs or an index that leads out");
}

static bool is_half(struct guard *g, const struct place *p, const char **ret_other)
{
    return layout_is_half(place_last(p), ret_other) && rules_judges_git(&g->rules, place_path(p));
}

int repository_completed(struct guard *g, const struct place *p)
{
    const char *other;
    struct sys_stat st;
    if (!is_half(g, p, &other))
        return 0;
    int no = sys_stat_at(p->dir, other, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st);
    if (no < 0)
        return no == -ENOENT ? 0 : no; /* nothing can be created in an unsearchable directory, either */
    return git_is_common(p->dir) ? 0 /* it was one already */ : begins_repository(g, p);
}

bool repository_inert(struct guard *g, const struct rule *rule, struct str path, size_t end, int dir, const char *name)
{
    if (rule ? rule_is_git_hooks(rule) : fold_eq(layout_last((struct str){path.p, end}), STR("hooks")))
        return end == path.n ? git_hooks_inert(dir, name) : str_ends(path, STR(".sample"));
    if ((rule ? rule_is_git_config(rule) : end == path.n) && gitconfig_kind_of(path) > GITCONFIG_MODULES)
        return true; /* without it git continues with nothing: it aborts or ends a rebase, or reads the tree */
    return end == path.n && (!rule || rule_is_git_config(rule)) && git_config_inert(g, dir, name, path);
}

/* Whether it has no effect. In an arriving directory it becomes effective: a process that has the file open, or has
   another name for it, could change it then. */
bool repository_rest_inert(struct guard *g, const struct place *p, const struct rule *rule, struct str rest,
                           bool arrives)
{
    char name[NAME_MAX + 2 + 64];
    if (memchr(rest.p, '/', rest.n) || rest.n > 60 || (!rule_is_git_hooks(rule) && !rule_is_git_config(rule)))
        return false;
    (void)snprintf(name, sizeof name, "%.*s/%.*s", (int)p->name_n, p->name, (int)rest.n, rest.p);
    if (rule_is_git_hooks(rule) && !arrives)
        return git_hooks_inert(p->dir, name);
    if (rule_is_git_hooks(rule)) {
        name[p->name_n] = 0;
        auto_fd int dir = sys_openat(p->dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        return dir >= 0 && git_hooks_renew(g, dir, name + p->name_n + 1) == 0;
    }
    struct buf path = BUF(PLACE_PATH + 64);
    buf_printf(&path, "%.*s/%.*s", (int)p->n, p->path, (int)rest.n, rest.p);
    bool yes = git_config_inert(g, p->dir, name, buf_view(&path));
    if (yes && arrives && fold_eq(rest, STR("config"))) {
        name[p->name_n] = 0;
        auto_fd int dir = sys_openat(p->dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        yes = dir >= 0 && git_config_adopt(g, dir, "config", place_path(p)) == 0;
    }
    buf_free(&path);
    return yes;
}

bool repository_half_made(struct guard *g, const struct place *p, int *ret)
{
    const char *other;
    const bool half = is_half(g, p, &other);
    *ret = half && git_is_common(p->dir) ? begins_repository(g, p) : 0;
    return half;
}
