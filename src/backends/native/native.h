/* What the files of the native engine share. */
#pragma once
#include "backends/engine.h"

/* For the main of a program that starts boxes: a builder executes it again as the guard of its box (guard/guard.h), and
   then this does not return. Without it, guards stay in the builders' processes, which get copies of the memory. */
void native_main(int argc, char **argv);
/* Whether a short-lived child may run in this process's memory: in the program, before anything of a box was in it. */
bool native_may_share(void);
bool native_has_main(void);
/* Its memory is a builder's, too, until that has ended. */
void native_lend(bool now);
bool native_lends(void);
