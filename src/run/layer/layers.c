/*
 * The library's functions for copy-on-write layers: opens a layer and its workspace, and reports what it changes and
 * what was done. src/layer/ has the rules; here they meet the policy that holds in the workspace now.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "layer/change.h"
#include "layer/layer.h"
#include "layer/repo/repo.h"
#include "layer/stack/stack.h"
#include "layer/store.h"
#include "match/path.h"
#include "run/direct.h"
#include "run/layer/branch.h"
#include "run/layer/cow.h"
#include "run/layer/gitbox.h"
#include "run/layer/landing.h"
#include "run/layer/layer_tool.h"
#include "run/report.h"

#define MAX_LAYER_ARENA ((size_t)3 << 30)

struct opened_layer {
    struct arena *mem;
    struct world world;
    struct layer layer;
    struct layer_stack stack; /* what it stands on */
    struct layer_trees trees;
    struct layer_trees seen;    /* what a diff compares with: `trees`, or what lies below a stacked layer */
    const char *const *paths;   /* relative; NULL: all */
    int lock;                   /* against boxes; -1 */
    struct layer_trees there;   /* with `to`: of that directory; `workspace` -1: it is the workspace itself */
    const char *const *choices; /* of hunks; or NULL */
    bool lives;                 /* a session writes to it */
    bool all, chosen;           /* the caller says so */
    int merge;                  /* 1: where there is no conflict; 2: with marks */
    const char *branch;         /* or NULL */
    struct err e;
};

static void opened_close(struct opened_layer *o)
{
    layer_close(&o->layer);
    stack_close(&o->stack);
    if (o->seen.viewed)
        o->seen.workspace = close_fd(o->seen.workspace);
    o->trees.upper = close_fd(o->trees.upper);
    o->trees.workspace = close_fd(o->trees.workspace);
    if (o->there.workspace >= 0)
        o->there.store = close_fd(o->there.store);
    o->there.workspace = close_fd(o->there.workspace);
    o->lock = close_fd(o->lock);
    o->mem = arena_free(o->mem);
}
#define auto_opened __attribute__((cleanup(opened_close)))

static int layers_no_memory(struct opened_layer *o)
{
    return err_sys(&o->e, ERR_SYSTEM, ENOMEM, "cannot read the layer");
}

/*
 * Guarded names are those of the policy that holds in the workspace now; what the layer itself holds of policies does
 * not count.
 */
static int take_guarded(struct opened_layer *o, const char *top, struct layer_guarded **ret, size_t *ret_n)
{
    const struct pinfold_policy_options po = {.size = sizeof po, .cwd = top};
    const struct layer at = {.workspace = top};
    struct layers texts;
    struct policy *policy = NULL;
    int r = layers_load(&po, o->mem, &texts, &policy, &o->e);
    if (r < 0)
        return r;
    return layer_guarded_names(policy, &at, o->world.home, o->mem, ret, ret_n) < 0 ? layers_no_memory(o) : 0;
}

/* The directory of `to`, with what its own policy guards and the workspace's. */
static int open_there(struct opened_layer *o, const char *to)
{
    char real[PATH_MAX];
    struct stat st;
    struct layer_guarded *names, *both;
    size_t n = 0;
    auto_fd int found = -1;
    const char *path = to[0] == '/' ? to : path_join(o->mem, o->world.cwd, to);
    int r = path ? world_judge(o->world.state, "--to", path, real, &found, &o->e) : layers_no_memory(o);
    if (r < 0)
        return r;
    auto_fd int dir = found < 0 ? -1 : openat(found, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0)
        return err_say(&o->e, ERR_POLICY, "--to: cannot open the directory '%s': %s", path,
                       strerror(found < 0 ? ENOENT : errno));
    if ((uint64_t)st.st_dev == o->layer.device && (uint64_t)st.st_ino == o->layer.ino)
        return err_say(&o->e, ERR_POLICY, "--to: '%s' is the workspace itself; leave --to out", path);
    if (path_at_or_below(real, o->world.state))
        return err_say(&o->e, ERR_POLICY, "--to: '%s' lies in pinfold's own directory", path);
    const char *top = arena_text(o->mem, real);
    r = top ? take_guarded(o, top, &names, &n) : layers_no_memory(o);
    if (r < 0)
        return r;
    both = arena_zero(o->mem, (n + o->trees.n_guarded + 1) * sizeof *both);
    if (!both)
        return layers_no_memory(o);
    memcpy(both, names, n * sizeof *both);
    memcpy(both + n, o->trees.guarded, o->trees.n_guarded * sizeof *both);
    int store = elsewhere_open(o->layer.dir, dir, top, &o->e);
    if (store < 0)
        return store;
    o->there = o->trees;
    o->there.guarded = both;
    o->there.n_guarded += n;
    o->there.path = top;
    o->there.store = store;
    o->there.n_below = 0;       /* of the layers below the workspace is asked */
    o->there.since = INT64_MAX; /* what its host does is seen by its content */
    o->there.workspace = take_fd(&dir);
    return 0;
}

