/*
 * Names that a package cache's private layer keeps from ever showing: what the host makes below them later stays unseen.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"

/*
 * `path` is upper/SUB...: a whiteout there, or (`opaque`) a directory that shows nothing of the host's. `n` bytes of it
 * name the layer, which is pinfold's own; what lies below a box has written, so it is walked by descriptor, over no link.
 * What hides the host's name already is left as it is.
 */
int whiteout_make(const char *path, size_t n, bool opaque, struct err *e);
