/* What the caller of a run is told of a refusal while the command runs, and of a guess after it. */
#pragma once
#include "run/direct.h"

/* The caller is told of a refusal (pinfold_run_options.denied). */
void say_denied(const struct pinfold_run_options *o, const struct denial *d);
