/* Removes trees that a box may have written, and may be writing: by descriptors, over no link. */
#pragma once
#include <stdint.h>

/* Removes `name` in `dir` and everything below it, following no link. */
void remove_tree(int dir, const char *name);
void remove_tree_counted(int dir, const char *name, uint64_t *bytes); /* adds the size of files */
