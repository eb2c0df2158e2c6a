/* Lines of the files that apply keeps: numbers separated by blanks, and a path at the end. Written whole, in one step. */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "layer/object.h"

/* Replaces `name` in `dir` by a synced file with this content; 0 or -errno. */
int text_write(int dir, const char *name, const struct buf *content);
/* Makes a new file with these bytes, that only its owner can read. */
int text_make(int dir, const char *name, struct str bytes);
int text_read(int dir, const char *name, struct arena *mem, struct str *ret);
/* -EFBIG: it has more bytes than `most`; a file that takes no room on the disk may have as many as it likes. */
int text_read_most(int dir, const char *name, size_t most, struct arena *mem, struct str *ret);
/* Cuts off a line. False at the end. */
bool text_line(struct str *text, struct str *ret);
/* Cuts off a number and the blank behind it. */
bool text_number(struct str *line, int64_t *ret);
bool text_object(struct str *line, struct layer_object *ret);
void text_put_object(struct buf *out, const struct layer_object *o); /* with a blank behind it */
/* The path at the end of a line; NULL if it is damaged or there is no memory. */
const char *text_rest(struct str line, struct arena *mem);
void text_put_rest(struct buf *out, const char *path); /* and ends the line */
