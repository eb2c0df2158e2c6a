/* Whiteouts in the private layer of a package cache: they hide names for good, even if the host creates them later. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"

/*
 * `path` is upper/SUB...: creates a whiteout there, or (`opaque`) a directory that hides the host's content. The first
 * `n` bytes name the layer, which is pinfold's own; below it a box may have written, so it is walked by descriptors
 * without following links. What already hides the host's name stays.
 */
int whiteout_make(const char *path, size_t n, bool opaque, struct err *e);
