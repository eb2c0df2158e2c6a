/* Where to find pinfold-init, which starts the boxes of other programs. */
#pragma once
#include "base/arena.h"

/* The two places for the program `own`: beside it, and where this build installs it. NULL without memory. */
void pinfold_init_places(struct arena *mem, const char *own, const char *ret[2]);
