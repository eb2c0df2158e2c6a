/*
 * Files: what mounts, the guard and ordinary permissions do with an act on a path, in the order in which the box would meet
 * them. The guard's names are judged by its own rules (judge/judge.h); where it looks at the file system, so do we.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "git/gitconfig.h"
#include "protocol/guard_image.h"
#include "why/parts.h"

#define NEW_NAME "a new file" /* no rule is about such a name */

/* ---- words ---- */

static bool is_landlock(const struct why_question *q)
{
    return q->plan->image->tier == TIER_LANDLOCK;
}

static const char *mechanism_of(const struct why_question *q, const struct plan_place *at)
{
    if (is_landlock(q))
        return "Landlock";
    switch ((enum act)at->act) {
    case ACT_STUB:
        return "mask over its directory";
    case ACT_DENY:
        return "mount over it";
    case ACT_HOLLOW:
        return "empty directory mounted over it";
    case ACT_GUARD:
        return "guard";
    case ACT_WHITEOUT:
        return "private layer";
    case ACT_PRIVATE:
    case ACT_VOLUME:
    case ACT_PRIVATE_DIR:
        return at->kind == PLACE_DEVICES ? "read-only mount" : "private directory of the box";
    default:
        return "read-only mount";
    }
}

static int refuse_by(struct why_question *q, const struct plan_place *at, enum why_cause cause, int no,
                     const char *reason)
{
    why_place(q, at);
    if (at->own || (q->ret->origin && strstr(q->ret->origin, OWN_ORIGIN)))
        cause = WHY_CAUSE_OWN;
    return why_say(q, WHY_REFUSED, cause, no, mechanism_of(q, at), reason);
}

static int refuse_host(struct why_question *q, int no, const char *reason)
{
    return why_say(q, WHY_REFUSED, WHY_CAUSE_HOST, no, "the host itself, not the sandbox", reason);
}

/* Ordinary permissions refuse it. On the host root passes over them by its capabilities. */
static int refuse_permission(struct why_question *q, const struct why_node *n, int want, const char *reason)
{
    const struct facts *f = q->plan->facts;
    if ((want & W_OK) && n->at && n->exists && faccessat(AT_FDCWD, n->at, want, AT_EACCESS) < 0 && errno == EROFS)
        return refuse_host(
            q, EROFS, arena_printf(q->mem, "'%s' is on a file system that the host has mounted read-only", n->path));
    if (f->uid != 0 || f->unsandboxed || !n->at || !n->exists || n->st.st_uid == 0 ||
        faccessat(AT_FDCWD, n->at, want, AT_EACCESS) < 0)
        return refuse_host(q, EACCES, reason);
    q->ret->rule = "capabilities";
    q->ret->origin = "every box";
    return why_say(q, WHY_REFUSED, WHY_CAUSE_ROOT, EACCES, "no capabilities",
                   arena_printf(q->mem, "'%s' belongs to user %u, and root has no capabilities in a box", n->path,
                                (unsigned)n->st.st_uid));
}

static int allow(struct why_question *q, const struct plan_place *by, const char *reason)
{
    why_place(q, by);
    return why_say(q, WHY_ALLOWED, WHY_CAUSE_NONE, 0, NULL, reason);
}

/* ---- the guard's names ---- */

struct guarding {
    const struct rule *rule; /* NULL: what a repository is made of, see `repository` */
    size_t end;
    bool config, repository;
};

/* Whether the box sees something called `name` in its directory `dir`. */
static bool stands_at(struct why_question *q, struct str dir, const char *name)
{
    struct seen_at s;
    struct stat st;
    const char *path = arena_printf(q->mem, "%.*s/%s", (int)dir.n, dir.p, name);
    return path && plan_seen(q->plan, path, q->mem, &s) == 0 && (s.kind == SEEN_HOST || s.kind == SEEN_LAYER) &&
           s.host && lstat(s.host, &st) == 0;
}

static bool common_directory(struct why_question *q, struct str dir)
{
    return stands_at(q, dir, "objects") && stands_at(q, dir, "refs");
}

