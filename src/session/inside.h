/*
 * Translates the host's paths that a caller passes to a command in a session into the box's: its directory and the
 * values of its variables. The session's table of mounts (protocol/paths.h) is stored beside its record if something is
 * shown under another name; most sessions have none and do no work here.
 */
#pragma once
#include "session/session.h"

/* Writes the table beside the future record, and notes in that whether there is one. */
int inside_write(const struct session_place *p, const struct plan *plan, struct record *r, struct err *e);
/* Replaces o->cwd and values in o->env; new texts live in `mem`. */
int inside_options(const struct pinfold_session *s, struct pinfold_exec_options *o, struct arena *mem, struct err *e);
