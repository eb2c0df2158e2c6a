/* `diff --tool`: both sides of changes, compared by a person's own tool in a box. */
#pragma once
#include "layer/change.h"

/* Runs `tool` with the directories "old" and "new"; *ret_status is its exit status, or stays if there is nothing to compare. */
int layer_tool(const struct layer_trees *t, const struct changes *all, const bool *take, const char *tool,
               struct arena *mem, struct apply_outcome *out, int *ret_status, struct err *e);
