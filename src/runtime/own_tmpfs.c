/*
 * The box's own tmpfs. One file system holds everything private without a size limit: stubs, denied paths, /dev,
 * /dev/shm and /tmp are directories of it, each mounted separately. A tmpfs costs 49 us, a directory and a clone 5. No
 * part can be reached from another, because each is its own mount; read-only parts are only ever mounted read-only.
 *
 * Cloning from a detached mount needs Linux 6.15. Before, the tmpfs is attached on top of / during BUILD (only the
 * builder exists then, and an absolute path never crosses into a mount on its own root). At the end of BUILD it is
 * parked, read-only, where the new /proc will cover it: unmounting would wait for an RCU grace period, and nothing
 * reaches what is under a mount (runtime/steps.c).
 */
#include "base/str.h"
#include "runtime/runner.h"
#include "base/text.h"

/* A detached tmpfs with this mode for its root; `size_kib` 0: the kernel's default. */
static int tmpfs_new(struct runner *r, unsigned mode, uint32_t size_kib, unsigned attributes)
{
    own_fd int fs = sys_fsopen("tmpfs");
    if (fs < 0)
        return fs;
    char octal[8] = {(char)('0' + (mode >> 9 & 7)), (char)('0' + (mode >> 6 & 7)), (char)('0' + (mode >> 3 & 7)),
                     (char)('0' + (mode & 7)), 0};
    int e = sys_fsconfig(fs, SYS_FS_STRING, "mode", octal, 0);
    if (e == 0 && size_kib) {
        char size[16];
        put_text(put_number(size, size_kib), "k");
        e = sys_fsconfig(fs, SYS_FS_STRING, "size", size, 0);
    }
    e = mount_new(fs, e, attributes);
    done_with(r, &fs);
    return e;
}

int own_begin(struct runner *r)
{
    if (r->own >= 0)
        return 0;
    const int fd = tmpfs_new(r, 0755, 0, SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV);
    r->own = fd < 0 ? -1 : fd;
    return fd < 0 ? fd : 0;
}

void own_name(struct runner *r, char name[OWN_NAME])
{
    put_number(name, r->n_own++);
}

int own_show(struct runner *r)
{
    /* in parallel with pid 1: the kernel is recent enough, and nothing can be parked any more */
    if (r->own_visible || r->split)
        return -EALREADY;
    int e = sys_move_mount(r->own, "", AT_FDCWD, "/", SYS_MOVE_FROM_EMPTY);
    r->own_visible = e == 0;
    return e;
}

int own_clone(struct runner *r, const char *name, unsigned attributes)
{
    const unsigned flags = SYS_TREE_CLONE | SYS_TREE_CLOEXEC;
    own_fd int tree = sys_open_tree(r->own, name, flags);
    const int shown = tree == -EINVAL ? own_show(r) : -EALREADY;
    if (shown != -EALREADY)
        tree = shown < 0 ? shown : sys_open_tree(r->own, name, flags);
    if (tree < 0)
        return tree;
    if (attributes & ~(unsigned)(SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV)) {
        struct sys_mount_attr attr = {.set = attributes};
        int e = sys_mount_setattr(tree, "", SYS_AT_EMPTY_PATH, &attr);
        if (e < 0)
            return e;
    }
    return sys_taken(&tree);
}

void own_forget(struct runner *r)
{
    sys_drop(&r->own);
    sys_drop(&r->denying[0]);
    sys_drop(&r->denying[1]);
    r->own_visible = r->denied = r->whiteout = false;
}

/* Creates an empty directory and an empty file with mode 0, to be mounted over denied paths. */
int own_denied(struct runner *r)
{
    if (r->denied)
        return 0;
    int e = own_begin(r);
    if (e == 0)
        e = sys_mkdirat(r->own, "d", 0);
    if (e == 0)
        e = sys_mknodat(r->own, "f", S_IFREG, 0);
    r->denied = e == 0;
    return e;
}

/*
 * The first mount over a directory, and over a file, gets its attributes by a call of its own. The others are clones of that
 * one, which is attached by then: so every kernel clones it, and a clone has all attributes of its mount (clone_mnt() in the
 * kernel). Nothing changes the first one between, or later: only this process can, and it has no step for that.
 */
