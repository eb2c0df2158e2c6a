/*
 * What the guard itself has: its capability, hidden while it opens what is not the caller's, and the mounts and file
 * systems of its namespace, which is the box's.
 */
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <linux/capability.h>
#include "base/fd.h"
#include "guard/inside.h"
#include "sys/process.h"

/* ---- capability ---- */

#define CAP_PTRACE_BIT (1u << 19) /* CAP_SYS_PTRACE */

/* CAP_SYS_PTRACE lets us examine the caller; it must not let the caller examine others (/proc/1/mem). So files of /proc
   are opened without it, except the caller's own. */
void ptrace_hide(struct guard *g, bool hide)
{
    if (!g->has_ptrace || g->ptrace_off == hide)
        return;
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{.effective = hide ? 0 : CAP_PTRACE_BIT, .permitted = CAP_PTRACE_BIT}};
    if (sys_call(SYS_capset, &header, data, 0, 0, 0, 0) == 0)
        g->ptrace_off = hide;
}

/* ---- file systems and mounts ---- */

static uint64_t device_of(const struct sys_stat *st)
{
    return (uint64_t)st->major << 32 | st->minor;
}

enum file_system file_system_of(struct guard *g, int fd, const struct sys_stat *st)
{
    uint64_t device = device_of(st);
    for (unsigned i = 0; i < g->n_devices; i++)
        if (g->devices[i].device == device)
            return (enum file_system)g->devices[i].kind;
    struct statfs fs;
    enum file_system kind = FS_ORDINARY;
    if (sys_fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC)
        kind = FS_PROC;
    else if (fs.f_type == DEVPTS_SUPER_MAGIC)
        kind = FS_PTS;
    unsigned at = g->n_devices < DEVICES ? g->n_devices++ : (unsigned)(device % DEVICES);
    g->devices[at].device = device;
    g->devices[at].kind = kind;
    return kind;
}

static int mount_order(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* Collects the ids of our namespace's mounts, once: nobody in the box can mount, and nothing propagates in. */
static int mounts_load(struct guard *g)
{
    auto_fd int fd = sys_openat(g->host_proc, "self/mountinfo", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    size_t room = 0;
    bool start = true;
    for (uint64_t id = 0;;) {
        long n = sys_read(fd, g->bytes, sizeof g->bytes);
        if (n <= 0)
            break;
        for (long i = 0; i < n; i++) {
            char c = g->bytes[i];
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
    qsort(g->mounts, g->n_mounts, sizeof *g->mounts, mount_order);
    return g->n_mounts ? 0 : -EIO;
}

bool mount_ours(struct guard *g, uint64_t id)
{
    if (!g->mounts && mounts_load(g) < 0)
        return false;
    return bsearch(&id, g->mounts, g->n_mounts, sizeof id, mount_order) != NULL;
}