/* It must be the very directory that the box had. */
static int open_workspace(struct opened_layer *o)
{
    const struct layer *l = &o->layer;
    struct stat st;
    int fd = open(l->workspace, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        const int no = errno;
        (void)close_fd(fd);
        if (no == ENOENT || no == ENOTDIR) /* there is the layer, so this is no -ENOENT of ours */
            return err_hint(
                &o->e,
                err_say(&o->e, ERR_REFUSED, "layer %s: its workspace '%s' is not there any more", l->id, l->workspace),
                "move it back, or remove the layer: pinfold discard %.8s", l->id);
        return err_sys(&o->e, ERR_SYSTEM, no, "layer %s: cannot open its workspace '%s'", l->id, l->workspace);
    }
    o->trees.workspace = fd;
    if ((uint64_t)st.st_dev == l->device && (uint64_t)st.st_ino == l->ino)
        return 0;
    return err_hint(
        &o->e,
        err_say(&o->e, ERR_REFUSED, "layer %s: '%s' is no longer the directory that the box had", l->id, l->workspace),
        "move it back, or remove the layer: pinfold discard %.8s", l->id);
}

static int take_paths(struct opened_layer *o, const char *const *given)
{
    const char **paths = NULL;
    size_t n = 0;
    for (size_t i = 0; given && given[i]; i++) {
        const char **slot = arena_push(o->mem, &paths, &n, sizeof *slot);
        if (!slot)
            return layers_no_memory(o);
        struct err unsaid = {0};
        *slot = path_given(o->mem, o->layer.workspace, o->world.cwd, given[i], &o->e);
        if (!*slot && o->there.workspace >= 0)
            *slot = path_given(o->mem, o->there.path, o->world.cwd, given[i], &unsaid);
        if (!*slot)
            return -EINVAL;
    }
    if (n && !arena_push(o->mem, &paths, &n, sizeof *paths))
        return layers_no_memory(o);
    o->paths = paths;
    return 0;
}

static int open_wanted(const struct pinfold_layer_options *given, bool changes, struct opened_layer *o)
{
    struct pinfold_layer_options options;
    *o = (struct opened_layer){
        .layer.dir = -1, .trees.upper = -1, .trees.workspace = -1, .there.workspace = -1, .lock = -1};
    int r = take_options(&options, sizeof options, given, given ? given->size : 0, &o->e);
    if (r == 0 && !(o->mem = arena_new(MAX_LAYER_ARENA)))
        r = layers_no_memory(o);
    if (r == 0)
        r = world_look(o->mem, options.cwd, &o->world, &o->e);
    if (r == 0)
        r = layer_open(o->world.state, options.layer, o->world.cwd, o->mem, &o->layer, &o->e);
    if (r < 0)
        return r;
    r = stack_open(o->world.state, &o->layer, o->mem, &o->stack, &o->e);
    if (r < 0)
        return r;
    o->trees.below = o->stack.below;
    o->trees.n_below = o->stack.n;
    o->all = options.all != 0;
    o->chosen = options.chosen != 0;
    o->choices = options.choices;
    o->merge = options.merge;
    o->branch = options.branch;
    o->trees.store = o->layer.dir;
    o->trees.id = o->layer.id;
    o->trees.path = o->layer.workspace;
    o->trees.since = o->layer.since;
    o->trees.upper = layer_upper(&o->layer);
    if (o->trees.upper < 0)
        return err_sys(&o->e, ERR_SYSTEM, -o->trees.upper, "layer %s: cannot open 'upper'", o->layer.id);
    struct layer_guarded *names;
    r = open_workspace(o);
    if (r == 0)
        r = take_guarded(o, o->layer.workspace, &names, &o->trees.n_guarded);
    if (r < 0)
        return r;
    o->trees.guarded = names;
    if (options.to && changes)
        r = open_there(o, options.to);
    return r < 0 ? r : take_paths(o, options.paths);
}

