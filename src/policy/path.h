/*
 * The syntax of paths in policies (for flags see enum path_forms):
 *
 *     /a/b  ~  ~/x  ./x  x  ${VAR}/x  $VAR/x      literal paths; relative ones start at the given directory
 *     two stars, a slash, NAME                    NAME (or A/NAME) at any depth; with DIR/ before: below DIR
 *     /a/NAME*                                    a pattern (match/glob.h) in the last component only
 *     \* \? \[ \$ \~ \\                           the character itself
 *
 * Only hide and protect know patterns; elsewhere * ? [ are ordinary characters. The value of a variable is literal,
 * even a `*` in it. Cleaning is textual: it removes `.`, `..`, `//` and a trailing `/` and follows no links. Names may
 * hold any byte but NUL.
 */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "match/path.h"
#include "policy/build.h"

#define MAX_PATH_TEXT 4095 /* the kernel's limit (PATH_MAX without the NUL) */

struct path_text {
    const char *path; /* absolute; relative to any directory if any_depth */
    const char *below;
    bool any_depth, pattern;
};

enum path_forms {
    PATH_PLACE,        /* rw, ro, mounts, workspace ... in files: one path; wildcards are ordinary characters */
    PATH_PATTERNS,     /* hide, protect in files: patterns in the last component, and any depth */
    PATH_FLAG,         /* PATH_PLACE as a flag: literal except a leading ~/ (the shell has expanded the rest) */
    PATH_FLAG_PATTERN, /* PATH_PATTERNS as a flag: no variables */
    PATH_NO_PATTERN    /* foreign formats, in which a pattern would have a meaning: wildcards are an error */
};
/* For the key `patterns` (hide or protect) or another, in a flag or in a file. */
static inline enum path_forms path_forms_of(bool patterns, bool flag)
{
    return patterns ? flag ? PATH_FLAG_PATTERN : PATH_PATTERNS : flag ? PATH_FLAG : PATH_PLACE;
}

/* What a path is expanded with. `base` and `workspace` are absolute and clean; `workspace` may be NULL. */
struct path_context {
    const struct policy_world *world;
    const char *base, *workspace;
};

/*
 * Expands `text`. With `c` NULL only checks the form and leaves `ret` alone. 0, -EINVAL with a sentence (without a
 * location), or -ENOMEM.
 */
int path_expand(const struct path_context *c, struct str text, enum path_forms forms, struct arena *mem,
                struct path_text *ret, struct err *e);
/* The text from which path_expand() makes this path. */
void path_write(const char *path, const char *below, bool any_depth, bool pattern, struct buf *out);

/*
 * Whether the rule covers the absolute path or something above it. Patterns and any-depth rules forbid, and so ignore
 * the case of letters.
 */
bool path_rule_covers(const struct path_rule *r, const char *path);
/* Checks the form of a guarded name: relative, no `.`, `..`, `//`, patterns; a trailing slash means a directory. */
#define GUARD_DEEP "**/" /* before a guarded name: in all directories of a repository */
/* ends: "*.SUFFIX" is valid, too, and GUARD_DEEP before a name */
int guard_name_form(struct str text, bool ends, struct err *e);
