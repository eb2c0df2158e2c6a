/*
 * Overlays. Layers are named to the kernel by descriptor, so no character of a path needs an escape.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bwrap/bwrap.h"
#include "sys/fd.h"
#include "sys/mount.h"

struct overlay_layers {
    int upper, work;
    int lower[500]; /* as many as the kernel takes */
    size_t n;
};

static int layer(const char *path, const char *plain)
{
    int fd = bw_source(plain);
    if (fd < 0)
        bw_die_sys(fd, "Can't find source path %s", path);
    return fd;
}

static int scratch_dir(struct bw_root *r, const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "%s-%u", what, r->n_scratch++);
    int e = sys_mkdirat(r->scratch, name, 0755);
    return e < 0 ? e : sys_openat(r->scratch, name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
}

static int set(int fs, const char *key, int fd)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return sys_fsconfig(fs, SYS_FS_STRING, key, path, 0);
}

/* The first one is the uppermost. Before Linux 6.5 all must be in one text, which holds some fifteen. */
static int set_lower(int fs, const struct overlay_layers *l)
{
    char text[256];
    size_t n = 0;
    int e = 0;
    for (size_t i = l->n; i-- > 0 && e == 0;)
        e = set(fs, "lowerdir+", l->lower[i]);
    if (e == 0)
        return 0;
    for (size_t i = l->n; i-- > 0;) {
        const int k = snprintf(text + n, sizeof text - n, "%s/proc/self/fd/%d", n ? ":" : "", l->lower[i]);
        if (k < 0 || (size_t)k >= sizeof text - n)
            return -E2BIG;
        n += (size_t)k;
    }
    return sys_fsconfig(fs, SYS_FS_STRING, "lowerdir", text, 0);
}

static int make(const struct overlay_layers *l, bool read_only)
{
    own_fd int fs = sys_fsopen("overlay");
    int e = fs < 0 ? fs : sys_fsconfig(fs, SYS_FS_FLAG, "userxattr", NULL, 0);
    if (e == 0)
        e = set_lower(fs, l);
    if (e == 0 && l->upper >= 0)
        e = set(fs, "upperdir", l->upper);
    if (e == 0 && l->work >= 0)
        e = set(fs, "workdir", l->work);
    if (e == 0)
        e = sys_fsconfig(fs, SYS_FS_CREATE, NULL, NULL, 0);
    return e < 0 ? e : sys_fsmount(fs, SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV | (read_only ? SYS_MOUNT_RDONLY : 0));
}

void bw_overlay(struct bw_root *r, const struct bw_op *sources, size_t n, const struct bw_op *op)
{
    struct overlay_layers l = {.upper = -1, .work = -1};
    if (n > sizeof l.lower / sizeof *l.lower)
        bw_die("%s takes at most 500 --overlay-src", op->option);
    for (; l.n < n; l.n++)
        l.lower[l.n] = layer(sources[l.n].src, sources[l.n].plain);
    if (op->kind == BW_OVERLAY) {
        l.upper = layer(op->src, op->plain);
        l.work = layer(op->work, op->plain_work);
    } else if (op->kind == BW_TMP_OVERLAY) {
        l.upper = scratch_dir(r, "upper");
        l.work = scratch_dir(r, "work");
    }
    int target = bw_target(r, op->dest, true, op->perms);
    int tree = make(&l, op->kind == BW_RO_OVERLAY);
    int e = tree < 0 ? tree : bw_attach(r, tree, target);
    if (e == -ELOOP)
        bw_die("Can't make overlay mount on /newroot%s: Overlay directories may not overlap", op->dest);
    if (e < 0)
        bw_die_sys(e, "Can't make overlay mount on /newroot%s", op->dest);
    sys_shut(target);
    sys_shut(l.upper);
    sys_shut(l.work);
    while (l.n)
        sys_shut(l.lower[--l.n]);
}
