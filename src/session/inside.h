/*
 * What a caller says to a command in a session by this machine's names, as the box has it: its directory and the values of its
 * variables. The session's table of mounts (protocol/paths.h) stands beside its record where something is shown under another
 * name; most sessions have none, and pay nothing.
 */
#pragma once
#include "session/session.h"

/* Writes the table beside the record to be, and says in that whether there is one. */
int inside_write(const struct session_place *p, const struct plan *plan, struct record *r, struct err *e);
/* Replaces o->cwd and values in o->env; new texts live in `mem`. */
int inside_options(const struct pinfold_session *s, struct pinfold_exec_options *o, struct arena *mem, struct err *e);