/* Its changes against what its box began with. */
static int read_shown(struct opened_layer *o, struct changes *ret)
{
    o->seen = o->trees;
    return o->stack.n ? stack_changes(&o->trees, o->mem, &o->seen, ret, &o->e)
                      : changes_read(&o->trees, o->mem, ret, &o->e);
}

/*
 * The same for what changes the workspace: no box may be writing to the layer, but a session. That one is told afterwards, and what of the
 * layer changes at the moment it is applied is refused path by path.
 */
static int open_idle(const struct pinfold_layer_options *given, struct opened_layer *o)
{
    struct err busy = {0};
    int r = open_wanted(given, true, o);
    if (r < 0)
        return r;
    r = layer_share(&o->layer, &o->lock, &busy);
    const int again = r == -EBUSY ? layer_owner_again(o->world.state, &o->layer, o->mem, &o->e) : 0;
    if (again < 0)
        return again;
    o->lives = r == -EBUSY && o->layer.session;
    if (r < 0 && !o->lives)
        o->e = busy;
    return o->lives ? 0 : r;
}

/* ---- as values ---- */

static const char *const layer_kinds[] = {
    [CHANGE_ADDED] = "added", [CHANGE_EDITED] = "edited", [CHANGE_DELETED] = "deleted"};

static const char *layer_type(uint32_t mode)
{
    return S_ISREG(mode)    ? "file"
           : S_ISDIR(mode)  ? "directory"
           : S_ISLNK(mode)  ? "link"
           : S_ISFIFO(mode) ? "fifo"
           : S_ISSOCK(mode) ? "socket"
                            : "device";
}

static void put_layer_side(struct json *j, const char *name, const struct layer_object *o, const char *target)
{
    char mode[16];
    if (!o->mode) {
        json_null(j, name);
        return;
    }
    snprintf(mode, sizeof mode, "%04o", o->mode & 07777);
    json_object(j, name);
    json_text(j, "type", layer_type(o->mode));
    json_text(j, "mode", mode);
    json_uint(j, "size", o->size);
    json_text_or_null(j, "target", target);
    json_object_end(j);
}

static void put_layer_words(struct json *j, const char *name, unsigned bits, const char *const *words)
{
    json_array(j, name);
    for (unsigned i = 0; words[i]; i++) {
        if (bits & 1u << i)
            json_text(j, NULL, words[i]);
    }
    json_array_end(j);
}

static void put_layer_path(struct json *j, const char *path)
{
    json_text(j, "path", path);
    if (!utf8_valid(str_of(path)))
        json_base64(j, "path_base64", str_of(path));
}

/* `other`: the path that a renamed file had or has; or NULL. */
static void put_layer_change(struct json *j, const struct layer_trees *t, const struct change *c, const char *other,
                             bool count)
{
    static const char *const whats[] = {"content", "mode", "type", "attributes", "owner", NULL};
    static const char *const alarms[] = {"guarded", "link-out",   "special",  "setuid", "executable",
                                         "git",     "link-place", "spelling", "hooks",  NULL};
    uint64_t added = 0, removed = 0;
    json_object(j, NULL);
    put_layer_path(j, c->path);
    json_text(j, "kind", layer_kinds[c->kind]);
    put_layer_words(j, "what", c->what, whats);
    put_layer_words(j, "alarms", c->alarms, alarms);
    json_bool(j, "waits", change_waits(c));
    put_layer_side(j, "old", &c->old, c->old_link);
    put_layer_side(j, "new", &c->new, c->new_link);
    json_text_or_null(j, "conflict", c->conflict);
    if (other)
        json_text(j, c->kind == CHANGE_ADDED ? "renamed_from" : "renamed_to", other);
    if (count && patch_count(t, c, &added, &removed) > 0) {
        json_uint(j, "lines_added", added);
        json_uint(j, "lines_removed", removed);
    }
    json_object_end(j);
}

