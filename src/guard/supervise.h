/* The guard of a box that a builder has built, and the process in which it serves (supervise.c). */
#pragma once
#include "runtime/builder.h"

/*
 * struct builder's `supervise`; its arguments are owned. Waits until something is to be judged: a call, or the file API.
 * Then it executes the builder's `program` as the guard, if there is one, and otherwise serves in this process. Returns
 * pid 1's wait status, or -errno.
 */
int guard_supervise(struct builder *b, int notify, int host_proc, int init);
/* For the main of such a program: serves, and does not return, if guard_supervise() has executed it. The process is then
   called `name`. */
void guard_main(int argc, char **argv, const char *name);
