/* What this guard remembers in the memory shared by its workers: objects created in this box, and places by path.
   An object that the box made itself is its own to change. */
#include <errno.h>
#include <string.h>
#include "base/hash.h"
#include "guard/rules/rules.h"

/* ---- objects created in this box ---- */

/*
 * A file system that tells no creation time (NFS, FUSE, an ext4 with small inodes) gives the number of a removed object to the next one,
 * which the host may have made. There the object's handle stands for the time: it has the generation of the number (name_to_handle_at(2)).
 */
int born_stat(int dir, const char *name, int flags, struct sys_stat *ret)
{
    struct {
        uint32_t bytes, type;
        unsigned char is[128]; /* MAX_HANDLE_SZ */
    } handle = {.bytes = sizeof handle.is};
    int mount;
    const int follows = flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) ? 0 : AT_SYMLINK_FOLLOW;
    int no = sys_stat_at(dir, name, flags, SYS_STAT_BASIC | SYS_STAT_BORN | SYS_STAT_MOUNT, ret);
    if (no < 0 || ret->mask & SYS_STAT_BORN)
        return no;
    if (sys_call(SYS_name_to_handle_at, dir, name, &handle, &mount, (flags & AT_EMPTY_PATH) | follows, 0) == 0) {
        ret->born.seconds =
            (int64_t)hash64(HASH64, handle.is, handle.bytes); /* of numbers that the box does not choose */
        ret->born.nanoseconds = handle.type;
    }
    return 0;
}

struct born born_of(const struct sys_stat *st)
{
    return (struct born){sys_stat_device(st), st->inode, st->born.seconds, st->born.nanoseconds};
}

bool born_same(const struct born *a, const struct born *b)
{
    return a->inode == b->inode && a->device == b->device && a->seconds == b->seconds &&
           a->nanoseconds == b->nanoseconds;
}

void born_add(struct guard *g, const struct sys_stat *st)
{
    table_lock(g->shared);
    g->shared->born[g->shared->born_at++ % BORN_MAX] = born_of(st);
    table_unlock(g->shared);
}

bool born_has(struct guard *g, const struct sys_stat *st)
{
    const struct born b = born_of(st);
    bool found = false;
    table_lock(g->shared);
    for (uint32_t i = 0; !found && i < BORN_MAX && i < g->shared->born_at; i++)
        found = born_same(&g->shared->born[i], &b);
    table_unlock(g->shared);
    return found;
}

bool born_may_have(struct guard *g, const struct sys_stat *st)
{
    table_lock(g->shared);
    const bool forgotten = g->shared->born_at > BORN_MAX;
    table_unlock(g->shared);
    return forgotten || born_has(g, st);
}

/* ---- places that are remembered ---- */

struct str places_next(const struct places *all, uint32_t *at)
{
    if (*at >= all->n)
        return (struct str){"", 0};
    struct str one = str_of(all->text + *at);
    *at += (uint32_t)one.n + 1;
    return one;
}

bool places_add(struct guard *g, struct places *all, struct str path)
{
    bool fits = true, known = false;
    table_lock(g->shared);
    for (uint32_t at = 0; !known && at < all->n;)
        known = str_eq(places_next(all, &at), path);
    if (!known) {
        fits = path.n + 1 <= sizeof all->text - all->n;
        if (fits) {
            memcpy(all->text + all->n, path.p, path.n);
            all->text[all->n + path.n] = 0;
            all->n += (uint32_t)path.n + 1;
        } else {
            all->left_out++;
        }
    }
    table_unlock(g->shared);
    return fits;
}

/* Removes entries that no longer exist: programs create and remove such names all the time. */
static void places_tidy(struct guard *g, struct places *all)
{
    struct sys_stat st;
    uint32_t n = 0;
    table_lock(g->shared);
    for (uint32_t at = 0; at < all->n;) {
        struct str one = places_next(all, &at);
        if (sys_stat_at(AT_FDCWD, one.p, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) == -ENOENT)
            continue;
        memmove(all->text + n, one.p, one.n + 1);
        n += (uint32_t)one.n + 1;
    }
    all->n = n;
    table_unlock(g->shared);
}

void left_add(struct guard *g, struct str path)
{
    struct places *left = &g->shared->left;
    const bool full = left->left_out > 0;
    if (places_add(g, left, path) || full)
        return;
    places_tidy(g, left);
    (void)places_add(g, left, path);
    table_lock(g->shared);
    left->left_out--; /* counted by both attempts */
    table_unlock(g->shared);
}
