/*
 * Windows paths as a Linux container has them: docker on Windows shows the drive C: at /c (Docker's own machine) or at
 * /mnt/c (WSL 2). Pure. A path that Windows would interpret as another file than written is refused.
 */
#pragma once
#include "base/arena.h"
#include "base/err.h"

enum windows_style {
    WINDOWS_DOCKER, /* C:\Users\x is /c/Users/x */
    WINDOWS_WSL     /* C:\Users\x is /mnt/c/Users/x */
};

/* Whether it looks like a Windows path: begins with a drive letter and colon, or with a backslash. */
bool windows_is_path(const char *path);
/*
 * Converts to a clean Linux path: lower-case drive letter, either separator, . and .. resolved. Refuses network paths
 * (\\server\share) and devices, drive-relative paths (C:x), streams (x:y), reserved names (NUL), and characters and
 * endings that Windows drops or forbids. A Linux path is only cleaned.
 */
int windows_to_linux(const char *path, enum windows_style style, struct arena *mem, const char **ret, struct err *e);
/* The reverse: "/c/Users/x" gives "C:\Users\x"; -ENOENT for a path that is on no drive. */
int windows_from_linux(const char *path, enum windows_style style, struct arena *mem, const char **ret);
/* Splits "SRC:DST[:ro]", where the colon in a Windows SRC is no separator. DST is a Linux path. */
int windows_split_mount(const char *text, enum windows_style style, struct arena *mem, const char **ret_src,
                        const char **ret_dst, bool *ret_read_only, struct err *e);
