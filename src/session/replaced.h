/* Files that a session hides as they were at its start, and that somebody has replaced on this machine since. */
#pragma once
#include "base/arena.h"
#include "plan/plan.h"
#include "supervisor/run.h"

/* Which files of the plan these are, and which objects, as one text for the session's record; NULL: no memory. */
const char *replaced_watch(const struct plan *plan, struct arena *mem);
/* Adds an entry to what is left (run/asked/env_seen.h) for each that is another object now. */
void replaced_left(const char *watched, struct box_result *result);
