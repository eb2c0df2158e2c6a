/* The person's own definitions of agents: those in the configuration, and files that were named: agent_own.c. */
#pragma once
#include <stddef.h>
#include "agents/agents.h"

/* From now on agent_find() knows them, before the built-in ones. */
void agent_own_begin(void);
/* CONFIG/agents/NAME.yaml, or a file that was named; -ENOENT without a message: none. */
int agent_own_read(const char *name, struct arena *mem, const char **ret_file, struct str *ret, struct err *e);
/*
 * Takes a definition from a file that the command line names; its name is the file's, without ".yaml". It is read once: what
 * happens to the file later changes nothing. `ret_name` lives as long as the process.
 */
int agent_own_take(const char *file, const char **ret_name, struct err *e);
/* The names of all of them, in `mem`, NULL-terminated; NULL without memory. */
const char **agent_own_names(struct arena *mem);
