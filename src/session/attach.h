/* Connects the caller's terminal to a job of a session, until that ends or the user detaches (Ctrl-P Ctrl-Q). */
#pragma once
#include "session/session.h"

/*
 * Returns its status, as run's, with a message in `error` if the session ended with it; -EINTR: detached; -errno.
 * `notes` (or NULL): denials of a job that failed, one line each.
 */
int session_attach(struct pinfold_session *s, uint32_t job, uint64_t from, bool watch_only, struct buf *notes,
                   struct pinfold_error *error);
