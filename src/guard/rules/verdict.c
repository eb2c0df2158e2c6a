/*
 * Judges a place or an object: what the rules say about the name (judge.c), and where they depend on the file system,
 * by looking there with descriptors while the name lock is held.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include "base/buf.h"
#include "base/fd.h"
#include "git/gitconfig.h"
#include "guard/inside.h"
#include "sys/fd.h"

/* ---- parts of paths ---- */

static struct str last_of(struct str path)
{
    const char *slash = memrchr(path.p, '/', path.n);
    return slash ? str_skip(path, (size_t)(slash - path.p) + 1) : path;
}

static bool has_part(struct str path, struct str part)
{
    struct str one;
    for (size_t at = 0; part_next(path, &at, &one);)
        if (fold_eq(one, part))
            return true;
    return false;
}

bool verdict_exclusive(const struct guard *g, const struct place *p)
{
    static const struct str names[] = {
        {"objects", 7}, {"refs", 4}, {"config", 6}, {"config.worktree", 15}, {"commondir", 9}};
    struct str name = {p->name, p->name_n};
    if (!(rules_may(&g->rules, place_path(p)) & MAY_BE_GITS))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (fold_eq(name, names[i]))
            return true;
    return has_part(place_path(p), STR("hooks"));
}

bool verdict_layered_objects(const struct guard *g, const struct object *from, const struct place *to)
{
    const struct str objects = {"objects", 7};
    const struct rule *a = rules_decider(&g->rules, object_path(from)), *b = rules_decider(&g->rules, place_path(to));
    return a && a == b && a->said->kind == GUARD_RULE_ROOT && a->said->flags & GUARD_RULE_LAYERED &&
           has_part(place_dir(to), objects) && has_part(object_path(from), objects);
}

/* ---- outside of all trees ---- */

/* Whether the path is in no writable tree and no tree of the box's own. A mount or Landlock may protect it, too, but
   not against everything: Landlock does not cover modes, owners, times and attributes. */
static bool is_outside(const struct guard *g, struct str path)
{
    const struct rule *decider = rules_decider(&g->rules, path);
    if (!decider || decider->said->kind == GUARD_RULE_ROOT || decider->said->kind == GUARD_RULE_PRIVATE)
        return !decider;
    return rules_root(&g->rules, path).n == 0; /* protected or hidden, perhaps in a writable tree */
}

/* The error that a mount would give, if there is one; `fd` is the object, or the directory with the name. */
static int outside_error(struct guard *g, enum denial_action action, int fd, struct str path)
{
    struct statfs fs;
    if (sys_fstatfs(fd, &fs) == 0 && (fs.f_flags & ST_RDONLY))
        return -EROFS;
    return g->ours ? deny(g, action, NULL, path, "it is outside the paths the box can write") : -EACCES;
}

/* The same, and tells of it. No denial: programs try this all the time. */
static int outside(struct guard *g, enum denial_action action, int fd, struct str path)
{
    deny_built(g, action, path);
    return outside_error(g, action, fd, path);
}

static bool name_taken(const struct place *p)
{
    struct sys_stat st;
    char name[NAME_MAX + 2];
    memcpy(name, p->name, p->name_n);
    name[p->name_n] = 0;
    return sys_stat_at(p->dir, name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) != -ENOENT;
}

/* For a new name. One that exists is opened as it is (">/dev/null"), or the caller learns that it exists. */
static int outside_new(struct guard *g, const struct place *p)
{
    return (name_taken(p) ? outside_error : outside)(g, DENIAL_CREATE, p->dir, place_path(p));
}

/* For a name that goes: what does not exist cannot be removed or moved. */
static int outside_at(struct guard *g, enum denial_action action, const struct place *p)
{
    const bool there = name_taken(p);
    int no = (there ? outside : outside_error)(g, action, p->dir, place_path(p));
    return there || no == -EROFS ? no : -ENOENT;
}

/* Whether `action` on the object is outside. Exempt are files of /proc and devices, whose content is not stored (only
   changes of their inode are judged), files the caller has open for writing, and the box's own terminals. What is
   written into a FIFO is not stored, either, but some program of the host reads it, and no read-only mount prevents it. */
