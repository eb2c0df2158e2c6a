/*
 * Paths of the host that the file API is given: the box may have put links there.
 */
#pragma once
#include <stdbool.h>
#include "protocol/files.h"
#include "protocol/paths.h"

struct host_place {
    int dir;        /* O_PATH; the caller's */
    char name[256]; /* in `dir`; it may not exist; "." for `dir` itself */
    bool
        planted; /* `name` is a link that the box may have made, and was not followed; after an error: one was on the way */
};
/*
 * Goes to `path`, over links except where the box of these mounts can write, or another could (`memory`: survey/written.h). 0,
 * -ELOOP where such a link is on the way, or another error.
 */
int host_find(const struct path_table *mounts, const char *memory, const char *path, struct host_place *ret);
