/*
 * Looking at paths without opening them: attributes and link texts, one kernel call each.
 */
#pragma once
#include <fcntl.h>
#include "sys/stat.h"
#include "sys/sys.h"

/* statx(2) of the absolute `path`, without following a final symbolic link or triggering an automount. Needs no
   permission on the object itself, only search permission on the directories above (-EACCES). */
SYS_CALL(int, sys_look, (const char *path, struct sys_stat *ret), SYS_statx, AT_FDCWD, path,
         AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, SYS_STAT_BASIC | SYS_STAT_BORN | SYS_STAT_MOUNT, ret)

/* readlinkat(2): returns the number of bytes put into `text`, without a NUL; if it is `n`, the link may be longer. */
SYS_CALL(ssize_t, sys_readlink, (const char *path, char *text, size_t n), SYS_readlinkat, AT_FDCWD, path, text, n)

/* faccessat2(2) with the effective ids: 0 if the caller may read the object. */
SYS_CALL(int, sys_may_read, (const char *path), SYS_faccessat2, AT_FDCWD, path, 4 /* R_OK */,
         AT_EACCESS | AT_SYMLINK_NOFOLLOW)
