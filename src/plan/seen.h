/*
 * What a box sees at one path, as far as its plan alone says it: which place decides, and where the object is on the
 * host. Pure; whether something is there is for the caller to look up.
 */
#pragma once
#include "plan/plan.h"

enum seen_kind {
    SEEN_HOST,    /* the host's object at `host` */
    SEEN_LAYER,   /* what a private layer has at `upper`, otherwise the host's at `host` */
    SEEN_OWN,     /* in a private tree of the box, which begins without this name */
    SEEN_MADE,    /* a directory or file (`file`) that the box is given, of mode `mode` */
    SEEN_LINK,    /* a symbolic link to `link` that the box is given */
    SEEN_ABSENT,  /* kept absent: it can be neither seen nor created */
    SEEN_DENIED,  /* something of mode 0 is over it; below it nothing is reached */
    SEEN_PROC,    /* the box's own /proc */
    SEEN_DEVICES, /* a device that every box has */
    SEEN_IMAGE    /* the image's file */
};

struct seen_at {
    enum seen_kind kind;
    const struct plan_place *place; /* that decides; never NULL */
    const char *host, *upper, *link;
    uint16_t mode;
    bool file;
    /* Of what is kept out of a cache: the place of the cache. A box that was not kept from it may have left an object of its own at
       `own` in the layer, which lies above what hides the host's; then `upper` is what is at the path. */
    const struct plan_place *over;
    const char *own;
};

/* `path`: in the box, clean and absolute. -ENOMEM. */
int plan_seen(const struct plan *p, const char *path, struct arena *mem, struct seen_at *ret);