/* Lines, each after the directory of their repository; NULL: the workspace's own. */
static int put_git_lines(struct opened_layer *o, const struct buf *out, const char *path, struct json *j)
{
    for (struct str text = buf_view(out); text.n;) {
        struct str line = str_until(&text, '\n');
        auto_buf struct buf named = BUF(LAYER_PATH_MAX * 4 + (1u << 20));
        if (path)
            utf8_safe(&named, str_of(path));
        buf_text(&named, path ? ": " : "");
        buf_str(&named, line);
        if (!buf_ok(&named))
            return layers_no_memory(o);
        json_str(j, NULL, buf_view(&named));
    }
    return 0;
}

static int put_git_inside(struct opened_layer *o, const struct changes *all, const char *git, struct json *j)
{
    auto_buf struct buf out = BUF(1u << 20);
    struct repo_within in;
    int r = repo_enter(&o->trees, all, git, o->mem, &in) < 0 ? layers_no_memory(o) : 0;
    if (r == 0 && in.why)
        buf_printf(&out, "the repository is not applied: %s\n", in.why);
    else if (r == 0)
        r = gitbox_words(&in.t, &in.all, o->mem, &out, &o->e);
    repo_leave(&in);
    return r < 0 ? r : put_git_lines(o, &out, in.path, j);
}

static int put_git(struct opened_layer *o, const struct changes *all, struct json *j)
{
    auto_buf struct buf out = BUF(1u << 20);
    const char **inside;
    size_t n;
    int r = repos_inside(all, o->mem, &inside, &n) < 0 ? layers_no_memory(o) : 0;
    if (r == 0)
        r = gitbox_words(&o->seen, all, o->mem, &out, &o->e);
    json_array(j, "git");
    if (r == 0)
        r = put_git_lines(o, &out, NULL, j);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = put_git_inside(o, all, inside[i], j);
    json_array_end(j);
    return r;
}

/* Of each change whether the paths name it. What lands with the repository is told in sentences, unless it is named. */
static bool *wanted_changes(struct opened_layer *o, const struct changes *all)
{
    bool *take = arena_zero(o->mem, all->n + 1);
    for (size_t i = 0; take && i < all->n; i++) {
        const enum repo_part part = repo_part_of(all->all[i].path);
        const bool unit =
            (part == REPO_UNIT || part == REPO_PASSING || all->all[i].born) && !(all->all[i].alarms & ALARM_SPELLING);
        take[i] = path_wanted(all->all[i].path, o->paths, NULL) && (o->paths || !unit);
    }
    return take;
}

int pinfold_layer_diff_report(const struct pinfold_layer_options *options, int count, struct pinfold_report **ret,
                              struct pinfold_error *error)
{
    auto_opened struct opened_layer o;
    struct pinfold_report *report = report_new();
    struct changes all;
    bool *take = NULL;
    size_t *other = NULL;
    int r = open_wanted(options, false, &o);
    if (r == 0)
        r = read_shown(&o, &all);
    if (r == 0 && (!(take = wanted_changes(&o, &all)) || renames_find(&o.seen, &all, take, o.mem, &other) < 0))
        r = layers_no_memory(&o);
    if (r < 0 || !report)
        return report_give(report, r, &o.e, ret, error);
    struct json j = JSON_TREE(&report->values);
    json_object(&j, NULL);
    layer_put(&j, &o.layer);
    json_bool(&j, "interrupted", all.interrupted);
    json_array(&j, "changes");
    for (size_t i = 0; i < all.n; i++) {
        if (take[i])
            put_layer_change(&j, &o.seen, &all.all[i], other[i] ? all.all[other[i] - 1].path : NULL, count != 0);
    }
    json_array_end(&j);
    r = put_git(&o, &all, &j);
    json_object_end(&j);
    return report_give(report, r, &o.e, ret, error);
}

