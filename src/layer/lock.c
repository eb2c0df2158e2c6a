/* Who may do what with a layer: its lock, an apply that was interrupted, and whether its machine has stopped since. */
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

/* Shared at first: one that is only looked at is not in use. */
int layer_lock_file(int dir)
{
    return openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

/*
 * Who only looks whether a layer is used has to lock it for a moment. So that nobody takes that for a use, looks share a lock of the layer's
 * directory meanwhile, and who finds the layer locked has that one alone when trying again. Nobody keeps it for longer than a call.
 */
static int lock_looks(const struct layer *l, int how)
{
    auto_fd int dir = openat(l->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int no = dir < 0 ? 0 : fd_lock(dir, how);
    return no < 0 ? no : take_fd(&dir);
}

static bool lock_beside_looks(const struct layer *l, int fd, int how)
{
    auto_fd int looks = lock_looks(l, LOCK_EX);
    const bool locked = flock(fd, how | LOCK_NB) == 0;
    const int no = errno;
    looks = close_fd(looks);
    errno = no;
    return locked;
}

static int lock_layer(const struct layer *l, int how, int *ret_lock, struct err *e)
{
    auto_fd int fd = layer_lock_file(l->dir);
    if (fd < 0)
        return err_sys(e, ERR_SYSTEM, errno, "layer %s: cannot open its lock", l->id);
    if (flock(fd, how | LOCK_NB) < 0 && (errno != EWOULDBLOCK || !lock_beside_looks(l, fd, how))) {
        int r = errno == EWOULDBLOCK ? err_sys(e, ERR_REFUSED, EBUSY, "layer %s is used by a running box", l->id)
                                     : err_sys(e, ERR_SYSTEM, errno, "layer %s: cannot lock it", l->id);
        return r;
    }
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
    auto_fd int looks = lock_looks(l, LOCK_SH);
    auto_fd int fd = openat(l->dir, "lock", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const bool used = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    fd = close_fd(fd); /* first: as long as it is locked, a look shows */
    looks = close_fd(looks);
    return used;
}
