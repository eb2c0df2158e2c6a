/*
 * The checker of protected branches: a process beside a box that can write its repository under git.verify: required. It has the
 * person's hooks judge what the guard asks about (protocol/moves.h), in boxes of their own (project/moves.c).
 */
#pragma once
#include <sys/types.h>

#include "plan/plan.h"
#include "run/direct.h"

struct moves_checker {
    int socket; /* for run_spec.moves; 0: none is needed */
    pid_t pid;
};
/* Starts it where the plan needs one, and waits until it has the hooks as they are now. -errno with why not. */
int moves_begin(const struct pinfold_policy *p, const struct plan *plan, struct moves_checker *ret, struct err *e);
/* Ends it, with whatever it is having judged. */
void moves_end(struct moves_checker *c);
