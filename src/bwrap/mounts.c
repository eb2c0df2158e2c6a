/*
 * Builds the new root from the operations of the line, in their order, and makes it "/".
 *
 * The new root is mounted on "/" of the namespace's copy of the host, which hides nothing: a path that begins at "/" never
 * crosses into a mount on its own root, unless ".." leads back to it: plain_name(). So sources keep their names until
 * pivot_root(2). If the first operation binds
 * something to "/", that becomes the root; otherwise it is a tmpfs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bwrap/bwrap.h"
#include "sys/fd.h"
#include "sys/mount.h"
#include "sys/process.h"

static bool is_root_path(const char *path)
{
    return path[strspn(path, "/")] == 0;
}

static int clone_of(int dir, const char *path)
{
    return sys_open_tree(dir, path,
                         SYS_TREE_CLONE | SYS_TREE_CLOEXEC | SYS_AT_RECURSIVE | (*path ? 0 : SYS_AT_EMPTY_PATH));
}

/* What a descriptor of the caller is, found again in this mount namespace: no other can be cloned from. */
static int clone_of_fd(int fd, char *name, size_t room)
{
    char path[4096];
    struct sys_stat is, was;
    snprintf(name, room, "/proc/self/fd/%d", fd);
    long n = sys_readlinkat(AT_FDCWD, name, path, sizeof path - 1);
    if (n < 0)
        return (int)n;
    path[n] = 0;
    int tree = clone_of(AT_FDCWD, path);
    int e = tree < 0 ? tree : sys_stat_at(tree, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &is);
    if (e == 0)
        e = sys_stat_at(fd, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &was);
    if (e == 0 && (is.inode != was.inode || is.major != was.major || is.minor != was.minor))
        bw_die("Race condition binding dirfd %d: %s has been replaced", fd, path);
    return e < 0 ? e : tree;
}

/*
 * The name of a source without links and "..". A ".." that leads to "/" later leads to the new root, which is mounted there: its
 * content would decide what is bound. NULL: `path` has no such name, as a pipe.
 */
static const char *plain_name(const char *path)
{
    char *real = realpath(path, NULL);
    struct sys_stat is, was;
    if (real && sys_stat_at(AT_FDCWD, real, 0, SYS_STAT_BASIC, &is) == 0 &&
        sys_stat_at(AT_FDCWD, path, 0, SYS_STAT_BASIC, &was) == 0 && is.inode == was.inode && is.major == was.major &&
        is.minor == was.minor)
        return real;
    free(real);
    return NULL;
}

/*
 * Sources are looked up before anything is changed. What is the root itself is cloned now: later the new one is on it; so is
 * what has no plain name.
 */
static void look_up_sources(struct bw_line *l)
{
    struct sys_stat st, root;
    int e = sys_stat_at(AT_FDCWD, "/", 0, SYS_STAT_BASIC | SYS_STAT_MOUNT, &root);
    for (size_t i = 0; i < l->n_ops && e == 0; i++) {
        struct bw_op *op = &l->ops[i];
        if (op->kind != BW_BIND && op->kind != BW_OVERLAY_SRC && op->kind != BW_OVERLAY)
            continue;
        int no = sys_stat_at(AT_FDCWD, op->src, 0, SYS_STAT_BASIC | SYS_STAT_MOUNT, &st);
        if (no == -ENOENT && op->flags & BW_TRY)
            continue;
        if (no == 0)
            op->plain = plain_name(op->src);
        if (no == 0 && op->kind == BW_BIND && (!op->plain || (st.mount == root.mount && st.inode == root.inode)))
            no = op->tree = clone_of(AT_FDCWD, op->src);
        if (no < 0)
            bw_die_sys(no, "Can't find source path %s", op->src);
        if (op->kind == BW_OVERLAY)
            op->plain_work = plain_name(op->work);
    }
    if (e < 0)
        bw_die_sys(e, "Can't look at /");
}

int bw_source(const char *plain)
{
    int fd;
    if (!plain)
        return -ENOENT;
    do
        fd = sys_openat2(AT_FDCWD, plain, O_PATH | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS);
    while (fd == -EAGAIN);
    return fd;
}

