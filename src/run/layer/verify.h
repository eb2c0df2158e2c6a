/*
 * git.verify: required for what a box commits into its layer: protected branches land when the layer is applied, and then the person's
 * hooks judge what they are to move to, as in a box that writes the repository itself (run/moves.h).
 */
#pragma once
#include "layer/repo/repo.h"

/* Has the branches of `r` judged that are to land, if that was noted: what did not pass gets a `why`. `answer`: git's, with the objects. */
int verify_landing(const struct layer_trees *t, struct repo *r, int answer, struct arena *mem, struct err *e);
