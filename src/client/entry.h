/* Hidden entry points of the program: other parts of pinfold start it with these arguments. */
#pragma once
#include <stdbool.h>
#include "run/agent_start.h" /* the command line's agents, which are no part of the library */

/* --serve (server of the shared library) and --attack (doctor's attacks in a box): true if it was one of them. --guard-process
   (the guard of a box) does not return. */
bool entry_hidden(int argc, char **argv, int *ret_status);
