/*
 * Repositories inside of the workspace, and those of submodules below .git/modules. Each of them lands as a unit of its own, as the one
 * at the top: it is looked at as if the directory that holds it were the workspace, and it were called .git there; the paths of what lands
 * are those of the workspace again.
 */
#include <errno.h>
#include <string.h>

#include "git/gitconfig.h"
#include "layer/repo/repo.h"
#include "layer/text.h"
#include "match/path.h"
#include "sys/fd.h"

#define NOTHING     "nothing" /* below the store, for a moment */
#define ONLY_INSIDE (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)

static bool is_below_git(const struct change *c, const char *git, size_t n)
{
    return repo_dir(c->path) == n && memcmp(c->path, git, n) == 0;
}

int repos_inside(const struct changes *all, struct arena *mem, const char ***ret, size_t *ret_n)
{
    *ret = NULL;
    *ret_n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct change *c = &all->all[i];
        if (repo_part_of(c->path) != REPO_UNIT || repo_is_top(c->path) || repo_is_file(c) || c->alarms & ALARM_SPELLING)
            continue;
        size_t known = *ret_n; /* mostly the last: only submodules of submodules come in between */
        while (known && !is_below_git(c, (*ret)[known - 1], strlen((*ret)[known - 1])))
            known--;
        if (known)
            continue;
        const char **slot = arena_push(mem, ret, ret_n, sizeof *slot);
        if (!slot || !(*slot = arena_str(mem, (struct str){c->path, repo_dir(c->path)})))
            return -ENOMEM;
    }
    return 0;
}

/* The layer's own directory of this path; -ENOENT: it has none, or one that hides the workspace's. `fresh`: the workspace has none. */
static int open_upper(int top, const char *path, bool fresh, struct arena *mem)
{
    struct str part, whole = str_of(path);
    int at = sys_openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    while (at >= 0 && whole.n) {
        char mark = 0;
        part = str_until(&whole, '/');
        const char *name = arena_str(mem, part);
        int next = name ? object_open(at, name, S_IFDIR) : -ENOMEM;
        sys_drop(&at);
        if (next >= 0 && !fresh && sys_fgetxattr(next, "user.overlay.opaque", &mark, 1) == 1 && mark == 'y') {
            sys_drop(&next);
            next = -ENOENT;
        }
        at = next;
    }
    return at;
}

/* Whether it is the .git at the top that the box began with: git's ordinary work changes its times and those above. */
static bool is_base(const struct layer_trees *t, const char *path, const struct layer_object *here, struct arena *mem)
{
    struct str text, line;
    struct layer_object base;
    return strcmp(path, REPO_DIR) == 0 && text_read(t->store, REPO_BASE_DIR, mem, &text) == 0 &&
           text_line(&text, &line) && text_object(&line, &base) && object_same_inode(&base, here);
}

/* As read.c tells a directory that the host has moved to its place: its time of change and that of the one above. Further down git changes
   both in its ordinary work. */
static bool may_be_another(const struct layer_trees *t, const char *path, struct arena *mem)
{
    struct ledger ledger;
    struct layer_object above, here;
    struct err untold = {0};
    if (ledger_of(t, mem, &ledger, &untold) < 0 || object_look(t->workspace, "", &above) < 0)
        return true;
    bool ours = false;
    for (size_t n = 0; path[n]; n++, above = here) {
        const char *name;
        n += strcspn(path + n, "/");
        const char *part = arena_str(mem, (struct str){path, n});
        own_fd int dir = part ? object_parent(t->workspace, part, &name) : -ENOMEM;
        if (dir < 0 || object_look(dir, name, &here) < 0)
            return true;
        const struct ledger_entry *known = ledger_find(&ledger, part);
        const bool same_one = (known && object_same_inode(&known->now, &here)) || is_base(t, part, &here, mem);
        if (here.changed >= t->since && above.changed >= t->since && !ours && !same_one)
            return true;
        ours = same_one && known && known->now.changed == here.changed;
        if (!path[n])
            break;
    }
    return false;
}

