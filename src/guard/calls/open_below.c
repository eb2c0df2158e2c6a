/*
 * openat2, in boxes that permit user namespaces: bubblewrap finds its way in the trees it builds by RESOLVE_IN_ROOT. Only what
 * looks at a name is done, at or below a directory that the caller has open: a descriptor that names an object (O_PATH), or a
 * directory to list. The kernel then resolves the path as for the caller, because root and current directory have no part in it
 * and magic links are not followed. Everything else gets ENOSYS, as in other boxes: its flags lie in memory, and callers know
 * of kernels without the call.
 */
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include "base/fd.h"
#include "guard/calls/calls.h"

#define LOOKS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_LARGEFILE)

/* Of a process's files in /proc the kernel would ask this process, not the caller, for its rights. */
static bool is_of_a_process(struct guard *g, int fd)
{
    struct statfs fs;
    char path[PLACE_PATH];
    size_t n = 0;
    if (sys_fstatfs(fd, &fs) == 0 && fs.f_type != PROC_SUPER_MAGIC)
        return false;
    if (path_of(g, fd, path, &n) < 0 || n == 0)
        return true;
    for (struct str rest = {path, n}; rest.n;) {
        struct str one = str_until(&rest, '/');
        size_t digits = 0;
        while (digits < one.n && one.p[digits] >= '0' && one.p[digits] <= '9')
            digits++;
        if (one.n && digits == one.n)
            return true;
    }
    return false;
}

#define TERMINALS(major) ((major) >= 136 && (major) <= 143)

/*
 * A descriptor that only names (O_PATH) cannot be installed in another process: it gets one for reading, which names as well,
 * unless opening does something to the object.
 */
static bool may_read(int fd, const struct sys_stat *st)
{
    struct statfs fs;
    if (S_ISDIR(st->mode))
        return true;
    if (S_ISREG(st->mode))
        return sys_fstatfs(fd, &fs) == 0 && fs.f_type != PROC_SUPER_MAGIC;
    return S_ISCHR(st->mode) && (st->device_major == 1 || TERMINALS(st->device_major));
}

/* /dev/tty is its opener's terminal, and cannot be opened for another: null beside it stands for it, which bubblewrap then mounts
   at that name. */
static int name_it(int base, char path[PATH_MAX], const struct open_how *how, struct sys_stat *st)
{
    const uint64_t flags = O_PATH | O_CLOEXEC | (how->flags & (O_NOFOLLOW | O_DIRECTORY));
    auto_fd int named = sys_openat2(base, path, flags, 0, how->resolve);
    int no = named < 0 ? named : sys_stat_fd(named, SYS_STAT_BASIC, st);
    if (no == 0 && S_ISCHR(st->mode) && st->device_major == 5 && st->device_minor == 0) {
        char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
        (void)snprintf(last, (size_t)(path + PATH_MAX - last), "null");
        named = close_fd(named);
        named = sys_openat2(base, path, flags | O_NOFOLLOW, 0, how->resolve);
        no = named < 0 ? named : sys_stat_fd(named, SYS_STAT_BASIC, st);
    }
    return no < 0 ? no : take_fd(&named);
}

static int look_below(struct guard *g, int base, char path[PATH_MAX], const struct open_how *how)
{
    struct sys_stat st;
    auto_fd int named = name_it(base, path, how, &st);
    if (named < 0)
        return named;
    if (S_ISSOCK(st.mode) || S_ISFIFO(st.mode)) /* a bubblewrap that would mount it ends by this */
        (void)deny(g, DENIAL_MOUNT, NULL, str_of(path),
                   "a socket or FIFO by itself cannot be named by openat2 in a box: mount the directory that it is in");
    if (is_of_a_process(g, named) || !may_read(named, &st) || (!(how->flags & O_PATH) && !S_ISDIR(st.mode)))
        return -ENOSYS;
    int no = names_lock(g, false);
    if (no == 0 && g->plan->filter & FILTER_READS) {
        no = object_of_fd(g, named, &g->object);
        if (no == 0) {
            no = verdict_object(g, &g->object, DENIAL_READ);
            object_drop(&g->object);
        }
    }
    if (g->names_held)
        names_unlock(g);
    const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | (S_ISDIR(st.mode) ? O_DIRECTORY : 0);
    return no < 0 ? no : own_reopen(g, named, flags);
}

long open_below_call(struct guard *g, int dir, uint64_t path, uint64_t at, uint64_t size)
{
    struct open_how how;
    if (!g->nested || size != sizeof how)
        return -ENOSYS;
    int no = target_bytes(g, at, &how, sizeof how);
    if (no == 0 && (how.flags & ~(uint64_t)LOOKS || how.mode || !(how.resolve & (RESOLVE_IN_ROOT | RESOLVE_BENEATH))))
        no = -ENOSYS;
    if (no == 0)
        no = target_string(g, path, g->text[0]);
    if (no < 0)
        return no;
    auto_fd int base = target_dir(g, dir);
    auto_fd int fd = base < 0 ? base : look_below(g, base, g->text[0], &how);
    no = fd < 0 ? fd : target_valid(g);
    if (no == 0)
        no = descriptor_install(g, fd, how.flags & O_CLOEXEC ? O_CLOEXEC : 0);
    return no;
}
