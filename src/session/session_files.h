/* The file API of sessions, shared by program and shared library; each obtains the socket in its own way. */
#pragma once
#include "base/err.h"
#include "pinfold.h"

/*
 * The socket on which the session's guard serves files; stored with the session. `again`: the previous one has closed;
 * -ESTALE or another error if there is no new one.
 */
int session_files(struct pinfold_session *s, bool again, int *ret, struct err *e);
/*
 * In the program: what the host changed below the session's layer is seen by the next call on a socket of before; a new one
 * begins so. 1: the session has no layer, and sees everything at once.
 */
int session_files_fresh(struct pinfold_session *s, struct err *e);
/* After a call on it: with a layer, the next call sees what the host has replaced meanwhile (file_put_down()). */
void session_files_put_down(struct pinfold_session *s);
/* In the program: passes `end` of a socket pair to the session's guard; borrowed. */
int session_files_give(struct pinfold_session *s, int end, struct err *e);
