/*
 * A pinfold inside a box of pinfold.
 */
#pragma once
#include <stdbool.h>
#include "base/err.h"

/* Whether this process runs in a box: the box says so (PINFOLD in the environment) and a filter is in force. */
bool nested_in_box(void);
/* Whether the box lets user namespaces be made (allow_nested_userns); true outside of boxes. */
bool nested_allowed(void);
/* Adds to a failed start what would allow it, when this is a box, or when there is no /proc; returns r. */
int nested_remedy(struct err *e, int r);
