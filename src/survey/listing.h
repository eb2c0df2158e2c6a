/*
 * What a directory certainly does not contain. A policy names many files that most machines do not have, a dozen or two
 * in one directory: to read it once is cheaper than to ask for each.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"

enum { LISTING_WORDS = 64 };
struct dir_listing {
    uint64_t bits[LISTING_WORDS];  /* one for each hash of a name in it */
    uint64_t links[LISTING_WORDS]; /* of one that may be a symbolic link */
};

/*
 * Whether `path` is in a file system of a disk or of memory. Its directories list all that can be looked up in them, and
 * who may read is what modes and access lists say.
 */
bool listing_is_local(const char *path);
/*
 * Reads a directory of such a file system: in others there are names that it does not list (automounts, /proc, network).
 * False if nothing can be concluded from its names: it is not readable, large, or has names beyond ASCII, which a directory
 * that folds case (ext4's casefold) may find by an ASCII name.
 */
bool listing_read(const char *path, struct dir_listing *ret);
/* False: there is no such name, in no ASCII case. */
bool listing_may_have(const struct dir_listing *l, struct str name);
/* False: if there is such a name, it is no symbolic link. */
bool listing_may_link(const struct dir_listing *l, struct str name);
