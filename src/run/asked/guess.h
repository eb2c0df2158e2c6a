/* What a failed command was probably refused, by its own words: refusals by mounts, masks and modes raise no event. */
#pragma once
#include "run/direct.h"

/*
 * After a command that failed: adds what `why` finds behind its error text (captured stderr), and behind a program that
 * could not be executed, as denials marked as guesses, and logs them; and what the guard saw fail. Of a command line's own commands
 * (foreground) whoever reads the result may learn which names the host has that the box does not. Does nothing for a command that
 * succeeded, unless all are asked for (guess_all), which also looks in its standard output; errors are ignored.
 */
void guess_denials(struct pinfold_result *result, const struct plan_ask *ask, const struct pinfold_run_options *o);
/* Whether a command failed with an error text, or a missing program, from which that could be found. */
bool guess_is_worth_it(const struct box_result *r);
