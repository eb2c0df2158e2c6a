/*
 * Finds the repository of a directory as git does (a directory .git, a file .git that names one, or the directory
 * itself), and the directory shared by its work trees. The guard's own parser reads the configurations; gitruns.c knows
 * what variables mean. Nothing is changed or run.
 */
#include "survey/gitlook.h"

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
#include "base/json.h"
#include "survey/gitruns.h"
#include "match/path.h"
#include "sys/fd.h"
#include "sys/file.h"

#define SMALL_MAX  (64u << 10) /* HEAD, .git, commondir and the like */
#define REFS_MAX   (32u << 20)
#define HOOKS_MAX  8192 /* entries of that directory; git's templates hold 14 */
#define VALUE_SAID 120

/* ---- small files ---- */

static bool read_text(struct arena *mem, const char *path, size_t most, struct str *ret, bool *ret_unread)
{
    auto_fd int fd = path ? sys_openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0) : -ENOENT;
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        if (ret_unread) /* git itself goes on without one of these */
            *ret_unread =
                fd < 0 && fd != -ENOENT && fd != -ENOTDIR && fd != -EACCES && fd != -ELOOP && fd != -ENAMETOOLONG;
        return false;
    }
    char *bytes = (size_t)st.st_size > most ? NULL : arena_zero(mem, (size_t)st.st_size + 1);
    const long n = bytes ? sys_read_all(fd, bytes, (size_t)st.st_size) : -1;
    if (n < 0) {
        if (ret_unread)
            *ret_unread = true;
        return false;
    }
    *ret = (struct str){bytes, (size_t)n};
    return true;
}

