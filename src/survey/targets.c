/*
 * What guarded names and the host's git configuration lead to inside the workspace: a link `.git/hooks/pre-commit` to
 * scripts/check.sh, a link `.vscode` to conf/vs, core.hooksPath = ci/hooks, a filter, alias or include that is a file
 * there. The guarded name cannot be changed from inside, but its target would be executed, so the target, as of the
 * start, is protected.
 *
 * The same look (gitlook.c) finds what was there before and may not be the person's own; that is reported.
 *
 * Bounded: the entries of the workspace's top by getdents(2), one repository, no walk. If a limit leaves something
 * unprotected the start says so.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "survey/gitlook.h"
#include "survey/survey.h"
#include "match/path.h"
#include "policy/path.h"
#include "sys/fd.h"
#include "sys/file.h"

#define TARGETS_MAX 128
#define BEGINNINGS  1024
#define ENTRIES_MAX 8192 /* of one directory; beyond that only literal names are checked */

struct seeker {
    const struct policy *policy;
    struct facts *f;
    struct arena *mem;
    const char *top; /* the workspace, real */
    const struct git_look *look;
    bool failed;
    size_t over;                        /* targets beyond TARGETS_MAX */
    bool unread;                        /* the top has more entries than were read, and there are names with patterns */
    bool guards;                        /* something is protected */
    bool spells;                        /* has_other_spellings() */
    uint64_t begins[BEGINNINGS / 64];   /* how guarded names without a pattern begin */
    const struct guard_name **patterns; /* those with one */
    size_t n_patterns;
    size_t odd; /* number of findings about the repository, and the first one */
    struct git_run first;
};

/*
 * What the guard judges in a repository anyway, or git itself changes in it all the time. A word of a command can be any file of
 * git's (`!cat .git/HEAD`); a program, an included configuration and a directory of hooks are not (`certain`).
 */
static bool is_gits_own(const char *path, bool certain)
{
    static const char *const judged[] = {"hooks", "config", "config.worktree"};
    for (const char *at = path; (at = strstr(at, "/.git")); at++) {
        const char *rest = at + sizeof "/.git" - 1;
        if (*rest && *rest != '/')
            continue;
        if (!*rest || !certain)
            return true;
        for (size_t i = 0; i < sizeof judged / sizeof *judged; i++) {
            const size_t n = strlen(judged[i]);
            if (strncmp(rest + 1, judged[i], n) == 0 && (!rest[1 + n] || rest[1 + n] == '/'))
                return true;
        }
    }
    return false;
}

/* In the workspace; what is certainly run or obeyed, also in another place that the box may write, as the repository of a work tree. */
static bool is_writable(const struct seeker *s, const char *path, bool certain)
{
    return path_at_or_below(path, s->top) || (certain && policy_access(s->policy, path, NULL) == PATH_RW);
}

/* Adds the target of `path` if the box may write it: a file, or (directory) a directory or a missing name. */
static void target_is(void *ctx, const char *path, bool directory)
{
    struct seeker *s = ctx;
    char real[PATH_MAX];
    struct stat st;
    const char *end = s->guards ? realpath(path, real) : NULL;
    bool missing = !end || stat(real, &st) < 0;
    if (!s->guards || (missing && (!directory || !(end = path_clean(s->mem, path)))))
        return;
    if (!is_writable(s, end, directory) || strcmp(end, s->top) == 0 ||
        (!missing && S_ISDIR(st.st_mode) && !directory) || is_gits_own(end, directory))
        return;
    for (size_t i = 0; i < s->f->n_targets; i++)
        if (strcmp(s->f->targets[i], end) == 0)
            return;
    if (s->f->n_targets == TARGETS_MAX) {
        s->over++;
        return;
    }
    const char **slot = arena_push(s->mem, &s->f->targets, &s->f->n_targets, sizeof *slot);
    const char *kept = slot ? arena_text(s->mem, end) : NULL;
    s->failed |= !kept;
    if (slot)
        *slot = kept ? kept : "";
}

/* ---- links with guarded names ---- */

/* Adds every component of a name below the top that is a link; `known`: the first one is a directory. */
static void links_on_the_way(struct seeker *s, const char *name, bool known)
{
    struct str rest = str_of(name);
    const char *at = s->top;
    struct stat st;
    while (at && rest.n) {
        const char *part = arena_str(s->mem, str_until(&rest, '/'));
        at = part ? path_join(s->mem, at, part) : NULL;
        if (!at || (!known && lstat(at, &st) < 0))
            return;
        if (!known && S_ISLNK(st.st_mode))
            target_is(s, at, true);
        known = false;
    }
}

