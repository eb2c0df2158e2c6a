/*
 * The caller's terminal and a background command of a session, until that ends or the caller leaves (Ctrl-P Ctrl-Q).
 */
#pragma once
#include "session/session.h"

/*
 * Its status, as run's, with a sentence in `error` when the session was ended with it; -EINTR: the caller has left it running;
 * -errno. `notes`: what was denied to one that failed, a sentence a line; or NULL.
 */
int session_attach(struct pinfold_session *s, uint32_t job, uint64_t from, bool watch_only, struct buf *notes,
                   struct pinfold_error *error);
