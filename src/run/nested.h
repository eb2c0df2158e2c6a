/* pinfold inside one of its own boxes. */
#pragma once
#include <stdbool.h>
#include "base/arena.h"
#include "base/err.h"
#include "protocol/step.h"

/* Whether this process runs in a box: a seccomp filter is active, and PINFOLD is set in the environment or a guard answers. */
bool nested_in_box(void);
/* Whether the box permits user namespaces (allow_nested_userns); true outside of boxes. */
bool nested_allowed(void);
/* What the guard of the box around this process tells of its rules: an image with a guard's table, or NULL. `top`: it is
   asked to guard names at the top of this directory, too, and `*top` becomes NULL if it does not. */
const struct plan_image *nested_around(struct arena *mem, const char **top);
/* To root in a box that permits them, and cannot have one all the same. */
#define NESTED_UID_ZERO                                                                                                \
    "the outer box allows user namespaces, but the kernel does not map uid 0 again without capabilities: start the "   \
    "outer box as an ordinary user, or with --user 1000:1000"
/* Adds to it that /proc is missing, where it is; returns r. */
int nested_no_proc(struct err *e, int r);
/* Adds to a start's error message what would make it work, in a box or without a /proc; returns r. */
int nested_remedy(struct err *e, int r);
/* The same to that of a layer, whose place is outside of boxes. */
int nested_keeps_nothing(struct err *e, int r);
