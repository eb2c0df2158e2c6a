/*
 * Where a box may have written: the memory of the writable roots of all boxes that were started with one state directory, and
 * the judgement on symbolic links that rests on it.
 *
 * A box that can write a directory can put a link there, and the next box's `--rw build` would follow it out. So a path that a
 * person says is refused when it crosses a link lying in a directory that a box could write to; the target is accepted once
 * its own name is said. Links anywhere else are the person's, and followed.
 *
 * The memory is a directory, `written` in pinfold's state directory (which no box sees), with two symbolic links for each root:
 * one named by device, inode and time of birth, for a root that was moved, and one named by a hash of the path, for file systems that count
 * their devices anew. The text of both is the path. A link is made whole by one call, so many boxes may start at once.
 */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

/* The number of a file system as statx(2) says it, in one. */
static inline uint64_t written_device(uint32_t major, uint32_t minor)
{
    return (uint64_t)major << 32 | minor;
}

/* A directory, whatever its name is now: inodes are used again, the time of birth (ns since 1970, 0: not known) is not. */
struct written_id {
    uint64_t device, inode, born;
};

/*
 * Before a box starts that may write the directory `real` (absolute, no links): one call when that is known, three when not. Where the
 * state directory cannot be written nothing is remembered (written_covers() knows). 0, or -errno with a sentence.
 */
int written_remember(const char *memory, const char *real, const struct written_id *id, struct err *e);

/*
 * Whether a box may have written in the directory `real` (absolute, no links). `memory` NULL, or one that cannot be written: then nobody
 * knows what boxes there were, and every directory counts but those of the system, which are root's.
 */
bool written_covers(const char *memory, const char *real);

/* The memory of this user by the environment alone, in `to`; NULL: neither XDG_STATE_HOME nor HOME says where. */
const char *written_place(char to[PATH_MAX]);

/* Forgets roots that are gone since more than a month. Returns how many. */
unsigned written_tidy(const char *memory);

/*
 * Walks `path` (relative: from the current directory) component by component, each opened before it is looked at, and refuses it where
 * it crosses a link that a box may have made. `what` begins the sentence ("--policy"). 0: `ret_real` (may be NULL) has the path without
 * links, or with its end missing as far as it is there; `ret_fd` (may be NULL) an O_PATH descriptor of the object, -1 when it is
 * missing. -EPERM: refused, with a sentence. Other -errno: the kernel's word on a component, without a sentence.
 */
int written_walk(const char *memory, const char *what, const char *path, char ret_real[PATH_MAX], int *ret_fd,
                 struct err *e);

/* The sentence of a refusal. `link`: where the link stands; `real`: what the path as a whole leads to. */
int written_refuse(const char *what, const char *path, const char *link, const char *real, struct err *e);