/* A terminal obeys bytes of files; a pipe or file gets them as they are, so that the patch can be applied. */
static int write_patch(int fd, const struct buf *patch)
{
    struct str rest = buf_view(patch);
    auto_buf struct buf shown = BUF((size_t)4 << 30);
    while (isatty(fd) && rest.n) {
        size_t n = 0;
        while (n < rest.n && rest.p[n] != '\t' && rest.p[n] != '\n')
            n++;
        utf8_safe(&shown, (struct str){rest.p, n});
        if (n < rest.n)
            buf_char(&shown, rest.p[n]);
        rest = str_skip(rest, n < rest.n ? n + 1 : n);
    }
    if (!buf_ok(&shown))
        return -ENOMEM;
    return shown.n ? fd_write_all(fd, shown.p, shown.n) : fd_write_all(fd, rest.p, rest.n);
}

/* What an apply is asked for. */
static int check_wanted(struct opened_layer *o, const struct pinfold_layer_options *given)
{
    if (!o->paths && !o->all)
        return err_say(&o->e, ERR_POLICY, "apply: name the paths, or write --all; to list them: pinfold diff");
    if (o->paths && o->all)
        return err_say(&o->e, ERR_POLICY, "apply: --all and paths: write one of them (is '%.200s' meant as a layer?)",
                       given->paths[0]);
    if (!o->paths && layer_is_doubtful(&o->layer))
        return err_hint(
            &o->e,
            err_say(&o->e, ERR_REFUSED,
                    "layer %s may be damaged, because the machine stopped before it was written to the disk",
                    o->layer.id),
            "look at each file and apply the good ones by name");
    return 0;
}

static void put_layer_paths(struct json *j, const struct apply_outcome *done)
{
    json_array(j, "done");
    for (size_t i = 0; i < done->n_done; i++) {
        json_object(j, NULL);
        put_layer_path(j, done->done[i]);
        json_object_end(j);
    }
    json_array_end(j);
}

static void put_refusals(struct json *j, const char *name, const struct apply_outcome *done)
{
    json_array(j, name);
    for (size_t i = 0; i < done->n_refused; i++) {
        json_object(j, NULL);
        put_layer_path(j, done->refused[i].path);
        json_text(j, "why", done->refused[i].why);
        json_object_end(j);
    }
    json_array_end(j);
}

/* `take`: of each change whether it is wanted; `other`: what it is a rename of. */
static int put_patches(struct opened_layer *o, const struct changes *all, const bool *take, const size_t *other, int fd,
                       struct apply_outcome *ret)
{
    for (size_t i = 0; i < all->n; i++) {
        auto_buf struct buf out = BUF((size_t)2 << 30);
        const char *why = NULL, *path = all->all[i].path;
        if (!take[i])
            continue;
        int r = other[i] ? 1 : patch_of(&o->seen, &all->all[i], &out, &why, &o->e);
        if (other[i] && all->all[i].kind == CHANGE_ADDED)
            patch_of_rename(&all->all[other[i] - 1], &all->all[i], &out);
        int no = r < 0 ? 0 : write_patch(fd, &out);
        if (no < 0)
            return err_sys(&o->e, ERR_SYSTEM, -no, "cannot write the patch");
        struct apply_refusal *left =
            r >= 0 && why ? arena_push(o->mem, &ret->refused, &ret->n_refused, sizeof *left) : NULL;
        if (left)
            *left = (struct apply_refusal){.path = path, .why = why};
        const char **done = r > 0 ? arena_push(o->mem, &ret->done, &ret->n_done, sizeof *done) : NULL;
        if (done)
            *done = path;
        if (r < 0 || arena_failed(o->mem))
            return r < 0 ? r : layers_no_memory(o);
    }
    return 0;
}

