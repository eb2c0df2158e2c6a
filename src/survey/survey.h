/*
 * The survey: what the host's file system holds at every path a policy names (and the mount points a plan needs).
 * One open and one stat per path, by descriptor, no walk of any tree, no automount triggered (AT_NO_AUTOMOUNT).
 */
#pragma once
#include "base/err.h"
#include "plan/facts.h"
#include "policy/policy.h"

/* Fills facts->paths in `mem`. A missing path is a fact, not an error; errors are for what cannot be looked at. */
int survey(const struct policy *p, struct facts *f, struct arena *mem, struct err *e);

/* targets.c: the part of it that follows guarded links and reads git's configuration. */
/* The same for who only wants to say it: facts.repository_note and facts.bounds_note, or NULL. */
int survey_repository(const struct policy *p, const char *home, struct arena *mem, const char *ret[2]);
int survey_targets(const struct policy *p, struct facts *f, struct arena *mem);
