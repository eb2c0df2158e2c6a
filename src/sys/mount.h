/*
 * Mounts by descriptor (Linux 5.12 or later). Sources: open_tree(2), move_mount(2), fsopen(2), fsconfig(2), fsmount(2),
 * mount_setattr(2), pivot_root(2). Defines its own constants, because libc's headers and <linux/mount.h> conflict.
 */
#pragma once
#include <fcntl.h>
#include "sys/sys.h"

enum {
    SYS_TREE_CLONE = 1,
    SYS_TREE_CLOEXEC = O_CLOEXEC,
    SYS_AT_RECURSIVE = 0x8000,
    SYS_AT_NO_AUTOMOUNT = 0x800,
    SYS_AT_EMPTY_PATH = 0x1000,
    SYS_AT_NOFOLLOW = 0x100,
    SYS_MOVE_FROM_EMPTY = 0x4,
    SYS_MOVE_TO_EMPTY = 0x40,
    SYS_MOUNT_RDONLY = 1,
    SYS_MOUNT_NOSUID = 2,
    SYS_MOUNT_NODEV = 4,
    SYS_MOUNT_NOEXEC = 8,
    SYS_PROPAGATION_PRIVATE = 1 << 18,
    SYS_FS_FLAG = 0,
    SYS_FS_STRING = 1,
    SYS_FS_FD = 5,
    SYS_FS_CREATE = 6,
    SYS_FS_RECONFIGURE = 7,
    SYS_UMOUNT_DETACH = 2
};

struct sys_mount_attr {
    uint64_t set, clear, propagation, userns;
};

SYS_CALL(int, sys_open_tree, (int dir, const char *path, unsigned flags), SYS_open_tree, dir, path, flags)
SYS_CALL(int, sys_move_mount, (int from, const char *from_path, int to, const char *to_path, unsigned flags),
         SYS_move_mount, from, from_path, to, to_path, flags)
SYS_CALL(int, sys_mount_setattr, (int dir, const char *path, unsigned flags, const struct sys_mount_attr *attr),
         SYS_mount_setattr, dir, path, flags, attr, sizeof *attr)
SYS_CALL(int, sys_fsopen, (const char *type), SYS_fsopen, type, 1 /* FSOPEN_CLOEXEC */)
SYS_CALL(int, sys_fsconfig, (int fs, unsigned what, const char *key, const void *value, int aux), SYS_fsconfig, fs,
         what, key, value, aux)
/* Whether overlayfs takes no layer by this descriptor, but by its path in /proc. It takes none before Linux 6.13 (before
   6.5: EOPNOTSUPP), and none that only names (O_PATH: EBADF) before 6.15. All that is found before the context is changed. */
static inline bool sys_layer_by_path(int e)
{
    return e == -EINVAL || e == -EBADF || e == -EOPNOTSUPP;
}
/* `attributes`: SYS_MOUNT_*. The mount is detached until sys_move_mount(). */
SYS_CALL(int, sys_fsmount, (int fs, unsigned attributes), SYS_fsmount, fs, 1 /* FSMOUNT_CLOEXEC */, attributes)
SYS_CALL(int, sys_pivot_root, (const char *new_root, const char *put_old), SYS_pivot_root, new_root, put_old)
SYS_CALL(int, sys_umount, (const char *path, int flags), SYS_umount2, path, flags)