/* A directory that is gone already: nothing is in it. */
static int open_nothing(int store)
{
    const int e = sys_mkdirat(store, NOTHING, 0700);
    if (e < 0 && e != -EEXIST)
        return e;
    const int fd = sys_openat(store, NOTHING, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    (void)sys_unlinkat(store, NOTHING, AT_REMOVEDIR);
    return fd;
}

int repo_enter(const struct layer_trees *t, const struct changes *all, const char *git, struct arena *mem,
               struct repo_within *ret)
{
    const size_t n = strlen(git);
    const char *name = path_name(git), *path = arena_str(mem, (struct str){git, (size_t)(name - git) - 1});
    const bool module = strcmp(name, REPO_DIR) != 0;
    *ret = (struct repo_within){.path = module ? git : path, .t = *t};
    if (!path) {
        ret->t.workspace = ret->t.upper = -1;
        return -ENOMEM;
    }
    ret->t.git = module ? name : NULL;
    ret->t.root = module ? t->path : NULL;
    ret->t.workspace = sys_openat2(t->workspace, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, ONLY_INSIDE);
    const struct change *made = changes_find(all, git);
    const bool fresh = ret->t.workspace < 0 && made && made->kind == CHANGE_ADDED && object_is(&made->new, S_IFDIR);
    if (fresh)
        ret->t.workspace = open_nothing(t->store);
    ret->t.upper = open_upper(t->upper, path, fresh, mem);
    ret->t.path = arena_printf(mem, "%s/%s", t->path, path);
    ret->t.inside = arena_printf(mem, "%s/", path);
    ret->t.below = NULL;
    ret->t.n_below = 0;
    if (t->n_below)
        ret->why = "in a layer that stands on another one, repositories inside of the workspace are not applied";
    else if (ret->t.workspace < 0)
        ret->why = "the workspace has no repository there; make one there first: git init";
    else if (ret->t.upper < 0)
        ret->why = "the box removed or replaced the directory that holds the repository";
    for (size_t i = 0; i < all->n; i++) {
        struct change *slot = is_below_git(&all->all[i], git, n) || strcmp(all->all[i].path, git) == 0
                                  ? arena_push(mem, &ret->all.all, &ret->all.n, sizeof *slot)
                                  : NULL;
        if (!slot)
            continue;
        *slot = all->all[i];
        slot->path = module ? arena_printf(mem, REPO_DIR "%s", slot->path + n) : slot->path + strlen(path) + 1;
    }
    if (!ret->why && !fresh && may_be_another(t, git, mem))
        ret->why = CONFLICT_ABOVE;
    return arena_failed(mem) ? -ENOMEM : 0;
}

bool repo_is_file(const struct change *c)
{
    return c->kind == CHANGE_ADDED && !(c->alarms & ALARM_SPELLING) && object_is(&c->new, S_IFREG) &&
           c->path[repo_dir(c->path)] == 0 && strcmp(path_name(c->path), REPO_DIR) == 0;
}

/* ---- a submodule's file .git ---- */

/* The path, relative to the workspace, that `text` ("../x") names from the directory that holds `path`. NULL: it lies outside. */
static const char *led_to(const char *path, struct str text, struct arena *mem)
{
    struct str part;
    char *at = arena_text(mem, path);
    char *slash = at ? strrchr(at, '/') : NULL;
    while (slash && text.n) {
        *slash = 0;
        part = str_until(&text, '/');
        if (str_is(part, "..")) {
            slash = strrchr(at, '/');
            if (!slash && *at)
                slash = at; /* at the top */
            continue;
        }
        if (!part.n || str_is(part, ".") || memchr(part.p, 0, part.n))
            return NULL;
        at = arena_printf(mem, "%s%s%.*s", at, *at ? "/" : "", (int)part.n, part.p);
        slash = at ? at + strlen(at) : NULL;
    }
    return slash ? at : NULL;
}

struct module_place {
    const struct layer_trees *t;
    const char *git;
    struct buf at; /* absolute */
    bool known;
};

static int take_place(void *ctx, const struct gitconfig_entry *entry)
{
    struct module_place *p = ctx;
    char directory[2 * LAYER_PATH_MAX];
    if (!gitconfig_is_worktree(entry))
        return 0;
    snprintf(directory, sizeof directory, "%s/%s", p->t->path, p->git);
    p->at.n = 0;
    p->known = gitconfig_worktree(str_of(directory), str_of(p->t->path), entry->value, &p->at) && buf_ok(&p->at);
    return 0;
}

/* What was prepared to land. */
static int read_part(const struct layer_trees *t, const struct op *op, struct arena *mem, struct str *ret)
{
    const char *name;
    own_fd int dir = op->part ? object_parent(t->store, op->from, &name) : -EINVAL;
    return dir < 0 ? dir : text_read(dir, name, mem, ret);
}

static const struct op *landing_at(const struct op *ops, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++)
        if (!ops[i].why && ops[i].kind == OP_CREATE && same(ops[i].path, path))
            return &ops[i];
    return NULL;
}

