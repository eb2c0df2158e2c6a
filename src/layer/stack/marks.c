/*
 * The changes of a layer, with what the layers below it have to do with them: what of those has not landed in the workspace, and a diff
 * against them.
 */
#include "layer/stack/stack.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "layer/repo/repo.h"
#include "match/path.h"

static struct layer_trees stack_next(const struct layer_trees *t)
{
    struct layer_trees next = *t;
    next.upper = t->below[0].upper;
    next.store = t->below[0].store;
    next.since = t->below[0].since;
    next.id = t->below[0].id;
    next.below = t->below + 1;
    next.n_below = t->n_below - 1;
    return next;
}

static bool moves_all_below(const struct change *c)
{
    return c->kind != CHANGE_EDITED || c->what & CHANGED_TYPE || c->unread;
}

/* A change of the lower layer at `path`, at a directory above that it made or removed, or, `whole`, below. */
static bool stands_on(const struct changes *lower, const char *path, bool whole)
{
    char above[LAYER_PATH_MAX];
    size_t n = strlen(path);
    if (n >= sizeof above)
        return true;
    if (changes_find(lower, path))
        return true;
    memcpy(above, path, n + 1);
    while (n-- > 0) {
        if (above[n] != '/')
            continue;
        above[n] = 0;
        const struct change *c = changes_find(lower, above);
        if (c && moves_all_below(c))
            return true;
    }
    for (size_t i = 0; whole && i < lower->n; i++)
        if (path_below(lower->all[i].path, path))
            return true;
    return false;
}

/* Whether the layer itself has something at this path, or hides what is there. */
static bool is_over(const struct layer_trees *t, const char *path)
{
    const char *name;
    struct layer_object o;
    auto_fd int dir = object_parent(t->upper, path, &name);
    return dir >= 0 && object_look(dir, name, &o) == 0 && o.mode && !object_is(&o, S_IFDIR);
}

/* It lands with the repository as a whole, if at all, and is judged so (stack_repository()). */
static bool in_unit(const char *path)
{
    const enum repo_part part = repo_part_of(path);
    return part == REPO_UNIT || part == REPO_PASSING;
}

int stack_repository(const struct layer_trees *t, struct arena *mem, const char **ret_why, struct err *e)
{
    struct changes lower;
    struct repo repo;
    *ret_why = NULL;
    if (!t->n_below)
        return 0;
    const struct layer_trees next = stack_next(t);
    int r = changes_read(&next, mem, &lower, e);
    if (r == 0)
        r = repo_read(&next, &lower, mem, &repo, e);
    if (r < 0 || repo.why)
        return r;
    bool waits = repo.head.name && !repo.head.why;
    for (size_t i = 0; i < repo.n; i++)
        waits |= !repo.refs[i].why && !repo.refs[i].beside;
    if (!waits)
        return stack_repository(&next, mem, ret_why, e);
    *ret_why = arena_printf(mem,
                            "layer %.8s, on which this one stands, changes the repository, too, and that is not in the "
                            "workspace; apply it there first: pinfold apply %.8s .git",
                            next.id, next.id);
    return *ret_why ? 0 : err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot read its repository", t->id);
}

/* What stands in the workspace is what this layer has put there, over what the lower one had. */
static bool is_own(const struct ledger *own, const struct change *lower)
{
    const struct ledger_entry *known = ledger_find(own, lower->path);
    const struct layer_object *now = &lower->old;
    if (!known || !known->now.mode || !now->mode)
        return known && !known->now.mode && !now->mode;
    return object_untouched(&known->now, now) && (object_is(now, S_IFDIR) || known->now.changed == now->changed);
}

