/*
 * The checker of protected branches: a process beside a box that can write its repository under git.verify: required. It has the
 * person's hooks judge what the guard asks about (protocol/moves.h), in boxes of their own (project/moves.c).
 */
#pragma once
#include <sys/types.h>

#include "plan/plan.h"
#include "protocol/moves.h"
#include "run/direct.h"

struct layer; /* layer/layer.h */

struct moves_checker {
    int socket; /* for run_spec.moves; 0: none is needed */
    pid_t pid;
};
/*
 * Starts it where the plan needs one, and waits until it has the hooks as they are now. -errno with why not. For a box with a layer,
 * `layer`, it is noted there for apply instead (run/layer/verify.h).
 */
int moves_begin(const struct pinfold_policy *p, const struct plan *plan, const struct layer *layer,
                struct moves_checker *ret, struct err *e);
/* Starts one with these words, WORKSPACE CWD and what follows; `more`: a pack and its index, or NULL. */
int moves_start(char *const *words, const int *more, struct moves_checker *ret, struct err *e);
/* Asks it about lines "REF ID". */
int moves_ask(const struct moves_checker *c, struct str lines, struct moves_answer *ret);
/* Ends it, with whatever it is having judged. */
void moves_end(struct moves_checker *c);
