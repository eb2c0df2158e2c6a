/* Reading what was logged. */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* An event of the audit log; texts in the arena, NULL where the event has none. */
struct logged {
    const char *t, *id, *session, *kind, *action, *target, *workspace;
};
/* The members of a line that the audit log wrote; false if it is none. */
bool logged_read(struct str line, struct arena *mem, struct logged *ret);
/* The last refusal in a box of this workspace; ret->t is NULL if there is none. -errno with `e`. */
int logged_last(const char *workspace, struct arena *mem, struct logged *ret, struct err *e);
