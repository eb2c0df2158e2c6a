/*
 * Translates paths between host and box: a table of mounts, text in, text out. Nothing is looked up: resolve symbolic
 * links first, on the side to which the path belongs.
 */
#pragma once
#include <stdbool.h>
#include "base/arena.h"
#include "base/buf.h"
#include "protocol/step.h"

enum path_kind {
    PATH_WRITABLE = 'w',
    PATH_READ_ONLY = 'r',
    PATH_PRIVATE = 'p' /* private to the box: shows nothing of the host */
};
struct path_mount {
    struct str host, box; /* clean and absolute; PATH_PRIVATE has no `host` */
    enum path_kind kind;
};
struct path_table {
    const struct path_mount *mounts; /* of two at the same place, the later one is on top */
    size_t n;
};
enum path_way { PATH_TO_BOX, PATH_TO_HOST };

/* Serialises the table, for records and sockets: of each mount its kind, host, NUL, box, NUL. */
int paths_of_plan(const struct plan_image *p, struct buf *out);
/* Reads it back; borrows `bytes`. -EBADMSG for invalid ones. */
int paths_load(struct path_table *ret, const char *bytes, size_t n, struct arena *mem);

/* Whether a clean path is `tree` or below it. */
bool path_lies_in(struct str path, struct str tree);
/* The mount to which a clean path in the box belongs: the longest prefix, of equals the last. NULL: none. */
const struct path_mount *paths_mount(const struct path_table *t, struct str box);
/*
 * Puts `path` as the other side names it, cleaned by its text; a trailing slash stays. Towards the box, the longest
 * mount around it decides that no other mount covers there; of two equal ones, the one whose names differ. Returns 1;
 * or 0 for a relative path, one in no mount, or one in a private tree of the box, which are put unchanged.
 */
int paths_translate(const struct path_table *t, enum path_way way, struct str path, struct buf *out);
/*
 * Translates the value of a variable: a path, or a list of paths separated by colons. Anything else is copied
 * unchanged. Returns whether something changed.
 */
bool paths_value(const struct path_table *t, enum path_way way, struct str value, struct buf *out);
/*
 * The same for a path that a caller passes to a command in the box and that may be named as on either side: a path
 * where the box has a mount stays; a path of the host that the box sees elsewhere is translated. In a private tree of
 * the box, what a mount shows of the host's tree of that name is the host's.
 */
bool paths_enter(const struct path_table *t, struct str value, struct buf *out);

/* Whether the host may have something at this path where the box has nothing: only there an ENOENT can be the box's. `ret_clear`:
   and at no other name of its directory, whose path has `n` bytes. */
bool plan_masks(const struct plan_image *p, const char *path, size_t n, bool *ret_clear);
/* Whether a path is in a private tree of the box. Those of a virtual machine are in its memory: nobody in the box sees what is here
   under these names. What is attached inside them is shared again. */
bool plan_in_machine(const struct plan_image *p, struct str path);
