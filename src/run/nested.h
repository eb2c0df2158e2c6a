/* pinfold inside one of its own boxes. */
#pragma once
#include <stdbool.h>
#include "base/err.h"

/* Whether this process runs in a box: PINFOLD is set in the environment, and a seccomp filter is active. */
bool nested_in_box(void);
/* Whether the box permits user namespaces (allow_nested_userns); true outside of boxes. */
bool nested_allowed(void);
/* Adds to a start's error message what would make it work, in a box or without a /proc; returns r. */
int nested_remedy(struct err *e, int r);
