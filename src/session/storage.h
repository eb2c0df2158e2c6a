/*
 * What a session stores: directories below its state directory, and named volumes of docker's and podman's daemons,
 * found by the record (record.h) and by their labels. They are removed with the session; nobody else's are touched.
 */
#pragma once
#include "session/record.h"
#include "plan/plan.h"

/* Where a session's plan puts it; creates nothing. */
int storage_plan(const struct session_place *p, struct plan_ask *ask, struct arena *mem, struct err *e);
/* Creates the volumes that the record names, or finds this session's own. */
int storage_make(const struct session_place *p, const struct record *r, struct arena *mem, struct err *e);
/* Removes them; directories are removed with the state directory. It is an error if a daemon does not answer. */
int storage_remove(const struct session_place *p, const struct record *r, struct arena *mem, struct err *e);
/* .../pinfold of a session's state directory, in `mem`. */
const char *storage_state(const struct session_place *p, struct arena *mem);
