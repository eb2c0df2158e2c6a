/*
 * What git's hooks on this machine run from the package.json at the top of the workspace, before a box and after it. The file cannot be
 * guarded whole; so the caller is told if those keys are others when the box has ended.
 */
#pragma once
#include "base/buf.h"
#include "policy/policy.h"
#include "supervisor/run.h"

struct hooks_seen {
    struct buf before;
    bool looked, unknown; /* it could not be read */
};

/* Before the box. Nothing where nothing is guarded, or the workspace itself is not written. */
void hooks_look(const struct policy *p, struct hooks_seen *ret);
/* After it: adds an entry to what is left. */
void hooks_changed(const struct policy *p, struct hooks_seen *seen, struct box_result *result);
void hooks_seen_free(struct hooks_seen *seen);