int deny_name(struct runner *r, int dir, const char *name, bool is_dir)
{
    int *first = &r->denying[is_dir], e = own_denied(r);
    if (e < 0)
        return e;
    own_fd int tree = *first < 0 ? own_clone(r, is_dir ? "d" : "f", SYS_MOUNT_RDONLY | SYS_MOUNT_NOEXEC)
                                 : sys_open_tree(*first, "", SYS_TREE_CLONE | SYS_TREE_CLOEXEC | SYS_AT_EMPTY_PATH);
    if (tree < 0)
        return tree;
    e = sys_move_mount(tree, "", dir, name, SYS_MOVE_FROM_EMPTY | (*name ? 0u : SYS_MOVE_TO_EMPTY));
    if (e == 0 && *first < 0)
        *first = sys_taken(&tree);
    done_with(r, &tree);
    return e;
}

int deny_place(struct runner *r, int *place, bool dir)
{
    const int e = deny_name(r, *place, "", dir);
    done_with(r, place);
    return e;
}

int own_park(struct runner *r)
{
    const struct step *s = plan_nth(r->plan, STEP_PROC, 0);
    if (r->own < 0)
        return 0;
    if (!s) { /* nowhere to park it: detach it */
        int e = r->own_visible ? sys_fchdir(r->own) : 0;
        if (e == 0 && r->own_visible)
            e = sys_umount(".", SYS_UMOUNT_DETACH);
        return e < 0 ? e : sys_chdir("/");
    }
    own_fd int place = open_place(step_text(r, s->a), O_DIRECTORY);
    if (place < 0)
        return place;
    int e = own_denied(r); /* /proc needs it later */
    if (e == 0)
        e = own_seal(r);
    return e < 0 ? e : attach(r->own, place);
}

int own_seal(struct runner *r)
{
    const struct sys_mount_attr attr = {.set = SYS_MOUNT_RDONLY};
    return r->own < 0 ? 0 : sys_mount_setattr(r->own, "", SYS_AT_EMPTY_PATH, &attr);
}

int step_deny(struct runner *r, const struct step *s)
{
    const char *name;
    const int dir = open_beside(r, step_text(r, s->a), &name);
    const int e = dir < 0 ? dir : deny_name(r, dir, name, s->mode == STUB_DENIED_DIR);
    /* What lies below an empty or closed directory of the tool's is as little there for the command. */
    return (e == -ENOENT || e == -EACCES) && s->flags & STEP_OPTIONAL ? 0 : e;
}

/* A detached, empty, writable directory; with a size limit, a tmpfs of its own. */
static int private_new(struct runner *r, unsigned mode, uint32_t size_kib, unsigned attributes)
{
    char name[OWN_NAME];
    if (size_kib)
        return tmpfs_new(r, mode, size_kib, attributes);
    int e = own_begin(r);
    if (e < 0)
        return e;
    own_name(r, name);
    e = sys_mkdirat(r->own, name, mode);
    return e < 0 ? e : own_clone(r, name, attributes);
}

int step_tmpfs(struct runner *r, const struct step *s)
{
    unsigned attributes = (unsigned)mount_attributes(s->flags) | SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV;
    own_fd int place = open_place(step_text(r, s->a), O_DIRECTORY);
    if (place < 0)
        return place;
    own_fd int tree = private_new(r, s->mode, s->b, attributes);
    return attach_last(r, &tree, &place);
}

static const char *const nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};
static const char *const links[][2] = {{"fd", "/proc/self/fd"},
                                       {"stdin", "/proc/self/fd/0"},
                                       {"stdout", "/proc/self/fd/1"},
                                       {"stderr", "/proc/self/fd/2"},
                                       {"ptmx", "pts/ptmx"}};
static const char *const dirs[] = {"pts", "shm", "mqueue"};
enum {
    N_NODES = sizeof nodes / sizeof *nodes,
    N_LINKS = sizeof links / sizeof *links,
    N_DIRS = sizeof dirs / sizeof *dirs
};