static bool object_outside(struct guard *g, const struct object *o, enum denial_action action)
{
    if (action == DENIAL_READ || !is_outside(g, object_path(o)))
        return false;
    if (action == DENIAL_WRITE)
        return (S_ISREG(o->st.mode) || S_ISFIFO(o->st.mode)) && !o->proc && !o->held;
    return g->plan->tier || file_system_of(g, o->fd, &o->st) != FS_PTS;
}

bool verdict_grantable(struct guard *g, const struct object *o)
{
    size_t end;
    return S_ISREG(o->st.mode) && object_outside(g, o, DENIAL_WRITE) && !rules_decider(&g->rules, object_path(o)) &&
           !rules_hidden(&g->rules, object_path(o)) && !rules_guarded(&g->rules, object_path(o), &end);
}

int verdict_not_granted(struct guard *g, const struct object *o)
{
    return outside(g, DENIAL_WRITE, o->fd, object_path(o));
}

/* ---- rules ---- */

/* In mode "existing" a guarded name counts only if it existed before the box. */
static bool in_force(struct guard *g, const struct rule *rule, struct str path, size_t end)
{
    if (g->rules.mode != GUARD_EXISTING || rule->said->kind != GUARD_RULE_NAME ||
        (rule->said->flags & GUARD_RULE_ALWAYS))
        return true;
    char name[PLACE_PATH];
    struct sys_stat st;
    memcpy(name, path.p, end);
    name[end] = 0;
    int no = sys_stat_at(AT_FDCWD, name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC | SYS_STAT_BORN, &st);
    g->birth |= no == -ENOENT && end == path.n;
    return no != -ENOENT && !(no == 0 && born_has(g, &st));
}