static int clone_of_source(const struct bw_op *op)
{
    own_fd int fd = bw_source(op->plain);
    return fd < 0 ? fd : clone_of(fd, "");
}

/* The source of a bind, marked as its option says, detached; -1: there is none and need not be. */
static int bind_tree(struct bw_op *op, bool *ret_directory)
{
    char name[64];
    struct sys_stat st;
    struct sys_mount_attr attr = {.set = SYS_MOUNT_NOSUID};
    int tree = op->kind == BW_BIND_FD ? clone_of_fd(op->fd, name, sizeof name)
               : op->tree >= 0        ? sys_taken(&op->tree)
                                      : clone_of_source(op);
    if (tree == -ENOENT && op->flags & BW_TRY)
        return -1;
    if (tree < 0)
        bw_die_sys(tree, "Can't find source path %s", op->kind == BW_BIND_FD ? name : op->src);
    if (op->kind == BW_BIND_FD)
        sys_drop(&op->fd);
    if (!(op->flags & BW_DEVICES))
        attr.set |= SYS_MOUNT_NODEV;
    if (op->flags & BW_READ_ONLY)
        attr.set |= SYS_MOUNT_RDONLY;
    int e = sys_mount_setattr(tree, "", SYS_AT_EMPTY_PATH | SYS_AT_RECURSIVE, &attr);
    if (e == 0)
        e = sys_stat_at(tree, "", AT_EMPTY_PATH, SYS_STAT_TYPE, &st);
    if (e < 0)
        bw_die_sys(e, "Can't bind mount %s on /newroot%s", op->src ? op->src : name, op->dest);
    *ret_directory = S_ISDIR(st.mode);
    return tree;
}

static void bind_source(struct bw_root *r, struct bw_op *op)
{
    bool directory;
    int tree = bind_tree(op, &directory);
    if (tree < 0)
        return;
    int target = bw_target(r, op->dest, directory, op->perms);
    int e = bw_attach(r, tree, target);
    if (e < 0)
        bw_die_sys(e, "Can't bind mount %s on /newroot%s", op->src ? op->src : "the descriptor", op->dest);
    sys_shut(target);
}

static void mount_new(struct bw_root *r, const struct bw_op *op)
{
    const bool queue = op->kind == BW_MQUEUE;
    int target = bw_target(r, op->dest, true, op->perms);
    int tree = queue ? bw_new_mount("mqueue", NULL, SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV | SYS_MOUNT_NOEXEC)
                     : bw_tmpfs(op->perms >= 0 ? op->perms : 0755, op->size);
    int e = tree < 0 ? tree : bw_attach(r, tree, target);
    if (e < 0)
        bw_die_sys(e, "Can't mount %s on /newroot%s", queue ? "mqueue" : "tmpfs", op->dest);
    sys_shut(target);
}

static void copy(struct bw_op *op, int to)
{
    static char bytes[65536];
    for (;;) {
        long n = sys_read(op->fd, bytes, sizeof bytes);
        if (n == -EINTR)
            continue;
        for (long at = 0, k; n > 0 && at < n; at += k) {
            k = sys_write(to, bytes + at, (size_t)(n - at));
            if (k < 0) {
                n = k;
                break;
            }
        }
        if (n < 0)
            bw_die_sys((int)n, "Can't write data to file %s", op->dest);
        if (n == 0)
            break;
    }
    sys_drop(&op->fd);
}

