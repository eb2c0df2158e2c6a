/* Where programs of pinfold's own are looked for: pinfold-init, which begins other programs' boxes, and pinfold-sqlite. */
#pragma once
#include "base/arena.h"

/* The two places for `name` and the program `own`: beside it, and where this build installs it. They may be NULL without memory. */
void helper_places(struct arena *mem, const char *own, const char *name, const char *ret[2]);
/* What no box may change, so that none of them is another one: those beside `own`, and the directory where they are installed. */
void helper_guarded(struct arena *mem, const char *own, const char *ret[3]);
