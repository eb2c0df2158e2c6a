/*
 * Files, directories and links as a layer and a workspace hold them: looked at, compared and copied by descriptor, over no
 * link. Functions return 0 or -errno unless said otherwise.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* What stands at a name. Times are nanoseconds since 1970. `mode` 0: nothing does. */
struct layer_object {
    uint32_t mode, uid, gid, links;
    uint64_t device, ino, size, node; /* node: the number of a device node */
    uint64_t room;                    /* bytes that it takes on the disk; not in journals */
    int64_t modified, changed;
};

static inline bool object_is(const struct layer_object *o, unsigned type)
{
    return (o->mode & S_IFMT) == type;
}
/* A whiteout: overlayfs has deleted the name. */
static inline bool object_whiteout(const struct layer_object *o)
{
    return object_is(o, S_IFCHR) && o->node == 0;
}

/* `name` in `dir`; with "" the descriptor itself. A missing name is no error: mode 0. */
int object_look(int dir, const char *name, struct layer_object *ret);
/* Whether `a` and `b` are one inode. */
bool object_same_inode(const struct layer_object *a, const struct layer_object *b);
/*
 * Whether what was `before` is the same and was not written to since: inode, type, permissions, owner, size, time of
 * its last write. The time of change is left out, because a rename changes it. Of directories only inode and type.
 */
bool object_untouched(const struct layer_object *before, const struct layer_object *now);

/*
 * Opens a file or directory of a layer for reading, over no link and without waiting for the other end of a pipe. One whose
 * mode keeps its owner from reading is opened all the same, and its mode is as it was afterwards. A descriptor or -errno.
 */
int object_open(int dir, const char *name, unsigned type);
/* The same for what is the host's: its mode is not changed, and -EACCES where that keeps it from being read. */
int object_open_as_is(int dir, const char *name, unsigned type);
/* Whether two open files have the same bytes: 1, 0 or -errno. */
int object_same_content(int a, int b);
/* Whether they have the same attributes that apply copies (user.* but overlayfs's own, ACLs): 1, 0 or -errno. */
int object_same_attributes(int a, int b);
/* Gives `to` exactly the attributes of `from`. */
int object_copy_attributes(int from, int to);
/*
 * Makes `to_name` in `to_dir`, which must not exist, as `from_name` is: content, attributes, mode, owner where that is
 * permitted, times. A directory is made without its entries. -ESTALE: it is not `expected` (any more), or changed
 * while it was copied; nothing is left behind then. -EPERM: a device.
 */
int object_copy(int from_dir, const char *from_name, const struct layer_object *expected, int to_dir,
                const char *to_name);
/* Sets permissions, then times of an object that is `as`; never of a link's target. */
int object_dress(int dir, const char *name, const struct layer_object *as);

/* Opens the directory that holds `path` (relative, clean) below `top`, over no link and no mount. *ret_name is the
   last component, borrowed. A descriptor or -errno. */
int object_parent(int top, const char *path, const char **ret_name);
