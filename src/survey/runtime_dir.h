/*
 * The user's runtime directory: sockets of sessions, directories of check-ins. `$XDG_RUNTIME_DIR/pinfold`, else one in
 * /tmp that no other user may enter. No box may change either, whatever it is given of /tmp or /run
 * (policy/own_files.c, and plan/places/collect.c for the one in /tmp): a socket put there would be taken for a session.
 */
#pragma once
#include <stdbool.h>
#include "base/arena.h"
#include "base/err.h"

/* The directory, which may not exist. NULL without memory. */
const char *runtime_path(struct arena *mem);
bool runtime_is_said(void); /* by the variable, not in /tmp */
/* The one in /tmp, even if the other is used. */
const char *runtime_in_tmp(struct arena *mem);
/*
 * Checks that `path` is a directory of the caller that nobody else may enter: 0, or -errno with a message. If others
 * may only enter it, it is closed to them; if they may write in it, it is refused.
 */
int runtime_judge(const char *path, struct err *e);
