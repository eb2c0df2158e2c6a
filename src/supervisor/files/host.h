/* Paths of the host given to the file API; a box may have put links into them. */
#pragma once
#include <stdbool.h>
#include "protocol/files.h"
#include "protocol/paths.h"

struct host_place {
    int dir;        /* O_PATH; the caller's */
    char name[256]; /* in `dir`; may not exist; "." for `dir` itself */
    bool
        /* `name` is a link that a box may have created, and was not followed; after an error: such a link is on the
           path */
        planted;
};
/*
 * Walks to `path`, following links except where the box with these mounts, or another box (`memory`: survey/written.h),
 * can write. 0, -ELOOP if such a link is on the path, or another error.
 */
int host_find(const struct path_table *mounts, const char *memory, const char *path, struct host_place *ret);
