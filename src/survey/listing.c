/*
 * What a directory certainly does not contain: hashes of its names (survey/listing.h). One listing answers for all
 * names that the policy asks about there.
 */
#include "survey/listing.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include "sys/fd.h"
#include "sys/file.h"

enum { READ_MOST = 16 << 10, READ_ONCE = 4096 }; /* bytes of entries: some 400 names */

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

static unsigned bit_of(struct str name)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        h = (h ^ (c >= 'A' && c <= 'Z' ? c + 32u : c)) * 16777619u;
    }
    return (h ^ h >> 16) % (LISTING_WORDS * 64);
}

static bool is_ascii(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        if ((unsigned char)name.p[i] >= 0x80)
            return false;
    }
    return true;
}

bool listing_is_local(const char *path)
{
    struct statfs fs;
    if (statfs(path, &fs) < 0)
        return false;
    switch ((uint32_t)fs.f_type) {
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
        return true;
    default:
        return false;
    }
}

bool listing_read(const char *path, struct dir_listing *ret)
{
    _Alignas(8) char room[READ_ONCE];
    own_fd int dir = sys_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (dir < 0)
        return false;
    *ret = (struct dir_listing){.bits = {0}};
    struct sys_entries all = {.dir = dir, .room = room, .bytes = sizeof room};
    const struct sys_dirent *d;
    size_t bytes = 0;
    while ((d = sys_next_entry(&all))) {
        const struct str name = str_of(d->name);
        bytes += d->reclen;
        if (bytes > READ_MOST || !is_ascii(name))
            return false;
        const unsigned bit = bit_of(name);
        ret->bits[bit / 64] |= 1ull << bit % 64;
        if (d->type == 0 /* DT_UNKNOWN */ || d->type == 10 /* DT_LNK */)
            ret->links[bit / 64] |= 1ull << bit % 64;
    }
    return all.no == 0;
}

bool listing_may_have(const struct dir_listing *l, struct str name)
{
    return !is_ascii(name) || (l->bits[bit_of(name) / 64] >> bit_of(name) % 64 & 1);
}

bool listing_may_link(const struct dir_listing *l, struct str name)
{
    return !is_ascii(name) || (l->links[bit_of(name) / 64] >> bit_of(name) % 64 & 1);
}
