/* Runs a command in a persistent shell of a session. */
#pragma once
#include "session/session.h"

/* As pinfold_exec() with `shell`; *ret_note: a sentence in static memory, or NULL. */
int shell_exec(struct pinfold_session *s, const struct pinfold_exec_options *o, const struct limits *limits,
               const int stdio[3], struct box_result *ret, const char **ret_note, struct err *e);