static int open_path(struct str path)
{
    char name[PLACE_PATH];
    memcpy(name, path.p, path.n);
    name[path.n] = 0;
    return sys_openat2(AT_FDCWD, path.n ? name : "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS);
}

/* Whether the directory `path` is a repository's common directory. */
static bool common_at(struct str path)
{
    auto_fd int dir = open_path(path);
    return git_is_common(dir);
}

/* The same, or of a linked work tree: it has an index. */
static bool has_index(struct str path)
{
    struct sys_stat st;
    auto_fd int dir = open_path(path);
    return git_is_common(dir) || sys_stat_at(dir, "commondir", AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) != -ENOENT;
}

/* Remotes in the form that predates configuration files and that git still reads: one file for each, with a
   location. */
static bool holds_remotes(struct str name)
{
    return fold_eq(name, STR("remotes")) || fold_eq(name, STR("branches"));
}

/*
 * Where a repository's own place begins in `path`, whatever the repository is called: the end of "X/hooks" (and below),
 * "X/config", "X/index", "X/commondir" (which says that the two are elsewhere), or something in "X/remotes", where X has objects
 * and refs; otherwise 0. `ret_config`: it is a configuration or an index, judged by content.
 */
static size_t repository_place(struct guard *g, struct str path, bool *ret_config)
{
    *ret_config = false;
    if (!g->rules.git || g->rules.mode != GUARD_STRICT || !(rules_may(&g->rules, path) & MAY_BE_GITS) ||
        rules_root(&g->rules, path).n == 0 || rules_free(&g->rules, path))
        return 0;
    struct str last = last_of(path);
    if (fold_eq(last, STR("config.worktree"))) {
        *ret_config = true;
        return path.n;
    }
    if (fold_eq(last, STR("config")) && common_at((struct str){path.p, path.n - last.n - 1})) {
        *ret_config = true;
        return path.n;
    }
    if (fold_eq(last, STR("index")) && has_index((struct str){path.p, path.n - last.n - 1})) {
        *ret_config = true;
        return path.n;
    }
    if (fold_eq(last, STR("commondir")) && common_at((struct str){path.p, path.n - last.n - 1}))
        return path.n;
    for (size_t at = 0; at < path.n;) {
        const char *slash = memchr(path.p + at, '/', path.n - at);
        size_t n = slash ? (size_t)(slash - path.p) - at : path.n - at;
        struct str part = {path.p + at, n};
        if (at && rules_part_may(&g->rules, part, MAY_BE_GITS) &&
            (fold_eq(part, STR("hooks")) || (at + n < path.n && holds_remotes(part))) &&
            common_at((struct str){path.p, at - 1}))
            return at + n;
        at += n + 1;
    }
    return 0;
}

/* A configuration by its name may be a hook by its place. */
static const struct rule *named(struct guard *g, struct str path, size_t *ret_end)
{
    const struct rule *rule = rules_guarded(&g->rules, path, ret_end), *rooted = NULL;
    bool config;
    if (!rule || rule_is_git_config(rule))
        rooted = reporoot_guarded(g, path, ret_end);
    if (rooted)
        return rooted;
    return rule && rule_is_git_config(rule) && repository_place(g, path, &config) && !config ? NULL : rule;
}

static const struct rule *guarded(struct guard *g, struct str path, size_t *ret_end)
{
    const struct rule *rule = named(g, path, ret_end);
    return rule && in_force(g, rule, path, *ret_end) ? rule : NULL;
}

bool verdict_config(struct guard *g, const struct place *p, const struct rule **ret_rule)
{
    static const struct str always[] = {{"config.worktree", 15}, {"config", 6}, {"index", 5}}; /* repository_place() */
    const struct str last = {p->name, p->name_n};
    size_t end;
    bool config = false, may = rules_may_be_config(&g->rules, last);
    *ret_rule = NULL;
    for (size_t i = 0; !may && i < sizeof always / sizeof *always; i++)
        may = fold_eq(last, always[i]);
    if (!may)
        return false;
    const struct rule *rule = named(g, place_path(p), &end);
    *ret_rule = rule;
    if (rules_hidden(&g->rules, place_path(p)))
        return false;
    return rule ? rule_is_git_config(rule) && end == p->n : repository_place(g, place_path(p), &config) && config;
}

/* ---- what is written in place: .gitmodules, when git checks out a tree, and the first configuration ---- */

static int stat_of(const struct place *p, struct sys_stat *st)
{
    char name[NAME_MAX + 2];
    memcpy(name, p->name, p->name_n);
    name[p->name_n] = 0;
    return sys_stat_at(p->dir, name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, st);
}

static bool is_absent(const struct place *p)
{
    struct sys_stat st;
    return stat_of(p, &st) == -ENOENT;
}

bool verdict_in_place(struct guard *g, const struct place *p, int flags, const struct rule **ret_rule)
{
    if (g->rules.mode != GUARD_STRICT || !p->plain || !verdict_config(g, p, ret_rule))
        return false;
    const enum gitconfig_kind kind = gitconfig_kind_of(place_path(p));
    if (kind == GITCONFIG_MODULES || kind == GITCONFIG_INDEX)
        return *ret_rule || kind == GITCONFIG_INDEX;
    /* git and editors read what they wrote at once: only a new name can make them wait until it is judged. */
    if (kind != GITCONFIG_REPOSITORY)
        return *ret_rule && flags & O_CREAT && is_absent(p);
    return flags & O_CREAT && fold_eq((struct str){p->name, p->name_n}, STR("config")) && is_absent(p);
}

/* A branch, tag or remote whose short name begins with "-". git creates none, but scripts that pass such a name to git
   pass an option ("--mirror", "--upload-pack=..."). Its full name would be refs/KIND/-NAME. */
static bool is_option_ref(struct guard *g, struct str path)
{
    struct str name = last_of(path);
    if (!str_starts(name, STR("-")) || !g->rules.git)
        return false;
    struct str kind = {path.p, path.n - name.n - 1}, last = last_of(kind), refs = {path.p, kind.n - last.n - 1};
    return last.n < kind.n && fold_eq(last_of(refs), STR("refs")) && rules_root(&g->rules, path).n &&
           !rules_free(&g->rules, path);
}

#define OPTION_REF "a branch, tag or remote whose name is an option"

/*
 * Links in a repository's own files. git writes through them: `git commit` writes .git/COMMIT_EDITMSG, with a text that .git/MERGE_MSG
 * suggests; a lock file is made beside what a link leads to. So in a .git no link is made, whatever it leads to, but for the one
 * with which git tries whether there are links.
 */
#define GIT_LINK "a link in a git repository, through which git outside would write"

/* Below a .git, or at one. */
static bool is_of_git(struct guard *g, struct str path, bool or_at)
{
    if (!g->rules.git || g->rules.mode != GUARD_STRICT || rules_root(&g->rules, path).n == 0 ||
        rules_free(&g->rules, path))
        return false;
    for (struct str rest = path; rest.n;)
        if (fold_eq(str_until(&rest, '/'), STR(".git")) && (rest.n || or_at))
            return true;
    return false;
}

int verdict_git_link(struct guard *g, const struct place *p, const char *text)
{
    const bool own = g->rules.git && g->rules.mode == GUARD_STRICT && rules_root(&g->rules, place_path(p)).n &&
                     !rules_free(&g->rules, place_path(p)) && git_is_common(p->dir); /* whatever it is called */
    if (!p->plain || !(own || is_of_git(g, place_path(p), false)) || (text && strcmp(text, "testing") == 0))
        return 0;
    return deny(g, DENIAL_LINK, NULL, place_path(p), GIT_LINK);
}

/* Whether there is a link below the directory `name`, or may be: it is too large or too deep to tell. Objects are written by their names. */
static bool has_links(int dir, const char *name, unsigned depth, unsigned *left)
{
    auto_fd int fd = sys_openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    _Alignas(8) char records[4096];
    long n = fd < 0 || depth == 0 ? -1 : 0;
    while (n >= 0 && (n = sys_getdents64(fd, records, sizeof records)) > 0) {
        for (long at = 0; at < n;) {
            const struct sys_dirent *r = (const void *)(records + at);
            struct sys_stat st;
            at += r->reclen;
            if (strcmp(r->name, ".") == 0 || strcmp(r->name, "..") == 0 || strcmp(r->name, "objects") == 0)
                continue;
            if (--*left == 0 || sys_stat_at(fd, r->name, AT_SYMLINK_NOFOLLOW, SYS_STAT_TYPE, &st) < 0 ||
                S_ISLNK(st.mode) || (S_ISDIR(st.mode) && has_links(fd, r->name, depth - 1, left)))
                return true;
        }
    }
    return n < 0;
}

static bool brings_links(struct guard *g, const struct place *from, const struct place *to)
{
    enum { DEPTH = 16, ENTRIES = 16384 };
    unsigned left = ENTRIES;
    char name[NAME_MAX + 2];
    if (!is_of_git(g, place_path(to), true))
        return false;
    memcpy(name, from->name, from->name_n);
    name[from->name_n] = 0;
    return has_links(from->dir, name, DEPTH, &left);
}

/* Temporary names of the guard, and all below: a directory may be on its way to a name that counts. */
static bool reserved(struct str path)
{
    struct str part;
    for (size_t at = 0; part_next(path, &at, &part);)
        if (str_starts(part, STR(GUARD_TEMP)))
            return true;
    return false;
}

/* A new repository gets a hooks directory with samples: from git before it is one, from libgit2 (cargo) after. `end`:
   of ".../hooks" in `path`. Nothing runs names that end so. */
static bool is_hook_sample(struct str path, size_t end, enum made made)
{
    if (end == path.n)
        return made == MADE_DIRECTORY;
    return made == MADE_FILE && str_ends(path, STR(".sample")) && !memchr(path.p + end + 1, '/', path.n - end - 1);
}

/* An empty directory for remotes comes with git's templates; the contents of another, or of a link's target, were
   not judged. */
static bool is_for_remotes(struct guard *g, const struct place *p)
{
    return g->rules.git && g->rules.mode == GUARD_STRICT && holds_remotes((struct str){p->name, p->name_n}) &&
           rules_root(&g->rules, place_path(p)).n && !rules_free(&g->rules, place_path(p)) && git_is_common(p->dir);
}

static bool brings_remotes(struct guard *g, const struct place *from, const struct place *to)
{
    char name[NAME_MAX + 2];
    memcpy(name, from->name, from->name_n);
    name[from->name_n] = 0;
    return is_for_remotes(g, to) && !git_hooks_inert(from->dir, name);
}

bool verdict_counts(struct guard *g, const struct place *to)
{
    return to->plain && (rules_counts(&g->rules, place_path(to)) || is_for_remotes(g, to));
}

int verdict_moving(struct guard *g, const struct place *to, const char *temp)
{
    return is_for_remotes(g, to) ? git_hooks_renew(g, to->dir, temp) : 0;
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
                 sys_stat_at(p->dir, "commondir", AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) == -ENOENT;
    int no = empty ? git_config_adopt(g, p->dir, "config", place_dir(p)) : -EACCES;
    if (no == 0)
        no = git_config_adopt(g, p->dir, "index", place_dir(p));
    return no != -EACCES ? no
                         : deny(g, DENIAL_CREATE, NULL, place_path(p),
                                "it would make a git repository out of a directory with hooks, remotes, commondir, a "
                                "configuration that names programs or an index that leads out");
}

/* Whether the name is one of the two that make its directory a repository, where that is judged. */
static bool is_half(struct guard *g, const struct place *p, const char **ret_other)
{
    struct str name = {p->name, p->name_n};
    bool objects = fold_eq(name, STR("objects"));
    *ret_other = objects ? "refs" : "objects";
    return (objects || fold_eq(name, STR("refs"))) && g->rules.git && g->rules.mode == GUARD_STRICT &&
           rules_root(&g->rules, place_path(p)).n && !rules_free(&g->rules, place_path(p));
}

/* The second of `objects` and `refs` makes its directory a repository: existing contents become effective. */
static int completes_repository(struct guard *g, const struct place *p)
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

#define MOVED_AWAY "something the host moved away from a hidden name"
#define SUBMODULE  "a link on the path to a submodule's files"
#define REPOSITORY "a hook, a remote, commondir, the configuration or the index of a git repository"

static const char *reason(const struct rule *rule)
{
    if (rule->said->kind == GUARD_RULE_PROTECT || (rule->said->flags & GUARD_RULE_ALWAYS))
        return "protected by a rule";
    if (rule_is_git_config(rule))
        return "git configuration: it can only be replaced by renaming a new file onto it, as git does";
    return "a guarded name";
}

int verdict_make(struct guard *g, const struct place *p, enum made made)
{
    struct str path = place_path(p), rest;
    bool config;
    size_t end, at = 0;
    const bool empty = made == MADE_EMPTY_FILE || made == MADE_EMPTY_DIRECTORY;
    made = made == MADE_EMPTY_FILE ? MADE_FILE : made == MADE_EMPTY_DIRECTORY ? MADE_DIRECTORY : made;
    g->birth = g->point = false;
    if (!p->plain)
        return 0; /* the kernel refuses to create ".", ".." and "/" */
    if (p->frozen)
        return -EROFS;
    const struct rule *rule = rules_hidden(&g->rules, path);
    if (rule)
        return deny(g, DENIAL_CREATE, rule, path, "a hidden name");
    rule = guarded(g, path, &end);
    g->birth |= g->point = rule && empty && end == p->n && point_may(g, p, rule, made == MADE_DIRECTORY);
    const bool hooks = g->point && rule_is_git_hooks(rule);
    if (rule && !g->point && !(rule_is_git_hooks(rule) && is_hook_sample(path, end, made)))
        return deny(g, DENIAL_CREATE, rule, path, reason(rule));
    if (is_outside(g, path))
        return outside_new(g, p);
    if (reserved(path))
        return deny(g, DENIAL_CREATE, NULL, path, "a name that belongs to pinfold");
    if (is_option_ref(g, path))
        return deny(g, DENIAL_CREATE, NULL, path, OPTION_REF);
    if (g->rules.n_branches && branches_make(g, path, made == MADE_DIRECTORY) < 0)
        return -EACCES;
    end = repository_place(g, path, &config);
    if (end && !hooks &&
        !(fold_eq(last_of((struct str){path.p, end}), STR("hooks")) && is_hook_sample(path, end, made)))
        return deny(g, DENIAL_CREATE, NULL, path, REPOSITORY);
    if (made == MADE_LINK &&
        ((rule = rules_below(&g->rules, path, &at, &rest)) || (rule = rules_pinned(&g->rules, path)) ||
         (rule = rules_pattern_prefix(&g->rules, path, true))))
        return deny(g, DENIAL_LINK, rule, path, "a link in place of a directory that contains a guarded name");
    if (made == MADE_LINK && (rule = rules_decider(&g->rules, path)) && rule->said->kind == GUARD_RULE_ROOT &&
        rule->said->flags & GUARD_RULE_NO_LINKS)
        return deny(g, DENIAL_LINK, NULL, path, "a link in a directory that programs outside of the box use, too");
    struct rooted w = {0};
    if (made == MADE_LINK && (rule = reporoot_below(g, path, &w)))
        return deny(g, DENIAL_LINK, rule, path, "a link in place of a directory that contains a guarded name");
    if (made == MADE_LINK && is_for_remotes(g, p))
        return deny(g, DENIAL_CREATE, NULL, path, REPOSITORY);
    if (made == MADE_LINK && module_behind(g, p, NULL))
        return deny(g, DENIAL_LINK, NULL, path, SUBMODULE);
    g->birth |= reporoot_marks(g, p);
    return completes_repository(g, p);
}

int verdict_made(struct guard *g, const struct place *p, enum made made)
{
    const char *other;
    if (is_half(g, p, &other))
        return git_is_common(p->dir) ? begins_repository(g, p) : 0;
    return verdict_make(g, p, made);
}

int verdict_linked(struct guard *g, const struct place *p, const struct place *moved)
{
    struct sys_stat st;
    if (!p->plain)
        return 0;
    if (module_behind(g, p, moved))
        return deny(g, DENIAL_LINK, NULL, place_path(p), SUBMODULE);
    /* A directory that moved: another box may have made one in it meanwhile. */
    return moved && stat_of(p, &st) == 0 && S_ISDIR(st.mode) && brings_links(g, p, p)
               ? deny(g, DENIAL_LINK, NULL, place_path(p), GIT_LINK)
               : 0;
}

bool object_guarded(struct guard *g, const struct object *o)
{
    struct str path = object_path(o);
    size_t end;
    bool config;
    return path.n && (guarded(g, path, &end) || repository_place(g, path, &config));
}

/* Whether the path of an object reached through a descriptor leads to it, in the same mount. A file with one name is
   then judged by that, and needs no search for others, which in a large tree ends in a refusal. */
static bool path_leads_to(const struct object *o)
{
    return !o->placed && o->st.links == 1 && object_leads(o);
}

/* Whether an object reached through a descriptor has a name other than its path says. */
static bool verdict_is_lost(const struct object *o)
{
    const bool named =
        S_ISREG(o->st.mode) || S_ISDIR(o->st.mode) || S_ISLNK(o->st.mode) || (S_ISFIFO(o->st.mode) && o->n);
    return o->st.links && named && !o->proc && !o->placed && !object_leads(o);
}

/* A pipe from which the caller of pinfold lets the command read (runtime/stdio.c): it is not opened for writing, nor is
   its mark taken away. */
static bool is_callers_pipe(const struct object *o)
{
    return S_ISFIFO(o->st.mode) && o->st.mode & S_ISVTX && !object_path(o).n;
}

int verdict_object(struct guard *g, const struct object *o, enum denial_action action)
{
    struct str path = object_path(o);
    size_t end;
    bool config;
    const struct rule *rule;
    g->birth = false;
    if (path.n) {
        rule = rules_hidden(&g->rules, path);
        if (rule) {
            hidden_seen(g, rule, o);
            return deny(g, action, rule, path, "a hidden name");
        }
        if (action != DENIAL_READ) {
            rule = guarded(g, path, &end);
            config = rule && rule_is_git_config(rule) && end == path.n;
            if (!rule)
                end = repository_place(g, path, &config);
            /* git init tests chmod on its configuration; a mode cannot make it run anything. */
            if ((rule || end) && !(config && action == DENIAL_CHANGE))
                return deny(g, action, rule, path, rule ? reason(rule) : REPOSITORY);
            if (reserved(path))
                return deny(g, action, NULL, path, "a name that belongs to pinfold");
            if (g->rules.n_branches && branches_object(g, path, action) < 0)
                return -EACCES;
        }
        if (object_outside(g, o, action)) /* for the box a link to it would cross file systems */
            return action == DENIAL_LINK ? -EXDEV : outside(g, action, o->fd, path);
    }
    if (is_callers_pipe(o) && (action == DENIAL_WRITE ? !o->held : action != DENIAL_READ))
        return -EACCES;
    rule = hidden_moved(g, o);
    if (rule)
        return deny(g, action, rule, path, MOVED_AWAY);
    bool named = o->st.links > 0 && (S_ISREG(o->st.mode) || S_ISDIR(o->st.mode));
    if (o->magic && named && !o->held && !o->placed && !mount_ours(g, o->st.mount))
        return deny(g, action, NULL, path, "it is in a mount that does not belong to the box");
    if (action != DENIAL_READ && o->magic && !o->held && verdict_is_lost(o) && !hardlink_nameless(g, o))
        return deny(g, action, NULL, path, "it is not at its path: the host moved it, or it has other names");
    if (S_ISREG(o->st.mode) && (o->st.links > 1 || (o->magic && o->st.links && !path_leads_to(o))))
        return verdict_identity(g, &o->st, action, path);
    return 0;
}

/* ---- removing, renaming, linking ---- */

/* Something guarded but without effect (only samples, a configuration without programs) may be removed with the
   repository. */
static bool inert(struct guard *g, const struct rule *rule, struct str path, size_t end, int dir, const char *name)
{
    if (rule ? rule_is_git_hooks(rule) : fold_eq(last_of((struct str){path.p, end}), STR("hooks")))
        return end == path.n ? git_hooks_inert(dir, name) : str_ends(path, STR(".sample"));
    if ((rule ? rule_is_git_config(rule) : end == path.n) && gitconfig_kind_of(path) > GITCONFIG_MODULES)
        return true; /* without it git continues with nothing: it aborts or ends a rebase, or reads the tree */
    return end == path.n && (!rule || rule_is_git_config(rule)) && git_config_inert(g, dir, name, path);
}

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
    rule = guarded(g, path, &end);
    if (!rule)
        end = repository_place(g, path, &config);
    if ((rule || end) && !(rule && end == p->n && point_is(g, p, rule)) && !inert(g, rule, path, end, p->dir, p->name))
        return deny(g, DENIAL_REMOVE, rule, path, rule ? reason(rule) : REPOSITORY);
    if (is_outside(g, path))
        return outside_at(g, DENIAL_REMOVE, p);
    /* In a cache everything hides the host's name of that place. */
    rule = directory || rules_private(&g->rules, path) ? rules_pinned(&g->rules, path) : NULL;
    if (rule && rule->path.n == path.n)
        return deny(g, DENIAL_REMOVE, rule, path, GUARD_WHY_PIN);
    return reserved(path) ? deny(g, DENIAL_REMOVE, NULL, path, "a name that belongs to pinfold")
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

/* Whether it has no effect. In an arriving directory it becomes effective: a process that has the file open, or has
   another name for it, could change it then. */
static bool rest_inert(struct guard *g, const struct place *p, const struct rule *rule, struct str rest, bool arrives)
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

/* A directory may leave `from`, or arrive at `at`, unless it contains something guarded below that place. */
static int verdict_contents(struct guard *g, const struct place *from, const struct place *at, const char *why)
{
    struct str rest;
    const struct rule *rule;
    for (size_t i = 0; (rule = rules_below(&g->rules, place_path(at), &i, &rest));) {
        if (g->rules.mode == GUARD_EXISTING && from != at && rule->said->kind == GUARD_RULE_NAME &&
            !(rule->said->flags & GUARD_RULE_ALWAYS))
            continue;
        if (rest_stands(from, rest) && !rest_inert(g, from, rule, rest, from != at))
            return deny(g, DENIAL_RENAME, rule, place_path(at), why);
    }
    for (struct rooted w = {0}; (rule = reporoot_below(g, place_path(at), &w));)
        if ((g->rules.mode == GUARD_STRICT || from == at) && rest_stands(from, w.rest) &&
            !rest_inert(g, from, rule, w.rest, from != at))
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
    rule = guarded(g, path, &end);
    if (!rule)
        end = repository_place(g, path, &config);
    if ((rule || end) && !inert(g, rule, path, end, from->dir, from->name))
        return deny(g, DENIAL_RENAME, rule, path, rule ? reason(rule) : REPOSITORY);
    if (reserved(path))
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
    struct str path = place_path(to), rest;
    size_t end, at = 0;
    bool config = false;
    const struct rule *rule = rules_hidden(&g->rules, path);
    if (rule)
        return deny(g, DENIAL_RENAME, rule, path, "a hidden name");
    rule = guarded(g, path, &end);
    if (rule)
        config = rule_is_git_config(rule) && end == path.n;
    else
        end = repository_place(g, path, &config);
    if (config && may_replace) {
        int no = git_config_replace(g, from, to, rule, false);
        return no < 0 ? no : 1;
    }
    if (rule || end)
        return deny(g, DENIAL_RENAME, rule, path, rule ? reason(rule) : REPOSITORY);
    if (reserved(path))
        return deny(g, DENIAL_RENAME, NULL, path, "a name that belongs to pinfold");
    rule = rules_pinned(&g->rules, path);
    if (rule && rule->path.n == path.n)
        return deny(g, DENIAL_RENAME, rule, path, GUARD_WHY_PIN);
    if (is_option_ref(g, path))
        return deny(g, DENIAL_RENAME, NULL, path, OPTION_REF);
    if (brings_remotes(g, from, to))
        return deny(g, DENIAL_RENAME, NULL, path, REPOSITORY);
    int no = g->rules.n_branches ? branches_arrive(g, from, to, st, may_replace) : 0;
    if (no == 0)
        no = completes_repository(g, to);
    if (no == 0)
        no = reporoot_arrives(g, from, to, st);
    struct rooted w = {0};
    if (no != 0 || S_ISREG(st->mode))
        return no;
    if (S_ISLNK(st->mode))
        return (rule = reporoot_below(g, path, &w)) || (rule = rules_below(&g->rules, path, &at, &rest)) ||
                       (rule = rules_pattern_prefix(&g->rules, path, true))
                   ? deny(g, DENIAL_LINK, rule, path, "a link in place of a directory that contains a guarded name")
               : module_behind(g, to, NULL) ? deny(g, DENIAL_LINK, NULL, path, SUBMODULE)
                                            : verdict_git_link(g, to, NULL);
    if (!S_ISDIR(st->mode))
        return 0;
    if (module_behind(g, to, from))
        return deny(g, DENIAL_LINK, NULL, path, SUBMODULE);
    if (brings_links(g, from, to))
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

static bool is_nothing_at(const struct place *p)
{
    char name[NAME_MAX + 2];
    struct sys_stat st;
    memcpy(name, p->name, p->name_n);
    name[p->name_n] = 0;
    return sys_stat_at(p->dir, name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) == -ENOENT;
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
    return sys_stat_at(a->dir, "", AT_EMPTY_PATH, SYS_STAT_MOUNT, &x) == 0 &&
           sys_stat_at(b->dir, "", AT_EMPTY_PATH, SYS_STAT_MOUNT, &y) == 0 && x.mount == y.mount;
}

int verdict_rename(struct guard *g, const struct place *from, const struct place *to, unsigned flags,
                   struct sys_stat *ret)
{
    struct sys_stat st, other = {.mode = S_IFREG};
    char name[NAME_MAX + 2];
    g->birth = false;
    if (!from->plain || !to->plain)
        return 0; /* EBUSY */
    if (from->frozen || to->frozen)
        return -EROFS;
    if (place_mounted(g, from) || place_mounted(g, to))
        return -EBUSY;
    memcpy(name, from->name, from->name_n);
    name[from->name_n] = 0;
    int no = sys_stat_at(from->dir, name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC | SYS_STAT_BORN, &st);
    if (no < 0)
        return no;
    *ret = st;
    if (S_ISDIR(st.mode) && !same_mount(g, from, to))
        return -EXDEV;
    no = verdict_leaves(g, from, &st);
    if (no < 0)
        return no;
    const struct place *beyond = is_outside(g, place_path(from)) ? from : is_outside(g, place_path(to)) ? to : NULL;
    if (beyond) /* programs then copy instead */
        return same_mount(g, from, to) ? outside(g, DENIAL_RENAME, beyond->dir, place_path(beyond)) : -EXDEV;
    bool exchange = flags & RENAME_EXCHANGE;
    if (exchange) {
        memcpy(name, to->name, to->name_n);
        name[to->name_n] = 0;
        no = sys_stat_at(to->dir, name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC | SYS_STAT_BORN, &other);
        if (no == 0)
            no = verdict_leaves(g, to, &other);
        if (no == 0)
            no = verdict_arrives(g, to, from, &other, false);
        if (no < 0)
            return no;
    }
    bool replaces = flags == 0 || (flags == RENAME_NOREPLACE && is_nothing_at(to));
    return verdict_arrives(g, from, to, &st, replaces);
}

int verdict_link(struct guard *g, const struct object *from, const struct place *to)
{
    int no = verdict_object(g, from, DENIAL_LINK);
    if (no == 0)
        no = verdict_make(g, to, S_ISLNK(from->st.mode) ? MADE_LINK : MADE_FILE);
    g->birth &= !reporoot_marks(g, to); /* it exists already: it may belong to another's repository */
    return no;
}
