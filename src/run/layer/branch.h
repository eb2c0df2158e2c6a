/* A new branch of the workspace's repository, with a commit of a layer's changes. The work tree stays as it is. */
#pragma once
#include "layer/change.h"

struct layer_branch_ask {
    const char *name; /* "agent/try" */
    bool everything;  /* no path was named: what git ignores stays out */
    const char *home; /* where git's configuration of the person lies */
};
/* `take`: of each change whether it is wanted. */
int branch_make(const struct layer_trees *t, const struct changes *all, const bool *take,
                const struct layer_branch_ask *ask, struct arena *mem, struct apply_outcome *out, struct err *e);
