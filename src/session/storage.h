/*
 * What a session stores: directories below its state directory, and named volumes of docker's and podman's daemons, which
 * are found by the record (record.h) and by their labels. They go with the session, and nobody else's are touched.
 */
#pragma once
#include "session/record.h"
#include "plan/plan.h"

/* Where a session's plan keeps it: nothing is made. */
int storage_plan(const struct session_place *p, struct plan_ask *ask, struct arena *mem, struct err *e);
/* Makes the volumes that the record names, or finds this session's own. */
int storage_make(const struct session_place *p, const struct record *r, struct arena *mem, struct err *e);
/* Removes them; directories go with the state directory. A daemon that is asked for one and is not there is an error. */
int storage_remove(const struct session_place *p, const struct record *r, struct arena *mem, struct err *e);
/* .../pinfold of a session's state directory, in `mem`. */
const char *storage_state(const struct session_place *p, struct arena *mem);