int pinfold_layer_patch(const struct pinfold_layer_options *options, int fd, struct pinfold_report **ret,
                        struct pinfold_error *error)
{
    auto_opened struct opened_layer o;
    struct pinfold_report *report = report_new();
    struct apply_outcome done = {0};
    struct changes all = {0};
    bool *take = NULL;
    size_t *other = NULL;
    int r = open_wanted(options, false, &o);
    if (r == 0 && o.chosen)
        r = check_wanted(&o, options);
    o.seen = o.trees;
    if (r == 0)
        r = o.chosen ? changes_read(&o.trees, o.mem, &all, &o.e) : read_shown(&o, &all);
    if (r == 0 && o.chosen)
        r = layer_choose(&o.trees, &all, o.paths, false, o.mem, &take, &done, &o.e);
    if (r == 0 && !o.chosen)
        take = wanted_changes(&o, &all);
    if (r == 0 && (!take || renames_find(&o.seen, &all, take, o.mem, &other) < 0))
        r = layers_no_memory(&o);
    if (r == 0)
        r = put_patches(&o, &all, take, other, fd, &done);
    if (r < 0 || !report)
        return report_give(report, r, &o.e, ret, error);
    struct json j = JSON_TREE(&report->values);
    json_object(&j, NULL);
    layer_put(&j, &o.layer);
    put_layer_paths(&j, &done);
    put_refusals(&j, "left_out", &done);
    json_object_end(&j);
    return report_give(report, 0, &o.e, ret, error);
}

int pinfold_layer_tool(const struct pinfold_layer_options *options, const char *tool, struct pinfold_report **ret,
                       struct pinfold_error *error)
{
    auto_opened struct opened_layer o;
    struct pinfold_report *report = report_new();
    struct apply_outcome done = {0};
    struct changes all = {0};
    int r = open_wanted(options, false, &o), status = 0;
    if (r == 0)
        r = read_shown(&o, &all);
    const bool *take = r == 0 ? wanted_changes(&o, &all) : NULL;
    if (r == 0)
        r = take ? layer_tool(&o.seen, &all, take, tool, o.mem, &done, &status, &o.e) : layers_no_memory(&o);
    if (r < 0 || !report)
        return report_give(report, r, &o.e, ret, error);
    struct json j = JSON_TREE(&report->values);
    json_object(&j, NULL);
    layer_put(&j, &o.layer);
    json_int(&j, "status", status);
    put_layer_paths(&j, &done);
    put_refusals(&j, "left_out", &done);
    json_object_end(&j);
    return report_give(report, 0, &o.e, ret, error);
}

/* What is asked about one by one: not a new directory that comes with what is in it. */
static bool is_asked(const struct opened_layer *o, const struct changes *all, size_t i)
{
    const struct change *c = &all->all[i];
    const bool filled = i + 1 < all->n && path_below(all->all[i + 1].path, c->path);
    return path_wanted(c->path, o->paths, NULL) && (o->paths || !(c->alarms & ALARM_GIT)) &&
           !(c->kind == CHANGE_ADDED && object_is(&c->new, S_IFDIR) && filled);
}

/* As a patch has it, of a text. */
static int put_whole(struct opened_layer *o, const struct change *c, struct json *j)
{
    auto_buf struct buf out = BUF((size_t)2 << 30);
    const char *why;
    int r = patch_of(&o->trees, c, &out, &why, &o->e);
    const struct str text = buf_view(&out);
    if (r > 0 && !memmem(text.p, text.n, "\nGIT binary patch\n", 18))
        json_str(j, "text", (struct str){text.p, text.n < HUNK_SHOWN ? text.n : HUNK_SHOWN});
    else
        json_null(j, "text");
    return r;
}

