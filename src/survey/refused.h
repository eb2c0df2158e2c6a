/* Why the native engine lacks something on this machine, after a trial that has shown it: for people. */
#pragma once
#include "plan/trial.h"

/* Why user namespaces cannot be created, or grant nothing. */
struct reason refused_namespaces(struct arena *mem, const struct tried *t);
/* Likewise why there can be no new /proc. */
struct reason refused_proc(struct arena *mem, const struct tried *t);
/* The first number in a file of /proc/sys or of a security module, or -1. */
long machine_switch(const char *path);
