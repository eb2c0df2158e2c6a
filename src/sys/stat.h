/*
 * statx(2) with our own structure. <linux/stat.h> cannot always be included together with <sys/stat.h>: both may define
 * struct statx, and the C library's may lack members used here (tests/lint/includes.py lists such headers).
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* The kernel's struct statx. */
struct sys_time {
    int64_t seconds;
    uint32_t nanoseconds;
    int32_t reserved;
};
struct sys_stat {
    uint32_t mask, block_size;
    uint64_t attributes;
    uint32_t links, uid, gid;
    uint16_t mode, pad;
    uint64_t inode, size, blocks, attributes_mask;
    struct sys_time accessed, born, changed, modified;
    uint32_t device_major, device_minor; /* of a device node */
    uint32_t major, minor;               /* of the file system */
    uint64_t mount;
    uint64_t spare[13];
};
_Static_assert(sizeof(struct sys_stat) == 256, "struct statx of the kernel");

/* FICLONE (ioctl_ficlone(2)) of <linux/fs.h>, which cannot be included. */
#define SYS_CLONE_FILE 0x40049409u
/* FS_IOC_GETFLAGS (ioctl_iflags(2)), and FS_CASEFOLD_FL of what it tells. The kernel writes an int, whatever the number says. */
#define SYS_GET_FLAGS  0x80086601u
#define SYS_FOLDS_CASE 0x40000000u

#define SYS_STAT_TYPE  0x1u    /* STATX_TYPE */
#define SYS_STAT_BASIC 0x7ffu  /* STATX_BASIC_STATS */
#define SYS_STAT_BORN  0x800u  /* STATX_BTIME */
#define SYS_STAT_MOUNT 0x1000u /* STATX_MNT_ID */

/* Creation time in nanoseconds since 1970; 0: not known to the file system, or not requested (SYS_STAT_BORN). */
static inline uint64_t sys_stat_born(const struct sys_stat *st)
{
    return st->mask & SYS_STAT_BORN ? (uint64_t)st->born.seconds * 1000000000u + st->born.nanoseconds : 0;
}

/* Whether both say something of one object: nobody has put another in its place. */
static inline bool sys_same(const struct sys_stat *a, const struct sys_stat *b)
{
    return a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}
static inline uint64_t sys_stat_device(const struct sys_stat *st)
{
    return (uint64_t)st->major << 32 | st->minor;
}

#define SYS_STAT_MOUNTED 0x2000u /* of `attributes`: STATX_ATTR_MOUNT_ROOT, since Linux 5.8 */
