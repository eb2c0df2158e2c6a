/*
 * Lists for people: what the library reports, as a table. Scripts ask for --json, of which the manual says what is in it; these
 * forms may change.
 */
#pragma once
#include <stdbool.h>
#include "pinfold.h"

/* STATUS_YES, or STATUS_NO when standard output could not be written. */
int people_sessions(const struct pinfold_report *report);
int people_names(const struct pinfold_report *report); /* of sessions, one a line */
int people_session(const struct pinfold_report *report);
int people_removed(const struct pinfold_report *report, bool would);
int people_jobs(const struct pinfold_report *report);
int people_agents(const struct pinfold_report *report);
