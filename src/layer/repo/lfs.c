/*
 * Objects of Git LFS in a repository's own directory (.git/lfs/objects/36/54/3654...): data that is named by its hash, which a commit
 * of the layer may point to. They land like other new files, if the name is the hash of the content, because git-lfs does not look
 * before it puts the content into a work tree.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/sha256.h"
#include "layer/change.h"
#include "layer/repo/repo.h"
#include "sys/fd.h"
#include "sys/remove.h"

#define LFS_PARTS "lfs" /* below the store: copies, which are judged and then applied; no box reaches them */

/* Not for everybody to change: what was found to have the right name would be something else afterwards. */
#define LFS_MODES 02775u

/* Of all objects together: reading these takes time and writing them none, so a box could make an apply last for days. */
#define MAX_HOLES ((uint64_t)4 << 30)

static uint64_t holes_of(int fd, uint64_t size)
{
    uint64_t holes = 0;
    for (uint64_t at = 0; at < size;) {
        const int64_t data = sys_lseek(fd, (int64_t)at, SYS_SEEK_DATA);
        if (data < 0)
            return data == -ENXIO ? holes + size - at : holes;
        const int64_t hole = sys_lseek(fd, data, SYS_SEEK_HOLE);
        holes += (uint64_t)data - at;
        if (hole <= data)
            return holes;
        at = (uint64_t)hole;
    }
    return holes;
}

/* Of the file's content. */
static int lfs_sum(int fd, char ret[65])
{
    uint8_t room[1u << 14];
    SHA2_CTX sum;
    long n = sys_lseek(fd, 0, SEEK_SET);
    SHA256Init(&sum);
    while (n >= 0 && (n = sys_read(fd, room, sizeof room)) > 0)
        SHA256Update(&sum, room, (size_t)n);
    sha256_end(&sum, ret);
    return (int)n;
}

/* `ret_why`: why it is refused, or NULL. */
static int lfs_stage_one(const struct layer_trees *t, struct change *c, int parts, const char *part, uint64_t *holes,
                         const char **ret_why)
{
    char sum[65];
    const char *name;
    *ret_why = NULL;
    own_fd int dir = repo_parent(t, t->upper, c->path, &name);
    int e = dir < 0 ? dir : object_copy(dir, name, &c->new, parts, part);
    own_fd int fd = e < 0 ? e : object_open(parts, part, S_IFREG);
    if (fd < 0)
        return fd;
    *holes += holes_of(fd, c->new.size);
    if (*holes > MAX_HOLES) {
        *ret_why = "it has holes, and the objects of Git LFS in an apply may have no more than 4 GiB of them together";
        return 0;
    }
    e = lfs_sum(fd, sum);
    if (e == 0 && strcmp(sum, name) != 0)
        *ret_why = "its name is not the hash of its content, as it must be for an object of Git LFS";
    if (e == 0 && !*ret_why)
        e = sys_fchmod(fd, LFS_MODES & c->new.mode);
    return e < 0 || *ret_why ? e : object_look(parts, part, &c->new);
}

int lfs_stage(const struct layer_trees *t, struct changes *all, bool *take, struct arena *mem,
              struct apply_outcome *ret, struct err *e)
{
    own_fd int parts = -1;
    uint64_t holes = 0;
    for (size_t i = 0; i < all->n; i++) {
        struct change *c = &all->all[i];
        char part[32];
        if (!take[i] || c->part || !lfs_is_object(c))
            continue;
        if (object_is(&c->new, S_IFDIR)) {
            c->new.mode &= S_IFMT | LFS_MODES;
            continue;
        }
        if (parts < 0) {
            lfs_clear(t);
            const int made = sys_mkdirat(t->store, LFS_PARTS, 0700);
            parts =
                made < 0 ? made : sys_openat(t->store, LFS_PARTS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        }
        snprintf(part, sizeof part, "%zu", i);
        const char *why = NULL;
        const uint64_t before = holes;
        const int r = parts < 0 ? parts : lfs_stage_one(t, c, parts, part, &holes, &why);
        take[i] = r == 0 && !why;
        if (r < 0)
            return err_sys(e, ERR_SYSTEM, -r, "layer %s: cannot prepare '%.300s'", t->id, c->path);
        if (why) {
            holes = before;
            (void)sys_unlinkat(parts, part, 0);
        } else {
            c->part = arena_printf(mem, LFS_PARTS "/%s", part);
        }
        if (why ? outcome_refuse(mem, ret, c->path, why) < 0 : !c->part)
            return err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot apply it", t->id);
    }
    return 0;
}

void lfs_clear(const struct layer_trees *t)
{
    remove_tree(t->store, LFS_PARTS);
}
