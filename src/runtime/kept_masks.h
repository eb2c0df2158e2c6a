/* Keeps the layers of masks for the next start (kept_masks.c). Nothing here fails: what cannot be kept is made anew. */
#pragma once
#include "runtime/runner.h"

/* Before BUILD: finds the layers of an earlier box and checks them, or begins to note what this one's are made from. */
void kept_begin(struct runner *r);
/* The kept layers of the present mask (r->kept.veil), owned; -1 for one that it does not have. False: make them. */
bool kept_layers(struct runner *r, int *ret_points, int *ret_whiteouts);
/* Whether it has some, and whether mounts below what it masks must be looked for before they are used; from now on. */
bool kept_has(const struct runner *r);
bool kept_asks(const struct runner *r);
void kept_ask(struct runner *r);
/* It could be made, but when the others were kept it could not: the next start is to make and keep all. */
void kept_lacks(struct runner *r);
/* Notes while layers are made. `path` has `n` bytes and is below the masked directory, "" itself. A directory to which
   mode_like() gives `mode`: */
void kept_saw(struct runner *r, const char *path, size_t n, unsigned mode);
/* Not a directory, or one in a directory that may not be searched (`closed`): */
void kept_missed(struct runner *r, const char *path, size_t n, bool closed);
/* A layer, and its name in the box's own tmpfs: */
void kept_layer(struct runner *r, bool whiteouts, uint32_t own);
/* In the builder's helper, after BUILD: keeps what was noted. */
void kept_store(struct runner *r);
/* The mode that a copy of the directory `path`, whose status is `st`, needs for the box. */
unsigned mode_like(const struct runner *r, int at, const char *path, const struct sys_stat *st);
