/*
 * Judges a place or an object: what the rules say about the name (judge.c), and where they depend on the file system,
 * by looking there with descriptors while the name lock is held.
 */
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include "git/gitconfig.h"
#include "guard/rules/rules.h"
#include "judge/layout.h"

/* ---- outside of all trees ---- */

/* The error that a mount would give, if there is one; `fd` is the object, or the directory with the name. */
static int outside_error(struct guard *g, enum denial_action action, int fd, struct str path)
{
    struct statfs fs;
    if (sys_fstatfs(fd, &fs) == 0 && (fs.f_flags & ST_RDONLY))
        return -EROFS;
    return g->ours ? deny(g, action, NULL, path, "it is outside the paths the box can write") : -EACCES;
}

/* The same, and tells of it. No denial: programs try this all the time. */
int verdict_outside(struct guard *g, enum denial_action action, int fd, struct str path)
{
    deny_built(g, action, path);
    return outside_error(g, action, fd, path);
}

/* For a new name. One that exists is opened as it is (">/dev/null"), or the caller learns that it exists. */
static int outside_new(struct guard *g, const struct place *p)
{
    return (place_taken(p) ? outside_error : verdict_outside)(g, DENIAL_CREATE, p->dir, place_path(p));
}

/* For a name that goes: what does not exist cannot be removed or moved. */
int verdict_outside_at(struct guard *g, enum denial_action action, const struct place *p)
{
    const bool there = place_taken(p);
    int no = (there ? verdict_outside : outside_error)(g, action, p->dir, place_path(p));
    return there || no == -EROFS ? no : -ENOENT;
}

/* Whether `action` on the object is outside. Exempt are files of /proc and devices, whose content is not stored (only
   changes of their inode are judged), files the caller has open for writing, and the box's own terminals. What is
   written into a FIFO is not stored, either, but some program of the host reads it, and no read-only mount prevents it. */