/* Whether an entry of the top is the first component of a guarded name. `ret_rest`: what follows it, "" if nothing. */
static bool is_named(const struct guard_name *g, const char *entry, struct str *ret_rest)
{
    *ret_rest = str_of(g->name);
    if (g->pattern) {
        struct str name = *ret_rest;
        *ret_rest = (struct str){"", 0};
        return name_fits(name, true, str_of(entry));
    }
    return name_fits(str_until(ret_rest, '/'), false, str_of(entry));
}

/* Whether the look at git's own directory says that nothing on the way to `rest` in it is a link. */
static bool is_known_in_git(const struct seeker *s, const char *entry, struct str rest)
{
    const struct dir_listing *l = s->look->listing;
    const struct str first = str_until(&rest, '/');
    if (!l || strcmp(entry, ".git") != 0 || !path_below(s->look->own, s->top) ||
        strcmp(path_rest(s->look->own, s->top), ".git") != 0)
        return false;
    return !listing_may_have(l, first) || (!rest.n && !listing_may_link(l, first));
}

/* A bit for how a name begins, in any case. Most entries begin as no guarded name does, and a top may have thousands. */
static size_t beginning(const char *name)
{
    const unsigned first = (unsigned char)name[0] | 32u;
    const unsigned second = name[0] && name[1] && name[1] != '/' ? (unsigned char)name[1] | 32u : 0;
    return (first * 37 + second) % BEGINNINGS;
}

static bool note_beginnings(struct seeker *s)
{
    s->patterns = arena_zero(s->mem, (s->policy->n_guards + 1) * sizeof *s->patterns);
    s->failed |= !s->patterns;
    for (size_t i = 0; s->patterns && i < s->policy->n_guards; i++) {
        const struct guard_name *g = &s->policy->guards[i];
        const size_t bit = beginning(g->name);
        s->begins[bit / 64] |= (uint64_t)!g->pattern << bit % 64;
        if (g->pattern)
            s->patterns[s->n_patterns++] = g;
    }
    return s->patterns != NULL;
}

static void entry_named(struct seeker *s, const struct guard_name *g, const struct sys_dirent *e)
{
    struct str rest;
    if (!is_named(g, e->name, &rest) || (e->type == DT_DIR && rest.n == 0))
        return;
    if (e->type == DT_DIR && is_known_in_git(s, e->name, rest))
        return;
    const char *name = rest.n ? arena_printf(s->mem, "%s/%.*s", e->name, (int)rest.n, rest.p) : e->name;
    if (name)
        links_on_the_way(s, name, e->type == DT_DIR);
}

static void entry(struct seeker *s, const struct sys_dirent *e)
{
    const size_t bit = beginning(e->name);
    const bool all = s->begins[bit / 64] & (uint64_t)1 << bit % 64;
    for (size_t i = 0; i < (all ? s->policy->n_guards : s->n_patterns); i++)
        entry_named(s, all ? &s->policy->guards[i] : s->patterns[i], e);
}

/* Whether names have other spellings than those that the guard knows (guard/places/spelling.c): short names, which an SMB server makes as
   it likes, and letters that an exFAT volume's own table takes for one. */
static bool has_other_spellings(int dir)
{
    struct statfs fs = {0};
    const unsigned long is = sys_fstatfs(dir, &fs) == 0 ? (unsigned long)fs.f_type & 0xffffffffu : 0;
    return is == SYS_EXFAT || is == SYS_CIFS || is == SYS_SMB;
}

