/* Files that a session hides as they were at its start, and that somebody has replaced on this machine since. */
#pragma once
#include "base/arena.h"
#include "plan/plan.h"
#include "supervisor/run.h"

struct pinfold_session;
/* Which object `path` is now, as text for the session's record; "": none, or no path. */
const char *replaced_identity(const char *path, struct arena *mem);
/* Whether it still is what that text says; *ret_there: something is. */
bool replaced_is(const char *path, const char *was, bool *ret_there);
/*
 * -ESTALE with a sentence if the name of the session's workspace does not lead to the directory any more that its box has, and `path`,
 * where something is to be done, is in it. NULL: where the session's commands begin. The box can do nothing of use there: a directory
 * that was removed takes no files, and nobody outside finds what is in one that was moved. `remedy`: words, or NULL.
 */
int replaced_workspace(const struct pinfold_session *s, const char *path, const char *remedy, struct err *e);

/* Which files of the plan these are, and which objects, as one text for the session's record; NULL: no memory. */
const char *replaced_watch(const struct plan *plan, struct arena *mem);
/* Adds an entry to what is left (run/asked/env_seen.h) for each that is another object now. */
void replaced_left(const char *watched, struct box_result *result);
