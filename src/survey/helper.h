/* Where programs of pinfold's own are looked for: pinfold-init, which begins other programs' boxes, pinfold-login and others. */
#pragma once
#include <stdbool.h>

#include "base/arena.h"
#include "plan/facts.h"

enum { N_HELPER_PLACES = 3 };
/*
 * The places for `name` and the program `own`: beside it, in ../libexec/pinfold if it lies in a directory bin, and where this build
 * installs it. NULL: none, or no memory.
 */
void helper_places(struct arena *mem, const char *own, const char *name, const char *ret[N_HELPER_PLACES]);
/*
 * What no box may change, so that none of them is another one: those beside `own`, and the directories where they are installed. In a
 * clone that ./pinfold builds, all of build/: what it has for the compiler is run, too.
 */
void helper_guarded(struct arena *mem, const char *own, bool is_clone, const char *ret[N_HELPERS]);
/* clone.c: whether the program lies in build/ of a clone of pinfold; otherwise it is installed, or was copied. */
bool helper_is_in_clone(struct arena *mem, const char *own);
