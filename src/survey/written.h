/*
 * Where a box may have written: a record of the writable roots of all boxes started with one state directory, and the
 * decision about symbolic links that uses it.
 *
 * A box that can write a directory can put a link there, and `--rw build` of the next box would follow it out of the
 * tree. So a path given by a person is refused if it crosses a link in a directory that a box could write to; the
 * target is accepted if it is named itself. Links elsewhere belong to the person and are followed.
 *
 * The record is the directory `written` in pinfold's state directory (which no box sees), with two symbolic links per
 * root: one named by device, inode and creation time, for roots that are moved, and one named by a hash of the path,
 * for file systems whose device numbers change. The text of both is the path. Creating a link is atomic, so many boxes
 * may start at once.
 */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

/* A device number of statx(2) as one integer. */
static inline uint64_t written_device(uint32_t major, uint32_t minor)
{
    return (uint64_t)major << 32 | minor;
}

/* A directory, whatever its name: inodes are reused, creation times (ns since 1970, 0: unknown) are not. */
struct written_id {
    uint64_t device, inode, born;
};

/*
 * Records the directory `real` (absolute, no links) before a box starts that may write it: one system call if it is
 * known, three if not. If the state directory is not writable nothing is recorded (written_covers() considers that). 0,
 * or -errno with a message.
 */
int written_remember(const char *memory, const char *real, const struct written_id *id, struct err *e);

/*
 * Whether a box may have written in the directory `real` (absolute, no links). If `memory` is NULL or not writable,
 * earlier boxes are
   unknown, and the answer is yes except for directories of the system, which belong to root.
 */
bool written_covers(const char *memory, const char *real);

/* The record of this user according to the environment, in `to`; NULL: neither XDG_STATE_HOME nor HOME is set. */
const char *written_place(char to[PATH_MAX]);

/* Forgets roots that have been gone for more than a month. Returns how many. */
unsigned written_tidy(const char *memory);

/*
 * Walks `path` (relative: from the current directory) component by component, opening each before examining it, and
 * refuses it if it crosses a link that a box may have created. `what` begins the message ("--policy"). 0: `ret_real`
 * (or NULL) gets the path without links, resolved as far as it exists; `ret_fd` (or NULL) an O_PATH descriptor of the
 * object, -1 if it is missing. -EPERM: refused, with a message. Other -errno: the kernel's error for a component,
 * without a message.
 */
int written_walk(const char *memory, const char *what, const char *path, char ret_real[PATH_MAX], int *ret_fd,
                 struct err *e);

/*
 * For a walk component by component: puts what the link `fd` says in front of `rest`, which has `room` bytes, and counts it. 0: it goes
 * on from where the link is; 1: from the root; -ELOOP beyond `most` links.
 */
int link_before_rest(int fd, char *rest, size_t room, unsigned *links, unsigned most);

/* The message of a refusal. `link`: where the link is; `real`: what the whole path leads to. */
int written_refuse(const char *what, const char *path, const char *link, const char *real, struct err *e);