static int put_hunks(struct opened_layer *o, const struct change *c, struct json *j)
{
    struct change_hunks h;
    char word[HUNKS_WORD];
    int r = hunks_of(&o->trees, c, o->mem, &h);
    if (r < 0)
        return layers_no_memory(o);
    hunks_word(c, word);
    json_object(j, NULL);
    put_layer_path(j, c->path);
    json_text(j, "kind", layer_kinds[c->kind]);
    json_text(j, "word", word);
    json_text_or_null(j, "whole", h.whole);
    r = h.whole ? put_whole(o, c, j) : (json_null(j, "text"), 0);
    json_array(j, "hunks");
    for (size_t i = 0; i < h.n; i++)
        json_text(j, NULL, h.texts[i]);
    json_array_end(j);
    json_object_end(j);
    return r < 0 ? r : 0;
}

int pinfold_layer_hunks_report(const struct pinfold_layer_options *options, struct pinfold_report **ret,
                               struct pinfold_error *error)
{
    auto_opened struct opened_layer o;
    struct pinfold_report *report = report_new();
    struct apply_outcome left = {0};
    struct changes all;
    int r = open_wanted(options, false, &o);
    if (r == 0)
        r = changes_read(&o.trees, o.mem, &all, &o.e);
    if (r < 0 || !report)
        return report_give(report, r, &o.e, ret, error);
    struct json j = JSON_TREE(&report->values);
    json_object(&j, NULL);
    layer_put(&j, &o.layer);
    json_array(&j, "changes");
    for (size_t i = 0; r == 0 && i < all.n; i++) {
        bool exact;
        (void)path_wanted(all.all[i].path, o.paths, &exact);
        const char *why = is_asked(&o, &all, i) ? layer_why_not(&all.all[i], exact) : NULL;
        if (why)
            r = outcome_refuse(o.mem, &left, all.all[i].path, why) < 0 ? layers_no_memory(&o) : 0;
        else if (is_asked(&o, &all, i))
            r = put_hunks(&o, &all.all[i], &j);
    }
    json_array_end(&j);
    put_refusals(&j, "refused", &left);
    json_object_end(&j);
    return report_give(report, r, &o.e, ret, error);
}

static int give_outcome(struct opened_layer *o, int r, const struct apply_outcome *done, struct layer_session *lives,
                        struct pinfold_report **ret, struct pinfold_error *error)
{
    *lives = (struct layer_session){.known = false};
    if (o->lives) {
        const int n = snprintf(lives->name, sizeof lives->name, "%s", o->layer.session);
        const int k = snprintf(lives->scope, sizeof lives->scope, "%s", o->layer.scope ? o->layer.scope : "");
        lives->known = n < (int)sizeof lives->name && k < (int)sizeof lives->scope;
    }
    struct pinfold_report *report = report_new();
    if (r < 0 || !report)
        return report_give(report, r, &o->e, ret, error);
    struct json j = JSON_TREE(&report->values);
    json_object(&j, NULL);
    layer_put(&j, &o->layer);
    json_bool(&j, "resumed", done->resumed);
    json_uint(&j, "number", done->number);
    put_layer_paths(&j, done);
    put_refusals(&j, "refused", done);
    json_array(&j, "git");
    for (size_t i = 0; i < done->n_said; i++)
        json_text(&j, NULL, done->said[i]);
    json_array_end(&j);
    json_object_end(&j);
    return report_give(report, 0, &o->e, ret, error);
}

/* As a branch: what apply would take, but nothing of it reaches the work tree. */
static int apply_branch(struct opened_layer *o, const char *name, struct apply_outcome *done)
{
    const struct layer_branch_ask ask = {.name = name, .everything = !o->paths, .home = o->world.home};
    struct transaction before;
    struct changes all;
    bool *take;
    int r = transaction_resume(&o->trees, o->mem, &before, &o->e); /* what was interrupted is completed first */
    done->resumed = r > 0 && before.phase != PHASE_STAGE;
    repo_parts_clear(&o->trees); /* what one that was killed had prepared */
    if (r >= 0)
        r = changes_read(&o->trees, o->mem, &all, &o->e);
    if (r == 0) /* the repository's own changes are no files of a branch */
        r = layer_choose(&o->trees, &all, o->paths, true, o->mem, &take, done, &o->e);
    return r < 0 ? r : branch_make(&o->trees, &all, take, &ask, o->mem, done, &o->e);
}

