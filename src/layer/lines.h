/* The difference of two texts, line by line. */
#pragma once
#include <stdbool.h>
#include "base/arena.h"
#include "base/buf.h"

struct line_diff {
    struct str *old, *new; /* lines with their newlines */
    size_t n_old, n_new;
    bool *removed, *added; /* for each line */
};
/* In `mem`; the lines borrow the texts. 0, -ENOMEM, or -EFBIG: too many lines. The shortest difference where that is not far, otherwise a right
   one. */
int lines_compare(struct str old, struct str new, struct arena *mem, struct line_diff *ret);
/* Hunks as of `diff -u`, with three lines around. */
void lines_put_hunks(const struct line_diff *d, struct buf *out);
