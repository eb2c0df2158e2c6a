/*
 * Texts of paths, as policies say them (of flags see enum path_forms):
 *
 *     /a/b  ~  ~/x  ./x  x  ${VAR}/x  $VAR/x      literal paths; relative ones start at the directory given
 *     two stars, a slash, NAME                    NAME (or A/NAME) at any depth; with DIR/ before: below DIR
 *     /a/NAME*                                    a pattern (match/glob.h) in the last component only
 *     \* \? \[ \$ \~ \\                           the character itself
 *
 * Only hide and protect know patterns; elsewhere * ? [ are characters like any other. What a variable holds is taken literally: a `*` in it is a character. Cleaning is lexical: `.`, `..`, `//` and a
 * trailing `/` go, links are nobody's business here. Any byte but NUL may stand in a name.
 */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "match/path.h"
#include "policy/build.h"

#define MAX_PATH_TEXT 4095 /* what the kernel takes (PATH_MAX less its NUL) */

struct path_text {
    const char *path; /* absolute; or relative to any directory when any_depth */
    const char *below;
    bool any_depth, pattern;
};

enum path_forms {
    PATH_PLACE,        /* rw, ro, mounts, workspace ... in files: one place; wildcards are characters      */
    PATH_PATTERNS,     /* hide, protect in files: last-component patterns and any depth                    */
    PATH_FLAG,         /* PATH_PLACE as a flag: all is literal but a leading ~/ (the shell did the rest)   */
    PATH_FLAG_PATTERN, /* PATH_PATTERNS as a flag: no variables                                            */
    PATH_NO_PATTERN    /* foreign formats, in which a pattern would mean something: wildcards are an error */
};
/* For key `patterns` (hide or protect) or another, said by a flag or in a file. */
static inline enum path_forms path_forms_of(bool patterns, bool flag)
{
    return patterns ? flag ? PATH_FLAG_PATTERN : PATH_PATTERNS : flag ? PATH_FLAG : PATH_PLACE;
}

/* What a path text is expanded with. `base` and `workspace` are absolute and clean; `workspace` may be NULL. */
struct path_context {
    const struct policy_world *world;
    const char *base, *workspace;
};

/*
 * Expands `text`. With `c` NULL only the form is checked and `ret` stays untouched. 0, -EINVAL with a sentence
 * (no place in it), or -ENOMEM.
 */
int path_expand(const struct path_context *c, struct str text, enum path_forms forms, struct arena *mem,
                struct path_text *ret, struct err *e);
/* The text that path_expand() reads back as this path. */
void path_write(const char *path, const char *below, bool any_depth, bool pattern, struct buf *out);

/*
 * Whether the rule covers the absolute path itself or something above it. A pattern and a rule of any depth forbid, and
 * so hold in any case of letters.
 */
bool path_rule_covers(const struct path_rule *r, const char *path);
/* The form of a guarded name: relative, no `.`, `..`, `//`, patterns; a slash at the end says directory. */
int guard_name_form(struct str text, bool ends, struct err *e); /* ends: "*.SUFFIX" is one, too */
