/* Where pinfold-init, which begins other programs' boxes, is looked for. */
#pragma once
#include "base/arena.h"

/* The two places for the program `own`: beside it, and where this build installs it. They may be NULL without memory. */
void pinfold_init_places(struct arena *mem, const char *own, const char *ret[2]);