/* Creates the skeleton of /dev in the directory `dir` of the own tmpfs. */
static int devices_make(int dir)
{
    int e = 0;
    for (int i = 0; e == 0 && i < N_NODES; i++)
        e = sys_mknodat(dir, nodes[i], S_IFREG | 0666, 0);
    for (int i = 0; e == 0 && i < N_LINKS; i++)
        e = sys_symlinkat(links[i][1], dir, links[i][0]);
    for (int i = 0; e == 0 && i < N_DIRS; i++)
        e = sys_mkdirat(dir, dirs[i], 0755);
    return e;
}

static const struct sys_mount_attr usable = {.set = SYS_MOUNT_RDONLY | SYS_MOUNT_NOSUID, .clear = SYS_MOUNT_NODEV};

/* Mounts the node `name` of the host's directory `host` on the same name below `dev`. */
static int devices_bind(struct runner *r, int host, int dev, const char *name, bool unusable)
{
    own_fd int tree = sys_open_tree(host, name, SYS_TREE_CLONE | SYS_TREE_CLOEXEC | SYS_AT_NOFOLLOW);
    int e = tree < 0 ? tree : unusable ? sys_mount_setattr(tree, "", SYS_AT_EMPTY_PATH, &usable) : 0;
    if (e == 0)
        e = sys_move_mount(tree, "", dev, name, SYS_MOVE_FROM_EMPTY);
    done_with(r, &tree);
    return e;
}

/* If all of /dev is read-only, one call makes all its nodes usable, and a second one /dev itself what it was. */
static int devices_usable(int dev)
{
    const struct sys_mount_attr itself = {.set = SYS_MOUNT_NODEV};
    int e = sys_mount_setattr(dev, "", SYS_AT_EMPTY_PATH | SYS_AT_RECURSIVE, &usable);
    return e < 0 ? e : sys_mount_setattr(dev, "", SYS_AT_EMPTY_PATH, &itself);
}

/* A clone inherits mount attributes: read-only is harmless for a device, nodev is not. */
static bool nodes_unusable(int host)
{
    struct statfs fs;
    enum { RDONLY = 1, NODEV = 4 }; /* ST_* of statfs(2) */
    return sys_fstatfs(host, &fs) < 0 || (fs.f_flags & (RDONLY | NODEV)) != RDONLY;
}

int step_devices(struct runner *r, const struct step *s)
{
    char name[OWN_NAME];
    own_fd int place = open_place(step_text(r, s->a), O_DIRECTORY);
    if (place < 0)
        return place;
    /* Before anything of ours covers it. A descriptor goes on leading to what is below a mount. */
    const bool here = str_is(str_of(step_text(r, s->a)), "/dev");
    own_fd int other = here ? -1 : open_place("/dev", O_DIRECTORY);
    const int host = here ? place : other;
    if (host < 0)
        return host;
    int e = own_begin(r);
    if (e < 0)
        return e;
    own_name(r, name);
    e = sys_mkdirat(r->own, name, 0755);
    if (e < 0)
        return e;
    own_fd int dir = sys_openat(r->own, name, O_PATH | O_CLOEXEC, 0);
    e = dir < 0 ? dir : devices_make(dir);
    if (e < 0)
        return e;
    own_fd int dev = own_clone(r, name, (unsigned)mount_attributes(s->flags & STEP_RDONLY) | SYS_MOUNT_NOEXEC);
    if (dev < 0)
        return dev;
    const bool unusable = nodes_unusable(host), together = unusable && s->flags & STEP_RDONLY;
    e = attach(dev, place);
    for (int i = 0; e == 0 && i < N_NODES; i++)
        e = devices_bind(r, host, dev, nodes[i], unusable && !together);
    if (e == 0 && together)
        e = devices_usable(dev);
    if (e < 0)
        return e;
    own_fd int shm = private_new(r, 01777, s->b, SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV);
    e = shm < 0 ? shm : sys_move_mount(shm, "", dev, "shm", SYS_MOVE_FROM_EMPTY);
    int *const all[] = {&place, &other, &dir, &dev, &shm};
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        done_with(r, all[i]);
    return e;
}
