/* Directories of ssh's system-wide configuration, for the policy that hides them (policy/ssh_files.c). */
#pragma once
#include "policy/build.h"

/* Writes those that have something in them now, and NULL behind them. None for root, in whose boxes root's files are root's. */
void ssh_files_find(const char *ret[MAX_SSH_FILES + 1]);
