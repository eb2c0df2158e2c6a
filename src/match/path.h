/*
 * Paths as text. A clean path begins with '/' and has no empty component, no "." or "..", and no '/' at the end (except
 * the root itself). Cleaning is textual and follows no symbolic links. Names may hold any byte but NUL.
 *
 * Rules that forbid ignore the case of ASCII letters (fold_eq(), path_in(), name_fits()), because file systems may do
 * so; on the others this refuses a few names that nobody uses (".GIT/hooks"). Rules that allow compare bytes
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

/* Absolute, without "", "." or ".." as a component, and without a slash at the end. */
bool path_is_clean(struct str path);
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

/* Whether one is the other, or holds it. */
static inline bool path_overlap(const char *a, const char *b)
{
    return path_at_or_below(a, b) || path_below(b, a);
}

/* `path`, which is `dir` or below it, relative to `dir`; "" for `dir` itself. Borrowed. */
static inline const char *path_rest(const char *path, const char *dir)
{
    size_t n = dir[1] ? strlen(dir) : 0;
    return path[n] == '/' ? path + n + 1 : path + n;
}

/*
 * Where the directory ends in which git keeps the repository that `path` is a part of, going by names alone: "/x/.git" of
 * "/x/.git/refs/heads/a", "/y/z.git" of "/y/z.git/worktrees/w/HEAD". 0: by its name it is no part of one.
 */
size_t path_git_directory(const char *path);

/* Directories into which package managers unpack other people's code; NULL at the end. */
extern const char *const path_foreign_names[];
/* Whether `path` is in one of them; `inside`: it is one, or in one. It permits, so it compares bytes. */
bool path_is_foreign(struct str path, bool inside);

/*
 * Whether the text of a link leads through /proc into another root directory, a working directory or what a process has open. Whoever
 * follows such a link is where that process is, which for a process of a box is in the box. Where the link stands is unknown, and
 * what is before dots may be a link itself. What systems have is none: /proc/self/fd, and a standard stream without more behind it.
 */
bool path_into_process(struct str text);

/* Whether dots come behind a name: where that is a link, they lead elsewhere than the text says. */
bool path_climbs_again(struct str text);

/* The last component. Borrowed. */
static inline const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/*
 * Finds the deepest proper ancestor of `path` among `n` sorted paths at(ctx, i): its index, or SIZE_MAX. One binary
 * search per level.
 */
size_t path_find_above(const char *path, size_t n, const char *(*at)(const void *ctx, size_t i), const void *ctx);
/* `dir` and the relative `rest` as one path; `dir` itself if rest is empty. NULL without memory, or if `dir` is
   NULL. */
char *path_join(struct arena *mem, const char *dir, const char *rest);
/* The directory that holds `path`; "/" for the root. */
char *path_dir(struct arena *mem, const char *path);
/* Cleans an absolute path. */
char *path_clean(struct arena *mem, const char *path);
/* Cleans `path`, taken relative to `base`. */
char *path_clean_at(struct arena *mem, const char *base, struct str path);
/* `path`, which is `from` or below it, with that prefix replaced by `to`. */
char *path_moved(struct arena *mem, const char *path, const char *from, const char *to);

/* ---- parts of paths ---- */

/* Gets the next component from offset *at on; false at the end. */
bool part_next(struct str path, size_t *at, struct str *ret);
/* Equal up to the case of ASCII letters. Most pairs differ in length or in the first byte by more than the bit that tells the cases
   apart, and are not looked at further. */
bool fold_eq_whole(struct str a, struct str b); /* of the same length */
static inline bool fold_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || (((a.p[0] ^ b.p[0]) & ~0x20) == 0 && fold_eq_whole(a, b)));
}
/* `path` is `tree` or below it. */
bool path_in(struct str path, struct str tree);
bool path_in_exactly(struct str path, struct str tree);

/* ---- names in rules ---- */

/* Whether a name matches the name `said` of a rule that forbids. `pattern`: `said` is a pattern (match/glob.h). */
bool name_fits(struct str said, bool pattern, struct str name);
/*
 * The same for several components, as "keys/\*.pem", matched from offset `at` of `path` on; *ret_end is where the last
 * one ends. Only the last component can be a pattern; the others are literal.
 */
bool names_fit(struct str said, bool pattern, struct str path, size_t at, size_t *ret_end);