/* The changes of the layer below that have not landed. */
static int read_waiting(const struct layer_trees *t, const struct layer_trees *next, struct arena *mem,
                        struct changes *ret, struct err *e)
{
    struct ledger own;
    size_t n = 0;
    int r = changes_read(next, mem, ret, e);
    if (r == 0)
        r = ledger_read(t->store, mem, &own, e);
    for (size_t i = 0; r == 0 && i < ret->n; i++) {
        if (!is_own(&own, &ret->all[i]))
            ret->all[n++] = ret->all[i];
    }
    ret->n = r == 0 ? n : ret->n;
    return r;
}

/*
 * Puts a layer's changes `all` in conflict where those of the layers below `t` have not landed in the workspace: what the box saw there
 * is not what the workspace has. Lists in all->covered what only they have there.
 */
static int stack_mark(const struct layer_trees *t, struct arena *mem, struct changes *all, struct err *e)
{
    const struct layer_trees next = stack_next(t);
    struct changes lower;
    int r = read_waiting(t, &next, mem, &lower, e);
    const char *why =
        r < 0 ? NULL
              : arena_printf(mem,
                             "layer %.8s, on which this one stands, changes it, too, and that is not in the "
                             "workspace; apply it there first: pinfold apply %.8s",
                             next.id, next.id);
    if (r < 0 || !why)
        return r < 0 ? r : err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot read its changes", t->id);
    for (size_t i = 0; i < all->n; i++) {
        struct change *c = &all->all[i];
        if (!in_unit(c->path) && stands_on(&lower, c->path, moves_all_below(c) && object_is(&c->old, S_IFDIR)))
            c->conflict = why;
    }
    all->covered_why = why;
    for (size_t i = 0; i < lower.n; i++) {
        const char *path = lower.all[i].path;
        if (in_unit(path) || changes_find(all, path) || !is_over(t, path))
            continue;
        const char **slot = arena_push(mem, &all->covered, &all->n_covered, sizeof *slot);
        if (!slot)
            return err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot read its changes", t->id);
        *slot = path;
    }
    return 0;
}

/*
 * What the view has is what the box began with; whether the host is in the way is a question about the workspace. What has landed there
 * is a change no more.
 */
static int judge_view(const struct layer_trees *t, struct arena *mem, struct changes *all, struct err *e)
{
    struct changes there;
    struct ledger own;
    size_t n = 0;
    int r = changes_read(t, mem, &there, e);
    if (r == 0)
        r = ledger_read(t->store, mem, &own, e);
    for (size_t i = 0; r == 0 && i < all->n; i++) {
        const struct change *c = changes_find(&there, all->all[i].path);
        if (!c && ledger_find(&own, all->all[i].path))
            continue;
        all->all[n] = all->all[i];
        all->all[n].linked = 0; /* an index; only an apply asks for it */
        all->all[n++].conflict = c ? c->conflict : NULL;
    }
    all->n = r == 0 ? n : all->n;
    return r < 0 ? r : stack_mark(t, mem, all, e);
}

int stack_changes(const struct layer_trees *t, struct arena *mem, struct layer_trees *ret_view, struct changes *ret,
                  struct err *e)
{
    struct layer_trees view = *t;
    auto_fd int seen = stack_view(t);
    if (seen < 0)
        return err_sys(e, ERR_SYSTEM, -seen, "layer %s: cannot look at it over the layers that it stands on", t->id);
    view.workspace = seen;
    view.since = INT64_MAX;
    view.viewed = true;
    int r = changes_read(&view, mem, ret, e);
    const bool interrupted = r == 0 && ret->interrupted;
    if (r == 0)
        r = judge_view(t, mem, ret, e);
    ret->interrupted |= interrupted;
    if (r == 0 && ret_view) {
        *ret_view = view;
        ret_view->workspace = take_fd(&seen);
    }
    return r;
}

int changes_read(const struct layer_trees *t, struct arena *mem, struct changes *ret, struct err *e)
{
    const int r = changes_walk(t, mem, ret, e);
    return r == 0 && t->n_below && !t->viewed ? stack_mark(t, mem, ret, e) : r;
}
