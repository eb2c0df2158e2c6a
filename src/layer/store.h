/*
 * Layers as a box uses them: made or taken up again before it starts, held while it lives, sealed when it has ended.
 */
#pragma once
#include "layer/layer.h"
#include "layer/repo/repo.h"

struct layer_ask {
    const char *workspace;       /* absolute and real */
    const char *name;            /* a layer that stays for further boxes; NULL: one without a name */
    const char *from;            /* a layer that it stands on; NULL: none, or of one that there is what it has */
    const char *session, *scope; /* of the session that it is for; NULL: none, and no scope */
    const char *const *command;  /* what the box runs, for people; NULL-terminated, or NULL */
};

struct layer_stack; /* stack/stack.h */

/* A layer that this process holds: nobody else starts a box with it, applies or removes it. */
struct layer_held {
    struct layer layer;
    int lock;      /* flock()ed; -1: none is held */
    bool fresh;    /* made by this call */
    uint64_t tick; /* CLOCK_MONOTONIC_COARSE when its time began, until layer_wait(); 0: nothing is to be waited for */
    const char *path;          /* STATE/layers/ID */
    struct layer_stack *stack; /* what it stands on, held, too; NULL: the workspace alone */
    struct repo_base base;     /* of the repository, until it is copied: beside the box, or by layer_seal() */
    struct layer_ask ask;
};
#define LAYER_HELD ((struct layer_held){.layer.dir = -1, .lock = -1, .base = REPO_BASE_NONE})
/* After a box that was mounted and failed before its command: its upper directory has its first name again. 0 or -errno. */
int layer_again(const struct layer *l, struct err *e);

/*
 * Makes a layer of the workspace in the state directory `state`, or takes up the one of ask->name. Its record says that
 * it is not on the disk yet. Refused with a sentence: a name that is none, a layer of another workspace, one that
 * another box uses, one that a stop of the machine may have damaged, and one that another layer stands on. `mem` must live as long
 * as `ret`.
 */
int layer_hold(const char *state, const struct layer_ask *ask, struct arena *mem, struct layer_held *ret,
               struct err *e);
/* Before anything of a box looks at the workspace: waits, at most a tick of the kernel's clock, until what the host changes has another time
   than what it had changed before. On a kernel that tells such changes apart there is nothing to wait for. */
void layer_wait(struct layer_held *l);
/* After the box has ended: writes all that it changed to the disk, and what it began with, then the record that says so. */
int layer_seal(struct layer_held *l, struct err *e);
/* Whether nothing at all was changed: a directory of changes without a name in it, or none (any more). False also if it cannot be read. */
bool layer_is_empty(const struct layer *l);
/* Removes the directory of changes if nothing at all was changed, that is if it is empty: then there is no layer any more. */
bool layer_drop_empty(const struct layer *l);
void layer_release(struct layer_held *l);

/* Holds an open layer; -EBUSY with a sentence: a box uses it, or (`idle`) an apply of it is not finished. */
int layer_take(const struct layer *l, bool idle, int *ret_lock, struct err *e);
/* The same together with others that do so, against a box that writes to it and its removal. */
int layer_share(const struct layer *l, int *ret_lock, struct err *e);
/*
 * Calls `each` with every layer of the state directory, which it closes, and `damaged` (or NULL) with the path of each one whose record
 * cannot be read; in no order.
 */
int layer_each(const char *state, struct arena *mem, void (*each)(void *ctx, const struct layer *l),
               void (*damaged)(void *ctx, const char *path), void *ctx, struct err *e);
/* Whether a layer's directory can have this name. */
bool layer_is_id(const char *name);
/* Its lock, open, or -1 with errno; made where there is none. And which boot of the machine this is. */
int layer_lock_file(int dir);
/* Takes it (LOCK_EX or LOCK_SH) without waiting, so that looks see it; -EWOULDBLOCK. */
int layer_lock_now(int fd, int how);
int layer_boot(char boot[40]);
/* When this machine was started, by the clock as it goes now: nanoseconds since 1970. It differs later where the clock was set. */
int64_t layer_booted(void);
/* Whether the machine stopped before the layer was on the disk. */
bool layer_is_doubtful(const struct layer *l);
/* Whether a box uses it now. */
bool layer_is_used(const struct layer *l);
/* Reads anew for which session a layer in use is: who takes it writes that a moment after. */
int layer_owner_again(const char *state, struct layer *l, struct arena *mem, struct err *e);
