/* Finding an agent's program: agent_program.c. */
#pragma once
#include "agents/agents.h"

struct agent_program {
    const char *path;  /* as it was found: an agent may look at the name it is called by */
    const char *real;  /* without links */
    const char *other; /* another one of that name that is not used; or NULL */
    bool on_path;      /* found by PATH */
};
int agent_program_find(const struct agent *a, const char *home, struct arena *mem, struct agent_program *ret,
                       struct err *e);
enum { AGENT_PLACES = 4096 };
/* What is at `pattern` below the directory `dir` ("" is the root), at most AGENT_PLACES, in no order: agent_places.c. */
const char **agent_places(struct arena *mem, const char *dir, const char *pattern, size_t *ret_n);
/* The word that begins so in the program's own files (agents.h, program_word); the first one. */
int agent_program_word(const struct agent_program *p, const struct agent_renew *r, struct arena *mem, const char **ret,
                       struct err *e);