static bool repository_root(struct why_question *q, struct str dir)
{
    static const char markers[][12] = {".git", ".hg", ".jj", ".sl", ".svn", ".bzr", "_darcs", ".pijul", ".fslckout"};
    for (size_t i = 0; i < sizeof markers / sizeof *markers; i++) {
        if (stands_at(q, dir, markers[i]))
            return true;
    }
    return false;
}

/* A repository in the directory or, `around`, in one above it, of which the host's are meant. */
static bool in_repository(struct why_question *q, struct str dir, bool around)
{
    while (!repository_root(q, dir)) {
        const char *slash = around && dir.n ? memrchr(dir.p, '/', dir.n) : NULL;
        if (!slash)
            return false;
        dir.n = (size_t)(slash - dir.p);
    }
    return true;
}

/* Names of the list `root` beside a repository's marker; some also in the directories below. */
static const struct rule *rooted_rule(struct why_question *q, struct str path, size_t *ret_end)
{
    for (struct rooted w = {0}; rules_rooted(&q->rules, path, &w);) {
        bool top = !w.rule->in_repository && rules_is_root(&q->rules, w.directory);
        const bool deep =
            rule_is_deep(w.rule) && !path_is_foreign(str_skip((struct str){path.p, w.end}, w.from), false);
        if (top ? !w.rule->pattern : !in_repository(q, w.directory, deep))
            continue;
        *ret_end = w.end;
        return w.rule;
    }
    return NULL;
}

static struct str last_part(struct str path)
{
    const char *slash = path.n == 0 ? NULL : memrchr(path.p, '/', path.n);
    return slash ? str_skip(path, (size_t)(slash - path.p) + 1) : path;
}

/* Where a repository's own place ends in `path`, whatever the repository is called; 0: nowhere. */
static size_t repository_part(struct why_question *q, struct str path, bool *ret_config)
{
    *ret_config = false;
    if (!q->rules.git || q->rules.mode != GUARD_STRICT || !rules_root(&q->rules, path).n || rules_free(&q->rules, path))
        return 0;
    struct str last = last_part(path), part, dir = {path.p, path.n > last.n ? path.n - last.n - 1 : 0};
    bool config = fold_eq(last, STR("config"));
    *ret_config = fold_eq(last, STR("config.worktree")) || (config && common_directory(q, dir));
    if (*ret_config || (fold_eq(last, STR("commondir")) && common_directory(q, dir)))
        return path.n;
    for (size_t at = 0, from = 0; part_next(path, &at, &part); from = at) {
        bool remotes = at < path.n && (fold_eq(part, STR("remotes")) || fold_eq(part, STR("branches")));
        if (from && (fold_eq(part, STR("hooks")) || remotes) && common_directory(q, (struct str){path.p, from}))
            return at;
    }
    return 0;
}

static bool guarding_at(struct why_question *q, const char *text, struct guarding *ret)
{
    struct str path = str_of(text);
    const struct rule *rooted;
    struct stat st;
    *ret = (struct guarding){.rule = rules_guarded(&q->rules, path, &ret->end)};
    if (ret->rule)
        (void)rules_guarded(&q->rules, path, &ret->end);
    if ((!ret->rule || rule_is_git_config(ret->rule)) && (rooted = rooted_rule(q, path, &ret->end)))
        ret->rule = rooted;
    bool named = ret->rule && ret->rule->said->kind == GUARD_RULE_NAME && !(ret->rule->said->flags & GUARD_RULE_ALWAYS);
    if (named && q->rules.mode == GUARD_EXISTING) { /* what there is when the box starts */
        struct seen_at s;
        const char *name = arena_str(q->mem, (struct str){text, ret->end});
        bool there = name && plan_seen(q->plan, name, q->mem, &s) == 0 && s.host && lstat(s.host, &st) == 0;
        ret->rule = there ? ret->rule : NULL;
    }
    bool config;
    size_t end = ret->rule && !rule_is_git_config(ret->rule) ? 0 : repository_part(q, path, &config);
    if (end && !(ret->rule && config)) {
        ret->repository = !ret->rule || !config;
        ret->rule = ret->repository ? NULL : ret->rule;
        ret->end = end;
        ret->config = config;
        return true;
    }
    ret->config = ret->rule && rule_is_git_config(ret->rule) && ret->end == path.n;
    return ret->rule != NULL;
}

