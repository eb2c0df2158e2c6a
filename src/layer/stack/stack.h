/*
 * Layers that stand on another one (--cow-from). The box of such a layer sees the workspace through the kept layers below it, which nothing
 * changes any more: while a box uses them they are held, no box takes them up for itself again, and none is removed before what
 * stands on it.
 */
#pragma once
#include "layer/change.h"
#include "layer/store.h"

/* What a layer stands on, the nearest first. */
struct layer_stack {
    struct layer layers[LAYER_STACK_MAX];
    struct layer_below below[LAYER_STACK_MAX];
    int locks[LAYER_STACK_MAX];
    size_t n;
};

/* ---- stack.c ---- */

/* Opens what the layer `l` stands on. stack_close() also after a failure. */
int stack_open(const char *state, const struct layer *l, struct arena *mem, struct layer_stack *ret, struct err *e);
void stack_close(struct layer_stack *s);
/* Holds them against boxes and removal, until stack_close(). Refused with a sentence: one that is in use or may be damaged. */
int stack_hold(struct layer_stack *s, struct err *e);
/*
 * -EBUSY with a sentence: another layer stands on `l`, which therefore may neither change nor go.
 */
int stack_check_free(const char *state, const struct layer *l, struct arena *mem, struct err *e);

/* ---- view.c, marks.c ---- */

/*
 * What the box of the layer had below it, as a directory: an overlay, read-only and mounted nowhere, of the layers and the
 * workspace. A descriptor or -errno.
 */
int stack_view(const struct layer_trees *t);

/*
 * The changes of a stacked layer against what its box had below it, each in conflict where an apply to the workspace would refuse it.
 * *ret_view: these trees, whose `workspace` the caller closes; NULL: they are not wanted.
 */
int stack_changes(const struct layer_trees *t, struct arena *mem, struct layer_trees *ret_view, struct changes *ret,
                  struct err *e);

/* Why the repository of a stacked layer cannot land: a layer below has changed it, too, and has not landed. *ret_why NULL: it can. */
int stack_repository(const struct layer_trees *t, struct arena *mem, const char **ret_why, struct err *e);
