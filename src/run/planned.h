/* A plan with what it needs on the host: its directories, and a slot of the caches that no other box uses. */
#pragma once
#include "run/direct.h"
#include "run/private.h"

int planned_make(const struct pinfold_policy *p, struct plan_ask *ask, bool thorough, struct private_dirs *dirs,
                 struct prepared *ret, struct err *e);
/* Whether this process may write files as a start does; an error that says what to do otherwise. */
int planned_file_limit(struct err *e);
/* Default working directory: the caller's, or the workspace if one was chosen elsewhere. */
const char *planned_directory(const struct pinfold_policy *p);
/* Call when the box has ended. */
void planned_end(struct private_dirs *dirs);

#define PLANNED_SPANS 32
/* Memory needed for a start but not for the life of the box. */
struct planned_memory {
    struct prepared *prepared;
    struct pinfold_policy *policy;
    struct span spare[PLANNED_SPANS];
};
/* What a box of this plan is started from; `m` must live as long as the box. */
struct run_spec planned_spec(struct planned_memory *m);
/* Everything read, parsed and planned except the image of the plan; at most `room` spans. */
size_t planned_spare(const struct planned_memory *m, struct span *ret, size_t room);
/* Keeps what a result needs and frees the rest; `ctx` is a struct planned_memory. */
void planned_give_back(void *ctx);