static const char *guarded_text(struct why_question *q, const struct rule *rule)
{
    const bool always = rule->said->flags & GUARD_RULE_ALWAYS;
    const char *kind = rule->said->kind == GUARD_RULE_NAME && !always     ? "guarded name"
                       : rule->said->kind == GUARD_RULE_PROTECT || always ? "protect"
                                                                          : "hide";
    auto_buf struct buf said = BUF(2 * PATH_MAX);
    guard_rule_said(q->plan->image, rule->said, &said);
    return arena_printf(q->mem, "%s %s", kind, buf_cstr(&said));
}

static int refuse_rule(struct why_question *q, const struct rule *rule, enum why_cause cause, const char *reason)
{
    why_rule(q, guarded_text(q, rule), rule->said->origin);
    if (q->ret->origin && strstr(q->ret->origin, OWN_ORIGIN))
        cause = WHY_CAUSE_OWN;
    return why_say(q, WHY_REFUSED, cause, EACCES, "guard", reason);
}

/* A new hooks directory gets samples, which nothing runs. */
static bool is_sample(const struct guarding *g, const char *path)
{
    const char *rest = path + g->end;
    bool hooks = g->rule ? rule_is_git_hooks(g->rule) : fold_eq(last_part((struct str){path, g->end}), STR("hooks"));
    return hooks && rest[0] == '/' && !strchr(rest + 1, '/') && str_ends(str_of(rest), STR(".sample"));
}

/* A branch, tag or remote whose short name is an option of git's. */
static bool is_option(struct why_question *q, const char *path)
{
    const char *refs = strstr(path, "/refs/");
    return q->rules.git && path_name(path)[0] == '-' && refs && rules_root(&q->rules, str_of(path)).n &&
           !rules_free(&q->rules, str_of(path));
}

/*
 * What the guard does with a change at `path`. 1: nothing; otherwise the answer is there. `missing`: it would be created.
 */
static int guard_changes(struct why_question *q, const char *path, bool missing, bool regular)
{
    struct guarding g;
    struct str s = str_of(path);
    const struct rule *rule = q->guarded ? rules_hidden(&q->rules, s) : NULL;
    if (!q->guarded)
        return 1;
    if (rule)
        return refuse_rule(q, rule, WHY_CAUSE_HIDDEN, "a rule hides it, and it may not be changed, either");
    if (guarding_at(q, path, &g) && !(missing && is_sample(&g, path))) {
        bool judged = g.config && q->rules.mode == GUARD_STRICT &&
                      ((g.rule && gitconfig_kind_of(s) == GITCONFIG_MODULES) || (missing && (g.rule || g.config)));
        if (g.rule)
            why_rule(q, guarded_text(q, g.rule), g.rule->said->origin);
        else
            why_rule(q, "a repository's hooks, remotes, commondir and configuration", 0);
        if (judged)
            return why_say(q, WHY_UNKNOWN, WHY_CAUSE_GUARDED, 0, "guard",
                           "its content is judged key by key: it may not name a program that is new");
        if (g.config)
            return why_say(q, WHY_REFUSED, WHY_CAUSE_GUARDED, EACCES, "guard",
                           "it can only be replaced by renaming a new file onto it, as git does; then the new content "
                           "is judged key by key");
        if (g.rule && g.rule->said->kind == GUARD_RULE_PROTECT)
            return refuse_rule(q, g.rule, WHY_CAUSE_PROTECTED, "a rule protects it: it can be read, not changed");
        if (g.rule && g.rule->said->flags & GUARD_RULE_ALWAYS)
            return refuse_rule(q, g.rule, WHY_CAUSE_PROTECTED, "a rule protects the name");
        return why_say(
            q, WHY_REFUSED, WHY_CAUSE_GUARDED, EACCES, "guard",
            "programs on the host run or obey this name by themselves, so a box may not create or change it");
    }
    if (missing && is_option(q, path))
        return why_say(q, WHY_REFUSED, WHY_CAUSE_GUARDED, EACCES, "guard",
                       "a branch, tag or remote whose name git would take as an option");
    rule = rules_decider(&q->rules, s);
    bool inside = rule && (rule->said->kind == GUARD_RULE_ROOT || rule->said->kind == GUARD_RULE_PRIVATE);
    if (!inside && (missing || regular) && !(rule && rules_root(&q->rules, s).n))
        return 2; /* outside of all that can be written */
    return 1;
}

