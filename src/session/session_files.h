/* The file API of sessions, shared by program and shared library; each obtains the socket in its own way. */
#pragma once
#include "base/err.h"
#include "pinfold.h"

/*
 * The socket on which the session's guard serves files; stored with the session. `again`: the previous one has closed;
 * -ESTALE or another error if there is no new one. What the host changed is seen by a call on `path`, as far as session_files_put_down()
 * says.
 */
int session_files(struct pinfold_session *s, const char *path, bool again, int *ret, struct err *e);
/*
 * In the program: what the host changed below the session's layer and masks is seen by the next call on a socket of before; a new one
 * begins so. 1: the session has no layer, so its workspace is seen as it is (if it can be written).
 */
int session_files_fresh(struct pinfold_session *s, struct err *e);
/*
 * After a call on `path`: the next call sees what the host has replaced meanwhile (file_put_down()). With a layer, and in the program also
 * without one, outside of the workspace, where masks may be.
 */
void session_files_put_down(struct pinfold_session *s, const char *path);
/* In the program: passes `end` of a socket pair to the session's guard; borrowed. */
int session_files_give(struct pinfold_session *s, int end, struct err *e);
