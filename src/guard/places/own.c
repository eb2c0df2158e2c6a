/*
 * What the guard itself has: its capability, hidden while it opens what is not the caller's, and the mounts and file
 * systems of its namespace, which is the box's.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdlib.h>
#include "base/fd.h"
#include "guard/places/places.h"
#include "sys/caps.h"
#include "sys/poll.h"

enum { RELOADS_MAX = 16 };

/* ---- capability ---- */

#define CAP_PTRACE_BIT (1u << 19) /* CAP_SYS_PTRACE */

/* CAP_SYS_PTRACE lets us examine the caller; it must not let the caller examine others (/proc/1/mem). So files of /proc
   are opened without it, except the caller's own. */
void ptrace_hide(struct guard *g, bool hide)
{
    if (!g->has_ptrace || g->ptrace_off == hide)
        return;
    struct __user_cap_data_struct sets[2] = {{.effective = hide ? 0 : CAP_PTRACE_BIT, .permitted = CAP_PTRACE_BIT}};
    if (sys_caps_call(SYS_capset, sets) == 0)
        g->ptrace_off = hide;
}

/* ---- descriptors ---- */

int own_reopen(const struct guard *g, int fd, int flags)
{
    char room[12];
    return sys_openat(g->self_fd, decimal(room, fd), flags | O_CLOEXEC, 0);
}

int own_link(const struct guard *g, int fd, int dir, const char *name)
{
    char room[12];
    return sys_linkat(g->self_fd, decimal(room, fd), dir, name, AT_SYMLINK_FOLLOW);
}

int task_of(const struct guard *g, pid_t tid)
{
    char room[12];
    return sys_openat(g->host_proc, decimal(room, tid), O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
}

/* ---- file systems and mounts ---- */

enum file_system file_system_of(struct guard *g, int fd, const struct sys_stat *st)
{
    uint64_t device = sys_stat_device(st);
    /* In a nested namespace the number of a file system that was unmounted may be another's at once. */
    if (g->nested)
        g->n_devices = 0;
    for (unsigned i = 0; i < g->n_devices; i++)
        if (g->devices[i].device == device)
            return (enum file_system)g->devices[i].kind;
    struct statfs fs;
    if (sys_fstatfs(fd, &fs) < 0)
        return FS_ORDINARY; /* a dead one; those of the kernel always answer */
    const enum file_system kind = fs.f_type == PROC_SUPER_MAGIC     ? FS_PROC
                                  : fs.f_type == DEVPTS_SUPER_MAGIC ? FS_PTS
                                                                    : FS_ORDINARY;
    unsigned at = g->n_devices < DEVICES ? g->n_devices++ : (unsigned)(device % DEVICES);
    g->devices[at].device = device;
    g->devices[at].kind = kind;
    return kind;
}

bool object_is_named(const struct object *o, int dir)
{
    struct sys_stat st;
    return dir >= 0 && !o->magic && sys_stat_fd(dir, SYS_STAT_BASIC | SYS_STAT_MOUNT, &st) == 0 &&
           st.mount == o->st.mount && st.major == o->st.major && st.minor == o->st.minor;
}

static int mount_order(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

void mounts_drop(struct guard *g)
{
    free(g->mounts);
    g->mounts = NULL;
    g->n_mounts = 0;
    g->mounts_fd = close_fd(g->mounts_fd);
}

/* Collects the ids of our namespace's mounts. The open file stays: it tells whether the list changes. */
static int mounts_read(struct guard *g)
{
    char text[4096];
    size_t room = 0;
    bool start = true;
    mounts_drop(g);
    g->mounts_fd = sys_openat(g->host_proc, "self/mountinfo", O_RDONLY | O_CLOEXEC, 0);
    if (g->mounts_fd < 0)
        return g->mounts_fd;
    for (uint64_t id = 0;;) {
        long n = sys_read(g->mounts_fd, text, sizeof text);
        if (n <= 0)
            break;
        for (long i = 0; i < n; i++) {
            char c = text[i];
            if (start && c >= '0' && c <= '9') {
                id = id * 10 + (uint64_t)(c - '0');
            } else if (start) {
                if (g->n_mounts == room) {
                    uint64_t *grown = realloc(g->mounts, (room = room ? room * 2 : 64) * sizeof *grown);
                    if (!grown)
                        return -ENOMEM;
                    g->mounts = grown;
                }
                g->mounts[g->n_mounts++] = id;
                id = 0;
                start = false;
            }
            if (c == '\n')
                start = true;
        }
    }
    if (!g->n_mounts)
        return -EIO;
    qsort(g->mounts, g->n_mounts, sizeof *g->mounts, mount_order);
    return 0;
}

/* Whether mounts came or went since the file was opened or was asked last (proc_pid_mounts(5)). */
static bool mounts_changed(struct guard *g)
{
    struct pollfd p = {.fd = g->mounts_fd}; /* POLLERR is told without being asked for */
    return g->mounts_fd < 0 || sys_poll_ms(&p, 1, 0) != 0;
}

/*
 * Nobody in the box can mount in our namespace, and nothing propagates into it: after the start it gains no mount. But it
 * loses one when anybody outside removes its mount point (rmdir(2), unlink(2): __detach_mounts() in fs/namespace.c). The
 * id is free then, and the next mount of a nested namespace gets it; and what still is in the detached mount has a path
 * that begins at its root and may be that of another place. The kernel notes the change before it frees the id, so an id
 * that was read before the list was found unchanged, and is in it, is that of a mount which is there.
 */
bool mount_ours(struct guard *g, uint64_t id)
{
    for (int tries = 0; mounts_changed(g); tries++) {
        if (tries == RELOADS_MAX || mounts_read(g) < 0) {
            mounts_drop(g);
            return false;
        }
    }
    return g->mounts && bsearch(&id, g->mounts, g->n_mounts, sizeof id, mount_order) != NULL;
}
