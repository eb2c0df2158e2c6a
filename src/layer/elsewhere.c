/*
 * Apply to another directory than the workspace: a copy of it or another checkout. What the box began with is the workspace, where the
 * host has not changed it since; a path that is something else in the other directory is in conflict. That one has a journal, an undo
 * store and a ledger of its own in the layer, to/DEVICE-INODE, so that a kill and an undo are as in the workspace.
 */
#include <stdio.h>
#include <string.h>

#include "layer/change.h"
#include "layer/text.h"
#include "sys/fd.h"

#define ELSEWHERE "to"
#define PLACE     "place" /* its path, for people */
#define JOURNALS  64      /* other directories of a layer that are looked at for an interrupted apply */

int elsewhere_open(int layer, int dir, const char *path, struct err *e)
{
    struct layer_object o;
    auto_buf struct buf place = BUF(LAYER_PATH_MAX * 2);
    char name[64];
    int no = object_look(dir, "", &o);
    snprintf(name, sizeof name, ELSEWHERE "/%llx-%llx", (unsigned long long)o.device, (unsigned long long)o.ino);
    if (no == 0)
        no = sys_mkdirat(layer, ELSEWHERE, 0700);
    if (no == 0)
        no = sys_fsync(layer);
    if (no == 0 || no == -EEXIST)
        no = sys_mkdirat(layer, name, 0700);
    own_fd int store =
        no < 0 && no != -EEXIST ? no : sys_openat(layer, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    own_fd int all =
        store < 0 ? store : sys_openat(layer, ELSEWHERE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    text_put_rest(&place, path);
    no = all < 0 ? all : sys_fsync(all);
    if (no == 0)
        no = text_write(store, PLACE, &place);
    if (no < 0)
        return err_sys(e, ERR_SYSTEM, -no, "cannot make a place for '%s' in the layer", path);
    return sys_taken(&store);
}

const char *elsewhere_unfinished(int layer, struct arena *mem)
{
    char room[4096] __attribute__((aligned(8)));
    own_fd int all = sys_openat(layer, ELSEWHERE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    struct sys_entries entries = {.dir = all, .room = room, .bytes = sizeof room};
    size_t n = 0;
    for (const struct sys_dirent *d; all >= 0 && n < JOURNALS && (d = sys_next_entry(&entries)); n++) {
        struct layer_object journal;
        struct str text, line;
        own_fd int store = sys_openat(all, d->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        if (store < 0 || object_look(store, JOURNAL, &journal) < 0 || !journal.mode)
            continue;
        const char *place =
            text_read(store, PLACE, mem, &text) == 0 && text_line(&text, &line) ? text_rest(line, mem) : NULL;
        return place ? place : "another directory";
    }
    return NULL;
}

/* ---- what stands there ---- */

static int open_side(int top, const char *path, unsigned type)
{
    const char *name;
    own_fd int dir = object_parent(top, path, &name);
    return dir < 0 ? dir : object_open_as_is(dir, name, type);
}

/* Two files with the same bytes, or directories; and their attributes, which apply replaces. */
static const char *differs_inside(const struct layer_trees *base, const struct layer_trees *t, const struct change *b)
{
    const unsigned type = b->old.mode & S_IFMT;
    own_fd int before = open_side(base->workspace, b->path, type), there = open_side(t->workspace, b->path, type);
    if (before < 0 || there < 0)
        return "it cannot be read on both sides";
    const int content = type == S_IFREG ? object_same_content(before, there) : 1;
    const int attributes = content == 1 ? object_same_attributes(before, there) : 1;
    if (content < 0 || attributes < 0)
        return "it cannot be read on both sides";
    return !content      ? "its content there is not what the box began with"
           : !attributes ? "its attributes differ there"
                         : NULL;
}

/* `b`: the change of the workspace; `c`: the same path of the other directory. */
static const char *differs_there(const struct layer_trees *base, const struct layer_trees *t, const struct change *b,
                                 const struct change *c)
{
    const struct layer_object *before = &b->old, *there = &c->old;
    if (!before->mode)
        return there->mode ? "something else is there" : NULL;
    if (!there->mode)
        return "it is not there";
    if ((before->mode & S_IFMT) != (there->mode & S_IFMT) || before->node != there->node ||
        !same(b->old_link, c->old_link))
        return "it is not of the type there that the box began with";
    const bool directory = object_is(before, S_IFDIR);
    if (object_is(before, S_IFLNK) || (directory && (b->kind == CHANGE_DELETED || b->what & CHANGED_TYPE)))
        return NULL;
    if (before->uid != there->uid || before->gid != there->gid)
        return "its owner differs there";
    const uint32_t other = before->mode ^ there->mode;
    if (other && (directory || b->what & CHANGED_MODE || other & 07000))
        return "its permissions differ there";
    return directory || object_is(before, S_IFREG) ? differs_inside(base, t, b) : NULL;
}

/* What has landed in the workspace is no change of it any more, and its base is there no more. */
static int refuse_applied(const struct layer_trees *base, const struct changes *from, const struct changes *all,
                          const char *const *paths, struct arena *mem, struct apply_outcome *ret, struct err *e)
{
    struct ledger ledger;
    int r = ledger_read(base->store, mem, &ledger, e);
    for (size_t i = 0; r == 0 && i < all->n; i++) {
        const struct change *c = &all->all[i];
        const char *path = c->path;
        /* Of directories the ledger also has those in which something was changed. */
        if (object_is(&c->old, S_IFDIR) && object_is(&c->new, S_IFDIR))
            continue;
        if (path_wanted(path, paths, NULL) && ledger_find(&ledger, path) && !changes_find(from, path) &&
            outcome_refuse(mem, ret, path,
                           "it is in the workspace already, so what the box began with is no longer known; take that "
                           "back first: pinfold undo") < 0)
            return err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot apply it", base->id);
    }
    return r;
}

int elsewhere_choose(const struct layer_trees *base, const struct layer_trees *t, struct changes *all,
                     const char *const *paths, struct arena *mem, bool **ret_take, struct apply_outcome *ret,
                     struct err *e)
{
    struct changes from;
    bool *chosen, exact;
    int r = changes_read(base, mem, &from, e);
    if (r == 0)
        r = layer_choose(base, &from, paths, false, mem, &chosen, ret, e);
    if (r == 0)
        r = refuse_applied(base, &from, all, paths, mem, ret, e);
    *ret_take = arena_zero(mem, (all->n + 1) * sizeof **ret_take);
    if (r == 0 && !*ret_take)
        r = err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot apply it", base->id);
    for (size_t i = 0; r == 0 && i < from.n; i++) {
        const struct change *b = &from.all[i], *found = chosen[i] ? changes_find(all, b->path) : NULL;
        /* What is there already, and a directory that both have made, needs nothing. */
        if (!found || (b->kind == CHANGE_ADDED && object_is(&b->new, S_IFDIR) && object_is(&found->old, S_IFDIR)))
            continue;
        struct change *c = &all->all[found - all->all];
        (void)path_wanted(b->path, paths, &exact);
        const char *why = layer_why_not(c, exact);
        if (!why)
            why = differs_there(base, t, b, c);
        (*ret_take)[c - all->all] = !why;
        if (!why && b->kind == CHANGE_EDITED && object_is(&b->new, S_IFREG) &&
            !(b->what & (CHANGED_MODE | CHANGED_TYPE)))
            c->keep = c->old.mode;
        if (why && outcome_refuse(mem, ret, b->path, why) < 0)
            r = err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot apply it", base->id);
    }
    return r;
}
