/*
 * What of the options that a person has given for a box holds for the boxes that pinfold makes beside it: in which git prepares its
 * branch, and in which the person's hooks judge what it pushes. Those have never more than the box itself.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "pinfold.h"

enum beside {
    BESIDE_NOT,   /* about the command itself, its network or its own files */
    BESIDE_MAKES, /* about how a box is made at all: holds where git works for the box */
    BESIDE_ALL    /* what can make a box smaller, and its base */
};
/* -1: nobody has thought of an option of this name. */
int beside_of(const char *name);
/* Whether it holds with this value. `makes`: where git works for the box. An option that is unknown holds: it may hide something. */
bool beside_holds(const struct pinfold_option *option, bool makes);
