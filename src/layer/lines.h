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
/* From the lines x, y on, which are equal or differ, to where more than twice the context is equal. */
struct line_hunk {
    size_t x, y, end_x, end_y;
};
/* In `mem`; NULL without memory, or if there is none. */
struct line_hunk *lines_hunks(const struct line_diff *d, struct arena *mem, size_t *ret_n);
void lines_put_hunk(const struct line_diff *d, const struct line_hunk *h, struct buf *out);
/* The old text with those hunks that `take` has a mark for. */
void lines_merge(const struct line_diff *d, const struct line_hunk *hunks, size_t n, const bool *take, struct buf *out);
/* Hunks as of `diff -u`, with three lines around. */
void lines_put_hunks(const struct line_diff *d, struct buf *out);