/* The text without the end of its line. */
static struct str line_at(struct str text)
{
    struct str line = str_until(&text, '\n');
    while (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    return line;
}

static const char *from(struct git_look *l, const char *base, struct str path)
{
    const char *text = arena_str(l->mem, path);
    return !text || path.n == 0 || path.n >= PATH_MAX || memchr(path.p, 0, path.n) ? NULL
           : text[0] == '/'                                                        ? text
                                                                                   : path_join(l->mem, base, text);
}

static bool is_directory(const char *path)
{
    struct stat st;
    return path && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool git_look_is_bare(struct arena *mem, const char *directory)
{
    struct stat st;
    const char *head = path_join(mem, directory, "HEAD"), *objects = path_join(mem, directory, "objects");
    return head && lstat(head, &st) == 0 && is_directory(objects) && is_directory(path_join(mem, directory, "refs"));
}

/* ---- reporting ---- */

/* Whether it is among the files of the tree, and not git's own: no component below the top is `.git`. */
static bool is_in_tree(const struct git_look *l, const char *path)
{
    if (!path_at_or_below(path, l->top))
        return false;
    for (const char *p = path_rest(path, l->top); *p;) {
        while (*p == '/')
            p++;
        size_t n = strcspn(p, "/");
        if (n == 4 && strncasecmp(p, ".git", 4) == 0)
            return false;
        p += n;
    }
    return !(l->is_kept && l->is_kept(l->ctx, path));
}

static bool is_temporary(const char *path)
{
    return path_below(path, "/tmp") || path_below(path, "/var/tmp") || path_below(path, "/dev/shm");
}

static void git_tell(struct git_look *l, const char *file, const char *key, struct str value, const char *leads,
                     enum git_odd odd)
{
    const struct git_run r = {file, key, arena_str(l->mem, value), leads, odd};
    if (l->runs && r.value)
        l->runs(l->ctx, &r);
}

const char *git_odd_text(enum git_odd odd)
{
    static const char *const all[GIT_ODDS] = {
        [GIT_USUAL] = "",
        [GIT_IN_TREE] = "it is one of this tree's files",
        [GIT_IN_TEMPORARY] = "it is in a directory that every user of this machine can write",
        [GIT_COMMAND] = "a command set by this repository",
        [GIT_CAME_ALONG] = "this configuration came with the tree",
        [GIT_TRANSPORT] = "a location that starts a command",
        [GIT_WAITS] = "run when the pending operation is continued",
        [GIT_OPTION] = "a name that git takes as an option when a script passes it on",
        [GIT_PLACE] = "a repository among the files of this tree"};
    return all[odd];
}

const char *git_quoted(struct arena *mem, const char *text)
{
    auto_buf struct buf out = BUF(8 * PATH_MAX);
    buf_shell_word(&out, str_of(text));
    return arena_text(mem, buf_cstr(&out));
}

const char *git_odd_remedy(struct arena *mem, const struct git_run *r)
{
    switch (r->odd) {
    case GIT_USUAL:
        return NULL;
    case GIT_IN_TREE:
        return arena_printf(mem, "if it is yours, start boxes with --protect %s; if not, remove it from %s",
                            git_quoted(mem, r->leads), git_quoted(mem, r->file));
    case GIT_CAME_ALONG:
    case GIT_PLACE:
        return "inspect it before you run git there; to make git ignore bare repositories in a tree: git config "
               "--global safe.bareRepository explicit";
    case GIT_WAITS:
        return "inspect it; git rebase --abort or git cherry-pick --abort drops it";
    case GIT_OPTION:
        return arena_printf(mem, "remove it with: git update-ref --no-deref -d %s (another branch checked out before)",
                            git_quoted(mem, r->value));
    default:
        return r->key ? arena_printf(
                            mem,
                            "if it is yours, keep it in your own configuration (git config --global); if not: git "
                            "config --file %s --unset-all %s",
                            git_quoted(mem, r->file), git_quoted(mem, r->key))
                      : "look at it";
    }
}

static void put_safe(struct buf *out, const char *text, size_t most)
{
    const size_t n = strnlen(text, most);
    utf8_safe(out, (struct str){text, n});
    if (text[n])
        buf_text(out, "...");
}

const char *git_run_text(struct arena *mem, const struct git_run *r, const char *below)
{
    auto_buf struct buf out = BUF(8192);
    const char *file = below && path_below(r->file, below) ? path_rest(r->file, below) : r->file;
    while (*file == '/' && file != r->file)
        file++;
    put_safe(&out, file, 1024);
    if (r->key) {
        buf_text(&out, ": ");
        put_safe(&out, r->key, VALUE_SAID);
        buf_text(&out, " = ");
    } else if (*r->value) {
        buf_text(&out, ": ");
    }
    put_safe(&out, r->value, VALUE_SAID);
    return arena_text(mem, buf_cstr(&out));
}

/* ---- what a variable leads to ---- */

/* One entry of a configuration. */
struct variable {
    const struct gitconfig_entry *e;
    enum gitruns what;
    const char *leads; /* the first that is in the tree, or where everybody may write */
    enum git_odd odd;
};

/* `path`: the whole value is a path. Otherwise a word of a command; `bare`: also one without a slash. */
static const char *place_of_word(struct git_look *l, struct str word, bool path, bool bare, const char *base)
{
    if (word.n == 0 || word.n >= PATH_MAX || (!path && !bare && !memchr(word.p, '/', word.n)))
        return NULL;
    if (str_starts(word, STR("~/")))
        return l->home ? from(l, l->home, str_skip(word, 2)) : NULL;
    return from(l, base, word);
}

/* Judges the file at that path, a program that git would run. */
static void judge_place(struct git_look *l, struct variable *v, const char *path)
{
    char real[PATH_MAX];
    struct stat st;
    if (v->odd != GIT_USUAL || !realpath(path, real) || stat(real, &st) < 0 || strcmp(real, l->top) == 0)
        return;
    bool directory = S_ISDIR(st.st_mode),
         program = S_ISREG(st.st_mode) && (v->what != GITRUNS_NOTHING || st.st_mode & 0111);
    if (!(v->what == GITRUNS_HOOKS ? directory : program))
        return;
    /* husky sets it for a single repository, to a guarded name; a person who sets it for all repositories may use
       any name. */
    const char *husky = path_join(l->mem, l->top, ".husky");
    if (v->what == GITRUNS_HOOKS && l->level == GITLOOK_REPOSITORY && husky && path_at_or_below(real, husky))
        return;
    if (is_in_tree(l, real))
        v->odd = GIT_IN_TREE;
    else if (is_temporary(real) && !path_at_or_below(real, l->top))
        v->odd = GIT_IN_TEMPORARY;
    if (v->odd != GIT_USUAL)
        v->leads = arena_text(l->mem, real);
}

static void each_word(struct git_look *l, struct variable *v)
{
    static const char apart[] = " \t\n'\"`;|&()$=<>!";
    const bool interpreted = v->what != GITRUNS_NOTHING && gitruns_interprets(v->e->value);
    size_t at = 0, words = 0;
    for (struct str rest = v->e->value; rest.n; at++) {
        size_t n = 0;
        while (n < rest.n && !strchr(apart, rest.p[n]))
            n++;
        const char *path = place_of_word(l, (struct str){rest.p, n}, false, interpreted && at > 0, l->top);
        /* The program itself, or its interpreter's, also if it is not there: a box must not make it. */
        const bool program = v->what != GITRUNS_NOTHING && words <= (interpreted ? 1u : 0u);
        if (path && l->names)
            l->names(l->ctx, path, program);
        if (path)
            judge_place(l, v, path);
        words += n > 0;
        rest = str_skip(rest, n + 1);
    }
}

/* Keys with many values that name no program: locations, branches, a submodule's place. */
static bool is_other(const struct variable *v)
{
    return v->what == GITRUNS_NOTHING &&
           (str_starts(v->e->key, STR("remote.")) || str_starts(v->e->key, STR("branch.")) ||
            str_starts(v->e->key, STR("submodule.")) || gitconfig_is_worktree(v->e) || v->e->value.n == 0);
}

static void configuration(struct git_look *l, const char *path);

static void included(struct git_look *l, const char *path)
{
    const char *base = l->base, *file = l->file;
    int level = l->level;
    char real[PATH_MAX];
    if (l->left == 0) {
        l->not_read += access(path, F_OK) == 0;
        return;
    }
    l->left--;
    if (realpath(path, real) && is_in_tree(l, real))
        l->level = GITLOOK_CAME;
    configuration(l, path);
    l->base = base;
    l->file = file;
    l->level = (unsigned)level;
}

static bool takes_path(struct str key, enum gitruns what)
{
    return what == GITRUNS_HOOKS || what == GITRUNS_INCLUDE || str_ends(key, STR(".attributesfile")) ||
           (what == GITRUNS_NOTHING && str_ends(key, STR(".path")));
}

static int git_entry(void *ctx, const struct gitconfig_entry *e)
{
    struct git_look *l = ctx;
    struct variable v = {.e = e, .what = gitruns_of(e)};
    if (is_other(&v))
        return 0;
    if (takes_path(e->key, v.what)) {
        const char *path = place_of_word(l, e->value, true, true, v.what == GITRUNS_INCLUDE ? l->base : l->top);
        if (path && l->names)
            l->names(l->ctx, path, true);
        if (path && v.what == GITRUNS_INCLUDE)
            included(l, path);
        else if (path)
            judge_place(l, &v, path);
    } else if (v.what != GITRUNS_REMOTE) {
        each_word(l, &v);
    }
    if (v.what == GITRUNS_INCLUDE || (v.what == GITRUNS_NOTHING && v.odd == GIT_USUAL))
        return 0;
    if (v.what == GITRUNS_ALIAS && l->level == GITLOOK_PERSON)
        v.odd = GIT_USUAL; /* whoever types it knows it */
    else if (v.odd == GIT_USUAL && l->level == GITLOOK_CAME)
        v.odd = GIT_CAME_ALONG;
    else if (v.odd == GIT_USUAL && l->level == GITLOOK_REPOSITORY && v.what == GITRUNS_REMOTE)
        v.odd = GIT_TRANSPORT;
    else if (v.odd == GIT_USUAL && l->level == GITLOOK_REPOSITORY && v.what != GITRUNS_HOOKS && !gitruns_everyday(e))
        v.odd = GIT_COMMAND;
    git_tell(l, l->file, arena_str(l->mem, e->key), e->value, v.leads, v.odd);
    return 0;
}

static void configuration(struct git_look *l, const char *path)
{
    struct str text;
    bool unread = false;
    l->file = path;
    l->base = path ? path_dir(l->mem, path) : NULL;
    if (l->base && read_text(l->mem, path, GITCONFIG_MAX_BYTES, &text, &unread) && text.n)
        (void)gitconfig_parse(text, git_entry, l, NULL); /* as far as git reads it before an error */
    l->not_read += unread;
}

/* ---- the repository ---- */

/* Most of what git may have in its directory is not there: it is read once, instead of each name looked for. */
static void list_own(struct git_look *l)
{
    struct dir_listing *listing = l->own ? arena_zero(l->mem, sizeof *listing) : NULL;
    if (listing && listing_is_local(l->own) && listing_read(l->own, listing))
        l->listing = listing;
}

/* A path in git's own directory, NULL: it is not there. */
static const char *in_own(struct git_look *l, const char *name)
{
    const struct str first = {name, strcspn(name, "/")};
    return l->listing && !listing_may_have(l->listing, first) ? NULL : path_join(l->mem, l->own, name);
}

/* The real path of the directory that `text` names, or NULL. */
static const char *named_directory(struct git_look *l, const char *base, struct str text)
{
    char real[PATH_MAX];
    const char *path = from(l, base, line_at(text));
    return path && realpath(path, real) ? arena_text(l->mem, real) : NULL;
}

static void find_repository(struct git_look *l)
{
    struct stat st;
    struct str text;
    char real[PATH_MAX];
    const char *git = path_join(l->mem, l->top, ".git");
    if (!git || lstat(git, &st) < 0) {
        l->own = git && git_look_is_bare(l->mem, l->top) ? l->top : NULL;
    } else if (S_ISREG(st.st_mode)) {
        if (read_text(l->mem, git, SMALL_MAX, &text, NULL) && str_starts(text, STR("gitdir:")))
            l->own = named_directory(l, l->top, str_trim(str_skip(text, 7)));
    } else {
        l->own = S_ISDIR(st.st_mode) ? git : realpath(git, real) ? arena_text(l->mem, real) : NULL;
    }
    if (!l->own)
        return;
    l->common = l->own;
    list_own(l);
    if (l->own != l->top && is_in_tree(l, l->own))
        git_tell(l, git, NULL, str_of(l->own), l->own, GIT_PLACE);
    const char *commondir = in_own(l, "commondir");
    if (read_text(l->mem, commondir, SMALL_MAX, &text, NULL)) {
        const char *common = named_directory(l, l->own, text);
        l->common = common ? common : l->own;
        if (common && l->own != l->top && is_in_tree(l, common))
            git_tell(l, commondir, NULL, str_of(common), common, GIT_PLACE);
    }
}

/* ---- other files ---- */

/* A todo list, option or strategy that names a program, as the guard judges it. */
static void waiting(struct git_look *l, const char *name, enum gitconfig_kind kind)
{
    struct str text;
    const char *path = path_join(l->mem, l->own, name);
    if (!read_text(l->mem, path, GITCONFIG_MAX_BYTES, &text, NULL) || text.n == 0)
        return;
    const struct gitconfig_ask ask = {
        .kind = kind, .new_text = text, .directory = str_of(l->own), .root = str_of(l->top)};
    if (git_judge(&ask, NULL) != -EACCES)
        return;
    struct str said = line_at(text);
    for (struct str rest = text; kind == GITCONFIG_TODO && rest.n;) {
        struct str line = str_until(&rest, '\n');
        const struct gitconfig_ask one = {.kind = kind, .new_text = line};
        if (git_judge(&one, NULL) == -EACCES) {
            said = line;
            break;
        }
    }
    git_tell(l, path, NULL, said, NULL, GIT_WAITS);
}

static void what_waits(struct git_look *l)
{
    if (is_directory(in_own(l, "rebase-merge"))) {
        waiting(l, "rebase-merge/git-rebase-todo", GITCONFIG_TODO);
        waiting(l, "rebase-merge/strategy", GITCONFIG_STRATEGY);
        waiting(l, "rebase-merge/msgnum", GITCONFIG_NUMBER);
        waiting(l, "rebase-merge/end", GITCONFIG_NUMBER);
        waiting(l, "rebase-merge/update-refs", GITCONFIG_REFS);
        waiting(l, "rebase-merge/head-name", GITCONFIG_REFS);
    }
    if (is_directory(in_own(l, "rebase-apply"))) {
        waiting(l, "rebase-apply/next", GITCONFIG_NUMBER);
        waiting(l, "rebase-apply/last", GITCONFIG_NUMBER);
        waiting(l, "rebase-apply/head-name", GITCONFIG_REFS);
    }
    if (is_directory(in_own(l, "sequencer"))) {
        waiting(l, "sequencer/todo", GITCONFIG_TODO);
        waiting(l, "sequencer/opts", GITCONFIG_OPTIONS);
    }
}

/* A name in the hooks directory. */
static void hook(struct git_look *l, const char *path, bool link)
{
    char real[PATH_MAX];
    struct stat st;
    if (link && l->names)
        l->names(l->ctx, path, true);
    if (str_ends(str_of(path), STR(".sample")) || !realpath(path, real) || stat(real, &st) < 0 ||
        !S_ISREG(st.st_mode) || !(st.st_mode & 0111))
        return;
    const char *leads = arena_text(l->mem, real);
    const bool away = leads && strcmp(real, path) != 0;
    enum git_odd odd = away && is_in_tree(l, real) ? GIT_IN_TREE
                       : l->level == GITLOOK_CAME  ? GIT_CAME_ALONG
                                                   : GIT_USUAL;
    if (leads && (odd != GIT_USUAL || l->whole))
        git_tell(l, path, NULL, str_of(away ? leads : ""), leads, odd);
}

static void hooks(struct git_look *l)
{
    _Alignas(8) char room[4096];
    const char *directory = path_join(l->mem, l->common, "hooks");
    own_fd int dir = directory ? sys_openat(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0) : -1;
    struct sys_entries all = {.dir = dir, .room = room, .bytes = sizeof room};
    const struct sys_dirent *e;
    unsigned left = HOOKS_MAX;
    for (; dir >= 0 && left && (e = sys_next_entry(&all)); left--) {
        const char *path =
            e->type == DT_REG && !l->whole && l->level != GITLOOK_CAME ? NULL : path_join(l->mem, directory, e->name);
        if (path)
            hook(l, path, e->type != DT_REG);
    }
    l->not_read += left == 0;
}

/* ---- names of branches ---- */

static void head(struct git_look *l)
{
    struct str text, name;
    const char *path = path_join(l->mem, l->own, "HEAD");
    if (read_text(l->mem, path, SMALL_MAX, &text, NULL) && gitref_of_head(text, &name) && gitref_is_option(name))
        git_tell(l, path, NULL, name, NULL, GIT_OPTION);
}

static void packed_refs(struct git_look *l)
{
    struct str text, name;
    const char *path = path_join(l->mem, l->common, "packed-refs");
    if (!read_text(l->mem, path, REFS_MAX, &text, NULL))
        return;
    while (gitref_next_packed(&text, &name))
        if (gitref_is_option(name))
            git_tell(l, path, NULL, name, NULL, GIT_OPTION);
}

struct table_look {
    struct git_look *look;
    const char *path;
};

static int table_ref(void *ctx, struct str name, struct str target)
{
    const struct table_look *t = ctx;
    if (!gitref_is_option(target) && !gitref_is_option(name))
        return 0;
    if (t->look->whole || str_is(name, "HEAD"))
        git_tell(t->look, t->path, NULL, gitref_is_option(name) ? name : target, NULL, GIT_OPTION);
    return 0;
}

/* A start reads small tables only: in a large repository HEAD was mostly written last, and so to a small one. */
static void tables(struct git_look *l, const char *repository)
{
    struct str list, text;
    const char *directory = path_join(l->mem, repository, "reftable");
    if (!read_text(l->mem, directory ? path_join(l->mem, directory, "tables.list") : NULL, SMALL_MAX, &list, NULL))
        return;
    while (list.n) {
        const char *name = arena_str(l->mem, str_until(&list, '\n'));
        struct table_look one = {l, name ? path_join(l->mem, directory, name) : NULL};
        bool unread = false;
        const bool read = read_text(l->mem, one.path, l->whole ? REFS_MAX : SMALL_MAX, &text, &unread);
        const bool odd = read && gitref_table(text, table_ref, &one) < 0;
        l->not_read += l->whole && (unread || odd);
    }
}

static void loose_refs(struct git_look *l, const char *kind)
{
    const char *directory = path_join(l->mem, l->common, kind);
    DIR *d = directory ? opendir(directory) : NULL;
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] == '-') {
            const char *name = path_join(l->mem, kind, e->d_name);
            git_tell(l, directory, NULL, str_of(name), NULL, GIT_OPTION);
        }
    closedir(d);
}

