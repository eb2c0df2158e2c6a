/*
 * File systems that the sandbox gets new ones of: tmpfs, /proc, /dev. /dev has bubblewrap's list of devices and
 * links, and nothing else.
 */
#include <errno.h>
#include <stdio.h>

#include "bwrap/bwrap.h"
#include "sys/fd.h"
#include "sys/mount.h"
#include "sys/tty.h"

/* `options`: names and values by turns, ended by NULL. A detached mount, or -errno. */
int bw_new_mount(const char *type, const char *const *options, unsigned attributes)
{
    own_fd int fs = sys_fsopen(type);
    int e = fs < 0 ? fs : sys_fsconfig(fs, SYS_FS_STRING, "source", type, 0);
    for (; e == 0 && options && options[0]; options += 2)
        e = sys_fsconfig(fs, SYS_FS_STRING, options[0], options[1], 0);
    if (e == 0)
        e = sys_fsconfig(fs, SYS_FS_CREATE, NULL, NULL, 0);
    return e < 0 ? e : sys_fsmount(fs, attributes);
}

/* `size` in bytes, 0: the kernel's default. A detached mount, or -errno. */
int bw_tmpfs(int mode, uint64_t size)
{
    char octal[16], bytes[32];
    const char *const options[] = {"mode", octal, size ? "size" : NULL, bytes, NULL};
    snprintf(octal, sizeof octal, "%o", (unsigned)mode);
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)size);
    return bw_new_mount("tmpfs", options, SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV);
}

/* A clone of `path` below `from`, or -errno. */
static int cloned(int from, const char *path, unsigned more)
{
    return sys_open_tree(from, path, SYS_TREE_CLONE | SYS_TREE_CLOEXEC | more);
}

static void device(int dev, const char *name, const char *host)
{
    int e = sys_mknodat(dev, name, S_IFREG | 0444, 0);
    own_fd int node = e < 0 ? e : cloned(AT_FDCWD, host, 0);
    if (node >= 0)
        e = sys_move_mount(node, "", dev, name, SYS_MOVE_FROM_EMPTY);
    if (node < 0 || e < 0)
        bw_die_sys(node < 0 ? node : e, "Can't bind mount %s on /newroot/dev/%s", host, name);
}

/* The terminal of the caller, if standard output is one. */
static void console(int dev)
{
    char path[4096];
    struct sys_stat is, has;
    if (!sys_is_tty(1))
        return;
    long n = sys_readlinkat(AT_FDCWD, "/proc/self/fd/1", path, sizeof path - 1);
    if (n <= 0 || path[0] != '/')
        return;
    path[n] = 0;
    /* In another mount namespace than the terminal's, its name may be another terminal's. */
    if (sys_stat_at(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &has) < 0 ||
        sys_stat_at(1, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &is) < 0 || is.inode != has.inode || is.major != has.major ||
        is.minor != has.minor)
        return;
    device(dev, "console", path);
}

static void links(int dev)
{
    static const char *const table[][2] = {
        {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"},
        {"/proc/self/fd", "fd"},      {"/proc/kcore", "core"},       {"pts/ptmx", "ptmx"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int e = sys_symlinkat(table[i][0], dev, table[i][1]);
        if (e < 0)
            bw_die_sys(e, "Can't create symlink /dev/%s", table[i][1]);
    }
}

void bw_dev(struct bw_root *r, const struct bw_op *op)
{
    static const char nodes[][8] = {"null", "zero", "full", "random", "urandom", "tty"};
    static const char *const pts_options[] = {"ptmxmode", "0666", "mode", "0620", NULL};
    int target = bw_target(r, op->dest, true, op->perms);
    int dev = bw_tmpfs(0755, 0);
    own_fd int inside = dev < 0 ? dev : sys_fcntl(dev, F_DUPFD_CLOEXEC, 0);
    int e = inside < 0 ? inside : bw_attach(r, dev, target);
    if (e < 0)
        bw_die_sys(e, "Can't mount tmpfs on /newroot%s", op->dest);
    sys_shut(target);
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        char host[32];
        snprintf(host, sizeof host, "/dev/%s", nodes[i]);
        device(inside, nodes[i], host);
    }
    links(inside);
    e = sys_mkdirat(inside, "shm", 0755);
    if (e == 0)
        e = sys_mkdirat(inside, "pts", 0755);
    own_fd int pts = e < 0 ? e : bw_new_mount("devpts", pts_options, SYS_MOUNT_NOSUID | SYS_MOUNT_NOEXEC);
    e = pts < 0 ? pts : sys_move_mount(pts, "", inside, "pts", SYS_MOVE_FROM_EMPTY);
    if (e < 0)
        bw_die_sys(e, "Can't mount devpts on /newroot%s/pts", op->dest);
    console(inside);
    const struct sys_mount_attr attr = {.set = SYS_MOUNT_NOSUID};
    e = sys_mount_setattr(inside, "", SYS_AT_EMPTY_PATH | SYS_AT_RECURSIVE, &attr);
    if (e < 0)
        bw_die_sys(e, "Can't mark the devices of /newroot%s nosuid", op->dest);
}

/* Places of /proc by which root could change the host are covered by themselves, read-only. */
static void cover(int proc, const char *name)
{
    if (sys_may(proc, name, 2) < 0)
        return;
    const struct sys_mount_attr attr = {.set = SYS_MOUNT_RDONLY | SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV};
    own_fd int tree = cloned(proc, name, 0);
    int e = tree < 0 ? tree : sys_mount_setattr(tree, "", SYS_AT_EMPTY_PATH, &attr);
    if (e == 0)
        e = sys_move_mount(tree, "", proc, name, SYS_MOVE_FROM_EMPTY);
    if (e < 0)
        bw_die_sys(e, "Can't cover proc/%s", name);
}

/* `own`: of the sandbox's own processes; otherwise the host's, which are the ones that the sandbox sees. */
void bw_proc(struct bw_root *r, const struct bw_op *op, bool own)
{
    static const char covered[][16] = {"sys", "sysrq-trigger", "irq", "bus"};
    int target = bw_target(r, op->dest, true, op->perms);
    int tree = own ? bw_new_mount("proc", NULL, SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV | SYS_MOUNT_NOEXEC)
                   : cloned(AT_FDCWD, "/proc", SYS_AT_RECURSIVE);
    own_fd int inside = tree < 0 ? tree : sys_fcntl(tree, F_DUPFD_CLOEXEC, 0);
    const struct sys_mount_attr attr = {.set = SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV};
    int e = inside < 0 || own ? 0 : sys_mount_setattr(inside, "", SYS_AT_EMPTY_PATH | SYS_AT_RECURSIVE, &attr);
    if (e == 0)
        e = inside < 0 ? inside : bw_attach(r, tree, target);
    if (e < 0)
        bw_die_sys(e, "Can't mount proc on /newroot%s", op->dest);
    sys_shut(target);
    for (size_t i = 0; i < sizeof covered / sizeof *covered; i++)
        cover(inside, covered[i]);
}
