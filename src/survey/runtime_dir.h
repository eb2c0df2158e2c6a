/*
 * Where the user's living things are: sockets of sessions, places of check-ins. `$XDG_RUNTIME_DIR/pinfold`, else one in
 * /tmp, where no other user may enter. No box may change either, whatever of /tmp or /run it is given (policy/own_files.c, and
 * plan/places/collect.c for the one in /tmp): who could put a socket there would be taken for a session.
 */
#pragma once
#include "base/arena.h"
#include "base/err.h"

/* The directory; it need not be there. NULL without memory. */
const char *runtime_path(struct arena *mem);
/* The one in /tmp, wherever the other is. */
const char *runtime_in_tmp(struct arena *mem);
/*
 * Whether `path` is a directory of the caller's own that nobody else may enter: 0, or -errno with a sentence. One that
 * others could only enter is closed to them; one that they could write in is refused.
 */
int runtime_judge(const char *path, struct err *e);