int layer_apply_to(const struct pinfold_layer_options *options, struct layer_session *lives,
                   struct pinfold_report **ret, struct pinfold_error *error)
{
    auto_opened struct opened_layer o;
    struct apply_outcome done = {0};
    int r = open_idle(options, &o);
    const bool there = o.there.workspace >= 0;
    enum merge_kind merge = o.merge == 2 ? MERGE_MARK : MERGE_CLEAN;
    const struct apply_ask ask = {.paths = o.paths,
                                  .choices = o.choices,
                                  .base = there ? &o.trees : NULL,
                                  .repository = there ? NULL : gitbox_land,
                                  .merge = o.merge && !there ? gitbox_merge : NULL,
                                  .ctx = &merge};
    if (r == 0 && there && o.choices)
        r = err_say(&o.e, ERR_POLICY, "apply: hunks are those of the workspace; leave --to out");
    if (r == 0 && there && (o.branch || o.merge))
        r = err_say(&o.e, ERR_POLICY, "apply: --branch and --merge are of the workspace; leave --to out");
    if (r == 0 && !o.choices)
        r = check_wanted(&o, options);
    if (r == 0 && o.branch)
        return give_outcome(&o, apply_branch(&o, o.branch, &done), &done, lives, ret, error);
    if (r == 0)
        r = layer_apply(there ? &o.there : &o.trees, &ask, o.mem, &done, &o.e);
    return give_outcome(&o, r, &done, lives, ret, error);
}

int layer_undo_in(const struct pinfold_layer_options *options, uint64_t number, struct layer_session *lives,
                  struct pinfold_report **ret, struct pinfold_error *error)
{
    auto_opened struct opened_layer o;
    struct apply_outcome done = {0};
    int r = open_idle(options, &o);
    if (r == 0)
        r = layer_undo(o.there.workspace >= 0 ? &o.there : &o.trees, number, o.paths, o.mem, &done, &o.e);
    return give_outcome(&o, r, &done, lives, ret, error);
}

/* The index that an apply has made is another file than the layer's; without one in the ledger something may only be staged. */
static bool repository_landed(struct opened_layer *o, const struct layer_trees *t, const struct changes *all)
{
    struct repo repo;
    struct ledger done;
    char room[LAYER_PATH_MAX];
    const char *index =
        arena_printf(o->mem, "%s%s", t->inside ? t->inside : "", repo_named(t, REPO_DIR "/index", room));
    if (!index || repo_read(t, all, o->mem, &repo, &o->e) < 0 || ledger_read(o->layer.dir, o->mem, &done, &o->e) < 0)
        return false;
    return !repo.why && !repo.head.name && !repo.n && (!repo.index || ledger_find(&done, index));
}

static bool repositories_landed(struct opened_layer *o, const struct changes *all, bool top)
{
    const char **inside;
    size_t n;
    if (repos_inside(all, o->mem, &inside, &n) < 0 || (top && !repository_landed(o, &o->trees, all)))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct repo_within in;
        const bool landed =
            repo_enter(&o->trees, all, inside[i], o->mem, &in) == 0 && !in.why && repository_landed(o, &in.t, &in.all);
        repo_leave(&in);
        if (!landed)
            return false;
    }
    return true;
}

bool layer_has_landed(const char *id)
{
    auto_opened struct opened_layer o;
    const struct pinfold_layer_options options = {.size = sizeof options, .layer = id, .cwd = "/"};
    struct changes all = {0};
    bool repository = false;
    if (open_wanted(&options, false, &o) < 0 || layer_is_doubtful(&o.layer) || read_shown(&o, &all) < 0 ||
        all.interrupted)
        return false;
    for (size_t i = 0; i < all.n; i++) {
        const enum repo_part part = repo_part_of(all.all[i].path);
        if (part != REPO_UNIT && part != REPO_PASSING)
            return false;
        repository |= part == REPO_UNIT && repo_is_top(all.all[i].path);
    }
    return repositories_landed(&o, &all, repository);
}