static void links_at_top(struct seeker *s)
{
    _Alignas(8) char room[4096];
    own_fd int dir = sys_openat(AT_FDCWD, s->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    struct sys_entries all = {.dir = dir, .room = room, .bytes = sizeof room};
    unsigned left = ENTRIES_MAX;
    const struct sys_dirent *e;
    s->spells = dir >= 0 && s->guards && has_other_spellings(dir);
    if (dir < 0 || !note_beginnings(s))
        return;
    for (; left && (e = sys_next_entry(&all)); left--)
        if (e->type == DT_LNK || e->type == DT_DIR || e->type == DT_UNKNOWN)
            entry(s, e);
    if (left == 0 && sys_next_entry(&all)) { /* too many entries: check literal names only */
        for (size_t i = 0; i < s->policy->n_guards; i++) {
            if (s->policy->guards[i].pattern)
                s->unread = true;
            else
                links_on_the_way(s, s->policy->guards[i].name, false);
        }
    }
}

/* ---- findings that may not be the person's ---- */

/* Whether only the person can change it, because the policy lets no box write it. */
static bool is_kept(void *ctx, const char *path)
{
    const struct seeker *s = ctx;
    const struct path_rule *rule = NULL;
    const char *asked = path_join(s->mem, s->policy->workspace, path_rest(path, s->top)); /* may be a link */
    if (policy_access(s->policy, path, &rule) != PATH_RW && rule)
        return true;
    return asked && path_below(path, s->top) && policy_access(s->policy, asked, NULL) != PATH_RW;
}

static void git_runs(void *ctx, const struct git_run *r)
{
    struct seeker *s = ctx;
    if (r->odd != GIT_USUAL && s->odd++ == 0)
        s->first = *r;
}

static int say_odd(struct seeker *s)
{
    const char *more = s->odd > 1 ? arena_printf(s->mem, " (and %zu more)", s->odd - 1) : "";
    const char *what = git_run_text(s->mem, &s->first, s->top);
    s->f->repository_note = arena_printf(s->mem,
                                         "git on the host would run something that may not come from you in '%s': %s: "
                                         "%s%s; inspect it with: pinfold doctor %s",
                                         s->top, what, git_odd_text(s->first.odd), more, git_quoted(s->mem, s->top));
    return s->f->repository_note ? 0 : -ENOMEM;
}

static int say_bounds(struct seeker *s, const struct git_look *l)
{
    auto_buf struct buf b = BUF(1024);
    if (s->over)
        buf_printf(&b, "; %zu file%s beyond the first %d that guarded links and git's configuration lead to", s->over,
                   s->over == 1 ? "" : "s", TARGETS_MAX);
    if (s->unread)
        buf_printf(&b,
                   "; targets of links whose names a pattern guards, because the workspace has more than %d entries",
                   ENTRIES_MAX);
    if (s->guards && l->not_read)
        buf_printf(
            &b, "; files named by %zu git configurations or hooks, which are too large or too many, or cannot be read",
            l->not_read);
    const char *help = b.n ? "protect important files with --protect" : "use a directory on another file system";
    if (s->spells)
        buf_text(
            &b,
            "; guarded names that are spelt as only its file system knows them (short names of SMB, letters of exFAT)");
    if (b.n == 0)
        return 0;
    s->f->bounds_note = arena_printf(s->mem, "not protected in '%s': %s; %s", s->top, buf_cstr(&b) + 2, help);
    return s->f->bounds_note ? 0 : -ENOMEM;
}

static int look_alone(const struct policy *p, const char *home, struct arena *mem, struct facts *ret)
{
    char real[PATH_MAX];
    struct stat st;
    const char *config = getenv("XDG_CONFIG_HOME");
    *ret = (struct facts){.home = home};
    if (!p->workspace || !realpath(p->workspace, real) || stat(real, &st) < 0 || !S_ISDIR(st.st_mode))
        return 0;
    struct path_fact top = {.asked = p->workspace, .real = real, .type = PATH_DIR};
    ret->paths = &top;
    ret->n_paths = 1;
    ret->config_home = config && config[0] == '/' ? config : home ? path_join(mem, home, ".config") : NULL;
    int r = survey_targets(p, ret, mem);
    ret->paths = NULL;
    return r;
}

int survey_repository(const struct policy *p, const char *home, struct arena *mem, const char *ret[2])
{
    struct facts f;
    int r = look_alone(p, home, mem, &f);
    ret[0] = f.repository_note;
    ret[1] = f.bounds_note;
    return r;
}

int survey_led_to(const struct policy *p, const char *home, struct arena *mem, const char *const **ret, size_t *ret_n)
{
    struct facts f;
    int r = look_alone(p, home, mem, &f);
    *ret = f.targets;
    *ret_n = f.n_targets;
    return r;
}

int survey_targets(const struct policy *p, struct facts *f, struct arena *mem)
{
    const struct path_fact *top = facts_path(f, p->workspace);
    if (p->guard == GUARD_OFF || p->n_guards == 0 || !top || top->type != PATH_DIR || strcmp(top->real, "/") == 0)
        return 0;
    struct seeker s = {.policy = p, .f = f, .mem = mem, .top = top->real, .guards = !p->workspace_read_only};
    struct git_look look = {.mem = mem,
                            .top = s.top,
                            .home = f->home,
                            .config_home = f->config_home,
                            .names = target_is,
                            .runs = git_runs,
                            .is_kept = is_kept,
                            .ctx = &s};
    int r = git_look(&look);
    f->repository = look.common;
    s.look = &look;
    if (r == 0 && s.guards)
        links_at_top(&s);
    if (r == 0 && s.failed)
        r = -ENOMEM;
    if (r == 0 && look.own && s.odd)
        r = say_odd(&s);
    return r == 0 ? say_bounds(&s, &look) : r;
}