static bool object_outside(struct guard *g, const struct object *o, enum denial_action action)
{
    if (action == DENIAL_READ || !rules_outside(&g->rules, object_path(o)))
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
    int no = born_stat(AT_FDCWD, name, AT_SYMLINK_NOFOLLOW, &st);
    g->birth |= no == -ENOENT && end == path.n;
    return no != -ENOENT && !(no == 0 && born_has(g, &st));
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

const struct rule *verdict_guarded(struct guard *g, struct str path, size_t *ret_end)
{
    const struct rule *rule = named(g, path, ret_end);
    return rule && in_force(g, rule, path, *ret_end) ? rule : NULL;
}

const char *verdict_claimed(struct guard *g, struct str path, const struct rule **ret_rule, size_t *ret_end,
                            bool *ret_config)
{
    *ret_rule = verdict_guarded(g, path, ret_end);
    if (*ret_rule) {
        *ret_config = rule_is_git_config(*ret_rule) && *ret_end == path.n;
        return rule_reason(*ret_rule);
    }
    *ret_end = repository_place(g, path, ret_config);
    return *ret_end ? REPOSITORY : NULL;
}

bool verdict_config(struct guard *g, const struct place *p, const struct rule **ret_rule)
{
    static const struct str always[] = {{"config.worktree", 15}, {"config", 6}, {"index", 5}}; /* repository_place() */
    const struct str last = place_last(p);
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

bool verdict_in_place(struct guard *g, const struct place *p, int flags, const struct rule **ret_rule)
{
    if (g->rules.mode != GUARD_STRICT || !p->plain || !verdict_config(g, p, ret_rule))
        return false;
    const enum gitconfig_kind kind = gitconfig_kind_of(place_path(p));
    if (kind == GITCONFIG_MODULES || kind == GITCONFIG_INDEX)
        return *ret_rule || kind == GITCONFIG_INDEX;
    /* Written at each step of a rebase, and read by its continuation only. */
    if (kind == GITCONFIG_NUMBER)
        return *ret_rule;
    /* git and editors read what they wrote at once: only a new name can make them wait until it is judged. */
    if (kind != GITCONFIG_REPOSITORY)
        return *ret_rule && flags & O_CREAT && !place_taken(p);
    return flags & O_CREAT && fold_eq(place_last(p), STR("config")) && !place_taken(p);
}

static bool is_sample(struct str path, size_t end, enum made made)
{
    return layout_is_hook_sample(path, end, made == MADE_DIRECTORY, made == MADE_FILE);
}

int verdict_make(struct guard *g, const struct place *p, enum made made)
{
    struct str path = place_path(p);
    struct below b;
    bool config;
    size_t end;
    b.at = 0;
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
    rule = verdict_guarded(g, path, &end);
    g->birth |= g->point = rule && empty && end == p->n && point_may(g, p, rule, made == MADE_DIRECTORY);
    const bool hooks = g->point && rule_is_git_hooks(rule);
    if (rule && !g->point && !(rule_is_git_hooks(rule) && is_sample(path, end, made)))
        return deny(g, DENIAL_CREATE, rule, path, rule_reason(rule));
    if (rules_outside(&g->rules, path))
        return outside_new(g, p);
    if (layout_is_reserved(path))
        return deny(g, DENIAL_CREATE, NULL, path, "a name that belongs to pinfold");
    if (rules_is_option_ref(&g->rules, path))
        return deny(g, DENIAL_CREATE, NULL, path, OPTION_REF);
    if (g->rules.n_branches && branches_make(g, path, made == MADE_DIRECTORY) < 0)
        return -EACCES;
    end = repository_place(g, path, &config);
    if (end && !hooks && !(fold_eq(layout_last((struct str){path.p, end}), STR("hooks")) && is_sample(path, end, made)))
        return deny(g, DENIAL_CREATE, NULL, path, REPOSITORY);
    if (made == MADE_LINK && ((rule = rules_below(&g->rules, path, &b)) || (rule = rules_pinned(&g->rules, path)) ||
                              (rule = rules_pattern_prefix(&g->rules, path, true))))
        return deny(g, DENIAL_LINK, rule, path, "a link in place of a directory that contains a guarded name");
    if (made == MADE_LINK && rules_no_links(&g->rules, path))
        return deny(g, DENIAL_LINK, NULL, path, "a link in a directory that programs outside of the box use, too");
    struct rooted w = {0};
    if (made == MADE_LINK && (rule = reporoot_below(g, path, &w)))
        return deny(g, DENIAL_LINK, rule, path, "a link in place of a directory that contains a guarded name");
    if (made == MADE_LINK && repository_for_remotes(g, p))
        return deny(g, DENIAL_CREATE, NULL, path, REPOSITORY);
    if (made == MADE_LINK && module_behind(g, p, NULL))
        return deny(g, DENIAL_LINK, NULL, path, SUBMODULE);
    const bool marks = reporoot_marks(g, p);
    if (marks && deep_marked(g, p, true) < 0)
        return -EACCES;
    g->birth |= marks;
    return repository_completed(g, p);
}

int verdict_made(struct guard *g, const struct place *p, enum made made)
{
    int no;
    return repository_half_made(g, p, &no) ? no : verdict_make(g, p, made);
}

int verdict_linked(struct guard *g, const struct place *p, const struct place *moved)
{
    struct sys_stat st;
    if (!p->plain)
        return 0;
    if (module_behind(g, p, moved))
        return deny(g, DENIAL_LINK, NULL, place_path(p), SUBMODULE);
    /* A directory that moved: another box may have made one in it meanwhile. */
    return moved && place_stat(p, SYS_STAT_BASIC, &st) == 0 && S_ISDIR(st.mode) && repository_brings_links(g, p, p)
               ? deny(g, DENIAL_LINK, NULL, place_path(p), GIT_LINK)
               : 0;
}

int verdict_proc_link(struct guard *g, const struct place *p, const char *text)
{
    return p->plain && g->rules.mode != GUARD_OFF && rules_of_host(&g->rules, place_path(p)) &&
                   path_into_process(str_of(text))
               ? deny(g, DENIAL_LINK, NULL, place_path(p), "a link into a process's directories or open files")
               : 0;
}

bool object_guarded(struct guard *g, const struct object *o)
{
    struct str path = object_path(o);
    size_t end;
    bool config;
    const struct rule *rule;
    return path.n && verdict_claimed(g, path, &rule, &end, &config);
}

/* Whether a guarded name, or one whose content is judged, is in this directory, or would be. */
static bool has_guarded_inside(struct guard *g, struct str path)
{
    auto_buf struct buf in_root = BUF(PATH_MAX + 16), in_git = BUF(PATH_MAX + 16);
    struct rooted w = {0};
    struct below b = {.at = 0};
    size_t end;
    bool config;
    buf_str(&in_root, path);
    buf_text(&in_root, "/.envrc");
    buf_str(&in_git, path);
    buf_text(&in_git, "/hooks");
    if (!buf_ok(&in_root) || !buf_ok(&in_git))
        return true;
    return rules_below(&g->rules, path, &b) || rules_pinned(&g->rules, path) || reporoot_below(g, path, &w) ||
           verdict_guarded(g, buf_view(&in_root), &end) || repository_place(g, buf_view(&in_git), &config);
}

int verdict_opened_to_all(struct guard *g, const struct object *o)
{
    struct str path = object_path(o);
    const bool would = path.n && (S_ISDIR(o->st.mode) ? has_guarded_inside(g, path) : object_guarded(g, o));
    return would ? deny(g, DENIAL_CHANGE, NULL, path, "every user of this machine could then change a guarded name")
                 : 0;
}

int verdict_passed_on(struct guard *g, const struct object *o)
{
    const struct str path = object_path(o);
    const bool may = g->rules.mode == GUARD_STRICT && g->rules.any_depth && rules_root(&g->rules, path).n &&
                     !rules_free(&g->rules, path);
    return may ? deny(g, DENIAL_CHANGE, NULL, path, "every guarded name made in it later would be open to other users")
               : verdict_opened_to_all(g, o);
}

unsigned verdict_mode(struct guard *g, const struct place *p, unsigned mode)
{
    struct str path = place_path(p);
    size_t end;
    const bool would = mode & ~g->umask & S_IWOTH && (verdict_guarded(g, path, &end) || has_guarded_inside(g, path));
    return would ? mode & ~(unsigned)S_IWOTH : mode;
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
            const char *why = verdict_claimed(g, path, &rule, &end, &config);
            /* git init tests chmod on its configuration; who may write it then, verdict_opened_to_all() judges. */
            if (why && !(config && action == DENIAL_CHANGE))
                return deny(g, action, rule, path, why);
            if (layout_is_reserved(path))
                return deny(g, action, NULL, path, "a name that belongs to pinfold");
            if (g->rules.n_branches && branches_object(g, path, action) < 0)
                return -EACCES;
        }
        if (object_outside(g, o, action)) /* for the box a link to it would cross file systems */
            return action == DENIAL_LINK ? -EXDEV : verdict_outside(g, action, o->fd, path);
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
