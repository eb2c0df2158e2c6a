/* What the files of the native engine share. */
#pragma once
#include "backends/engine.h"

/* The guard's program (guard/guard.h): pinfold executed by a builder, with what it left in descriptor `fd`. */
_Noreturn void native_guard(int fd);
int native_probe(struct facts *f, struct arena *mem, bool thorough, struct err *e);
