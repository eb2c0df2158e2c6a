/*
 * A box's private directories on the host: layers over package caches, and in the Landlock tier its TMPDIR. Two boxes
 * must not share a layer (overlayfs.rst: undefined), so each living box of a workspace has a slot of its own, locked.
 */
#pragma once
#include "plan/plan.h"

#define MAX_CACHE_SLOTS 1024

struct private_dirs {
    const struct plan *plan; /* of the temporary ones, NULL before */
    int lock;                /* the slot's directory, flock()ed; -1 */
    unsigned slot;
    const char *held; /* the slots' directory, when `lock` is a slot that no plan has asked for yet; else NULL */
};
#define PRIVATE_DIRS ((struct private_dirs){.lock = -1})

/*
 * For a plan that is about to be made: takes the first free slot of those that are in `slots`. Where all of them are other
 * boxes', or none is there, d->slot is the number of the next and nothing is held.
 */
void private_guess(struct private_dirs *d, const char *slots);
/* Gives it back when the plan had no use for it, or was not made. `slots` above must live until then. */
void private_unguess(struct private_dirs *d);
/*
 * Makes the directories that `plan` names and takes its slot. -EBUSY: the slot is another box's; `d` then holds a free one
 * (d->slot): make the plan again with that and call again.
 */
int private_begin(struct private_dirs *d, const struct plan *plan, struct err *e);
/* Removes the temporary ones and gives the slot back. */
void private_end(struct private_dirs *d);
/* Removes `name` in `dir` with all below it, following no link. */
void remove_tree(int dir, const char *name);
void remove_tree_counted(int dir, const char *name, uint64_t *bytes); /* adds what files took up */
