/*
 * The doors of the program that are no verbs: what other parts of pinfold start it as.
 */
#pragma once
#include <stdbool.h>

/* --serve (the shared library's server) and --attack (doctor's attacks inside a box): true when it was one of them. */
bool entry_hidden(int argc, char **argv, int *ret_status);