/* ---- mounts ---- */

/* Whether a mount or Landlock lets the box change what this place shows. */
static bool is_writable_place(const struct why_question *q, const struct why_node *n)
{
    const struct plan_place *at = n->seen.place;
    if (is_landlock(q) && q->guarded && rules_private(&q->rules, str_of(n->path)))
        return true;
    if (at->kind == PLACE_DEVICES)
        return path_at_or_below(n->path, "/dev/shm") || n->seen.kind == SEEN_DEVICES;
    return at->region == REGION_WRITABLE || at->region == REGION_CACHE ||
           (at->region == REGION_PRIVATE && !is_landlock(q));
}

static int refuse_read_only(struct why_question *q, const struct why_node *n)
{
    const struct plan_place *at = n->seen.place;
    if (at->kind == PLACE_DEVICES)
        return refuse_by(q, at, WHY_CAUSE_KERNEL, EROFS, "the box's /dev has the usual devices only");
    if (path_at_or_below(n->path, "/sys"))
        return refuse_by(q, at, WHY_CAUSE_KERNEL, EROFS, "/sys is never writable in a box");
    const struct policy *p = q->plan->policy;
    if (p->workspace_read_only && q->plan->workspace && path_at_or_below(n->path, q->plan->workspace) &&
        path_at_or_below(q->plan->workspace, at->dst)) {
        why_rule(q, "workspace_read_only", p->read_only_origin);
        return why_say(q, WHY_REFUSED, WHY_CAUSE_READ_ONLY, is_landlock(q) ? EACCES : EROFS, mechanism_of(q, at),
                       "the workspace is read-only in this box");
    }
    if (at->region == REGION_HIDDEN)
        return refuse_by(q, at, WHY_CAUSE_HIDDEN, EROFS, "it is in something hidden, in which nothing can be created");
    return refuse_by(q, at, WHY_CAUSE_READ_ONLY, is_landlock(q) ? EACCES : EROFS,
                     "it is outside of what the box can write");
}

/* Below something that Landlock can only leave out as a whole. */
static bool has_hidden_below(const struct why_question *q, const char *path)
{
    for (size_t i = 1; i < q->plan->n_places; i++) {
        const struct plan_place *at = &q->plan->places[i];
        if (at->kind == PLACE_HIDE && at->act == ACT_LANDLOCK && path_below(at->dst, path))
            return true;
    }
    return path_below("/dev", path);
}

static int landlock_read(struct why_question *q, const struct why_node *n)
{
    static const char *const devices[] = {"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
                                          "/dev/urandom", "/dev/tty",  "/dev/ptmx", "/dev/pts/ptmx"};
    const struct plan_place *at = n->seen.place;
    if (!is_landlock(q))
        return 1;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        if (same(n->path, devices[i]))
            return 1;
    }
    if (at->region == REGION_HIDDEN)
        return refuse_by(q, at, WHY_CAUSE_HIDDEN, EACCES, "a rule hides it");
    if (path_at_or_below(n->path, "/dev") && at->kind != PLACE_RW && at->kind != PLACE_RO)
        return refuse_by(q, at, WHY_CAUSE_KERNEL, EACCES, "the box may use the usual devices only");
    if (S_ISDIR(n->st.st_mode) && at->region != REGION_WRITABLE && has_hidden_below(q, n->path))
        return refuse_by(q, at, WHY_CAUSE_HIDDEN, EACCES,
                         "something below it is hidden, and Landlock can only allow whole trees: it can be passed "
                         "through, not listed");
    return 1;
}

/* ---- what stands in the way of every act ---- */