static void make_file(struct bw_root *r, struct bw_op *op)
{
    const char *name;
    int parent = bw_make_parent(r, op->dest, op->perms, &name);
    int fd = parent < 0
                 ? parent
                 : sys_openat2(r->top, op->dest, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC,
                               op->perms >= 0 ? (unsigned)op->perms : 0666, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
    if (fd < 0)
        bw_die_sys(fd, "Can't create file %s", op->dest);
    copy(op, fd);
    sys_shut(fd);
    sys_shut(parent);
}

/* The data becomes a file of the scratch tmpfs, which has no name any more once it is bound. */
static void bind_data(struct bw_root *r, struct bw_op *op)
{
    char name[32];
    snprintf(name, sizeof name, "data-%u", r->n_scratch++);
    int fd = sys_openat(r->scratch, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC,
                        op->perms >= 0 ? (unsigned)op->perms : 0600);
    if (fd < 0)
        bw_die_sys(fd, "Can't create tmpfile for %s", op->dest);
    copy(op, fd);
    sys_shut(fd);
    struct sys_mount_attr attr = {.set = SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV};
    if (op->flags & BW_READ_ONLY)
        attr.set |= SYS_MOUNT_RDONLY;
    int tree = clone_of(r->scratch, name);
    int e = tree < 0 ? tree : sys_mount_setattr(tree, "", SYS_AT_EMPTY_PATH, &attr);
    int target = e < 0 ? e : bw_target(r, op->dest, false, op->perms);
    if (e == 0)
        e = bw_attach(r, tree, target);
    if (e < 0)
        bw_die_sys(e, "Can't bind mount data on /newroot%s", op->dest);
    sys_shut(target);
    (void)sys_unlinkat(r->scratch, name, 0);
}

static void make_symlink(struct bw_root *r, const struct bw_op *op)
{
    char is[4096];
    const char *name;
    own_fd int parent = bw_make_parent(r, op->dest, op->perms, &name);
    int e = parent < 0 ? parent : sys_symlinkat(op->src, parent, name);
    if (e == -EEXIST) {
        long n = sys_readlinkat(parent, name, is, sizeof is - 1);
        if (n < 0)
            bw_die("Can't make symlink at %s: destination exists and is not a symlink", op->dest);
        is[n] = 0;
        if (strcmp(is, op->src) != 0)
            bw_die("Can't make symlink at %s: existing destination is %s", op->dest, is);
        e = 0;
    }
    if (e < 0)
        bw_die_sys(e, "Can't make symlink at %s", op->dest);
}

static void make_dir(struct bw_root *r, const struct bw_op *op)
{
    const char *name;
    int fd = bw_open(r, op->dest, O_DIRECTORY);
    if (fd == -ENOENT) {
        own_fd int parent = bw_make_parent(r, op->dest, op->perms, &name);
        int e = parent < 0 ? parent : sys_mkdirat(parent, name, op->perms >= 0 ? (unsigned)op->perms : 0755);
        fd = e < 0 && e != -EEXIST ? e : bw_open(r, op->dest, O_DIRECTORY);
    }
    if (fd == -ENOENT || fd == -ENOTDIR) {
        struct sys_stat st;
        int there = bw_open(r, op->dest, O_NOFOLLOW);
        if (there >= 0 && sys_stat_at(there, "", AT_EMPTY_PATH, SYS_STAT_TYPE, &st) == 0)
            bw_die("Destination is not a directory %s", op->dest);
    }
    if (fd < 0)
        bw_die_sys(fd, "Can't create file %s", op->dest);
    sys_shut(fd);
}

static void change_mode(struct bw_root *r, const struct bw_op *op)
{
    char path[32];
    int fd = bw_open(r, op->dest, 0);
    if (fd < 0)
        bw_die_sys(fd, "Can't open %s", op->dest);
    snprintf(path, sizeof path, "self/fd/%d", fd);
    int e = sys_fchmodat(r->proc, path, (unsigned)op->perms);
    if (e < 0)
        bw_die_sys(e, "Can't chmod %#o %s", (unsigned)op->perms, op->dest);
    sys_shut(fd);
}

static void remount_ro(struct bw_root *r, const struct bw_op *op)
{
    const struct sys_mount_attr attr = {.set = SYS_MOUNT_RDONLY};
    own_fd int fd = bw_open(r, op->dest, 0);
    int e = fd < 0 ? fd : sys_mount_setattr(fd, "", SYS_AT_EMPTY_PATH, &attr);
    if (e < 0)
        bw_die_sys(e, "Can't remount readonly on %s", op->dest);
}

static void carry_out(struct bw_root *r, struct bw_op *op, bool own_proc)
{
    switch (op->kind) {
    case BW_BIND:
    case BW_BIND_FD:
        bind_source(r, op);
        break;
    case BW_REMOUNT_RO:
        remount_ro(r, op);
        break;
    case BW_PROC:
        bw_proc(r, op, own_proc);
        break;
    case BW_DEV:
        bw_dev(r, op);
        break;
    case BW_TMPFS:
    case BW_MQUEUE:
        mount_new(r, op);
        break;
    case BW_DIR:
        make_dir(r, op);
        break;
    case BW_FILE:
        make_file(r, op);
        break;
    case BW_BIND_DATA:
        bind_data(r, op);
        break;
    case BW_SYMLINK:
        make_symlink(r, op);
        break;
    case BW_CHMOD:
        change_mode(r, op);
        break;
    case BW_OVERLAY_SRC:
    case BW_OVERLAY:
    case BW_TMP_OVERLAY:
    case BW_RO_OVERLAY:
        break; /* together with their sources */
    }
}

/* Puts `tree` on "/": it is the root from now on. */
static void begin_with(struct bw_root *r, int tree)
{
    int e = tree < 0 ? tree : sys_move_mount(tree, "", AT_FDCWD, "/", SYS_MOVE_FROM_EMPTY);
    if (e < 0)
        bw_die_sys(e, "Failed to mount the new root");
    r->top = tree;
}

/* Returns how many operations are done with that. */
static size_t begin_root(struct bw_root *r, struct bw_line *l)
{
    bool scratch = false, directory = false;
    for (size_t i = 0; i < l->n_ops; i++)
        scratch |= l->ops[i].kind == BW_BIND_DATA || l->ops[i].kind == BW_TMP_OVERLAY;
    struct bw_op *first = l->n_ops ? &l->ops[0] : NULL;
    if (!scratch && first && first->kind == BW_BIND && is_root_path(first->dest)) {
        int tree = bind_tree(first, &directory);
        if (tree >= 0 && !directory)
            bw_die("Destination is a directory, and %s is not", first->src);
        if (tree >= 0) {
            begin_with(r, tree);
            return 1;
        }
    }
    begin_with(r, bw_tmpfs(0755, 0));
    if (scratch) { /* the root is a directory of that tmpfs, the scratch is the whole of it */
        r->scratch = r->top;
        r->stacked = 1;
        int e = sys_mkdirat(r->scratch, "root", 0755);
        int tree = e < 0 ? e : clone_of(r->scratch, "root");
        e = tree < 0 ? tree : sys_move_mount(tree, "", r->scratch, "root", SYS_MOVE_FROM_EMPTY);
        if (e < 0)
            bw_die_sys(e, "Failed to mount the new root");
        r->top = tree;
    }
    return 0;
}

/*
 * What was the host's root covers the new one after pivot_root(2), and goes. umount2(2) takes the uppermost mount of a
 * stack: what is still on the host's root goes first, each by a call of its own, lest the host's stays.
 */
static void enter(struct bw_root *r)
{
    int e = sys_fchdir(r->top);
    if (e == 0)
        e = sys_pivot_root(".", ".");
    if (e < 0)
        bw_die_sys(e, "pivot_root");
    for (unsigned n = r->stacked + 1; n && e == 0; n--)
        e = sys_umount(".", SYS_UMOUNT_DETACH);
    if (e < 0)
        bw_die_sys(e, "unmount old root");
    e = sys_chdir("/");
    if (e < 0)
        bw_die_sys(e, "chdir /");
    sys_shut(r->top);
    sys_shut(r->scratch);
}

void bw_build_root(struct bw_line *l, int proc, bool own_proc)
{
    struct bw_root r = {.top = -1, .scratch = -1, .proc = proc};
    const int mask = sys_umask(0);
    look_up_sources(l);
    size_t sources = 0; /* operations of --overlay-src right before this one */
    for (size_t i = begin_root(&r, l); i < l->n_ops; i++) {
        struct bw_op *op = &l->ops[i];
        if (op->kind == BW_OVERLAY || op->kind == BW_TMP_OVERLAY || op->kind == BW_RO_OVERLAY)
            bw_overlay(&r, op - sources, sources, op);
        else
            carry_out(&r, op, own_proc);
        sources = op->kind == BW_OVERLAY_SRC ? sources + 1 : 0;
    }
    enter(&r);
    (void)sys_umask((unsigned)mask);
}
