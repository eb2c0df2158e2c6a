/*
 * The copy-on-write layer of a run. It is made before the plan, which mounts it, and held until its box has ended; then
 * all of its file system is written out (syncfs), because the overlay itself writes nothing to the disk, and its record
 * says that it is whole.
 */
#include "run/cow.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "run/private.h"

#define MAX_COW_WORDS 4096

int cow_begin(const struct pinfold_policy *p, const struct pinfold_run_options *o, struct arena *mem,
              struct layer_held *held, struct plan_ask *ask, struct err *e)
{
    *held = LAYER_HELD;
    if (!o->cow)
        return 0;
    char *real = realpath(p->policy->workspace, NULL);
    const char *workspace = real ? arena_text(mem, real) : NULL;
    free(real);
    if (!workspace)
        return err_sys(e, ERR_POLICY, errno, "--cow: the workspace '%s'", p->policy->workspace);
    const struct layer_ask wanted = {
        .workspace = workspace, .name = o->cow[0] ? arena_text(mem, o->cow) : NULL, .command = o->argv};
    int r = layer_hold(p->layers.world.state, &wanted, mem, held, e);
    ask->layer = held->path;
    return r;
}

/* The record goes first: without it there is no layer. */
static void remove_layer(const struct layer *l, const char *path)
{
    (void)unlinkat(l->dir, "record", 0);
    remove_tree(AT_FDCWD, path);
}

static void count_changes(const struct changes *all, struct box_layer *ret)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct change *c = &all->all[i];
        ret->edited += c->kind == CHANGE_EDITED;
        ret->added += c->kind == CHANGE_ADDED;
        ret->deleted += c->kind == CHANGE_DELETED;
        ret->waiting += (c->alarms & ALARMS_WAIT) != 0;
    }
}

static int read_changes(const struct policy *policy, const struct layer *l, struct arena *mem, struct changes *ret,
                        struct err *e)
{
    auto_fd int upper = openat(l->dir, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    auto_fd int workspace = open(l->workspace, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct layer_guarded *names;
    struct layer_trees t = {.upper = upper,
                            .workspace = workspace,
                            .store = l->dir,
                            .since = l->since,
                            .id = l->id,
                            .path = l->workspace};
    if (upper < 0 || workspace < 0)
        return err_sys(e, ERR_SYSTEM, errno, "layer %s: cannot open it and its workspace", l->id);
    if (layer_guarded_names(policy, mem, &names, &t.n_guarded) < 0)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s", l->id);
    t.guarded = names;
    return changes_read(&t, mem, ret, e);
}

void cow_say(const struct pinfold_run_options *o, const struct box_layer *n)
{
    auto_buf struct buf words = BUF(MAX_COW_WORDS);
    if (!o->say || !n->id[0] || !n->kept)
        return;
    buf_printf(&words, "layer %.8s: %llu changed, %llu new, %llu deleted", n->id, (unsigned long long)n->edited,
               (unsigned long long)n->added, (unsigned long long)n->deleted);
    if (n->waiting)
        buf_printf(&words, "; %llu of them must be named to be applied", (unsigned long long)n->waiting);
    o->say(o->say_ctx, PINFOLD_SAY_NOTE, buf_cstr(&words));
    buf_free(&words);
    buf_printf(&words, "nothing of it is in the workspace yet: pinfold diff %.8s, pinfold apply %.8s --all, pinfold discard %.8s",
               n->id, n->id, n->id);
    o->say(o->say_ctx, PINFOLD_SAY_NOTE, buf_cstr(&words));
}

int cow_end(const struct pinfold_policy *p, const struct pinfold_run_options *o, struct arena *mem,
            struct layer_held *held, int r, struct box_layer *ret, struct err *e)
{
    struct layer *l = &held->layer;
    struct changes all = {0};
    struct err why = {0};
    *ret = (struct box_layer){.kept = true};
    if (l->dir < 0)
        return r;
    memcpy(ret->id, l->id, sizeof ret->id);
    if (!l->name && layer_is_empty(l)) {
        remove_layer(l, held->path);
        ret->kept = false;
        layer_release(held);
        return r;
    }
    int sealed = layer_seal(held, &why);
    /* The command has run: that its changes cannot be counted is no reason to lose its result. */
    if (sealed == 0 && r >= 0) {
        struct err untold = {0};
        if (read_changes(p->policy, l, mem, &all, &untold) == 0) {
            count_changes(&all, ret);
        } else if (o->say) {
            o->say(o->say_ctx, PINFOLD_SAY_WARNING, untold.text);
        }
    } else if (sealed < 0 && r >= 0) {
        r = err_wrap(e, (*e = why, sealed), "the command has ended, but its changes may be lost when the machine stops");
    }
    layer_release(held);
    return r;
}
