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

#define LFS_PARTS "lfs" /* below the store: copies, which are judged and then applied; no box reaches them */

/* Of the file's content. */
static int lfs_sum(int fd, char ret[65])
{
    uint8_t room[1u << 14];
    SHA2_CTX sum;
    long n;
    SHA256Init(&sum);
    while ((n = sys_read(fd, room, sizeof room)) > 0)
        SHA256Update(&sum, room, (size_t)n);
    sha256_end(&sum, ret);
    return (int)n;
}

/* -EBADMSG: its name is not the hash of its content. */
static int lfs_stage_one(const struct layer_trees *t, struct change *c, int parts, const char *part)
{
    char sum[65];
    const char *name;
    own_fd int dir = repo_parent(t, t->upper, c->path, &name);
    int e = dir < 0 ? dir : object_copy(dir, name, &c->new, parts, part);
    own_fd int fd = e < 0 ? e : object_open(parts, part, S_IFREG);
    e = fd < 0 ? fd : lfs_sum(fd, sum);
    if (e == 0 && strcmp(sum, name) != 0)
        return -EBADMSG;
    return e < 0 ? e : object_look(parts, part, &c->new);
}

int lfs_stage(const struct layer_trees *t, struct changes *all, bool *take, struct arena *mem,
              struct apply_outcome *ret, struct err *e)
{
    own_fd int parts = -1;
    for (size_t i = 0; i < all->n; i++) {
        struct change *c = &all->all[i];
        char part[32];
        if (!take[i] || c->part || !object_is(&c->new, S_IFREG) || !lfs_is_object(c))
            continue;
        if (parts < 0) {
            lfs_clear(t);
            const int made = sys_mkdirat(t->store, LFS_PARTS, 0700);
            parts =
                made < 0 ? made : sys_openat(t->store, LFS_PARTS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
        }
        snprintf(part, sizeof part, "%zu", i);
        const int r = parts < 0 ? parts : lfs_stage_one(t, c, parts, part);
        take[i] = r == 0;
        if (r < 0 && r != -EBADMSG)
            return err_sys(e, ERR_SYSTEM, -r, "layer %s: cannot prepare '%.300s'", t->id, c->path);
        if (r == 0)
            c->part = arena_printf(mem, LFS_PARTS "/%s", part);
        if (r == 0 ? !c->part
                   : outcome_refuse(mem, ret, c->path,
                                    "its name is not the hash of its content, as that of an object of Git LFS") < 0)
            return err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot apply it", t->id);
    }
    return 0;
}

void lfs_clear(const struct layer_trees *t)
{
    char room[4096] __attribute__((aligned(8)));
    own_fd int parts = sys_openat(t->store, LFS_PARTS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    struct sys_entries entries = {.dir = parts, .room = room, .bytes = sizeof room};
    if (parts < 0)
        return;
    for (const struct sys_dirent *d; (d = sys_next_entry(&entries));)
        (void)sys_unlinkat(parts, d->name, 0);
    (void)sys_unlinkat(t->store, LFS_PARTS, AT_REMOVEDIR);
}
