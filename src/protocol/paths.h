/*
 * Where the box has what the host calls by another name, and the other way round: a table of mounts, and text in, text out.
 * Nothing is looked up: who has a path with links in it resolves them first, on the side the path belongs to.
 */
#pragma once
#include <stdbool.h>
#include "base/arena.h"
#include "base/buf.h"
#include "protocol/step.h"

enum path_kind {
    PATH_WRITABLE = 'w',
    PATH_READ_ONLY = 'r',
    PATH_PRIVATE = 'p' /* the box's own: what stands there is nothing of the host's */
};
struct path_mount {
    struct str host, box; /* clean and absolute; PATH_PRIVATE has no `host` */
    enum path_kind kind;
};
struct path_table {
    const struct path_mount *mounts; /* of two at one place in the box the later one lies on top */
    size_t n;
};
enum path_way { PATH_TO_BOX, PATH_TO_HOST };

/* The table as bytes, for records and sockets: for each mount its kind, host, NUL, box, NUL. */
int paths_of_plan(const struct plan_image *p, struct buf *out);
/* Borrows `bytes`. -EBADMSG for what is no table. */
int paths_load(struct path_table *ret, const char *bytes, size_t n, struct arena *mem);

/* Whether a clean path is `tree` or lies below it. */
bool path_lies_in(struct str path, struct str tree);
/* The mount that a clean path in the box lies in: the longest, of equals the last. NULL: none. */
const struct path_mount *paths_mount(const struct path_table *t, struct str box);
/*
 * `path` as the other side has it, cleaned ("..", "//" by their text; a slash at the end stays). To the box the longest mount
 * around decides that is not covered there by another; of two equal ones, one under a name of its own. Returns 1; or 0
 * for what is relative, in no mount, or in a private tree of the box, and then `path` is put as it is.
 */
int paths_translate(const struct path_table *t, enum path_way way, struct str path, struct buf *out);
/*
 * The value of a variable: a path, or a list of paths between colons. What no mount moves stays to the byte.
 * Returns whether it changed.
 */
bool paths_value(const struct path_table *t, enum path_way way, struct str value, struct buf *out);
/*
 * The same for what a caller says to a command in the box, by either side's names: a path that the box has a mount at stays,
 * a path of the host that is shown elsewhere only is put as the box has it. In a private tree of the box what a mount shows
 * of the host's tree of that name is the host's.
 */
bool paths_enter(const struct path_table *t, struct str value, struct buf *out);