static bool host_has(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* Nothing is there for the box. */
static int say_absent(struct why_question *q, const struct why_node *n)
{
    q->ret->missing = true;
    if (n->seen.kind == SEEN_ABSENT && host_has(n->path))
        return refuse_by(q, n->seen.place, WHY_CAUSE_HIDDEN, ENOENT, "a rule hides it: the box sees nothing there");
    /* All of the path: a directory on the way to it says nothing about what is in it. */
    const char *whole = q->ret->target ? q->ret->target : n->path;
    if (n->seen.kind == SEEN_OWN && host_has(whole)) {
        q->ret->host = whole;
        return refuse_by(
            q, n->seen.place, WHY_CAUSE_NOT_THERE, ENOENT,
            arena_printf(q->mem, "it exists on the host but not in the box, which has its own %s", n->seen.place->dst));
    }
    return refuse_host(q, ENOENT,
                       n->seen.kind == SEEN_OWN ? "nothing is there: the box's own directory begins without it"
                                                : "it does not exist, in the box or on the host");
}

/* The whole path, of which the walk got as far as w->last. */
static const char *path_asked(struct why_question *q, const struct why_walk *w)
{
    const char *rest = w->rest + strspn(w->rest, "/");
    const char *path = *rest ? arena_printf(q->mem, "%s/%s", w->last.path[1] ? w->last.path : "", rest) : w->last.path;
    return path ? path_clean(q->mem, path) : NULL;
}

static int say_stopped(struct why_question *q, const struct why_walk *w)
{
    const struct why_node *n = &w->last;
    q->ret->target = path_asked(q, w);
    q->ret->host = NULL;
    if (!q->ret->target)
        return why_memory(q);
    switch (w->stop) {
    case WALK_DENIED:
        q->ret->missing = !host_has(q->ret->target);
        q->ret->above = q->ret->missing ? n->path : NULL;
        return refuse_by(q, n->seen.place, WHY_CAUSE_HIDDEN, EACCES,
                         arena_printf(q->mem, "a rule hides '%s'", n->path));
    case WALK_PERMISSION:
        q->ret->host = n->seen.host;
        return refuse_permission(q, n, X_OK,
                                 arena_printf(q->mem, "ordinary permissions do not let this user into '%s'", n->path));
    case WALK_LOOP:
        return refuse_host(q, ELOOP, "too many symbolic links");
    case WALK_NOT_DIRECTORY:
        return refuse_host(q, ENOTDIR, arena_printf(q->mem, "'%s' is not a directory", n->path));
    default:
        return say_absent(q, n);
    }
}

/* ---- reading ---- */

/* 1: it may be read. */
static int check_read(struct why_question *q, const struct why_node *n)
{
    const struct rule *hidden = q->reads ? rules_hidden(&q->rules, str_of(n->path)) : NULL;
    int r = landlock_read(q, n);
    if (r != 1)
        return r;
    if (n->seen.kind == SEEN_DENIED)
        return refuse_by(q, n->seen.place, WHY_CAUSE_HIDDEN, EACCES, "a rule hides it");
    if (hidden)
        return refuse_rule(q, hidden, WHY_CAUSE_HIDDEN, "a rule hides it: the guard judges every open");
    if (S_ISSOCK(n->st.st_mode))
        return refuse_host(q, ENXIO, "it is a socket, which can be connected to but not opened");
    bool device = S_ISCHR(n->st.st_mode) || S_ISBLK(n->st.st_mode);
    if (device && n->at && !n->seen.place->device && !is_landlock(q))
        return refuse_by(q, n->seen.place, WHY_CAUSE_KERNEL, EACCES, "it is a device, and none works here in a box");
    if (why_permits(q, n, R_OK))
        return 1;
    if (n->seen.kind == SEEN_MADE && n->seen.place->region == REGION_HIDDEN)
        return refuse_by(q, n->seen.place, WHY_CAUSE_HIDDEN, EACCES,
                         "a rule hides it: it can be passed through to what is allowed below, not listed");
    return refuse_permission(q, n, R_OK, "ordinary permissions do not let this user read it");
}

/* ---- writing ---- */

static int check_create(struct why_question *q, const struct why_node *n, const struct why_node *above)
{
    if (n->seen.kind == SEEN_ABSENT)
        return refuse_by(q, n->seen.place, WHY_CAUSE_HIDDEN, n->seen.place->act == ACT_WHITEOUT ? EACCES : EROFS,
                         "a rule keeps this name absent");
    if (is_writable_place(q, n) || n->seen.place->act == ACT_GUARD) {
        int r = guard_changes(q, n->path, true, true);
        if (r != 1)
            return r == 2 ? refuse_read_only(q, n) : r;
    }
    if (!is_writable_place(q, n))
        return refuse_read_only(q, n);
    if (!why_permits(q, above, W_OK | X_OK))
        return refuse_permission(
            q, above, W_OK | X_OK,
            arena_printf(q->mem, "ordinary permissions do not let this user create names in '%s'", above->path));
    return 1;
}

/*
 * A file of the host with other names is copied before it is changed, and the copy takes its name: where no name can be
 * created, it cannot be written (guard/rules/hardlink.c).
 */
static int check_copied(struct why_question *q, const struct why_node *n, const struct why_node *above)
{
    const struct plan_place *at = n->seen.place;
    if (!q->guarded || !S_ISREG(n->st.st_mode) || n->st.st_nlink < 2 || at->region != REGION_WRITABLE ||
        n->seen.kind != SEEN_HOST)
        return 1;
    if (!same(n->path, at->dst) && why_permits(q, above, W_OK | X_OK))
        return 1;
    why_place(q, at);
    return why_say(q, WHY_REFUSED, WHY_CAUSE_KERNEL, EROFS, "guard",
                   "it has other names (hard links), so that a copy would have to take its place, where no name can be "
                   "created");
}

static int check_write(struct why_question *q, const struct why_node *n, const struct why_node *above)
{
    bool stored = S_ISREG(n->st.st_mode);
    if (n->seen.kind == SEEN_DENIED)
        return refuse_by(q, n->seen.place, WHY_CAUSE_HIDDEN, EACCES, "a rule hides it");
    if (S_ISSOCK(n->st.st_mode))
        return refuse_host(q, ENXIO, "it is a socket, which can be connected to but not opened");
    if (S_ISCHR(n->st.st_mode) || S_ISBLK(n->st.st_mode)) {
        int r = check_read(q, n);
        if (r != 1)
            return r;
    }
    if (is_writable_place(q, n) || n->seen.place->act == ACT_GUARD || !stored) {
        int r = guard_changes(q, n->path, false, stored);
        if (r != 1)
            return r == 2 ? refuse_read_only(q, n) : r;
    }
    if (stored && !is_writable_place(q, n))
        return refuse_read_only(q, n);
    return why_permits(q, n, W_OK)
               ? check_copied(q, n, above)
               : refuse_permission(q, n, W_OK, "ordinary permissions do not let this user write it");
}

/* ---- executing ---- */

#define SCRIPTS_MAX 5 /* scripts that interpret scripts: as many as the kernel takes */

/* The program that a script's first line names; "": it is no script. */
static const char *interpreter(struct why_question *q, const struct why_node *n)
{
    char begin[256];
    auto_fd int fd = n->at ? open(n->at, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    ssize_t length = fd < 0 ? 0 : read(fd, begin, sizeof begin - 1);
    if (length < 2 || begin[0] != '#' || begin[1] != '!')
        return "";
    begin[length] = 0;
    const char *name = begin + 2 + strspn(begin + 2, " \t");
    const char *path = arena_str(q->mem, (struct str){name, strcspn(name, " \t\n")});
    return path && path[0] ? path : "/";
}

/* The interpreter is executed, and opens the script. */
static int check_script(struct why_question *q, const struct why_node *n, const char *program)
{
    struct why_question inner = *q;
    struct why said = {.target = program};
    inner.ret = &said;
    inner.target = program;
    int r = program[0] == '/' && program[1] && ++inner.scripts < SCRIPTS_MAX ? why_file(&inner) : 0;
    if (r < 0 || said.verdict != WHY_REFUSED)
        return r < 0 ? r : check_read(q, n);
    said.reason = arena_printf(q->mem, "its interpreter '%s': %s", program, said.reason);
    *q->ret = said;
    return said.reason ? 0 : why_memory(q);
}

static int check_exec(struct why_question *q, const struct why_node *n)
{
    struct statvfs fs;
    if (n->seen.kind == SEEN_DENIED)
        return refuse_by(q, n->seen.place, WHY_CAUSE_HIDDEN, EACCES, "a rule hides it");
    int r = landlock_read(q, n);
    if (r != 1)
        return r;
    if (!S_ISREG(n->st.st_mode))
        return refuse_host(q, EACCES, "it is not a regular file");
    if (plan_own_file(q->plan, n->path) &&
        !same(n->seen.place->dst, n->path)) /* else a mount of that file lies over it */
        return refuse_host(q, EACCES, "it is a file of the box's own, which nobody can execute");
    if (!why_permits(q, n, X_OK))
        return refuse_permission(q, n, X_OK, "ordinary permissions do not let this user execute it");
    if (n->at && statvfs(n->at, &fs) == 0 && fs.f_flag & ST_NOEXEC)
        return refuse_host(q, EACCES, "its file system is mounted with noexec");
    const char *program = interpreter(q, n);
    return program[0] ? check_script(q, n, program) : 1;
}

/* ---- the question ---- */

static const char allowed_words[][20] = {[WHY_READ] = "it can be read",
                                         [WHY_WRITE] = "it can be written",
                                         [WHY_CREATE] = "it can be created",
                                         [WHY_EXEC] = "it can be executed"};

/* How near a file of the box's PATH is to what execvp(3) takes: it passes over what it cannot execute. */
enum { NOT_FOUND, NOT_SHOWN /* on the host only */, FOUND, RUNS };

static int command_at(struct why_question *q, const char *file)
{
    struct why_walk w;
    if (why_walk(q, file, &w) < 0)
        return NOT_FOUND;
    if (w.last.seen.kind == SEEN_IMAGE)
        return FOUND;
    if (w.stop == WALK_ARRIVED && w.last.exists)
        return !S_ISREG(w.last.st.st_mode) ? NOT_FOUND : w.last.st.st_mode & 0111 ? RUNS : FOUND;
    return host_has(file) ? NOT_SHOWN : NOT_FOUND;
}

/* The path that a shell would find in the box's PATH; NULL: none. */
static const char *command_path(struct why_question *q, const char *name)
{
    const char *path = NULL, *best = NULL;
    int near = NOT_FOUND;
    for (const char **v = q->plan->env; !path && *v; v++)
        path = strncmp(*v, "PATH=", 5) == 0 ? *v + 5 : NULL;
    while (path && *path && near < RUNS) {
        const int n = (int)strcspn(path, ":");
        const bool whole = path[0] == '/';
        const char *file =
            arena_printf(q->mem, "%s%s%.*s/%s", whole ? "" : q->plan->cwd, whole ? "" : "/", n, path, name);
        const int now = file ? command_at(q, file) : NOT_FOUND;
        if (now > near) {
            near = now;
            best = file;
        }
        path += n + (path[n] == ':');
    }
    return best;
}

/* A file of that name in the working directory is none that a shell would run, but may be what was meant. */
static int say_no_command(struct why_question *q)
{
    const char *here = arena_printf(q->mem, "%s/%s", q->plan->cwd, q->target);
    q->ret->target = q->target;
    q->ret->missing = true;
    if (!here)
        return why_memory(q);
    return refuse_host(q, ENOENT,
                       host_has(here)
                           ? arena_printf(q->mem,
                                          "no directory of the box's PATH has a program of this name; for the "
                                          "one in the working directory ask about './%s'",
                                          q->target)
                           : "no directory of the box's PATH has a program of this name");
}

static int say_unseen(struct why_question *q, const struct why_node *n)
{
    bool changes = q->act == WHY_WRITE || q->act == WHY_CREATE;
    if (n->seen.kind == SEEN_PROC) {
        why_place(q, n->seen.place);
        return why_say(q, WHY_UNKNOWN, WHY_CAUSE_KERNEL, 0, NULL,
                       "the box has its own /proc, with its own processes only");
    }
    if (changes)
        return refuse_by(q, n->seen.place, WHY_CAUSE_READ_ONLY, EROFS, "an image's own files stay read-only");
    why_place(q, n->seen.place);
    return why_say(q, WHY_UNKNOWN, WHY_CAUSE_NONE, 0, NULL, "it is the image's file, which is not looked into here");
}

/* A directory is written by creating something in it. */
static int check_directory(struct why_question *q, const struct why_node *n)
{
    struct why_node new = {.path = path_join(q->mem, n->path, NEW_NAME)};
    if (!new.path || plan_seen(q->plan, new.path, q->mem, &new.seen) < 0)
        return why_memory(q);
    if (n->seen.kind == SEEN_DENIED)
        return refuse_by(q, n->seen.place, WHY_CAUSE_HIDDEN, EACCES, "a rule hides it");
    return check_create(q, &new, n);
}

static int check_file(struct why_question *q, const struct why_walk *w)
{
    const struct why_node *n = &w->last;
    bool directory = S_ISDIR(n->st.st_mode);
    switch (q->act) {
    case WHY_READ:
        return n->exists ? check_read(q, n) : say_absent(q, n);
    case WHY_EXEC:
        return n->exists ? check_exec(q, n) : say_absent(q, n);
    default:
        return !n->exists  ? check_create(q, n, &w->above)
               : directory ? check_directory(q, n)
                           : check_write(q, n, &w->above);
    }
}

/* Something is to be created in a directory that is missing, and must be created first. */
static int say_no_directory(struct why_question *q, const struct why_walk *w)
{
    const struct why_node *first = &w->last;
    const char *path = path_asked(q, w);
    q->ret->target = path;
    q->ret->above = w->above.at;
    q->ret->host = NULL;
    int r = path ? check_create(q, first, &w->above) : why_memory(q);
    if (r == 1)
        r = guard_changes(q, path, true, true);
    if (r < 0 || (r == 0 && q->ret->cause != WHY_CAUSE_HOST))
        return r;
    q->ret->verdict = WHY_REFUSED;
    return refuse_host(q, ENOENT, arena_printf(q->mem, "its directory '%s' does not exist", first->path));
}

int why_file(struct why_question *q)
{
    struct why_walk w;
    bool bare = q->act == WHY_EXEC && !strchr(q->target, '/');
    const char *path = bare ? command_path(q, q->target) : q->target;
    if (!path)
        return say_no_command(q);
    if (path[0] != '/')
        path = arena_printf(q->mem, "%s/%s", q->plan->cwd, path);
    int r = path ? why_walk(q, path, &w) : why_memory(q);
    if (r < 0)
        return r;
    const struct why_node *n = &w.last;
    q->ret->target = n->path;
    q->ret->host = n->at ? n->at : n->seen.kind == SEEN_HOST ? n->seen.host : NULL;
    q->ret->directory = n->exists && S_ISDIR(n->st.st_mode);
    q->ret->missing = !n->exists;
    q->ret->above = n->exists ? NULL : w.above.at;
    if (n->seen.kind == SEEN_PROC && !q->ret->directory && !same(n->path, n->seen.place->dst))
        return say_unseen(q, n);
    if (n->seen.kind == SEEN_IMAGE)
        return say_unseen(q, n);
    if (w.stop == WALK_MISSING && (q->act == WHY_WRITE || q->act == WHY_CREATE))
        return say_no_directory(q, &w);
    if (w.stop != WALK_ARRIVED)
        return say_stopped(q, &w);
    r = check_file(q, &w);
    if (r != 1)
        return r;
    const char *words = q->ret->directory && q->act != WHY_READ ? "names can be created in it" : allowed_words[q->act];
    if (!n->exists && q->act == WHY_WRITE)
        words = "it does not exist and can be created";
    if (n->seen.kind == SEEN_OWN && host_has(n->path))
        words = "it can be created in the box's own directory; the host's of that name is not touched";
    if (n->exists && q->act == WHY_CREATE && !q->ret->directory)
        words = "it exists already and can be written";
    return allow(q, n->seen.place, words);
}
