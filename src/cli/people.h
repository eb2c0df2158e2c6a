/*
 * Lists for people: prints the library's reports as tables. These forms may change; scripts use --json, which the manual
 * describes.
 */
#pragma once
#include <stdbool.h>
#include "pinfold.h"

/* STATUS_YES, or STATUS_NO if standard output cannot be written. */
int people_sessions(const struct pinfold_report *report);
/* Boxes of projects and of their branches; what is kept for them. */
struct people_project {
    const char *repo, *mode, *state, *engine, *workdir, *volumes;
    const char *created; /* a time in UTC; "" */
};
int people_projects(const struct people_project *rows, size_t n);
struct people_volume {
    const char *name, *kind, *project, *where;
};
int people_volumes(const struct people_volume *rows, size_t n);
int people_names(const struct pinfold_report *report); /* names of sessions, one per line */
int people_session(const struct pinfold_report *report);
int people_removed(const struct pinfold_report *report, bool would);
int people_jobs(const struct pinfold_report *report);
/* Says of a job whose command was not executed why. */
void people_job_not_begun(const struct pinfold_report *report, unsigned job);
int people_agents(const struct pinfold_report *report);
