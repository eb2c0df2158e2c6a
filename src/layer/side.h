/* One side of a change, read into memory: the bytes of a file, or the target of a link. */
#pragma once
#include "base/str.h"
#include "layer/change.h"

#define SIDE_MAX ((uint64_t)1 << 29) /* bytes of a file that is read */

struct side {
    const struct layer_object *o;
    struct str bytes;
};
#define SIDES_ROOM (SIDE_MAX * 2 + (1 << 20)) /* an arena for two of them */

/* `path` below `top`, which is the workspace or the layer; `o`: what stands there, `link`: the target of a link. -EFBIG: it is
   larger than SIDE_MAX. Its bytes are in `mem`. */
int side_read(const struct layer_trees *t, int top, const char *path, const struct layer_object *o, const char *link,
              struct arena *mem, struct side *ret);
/* As git decides. */
bool side_is_text(const struct side *s);
/* Of what patches can hold: files and links. */
static inline bool in_patches(const struct layer_object *o)
{
    return object_is(o, S_IFREG) || object_is(o, S_IFLNK);
}
