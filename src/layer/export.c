/*
 * Copies both sides of changes into two directories, as a person's own tool compares them: files and links, over no
 * link. The copies are the caller's plain files: nothing of the box's owners, modes or attributes comes along.
 */
#include <errno.h>
#include <string.h>

#include "layer/side.h"
#include "sys/fd.h"

#define EXPORT_MAX ((uint64_t)1 << 30) /* bytes of all copies together */

/* The directory that holds `path` below `top`, made as far as it is missing. A descriptor or -errno. */
static int make_parents(int top, const char *path, const char **ret_name)
{
    char part[LAYER_PATH_MAX];
    int dir = sys_openat(top, ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    for (const char *slash; dir >= 0 && (slash = strchr(path, '/')); path = slash + 1) {
        const size_t n = (size_t)(slash - path);
        if (n >= sizeof part) {
            sys_drop(&dir);
            return -ENAMETOOLONG;
        }
        memcpy(part, path, n);
        part[n] = 0;
        const int e = sys_mkdirat(dir, part, 0700);
        const int next =
            e < 0 && e != -EEXIST ? e : sys_openat(dir, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        sys_drop(&dir);
        dir = next;
    }
    *ret_name = path;
    return dir;
}

/* A plain file of the caller's: no owner, attribute or mode of the layer's. */
static int export_side(const struct layer_trees *t, int from, const struct change *c, bool new, int to, uint64_t *sum)
{
    auto_arena struct arena *mem = arena_new(SIDES_ROOM);
    const struct layer_object *o = new ? &c->new : &c->old;
    const char *link = new ? c->new_link : c->old_link, *name;
    struct side side;
    if (!in_patches(o))
        return 0;
    if (*sum + o->size > EXPORT_MAX)
        return -EFBIG;
    *sum += o->size;
    int e = mem ? side_read(t, from, c->path, o, link, mem, &side) : -ENOMEM;
    own_fd int dir = e < 0 ? e : make_parents(to, c->path, &name);
    if (dir < 0)
        return dir;
    if (object_is(o, S_IFLNK))
        return sys_symlinkat(link, dir, name);
    own_fd int fd =
        sys_openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, o->mode & 0100 ? 0700 : 0600);
    e = fd < 0 ? fd : 0;
    for (size_t done = 0; e == 0 && done < side.bytes.n;) {
        const long k = sys_write(fd, side.bytes.p + done, side.bytes.n - done);
        e = k < 0 ? (int)k : 0;
        done += k > 0 ? (size_t)k : 0;
    }
    return e;
}

int sides_export(const struct layer_trees *t, const struct changes *all, const bool *take, int old, int new,
                 struct arena *mem, struct apply_outcome *ret, struct err *e)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct change *c = &all->all[i];
        if (!take[i] || (!in_patches(&c->old) && !in_patches(&c->new)))
            continue;
        int no = export_side(t, t->workspace, c, false, old, &sum);
        if (no == 0)
            no = export_side(t, t->upper, c, true, new, &sum);
        if (no == -ENOMEM || no == -ENOSPC)
            return err_sys(e, ERR_SYSTEM, -no, "layer %s: cannot copy '%.300s'", t->id, c->path);
        const char *why = no == -EFBIG ? "it is too large to be copied" : no < 0 ? "it cannot be copied" : NULL;
        const char **slot = why ? NULL : arena_push(mem, &ret->done, &ret->n_done, sizeof *slot);
        if (slot)
            *slot = c->path;
        if ((why && outcome_refuse(mem, ret, c->path, why) < 0) || (!why && !slot))
            return err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot copy its changes", t->id);
    }
    return 0;
}
