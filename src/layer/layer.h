/*
 * Copy-on-write layers in the state directory: STATE/layers/ID/ with
 *
 *     record   JSON: whose changes these are, and since when
 *     upper/   the changes, as overlayfs keeps them (user.overlay.*). Once a box has mounted it, it has the name that the
 *              record gives as "upper": no box can know it, so none can lead a program of the host there
 *     undo/, journal, applied   of apply (layer/change.h)
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/err.h"

#define LAYERS           "layers" /* in the state directory */
#define LAYER_VERIFY     "verify" /* in a layer: whose hooks judge its commits when it is applied (git.verify) */
#define LAYER_VERIFY_MAX (1 << 20)
#define LAYER_STACK_MAX  8 /* layers that one stands on */

/* An open layer; texts are in the arena of the caller. */
struct layer {
    int dir; /* STATE/layers/ID */
    char id[17];
    const char *name, *workspace, *boot; /* name: NULL if it has none */
    const char *from;                    /* the ID of the layer that it stands on, or NULL */
    const char *hidden;                  /* what upper/ is called since it was mounted; NULL: upper */
    uint64_t device, ino;                /* of the workspace's directory when the box began */
    int64_t since;   /* nanoseconds since 1970; what the host changed before the box began has an older time,
                                            what it changes later has not, by the clock as it goes now; 0: it was set back since, nobody knows how far */
    int64_t booted;  /* when this machine was started, by the clock as it was then; 0: not noted */
    int64_t created; /* seconds since 1970 */
    bool synced;     /* its bytes are on the disk */
    const char *session, *scope; /* of the session that used it last, or NULL; its scope, or NULL */
};

/*
 * Opens a layer of the state directory `state`: `which` is its ID, the beginning of one (4 digits or more), or its name;
 * NULL is the newest of a workspace that holds `cwd`. -ENOENT with a sentence: there is none.
 */
int layer_open(const char *state, const char *which, const char *cwd, struct arena *mem, struct layer *ret,
               struct err *e);
void layer_close(struct layer *l);
/* Its directory of changes: a descriptor, or -errno. */
int layer_upper(const struct layer *l);
