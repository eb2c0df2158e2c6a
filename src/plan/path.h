/*
 * Absolute, clean paths as text. "Clean" means: begins with '/', no empty component, no "." or "..", no '/' at the end
 * but for the root itself.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/arena.h"

/* Orders paths so that everything below a directory follows it at once: '/' sorts before any other byte. */
static inline int path_order(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    int x = *a == '/' ? 1 : *a ? (unsigned char)*a + 1 : 0;
    int y = *b == '/' ? 1 : *b ? (unsigned char)*b + 1 : 0;
    return x - y;
}

/* Whether `path` lies strictly below directory `dir`. */
static inline bool path_below(const char *path, const char *dir)
{
    if (dir[0] == '/' && !dir[1])
        return path[1] != 0;
    while (*dir && *path == *dir)
        path++, dir++;
    return !*dir && *path == '/';
}

static inline bool path_at_or_below(const char *path, const char *dir)
{
    return path_below(path, dir) || strcmp(path, dir) == 0;
}

/* What of `path` follows `dir`, which it lies at or below: relative, "" for `dir` itself. Borrowed. */
static inline const char *path_rest(const char *path, const char *dir)
{
    size_t n = dir[1] ? strlen(dir) : 0;
    return path[n] == '/' ? path + n + 1 : path + n;
}

/* The last component. Borrowed. */
static inline const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/*
 * Of `n` paths in order, at(ctx, i) each, the deepest that lies strictly above `path`: its index, or SIZE_MAX. Takes one
 * binary search for each directory above.
 */
size_t path_find_above(const char *path, size_t n, const char *(*at)(const void *ctx, size_t i), const void *ctx);
/* `dir` and the relative `rest` as one path; `dir` itself when rest is empty. NULL without memory or a `dir`. */
char *path_join(struct arena *mem, const char *dir, const char *rest);
/* The directory that holds `path`; "/" for the root. */
char *path_dir(struct arena *mem, const char *path);
/* An absolute path made clean by its text alone. */
char *path_clean(struct arena *mem, const char *path);
/* `path`, at or below `from`, as it is called when `from` is called `to`. */
char *path_moved(struct arena *mem, const char *path, const char *from, const char *to);
