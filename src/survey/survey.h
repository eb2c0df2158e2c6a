/*
 * The survey: what the host has at every path that a policy names, and the mount points that a plan needs. One open and
 * one stat per path, by descriptor; walks no tree and triggers no automount (AT_NO_AUTOMOUNT).
 */
#pragma once
#include "base/err.h"
#include "plan/facts.h"
#include "policy/policy.h"

/* Fills in facts->paths in `mem`. A missing path is a fact, not an error; errors are for what cannot be examined. */
int survey(const struct policy *p, struct facts *f, struct arena *mem, struct err *e);

/* targets.c: the part that follows guarded links and reads git's configuration. */
/* The same for a caller that only reports it: facts.repository_note and facts.bounds_note, or NULL. */
/* The same look, for what guarded names and git's configuration lead to in the workspace: absolute paths, in `mem`. */
int survey_led_to(const struct policy *p, const char *home, struct arena *mem, const char *const **ret, size_t *ret_n);
int survey_repository(const struct policy *p, const char *home, struct arena *mem, const char *ret[2]);
int survey_targets(const struct policy *p, struct facts *f, struct arena *mem);
