/* Runs a command in a persistent shell of a session. */
#pragma once
#include "session/session.h"

/* As pinfold_exec() with `shell`; *ret_note: a sentence in static memory, or NULL; *ret_shell: its number, for KEEP_OF_SHELL, 0: not known. */
int shell_exec(struct pinfold_session *s, const struct pinfold_exec_options *o, const struct limits *limits,
               const int stdio[3], struct box_result *ret, const char **ret_note, uint32_t *ret_shell, struct err *e);
