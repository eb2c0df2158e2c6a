/*
 * A plan with what it needs on the host: directories of its own, a slot of the caches that no other box has.
 */
#pragma once
#include "run/direct.h"
#include "run/private.h"

int planned_make(const struct pinfold_policy *p, struct plan_ask *ask, bool thorough, struct private_dirs *dirs,
                 struct prepared *ret, struct err *e);
/* Where a command begins that says nothing: the caller's directory, or the workspace when one was chosen that is elsewhere. */
const char *planned_directory(const struct pinfold_policy *p);
/* Once the box is gone. */
void planned_end(struct private_dirs *dirs);

/* What a start needed and the life of the box does not. */
struct planned_memory {
    struct prepared *prepared;
    struct pinfold_policy *policy;
};
#define PLANNED_SPANS 32
/* All that was read, parsed and planned but for the image of the plan; `room` spans at most. */
size_t planned_spare(const struct planned_memory *m, struct span *ret, size_t room);
/* Keeps what a result needs, gives the rest back; `ctx` is a struct planned_memory. */
void planned_give_back(void *ctx);
