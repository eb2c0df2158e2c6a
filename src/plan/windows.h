/*
 * Paths of Windows as a Linux container has them: docker on Windows shows the drive C: at /c (Docker's own machine) or at
 * /mnt/c (WSL 2). Pure; what Windows would take for another file than it says is refused rather than guessed at.
 */
#pragma once
#include "base/arena.h"
#include "base/err.h"

enum windows_style {
    WINDOWS_DOCKER, /* C:\Users\x is /c/Users/x     */
    WINDOWS_WSL     /* C:\Users\x is /mnt/c/Users/x */
};

/* Whether it is written as a path of Windows: a drive letter, or a backslash first. */
bool windows_is_path(const char *path);
/*
 * The path in Linux's form, clean: drive letter small, separators of either kind, . and .. resolved. Refused: network paths
 * (\\server\share) and devices, paths relative to a drive's own directory (C:x), streams (x:y), reserved names (NUL),
 * characters and endings that Windows drops or forbids. A path of Linux's form is only cleaned.
 */
int windows_to_linux(const char *path, enum windows_style style, struct arena *mem, const char **ret, struct err *e);
/* Back: "/c/Users/x" is "C:\Users\x"; -ENOENT for what is on no drive. */
int windows_from_linux(const char *path, enum windows_style style, struct arena *mem, const char **ret);
/*
 * Cuts "SRC:DST[:ro]" where SRC may be a path of Windows, whose own colon is no separator. DST is a path of Linux's form.
 */
int windows_split_mount(const char *text, enum windows_style style, struct arena *mem, const char **ret_src,
                        const char **ret_dst, bool *ret_read_only, struct err *e);
