/* What the files of runtime/ share. Steps are named as in protocol/step.h; each returns 0 or -errno. */
#pragma once
#include "runtime/inner.h"
#include "sys/fd.h"
#include "sys/mount.h"
#include "sys/process.h"

#define CALM (RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

/* Opens an absolute path in the box (or, before ENTER, on the host) for mounting; follows no link. */
static inline int open_place(const char *path, int flags)
{
    return sys_openat2(AT_FDCWD, path, (uint64_t)(O_PATH | O_CLOEXEC | flags), 0, CALM);
}
/* A directory below another, likewise; `how`: O_PATH or O_RDONLY. */
static inline int open_in(int dir, const char *path, int how)
{
    return sys_openat2(dir, path, (uint64_t)how | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0, CALM);
}
/*
 * The steps open some fifty descriptors for a moment each, and next to each other: so they are closed by ranges, a few calls
 * instead of fifty. done_with() takes one over, which is then closed at some time before its process executes or reads anything.
 * What a writer or a working directory would hold fast is closed at once instead.
 */
void done_with(struct runner *r, int *fd);
void close_done(struct runner *r);
void sort_fds(int *fds, unsigned n);
/* Closes all descriptors except those in `keep`, which it sorts (negative ones are ignored). */
int close_others(int *keep, int n);
enum { NAME_BYTES = 256 };
/* Cuts the first component off *path into `name`; false if there is none or it is not a plain name (layer.c). */
bool component(const char **path, char name[NAME_BYTES]);
/* Makes the file system of the context `fs` and a detached mount of it, or passes `e`, which is less than 0, on. */
static inline int mount_new(int fs, int e, unsigned attributes)
{
    if (e == 0)
        e = sys_fsconfig(fs, SYS_FS_CREATE, NULL, NULL, 0);
    return e < 0 ? e : sys_fsmount(fs, attributes);
}
/* Attaches the detached mount `tree` on `place`. */
static inline int attach(int tree, int place)
{
    return sys_move_mount(tree, "", place, "", SYS_MOVE_FROM_EMPTY | SYS_MOVE_TO_EMPTY);
}
/* The same, after which neither is needed. */
int attach_last(struct runner *r, int *tree, int *place);
static inline const char *step_text(const struct runner *r, uint32_t at)
{
    return plan_string(r->plan, at);
}
static inline uint64_t mount_attributes(unsigned step_flags)
{
    return (step_flags & STEP_RDONLY ? SYS_MOUNT_RDONLY : 0u) | (step_flags & STEP_NOSUID ? SYS_MOUNT_NOSUID : 0u) |
           (step_flags & STEP_NODEV ? SYS_MOUNT_NODEV : 0u) | (step_flags & STEP_NOEXEC ? SYS_MOUNT_NOEXEC : 0u);
}
/* Splits "/a/b/c" into a descriptor of "/a/b" and the name "c". */
int open_parent(const char *path, const char **ret_name);
/* The same; the descriptor is the runner's, and stays for the next place in that directory. */
int open_beside(struct runner *r, const char *path, const char **ret_name);

/* own_tmpfs.c: the box's own tmpfs */
enum { OWN_NAME = 16 };
int own_begin(struct runner *r);
void own_name(struct runner *r, char name[OWN_NAME]);
/* A detached clone of its directory or file `name`, with the mount attributes `attributes`. */
int own_clone(struct runner *r, const char *name, unsigned attributes);
/* Attaches the tmpfs temporarily, for kernels that cannot use detached mounts; -EALREADY the second time. */
int own_show(struct runner *r);
void own_forget(struct runner *r);
/* At the end of BUILD: makes it read-only and detaches it. Its descriptor can still be cloned from. */
int own_park(struct runner *r);
/* The same in parallel with pid 1, whose /proc may already exist: kept by its descriptor only, read-only. */
int own_seal(struct runner *r);
/* Creates the sources for denied paths. */
int own_denied(struct runner *r);
/* Mounts one of them over `name` in `dir`, a directory or not; it follows no link. */
int deny_name(struct runner *r, int dir, const char *name, bool is_dir);
/* The same over `place`, which is then done with. */
int deny_place(struct runner *r, int *place, bool dir);
int step_deny(struct runner *r, const struct step *s);
int step_tmpfs(struct runner *r, const struct step *s);
int step_devices(struct runner *r, const struct step *s);

/* veil.c */
int step_veil(struct runner *r, const struct step *s);
int step_cover(struct runner *r, const struct step *s);
/* COVER of the directory `place` (O_PATH); *ret_tree (or NULL) gets the mount that now covers it. */
int cover(struct runner *r, const struct step *s, int place, int *ret_tree);
/* Of an overlay that has been mounted, with no layer that can be written or with one: pinfold gets it, or it is done with. */
enum { FRESH_READ_ONLY = 1 << 30 /* in runner.fresh, besides the descriptor */ };
void fresh_or_done(struct runner *r, int *fs, bool read_only);
/* layer.c */
enum { FD_PATH = 32 };
/* Writes "/proc/self/fd/N"; returns its end. */
char *put_fd_path(char *to, int fd);
/* To the context of an overlay: `n` lower layers, the uppermost first; `upper` -1: none that is written. */
int name_layers(int fs, const int *lower, int n, int upper, int work);
/* Keeps the directory of the LAYER `s` writable, before ENTER. */
int layer_prepare(struct runner *r, const struct step *s);
int step_layer(struct runner *r, const struct step *s);
int step_part(struct runner *r, const struct step *s);
/* Mounts the overlay while its host paths are still writable; its own step attaches it. */
int overlay_prepare(struct runner *r, const struct step *s, int *ret_tree);

/* drop.c */
int step_no_caps(struct runner *r, const struct step *s);
int step_no_new_privs(struct runner *r, const struct step *s);
int step_undumpable(struct runner *r, const struct step *s);
int step_filter(struct runner *r, const struct step *s);
int step_keyring(struct runner *r, const struct step *s);

/* catch.c */
int step_catch(struct runner *r, const struct step *s);

/* landlock.c */
int step_ruleset(struct runner *r, const struct step *s);
/* Rules about trees outside of the Landlock tier, once the builder has made these. After FILTER: no call of it is judged. */
int rulesets_of_trees(struct runner *r);