/* Whether the repository at `git` says that its files are in the directory that holds `path`. Its configuration is the workspace's, or the
   one that lands with it, `lands`: as it was judged, for a box that lives may have written the layer's since. */
static bool leads_back(const struct layer_trees *t, const char *git, const char *path, const struct op *lands,
                       struct arena *mem)
{
    struct module_place p = {.t = t, .git = git, .at = BUF(2 * LAYER_PATH_MAX)};
    const char *config = arena_printf(mem, "%s/config", git);
    const char *holds = arena_printf(mem, "%s/%.*s", t->path, (int)(path_name(path) - path - 1), path);
    struct str text;
    const bool same_place =
        config && holds &&
        (lands ? read_part(t, lands, mem, &text) : repo_text(t, t->workspace, config, mem, &text, NULL)) == 0 &&
        gitconfig_parse(text, take_place, &p, NULL) == 0 && p.known && same(buf_cstr(&p.at), holds);
    buf_free(&p.at);
    return same_place;
}

const char *repo_file_why_not(const struct layer_trees *t, const struct change *c, const struct op *ops, size_t n,
                              struct arena *mem, struct str *ret_judged)
{
    const struct str name = STR("gitdir: ");
    struct str text;
    if (c->conflict)
        return c->conflict;
    if (repo_text(t, t->upper, c->path, mem, &text, NULL) < 0 || !str_starts(text, name))
        return "it names no repository";
    *ret_judged = text;
    text = str_skip(text, name.n);
    const char *git = led_to(c->path, str_until(&text, '\n'), mem);
    const char *head = git ? arena_printf(mem, "%s/HEAD", git) : NULL;
    if (!head || text.n || !repo_is_dir(git) || strcmp(path_name(git), REPO_DIR) == 0 ||
        strncmp(git, c->path, repo_inside(git)) != 0)
        return "it names something else than the repository of a submodule in this workspace";
    const char *config = arena_printf(mem, "%s/config", git);
    const bool lands = landing_at(ops, n, head);
    const struct op *settings = lands && config ? landing_at(ops, n, config) : NULL;
    if (lands && !settings)
        return "the repository that it names has no configuration";
    if (!lands && repo_text(t, t->workspace, head, mem, &text, NULL) < 0)
        return "the repository that it names is not in the workspace";
    return leads_back(t, git, c->path, settings, mem) ? NULL
                                                      : "the repository that it names belongs to another directory";
}

bool repo_guarded(const struct layer_trees *t, const char *path)
{
    const struct str whole = str_of(path);
    for (size_t i = 0; i < t->n_guarded; i++) {
        for (size_t at = 0, end; at < whole.n; at++)
            if ((at == 0 || path[at - 1] == '/') &&
                names_fit(str_of(t->guarded[i].name), t->guarded[i].pattern, whole, at, &end) &&
                (end == whole.n || path[end] == '/'))
                return true;
    }
    return false;
}

void repo_leave(struct repo_within *r)
{
    sys_drop(&r->t.workspace);
    sys_drop(&r->t.upper);
}

static const char *whole_path(const struct repo_within *r, const char *path, struct arena *mem)
{
    char room[LAYER_PATH_MAX];
    return arena_printf(mem, "%s%s", r->t.inside, repo_named(&r->t, path, room));
}

/* Puts the repository's directory in front of what was said of it since `from` was all. */
int repo_name_within(const struct repo_within *r, struct apply_more *more, const struct apply_outcome *from,
                     struct apply_outcome *out, struct arena *mem)
{
    for (size_t i = 0; i < more->n; i++) {
        struct op *op = &more->ops[i];
        const char *was = op->path;
        op->path = whole_path(r, was, mem);
        if (op->from == was)
            op->from = op->path;
    }
    for (size_t i = from->n_refused; i < out->n_refused; i++)
        out->refused[i].path = whole_path(r, out->refused[i].path, mem);
    for (size_t i = from->n_said; i < out->n_said; i++)
        out->said[i] = arena_printf(mem, "%s: %s", r->path, out->said[i]);
    return arena_failed(mem) ? -ENOMEM : 0;
}
