/*
 * Paths as text. "Clean" means: begins with '/', no empty component, no "." or "..", no '/' at the end but for the root
 * itself; cleaning goes by the text alone, links are nobody's business here. Any byte but NUL may stand in a name.
 *
 * Case: rules that forbid hold for a name in any case of its ASCII letters (fold_eq(), path_in(), name_fits()), since file
 * systems may fold it; on others this refuses a few names nobody uses (".GIT/hooks"). What allows goes by the very bytes
 * (path_at_or_below(), path_in_exactly()).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/arena.h"
#include "match/glob.h"

/* ---- whole paths, clean ---- */

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
/* The same of `path` read at `base`. */
char *path_clean_at(struct arena *mem, const char *base, struct str path);
/* `path`, at or below `from`, as it is called when `from` is called `to`. */
char *path_moved(struct arena *mem, const char *path, const char *from, const char *to);

/* ---- parts of paths ---- */

/* The next component from *at on; false at the end. */
bool part_next(struct str path, size_t *at, struct str *ret);
/* Equal but for the case of ASCII letters. */
bool fold_eq(struct str a, struct str b);
/* `path` is `tree` or below it. */
bool path_in(struct str path, struct str tree);
bool path_in_exactly(struct str path, struct str tree);

/* ---- names that rules speak of ---- */

/* Whether a name is the one that a rule which forbids speaks of. `pattern`: it is a pattern, see match/glob.h. */
bool name_fits(struct str said, bool pattern, struct str name);
/*
 * The same of several components, as "keys/\*.pem": one after the other from `at` on in `path`; where the last one ends in
 * *ret_end. Only the last component is ever a pattern: the others are names, in which nothing is special.
 */
bool names_fit(struct str said, bool pattern, struct str path, size_t at, size_t *ret_end);
