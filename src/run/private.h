/*
 * A box's private directories on the host: layers over package caches, and in the Landlock tier its TMPDIR. Two boxes
 * must not share a layer (undefined behaviour: Documentation/filesystems/overlayfs.rst), so each running box of a
 * workspace has its own slot, locked.
 */
#pragma once
#include "plan/plan.h"

#define MAX_CACHE_SLOTS 1024

struct private_dirs {
    const struct plan *plan; /* of the temporary ones, NULL before */
    int lock;                /* the slot's directory, flock()ed; -1 */
    unsigned slot;
    const char *held; /* the slots' directory, if `lock` is a slot for which no plan exists yet; else NULL */
    bool moved;       /* they are in a state directory that goes with the last such box of this process (planned.c) */
};
#define PRIVATE_DIRS ((struct private_dirs){.lock = -1})

/*
 * Before planning: takes the first free slot in `slots`. If all are in use, or there is none, d->slot is the next
 * number and nothing is held.
 */
void private_guess(struct private_dirs *d, const char *slots);
/* Releases it if the plan did not need it or was not made. `slots` above must live until then. */
void private_unguess(struct private_dirs *d);
/*
 * Creates the directories of `plan` and takes its slot. -EBUSY: another box has that slot; `d` then holds a free one
 * (d->slot): plan again with it and call again.
 */
int private_begin(struct private_dirs *d, const struct plan *plan, struct err *e);
/* Removes temporary directories and releases the slot. */
void private_end(struct private_dirs *d);
