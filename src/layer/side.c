/*
 * Reads one side of a change into memory: the layer's or the workspace's. Up to a ceiling, and text only where every
 * byte of it is.
 */
#include "layer/side.h"

#include <errno.h>
#include <string.h>

#include "sys/fd.h"

#define TEXT_LOOKED_AT 8000 /* bytes without a NUL in them make a text, as git decides */

int side_read(const struct layer_trees *t, int top, const char *path, const struct layer_object *o, const char *link,
              struct arena *mem, struct side *ret)
{
    const char *name;
    ret->o = o;
    ret->bytes = str_of(link);
    if (!object_is(o, S_IFREG))
        return 0;
    if (o->size > SIDE_MAX)
        return -EFBIG;
    own_fd int dir = object_parent(top, path, &name);
    own_fd int fd = dir < 0               ? dir
                    : top == t->workspace ? object_open_as_is(dir, name, S_IFREG)
                                          : object_open(dir, name, S_IFREG);
    if (fd < 0)
        return fd;
    char *room = arena_zero(mem, o->size + 1);
    if (!room)
        return -ENOMEM;
    size_t n = 0;
    while (n < o->size) {
        long k = sys_pread(fd, room + n, o->size - n, n);
        if (k <= 0)
            return k < 0 ? (int)k : -ESTALE;
        n += (size_t)k;
    }
    ret->bytes = (struct str){room, n};
    return 0;
}

bool side_is_text(const struct side *s)
{
    return !memchr(s->bytes.p ? s->bytes.p : "", 0, s->bytes.n < TEXT_LOOKED_AT ? s->bytes.n : TEXT_LOOKED_AT);
}
