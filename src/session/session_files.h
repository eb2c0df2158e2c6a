/*
 * The file API of sessions, the same in the program and in the shared library: each finds the socket its own way.
 */
#pragma once
#include "base/err.h"
#include "pinfold.h"

/*
 * The socket on which the session's guard serves files, kept with the session. `again`: the one of before is at its end; -ESTALE
 * or another error when there is no new one.
 */
int session_files(struct pinfold_session *s, bool again, int *ret, struct err *e);
/* In the program: `end`, of a socket pair, goes to the session's guard; borrowed. */
int session_files_give(struct pinfold_session *s, int end, struct err *e);
