/* An empty layer that is kept ready, and layers that ended empty (spare.c). */
#pragma once
#include "layer/layer.h"

/* What every layer begins with, open and locked; -1: nothing. */
struct layer_room {
    int dir, upper, lock;
};

/* Makes it in the new directory `dir`; on failure what is open already is in `ret`. */
int layer_furnish(int dir, struct layer_room *ret);
/*
 * Opens the spare layer of the directory `layers`; nobody else gets it while its lock is held. When all of the layer is written it gets the
 * layer's name, and is one. -errno: there is none, or it has gone, and the caller makes one.
 */
int layer_take_spare(int layers, struct layer_room *ret);
int layer_name_spare(int layers, int dir, const char *id);
/* Ends one of which something is wrong. */
void layer_spoil_spare(int layers, int dir);
/* Opens a file of a new layer for writing, over that of the layer that this was before, of so many bytes; or writes all of it. A descriptor,
   or -errno. */
int layer_open_over(int dir, const char *name, uint64_t *ret_room);
int layer_write_over(int dir, const char *name, const char *text, size_t n);
/* Ends a layer whose directory of changes is gone: nobody finds it from now on. False: it is where it was. */
bool layer_set_aside(const struct layer *l);
/* Whether a layer that was found is still one. Asked with its lock held, the answer stays. */
bool layer_is_there(const struct layer *l);

struct layer_tending {
    int layer; /* directory of one, borrowed */
    int layers;
    struct layer_room room;
    unsigned gone, at;
};
#define LAYER_TENDING ((struct layer_tending){.layer = -1, .layers = -1, .room = {-1, -1, -1}})

/* What there is to do beside a box: what ended becomes the next one's spare. One short step; false: nothing is left to do. */
bool layer_tend(struct layer_tending *t);
void layer_tend_end(struct layer_tending *t);
/* Removes all of it, and layers that were begun and never got a record because somebody was killed. `layers`: the directory. */
void layer_sweep(int layers);
