/* What the files of the native engine share. */
#pragma once
#include "backends/engine.h"

/* For the main of a program that starts boxes: a builder executes it again as the guard of its box (guard/guard.h), and
   then this does not return. Without it, guards stay in the builders' processes, which get copies of the memory. */
void native_main(int argc, char **argv);
/* From here on the thorough probe's child runs in the process's memory, as long as that is the program's own: others may look into it. */
void native_probe_in_memory(void);
int native_probe(struct facts *f, struct arena *mem, bool thorough, struct err *e);
