/*
 * Lists for people: prints the library's reports as tables. These forms may change; scripts use --json, which the manual
 * describes.
 */
#pragma once
#include <stdbool.h>
#include "pinfold.h"

/* STATUS_YES, or STATUS_NO if standard output cannot be written. */
int people_sessions(const struct pinfold_report *report);
/* Those whose names begin with `prefix`, as projects. */
int people_projects(const struct pinfold_report *report, const char *prefix);
int people_names(const struct pinfold_report *report); /* names of sessions, one per line */
int people_session(const struct pinfold_report *report);
int people_removed(const struct pinfold_report *report, bool would);
int people_jobs(const struct pinfold_report *report);
int people_agents(const struct pinfold_report *report);
