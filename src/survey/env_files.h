/* The .env files at the top of a workspace, for the policy that hides them (policy/env_files.c). */
#pragma once
#include "policy/build.h"

/*
 * Writes the names of what is_env_file(), no directory, and not in git's index as it is, at the top of `workspace`, in `mem`, and returns how many; a
 * negative errno with a message if there are more than MAX_ENV_FILES. A workspace that cannot be listed may have .env and
 * .env.local.
 */
int env_files_in(const char *workspace, struct arena *mem, const char *names[MAX_ENV_FILES], struct err *e);
