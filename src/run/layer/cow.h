/* The copy-on-write layer of a run, and layers as a list: made before the plan, sealed and told after the box. */
#pragma once
#include "base/json.h"
#include "layer/change.h"
#include "layer/spare.h"
#include "layer/store.h"
#include "run/direct.h"

/* With o->cow: makes or takes up the layer; `ask` then names it (and ask->session, in `scope`, is what it is for). `held` must be
   released with cow_end(). */
int cow_begin(const struct pinfold_policy *p, const struct pinfold_run_options *o, const char *scope, struct arena *mem,
              struct layer_held *held, struct plan_ask *ask, struct err *e);
/* What a box with a layer of this workspace cannot do: git, whose repository lies elsewhere (a linked work tree, a submodule). A
   sentence in `mem`, or NULL. */
const char *cow_limit(const char *workspace, struct arena *mem);
/*
 * For a plan that is only shown, of a policy with files.cow: as if a layer were there. Nothing is made. -ENOMEM without
 * memory.
 */
int cow_shown(const struct pinfold_policy *p, struct plan_ask *ask);
/*
 * `r`: how the run went. Writes the layer to the disk and counts what is in it, or removes it if nothing was changed.
 * Returns r, or why the layer could not be kept.
 */
int cow_end(const struct pinfold_policy *p, const struct pinfold_run_options *o, struct arena *mem,
            struct layer_held *held, int r, struct box_layer *ret, struct err *e);
/* What is done beside a box, while it waits for its command. */
struct cow_beside {
    struct layer_tending tending;
    struct repo_base *base;
    bool lasts; /* the box has lived long enough for what a short one can do at its end, or need not */
};
/* Call it just before the box starts (layer_wait()). While the box lives, notes what it began with of the texts that it has changed, for a merge if the host changes them later, keeps the index,
   and prepares what the next layer begins with. `held` and `ret` must live as long as the box; NULL: it has no layer. End it with
   cow_beside_end(). */
void cow_beside(struct run_spec *spec, struct layer_held *held, struct cow_beside *ret);
void cow_beside_end(struct cow_beside *b);
/* After all else: how many changes wait, and what to do with them. */
void cow_say(const struct pinfold_run_options *o, const struct box_layer *n);
/* What its changes take on the disk. */
uint64_t layer_bytes(const struct layer *l);
/* Removes the layer at `path`, unless it is used, stood on, or half applied. */
int layer_discard(const char *state, const struct layer *l, const char *path, struct arena *mem, struct err *e);
/* Whether the layer `id` stands on the one that `from` names. */
bool layer_stands_on(const char *id, const char *from);
/* Of the layer `id`, which a session had before: a sentence in `mem` that says where its changes are; NULL: it has none, or has gone. */
const char *layer_left(const char *id, struct arena *mem);
/* "layer_bytes" and "layer_created" of the layer `id`; nulls if it has gone. */
void layer_put_size(struct json *j, const char *id);
/* "layer": {"id", "name", "workspace", "created"}. */
void layer_put(struct json *j, const struct layer *l);
/* What a policy guards in the workspace, and what that leads to there now, as apply asks for it; in `mem`. */
int layer_guarded_names(const struct policy *policy, const struct layer *l, const char *home, struct arena *mem,
                        struct layer_guarded **ret, size_t *ret_n);
