/* The guard of a box that a builder has built. */
#pragma once
#include "runtime/builder.h"

/* struct builder's `supervise`: guard_serve() for this box, from which guard_resume() gets the builder's end. */
int guard_supervise(const struct builder *b, int notify, int host_proc, int init);
