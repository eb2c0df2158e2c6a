/*
 * Who may do what with a layer: its lock, an apply that was interrupted, and whether its machine has stopped since.
 * Who reads shares the lock; who changes has it alone.
 */
#include "layer/store.h"
#include "layer/change.h"
#include "layer/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/fd.h"

int layer_lock_file(int dir)
{
    return openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

static int lock_layer(const struct layer *l, int how, int *ret_lock, struct err *e)
{
    auto_fd int fd = layer_lock_file(l->dir);
    if (fd < 0)
        return err_sys(e, ERR_SYSTEM, errno, "layer %s: cannot open its lock", l->id);
    const int no = layer_lock_now(fd, how);
    if (no < 0)
        return no == -EWOULDBLOCK ? err_sys(e, ERR_REFUSED, EBUSY, "layer %s is used by a running box", l->id)
                                  : err_sys(e, ERR_SYSTEM, -no, "layer %s: cannot lock it", l->id);
    if (!layer_is_there(l)) /* removed between opening and locking */
        return err_sys(e, ERR_REFUSED, ENOENT, "layer %s", l->id);
    *ret_lock = take_fd(&fd);
    return 0;
}

int layer_share(const struct layer *l, int *ret_lock, struct err *e)
{
    return lock_layer(l, LOCK_SH, ret_lock, e);
}

int layer_take(const struct layer *l, bool idle, int *ret_lock, struct err *e)
{
    struct stat st;
    auto_fd int fd = -1;
    int r = lock_layer(l, LOCK_EX, &fd, e);
    if (r < 0)
        return r;
    if (idle && fstatat(l->dir, "journal", &st, AT_SYMLINK_NOFOLLOW) == 0)
        return err_hint(e, err_sys(e, ERR_REFUSED, EBUSY, "layer %s: an apply was interrupted", l->id),
                        "finish it first: pinfold apply");
    auto_arena struct arena *mem = idle ? arena_new(1u << 20) : NULL;
    const char *where = mem ? elsewhere_unfinished(l->dir, mem) : NULL;
    if (where)
        return err_hint(e, err_sys(e, ERR_REFUSED, EBUSY, "layer %s: an apply to '%s' was interrupted", l->id, where),
                        "finish it first: pinfold apply --to");
    *ret_lock = take_fd(&fd);
    return 0;
}

bool layer_is_doubtful(const struct layer *l)
{
    char boot[40];
    return !l->synced && (!l->boot || layer_boot(boot) < 0 || strcmp(boot, l->boot) != 0);
}

bool layer_is_used(const struct layer *l)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    own_fd int fd = sys_openat(l->dir, "lock", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    return fd >= 0 && sys_fcntl(fd, F_OFD_GETLK, (long)(uintptr_t)&all) == 0 && all.l_type != F_UNLCK;
}