int git_look(struct git_look *l)
{
    l->left = GITLOOK_INCLUDED;
    l->own = l->common = NULL;
    l->listing = NULL;
    find_repository(l);
    if (l->own) {
        bool came = l->common == l->top ? l->below : is_in_tree(l, l->common);
        l->level = came ? GITLOOK_CAME : GITLOOK_REPOSITORY;
        configuration(l, path_join(l->mem, l->common, "config"));
        configuration(l, in_own(l, "config.worktree"));
        what_waits(l);
        hooks(l);
        head(l);
        if (in_own(l, "reftable"))
            tables(l, l->own);
        if (l->whole && strcmp(l->own, l->common) != 0)
            tables(l, l->common);
        if (l->whole) {
            packed_refs(l);
            loose_refs(l, "refs/heads");
            loose_refs(l, "refs/tags");
            loose_refs(l, "refs/remotes");
        }
    }
    if (l->below)
        return arena_failed(l->mem) ? -ENOMEM : 0;
    l->level = GITLOOK_PERSON;
    configuration(l, l->home ? path_join(l->mem, l->home, ".gitconfig") : NULL);
    configuration(l, l->config_home ? path_join(l->mem, l->config_home, "git/config") : NULL);
    configuration(l, "/etc/gitconfig");
    return arena_failed(l->mem) ? -ENOMEM : 0;
}
