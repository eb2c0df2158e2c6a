/* Reading what was logged. */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct pinfold_log_options;

/* An event of the audit log; texts in the arena, NULL where the event has none. */
struct logged {
    const char *t, *id, *session, *kind, *action, *target, *workspace;
};
/* The members of a line that the audit log wrote; false if it is none. */
bool logged_read(struct str line, struct arena *mem, struct logged *ret);
/* The last refusal in a box of this workspace; ret->t is NULL if there is none. -errno with `e`. */
int logged_last(const char *workspace, struct arena *mem, struct logged *ret, struct err *e);
/*
 * Writes what the options of pinfold_log_select() select. 0; 1: --verify has found changes; -errno with `e`. `ret_named`: the log has
 * an event of the session that they name, written or not.
 */
int logged_print(const struct pinfold_log_options *o, bool *ret_named, struct err *e);
