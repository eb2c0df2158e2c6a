/* What native, and what is built on it, can do on this machine (probe.c). */
#pragma once
#include "plan/plan.h"

int native_probe(struct facts *f, struct arena *mem, bool thorough, struct err *e);
/* Why no guard could read the arguments of a box's system calls, and what would help; NULL: it can. */
const char *native_unreadable(const struct facts *f, const char **ret_remedy);
