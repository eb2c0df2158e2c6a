/*
 * Creates, locks and removes a box's private directories on the host. Their owner's alone, over no link; a lock tells
 * the next start which ones are in use.
 */
#include "run/private.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "sys/remove.h"
#include "run/caches.h"
#include "run/whiteout.h"
#include "run/world.h"
#include "sys/fd.h"
#include "sys/file.h"

/* The usual case first: it is there, or only the last name is missing. */
static int make_one(const char *path, struct err *e)
{
    /* Looking does not take the lock of the directory, which boxes that start at the same time would wait for. */
    if (access(path, F_OK) == 0 || mkdir(path, 0700) == 0 || errno == EEXIST)
        return 0;
    const int r = errno == ENOENT
                      ? make_private_directories(path, e)
                      : err_sys(e, ERR_SYSTEM, errno, "cannot create the box's private directory '%s'", path);
    /* Where nothing of the user's can be made at all a box keeps nothing (planned.c). A full disk is no such place: it would forget. */
    if (r < 0 && e && (e->no == ENOSPC || e->no == EDQUOT))
        return err_hint(
            e, r,
            "the disk has no space or no names left (df -h, df -i), or your quota is used up: make room, or set "
            "XDG_STATE_HOME to a directory on another disk");
    if (r < 0 && e && (e->no == ENOTCONN || e->no == ESTALE || e->no == EIO))
        return err_hint(
            e, r, "what is mounted there does not answer: mount it again, or set XDG_STATE_HOME to another directory");
    return r;
}

enum { MANY = 5 }; /* a listing takes three calls, looking one for each */

/* The names of one directory, as far as they fit. */
struct listed {
    const char *first; /* path of the first that was asked for in it */
    size_t parent;     /* bytes of it that are the directory */
    long bytes;
    _Alignas(8) char room[4096];
};

static void list_parent(struct listed *l)
{
    char parent[PATH_MAX];
    if (l->parent >= sizeof parent)
        return;
    memcpy(parent, l->first, l->parent);
    parent[l->parent] = 0;
    auto_fd int dir = openat(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    l->bytes = dir < 0 ? 0 : sys_getdents64(dir, l->room, sizeof l->room);
}

/* How many of the plan's directories lie in that of `path`, and are not whiteouts. */
static size_t n_beside(const struct plan *plan, const char *path, size_t parent)
{
    size_t n = 0;
    for (size_t i = 0; i < plan->n_make_dirs; i++) {
        const struct plan_dir *dir = &plan->make_dirs[i];
        n += !dir->whiteout && !dir->opaque && strncmp(dir->path, path, parent + 1) == 0 &&
             !strchr(dir->path + parent + 1, '/');
    }
    return n;
}

/* Whether `path` certainly exists. Only a directory that many are asked for in is listed: a project has twenty caches, which are
   there from its second box on. */
static bool is_listed(struct listed *l, const struct plan *plan, const char *path)
{
    const char *slash = strrchr(path, '/');
    const size_t parent = slash ? (size_t)(slash - path) : 0;
    if (!parent || !l->first || parent != l->parent || memcmp(path, l->first, parent) != 0) {
        if (!parent || n_beside(plan, path, parent) < MANY)
            return false; /* others of the directory that was listed may follow */
        l->first = path;
        l->parent = parent;
        list_parent(l);
    }
    for (long at = 0; at < l->bytes;) {
        const struct sys_dirent *d = (const void *)(l->room + at);
        if (same(d->name, slash + 1))
            return true;
        at += d->reclen;
    }
    return false;
}

/* The part of a cache's path that names the slot: .../pinfold/caches/HASH/SLOT; 0 when it is none. */
static size_t slot_prefix(const struct plan *plan, const char *path, size_t *ret_number)
{
    const char *state = plan->facts->state_home;
    size_t n = state ? strlen(state) : 0;
    if (!n || strncmp(path, state, n) != 0 || strncmp(path + n, "/pinfold/caches/", 16) != 0)
        return 0;
    const char *number = strchr(path + n + 16, '/');
    const char *end = number ? strchr(number + 1, '/') : NULL;
    if (!end)
        return 0;
    *ret_number = (size_t)(number + 1 - path);
    return (size_t)(end - path);
}

static int lock_directory(const char *path, struct err *e)
{
    int r = make_one(path, e);
    if (r < 0)
        return r;
    auto_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot open the box's private directory '%s'", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? -EBUSY : err_sys(e, ERR_SYSTEM, errno, "cannot lock '%s'", path);
    struct stat st;
    if (fstat(fd, &st) == 0 && st.st_nlink == 0) /* removed meanwhile (caches.c) */
        return -EBUSY;
    return take_fd(&fd);
}

void private_guess(struct private_dirs *d, const char *slots)
{
    char slot[PATH_MAX];
    for (unsigned i = 0; i < MAX_CACHE_SLOTS; i++) {
        struct stat st;
        if ((size_t)snprintf(slot, sizeof slot, "%s/%u", slots, i) >= sizeof slot)
            return;
        auto_fd int fd = openat(AT_FDCWD, slot, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0) { /* what is wrong with it is said when the plan asks for it */
            d->slot = i;
            return;
        }
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0) {
            d->slot = i;
            d->lock = take_fd(&fd);
            d->held = slots;
            return;
        }
    }
}

void private_unguess(struct private_dirs *d)
{
    if (d->held)
        d->lock = close_fd(d->lock);
    d->held = NULL;
}

/* Whether the slot of the plan, the first `n` bytes of `path`, is the one that is held. */
static bool is_held(struct private_dirs *d, const char *path, size_t number, size_t n)
{
    char name[16];
    size_t digits = (size_t)snprintf(name, sizeof name, "%u", d->slot);
    bool same_slots = strlen(d->held) == number - 1 && strncmp(path, d->held, number - 1) == 0;
    bool held = same_slots && n - number == digits && strncmp(path + number, name, digits) == 0;
    if (held)
        d->held = NULL;
    else
        private_unguess(d);
    return held;
}

/* Locks the slot of the plan, or a free one, which is another plan's. */
static int take_slot(struct private_dirs *d, const char *workspace, const char *path, size_t number, size_t n,
                     struct err *e)
{
    char slot[PATH_MAX];
    if (n >= sizeof slot - 16)
        return 0;
    bool guessed = d->held && is_held(d, path, number, n);
    if (d->lock >= 0 && !guessed) /* taken by the call before */
        return 0;
    memcpy(slot, path, n);
    slot[n] = 0;
    int fd = guessed ? d->lock : lock_directory(slot, e);
    if (fd != -EBUSY) {
        d->lock = fd < 0 ? -1 : fd;
        slot[number - 1] = 0;
        if (fd >= 0 && workspace)
            caches_note(slot, workspace);
        return fd < 0 ? fd : 0;
    }
    unsigned taken = (unsigned)strtoul(slot + number, NULL, 10);
    for (unsigned i = 0; i < MAX_CACHE_SLOTS; i++) {
        if (i == taken)
            continue;
        snprintf(slot + number, sizeof slot - number, "%u", i);
        fd = lock_directory(slot, e);
        if (fd >= 0) {
            d->lock = fd;
            d->slot = i;
            return -EBUSY;
        }
        if (fd != -EBUSY)
            return fd;
    }
    return err_say(e, ERR_SYSTEM, "%d boxes of this workspace are already running", MAX_CACHE_SLOTS);
}

/* The layer ends after STATE/pinfold/caches/HASH/SLOT/NAME/upper, of which `n` bytes name the slot. */
static int make_whiteout(const struct plan_dir *dir, size_t n, struct err *e)
{
    const char *layer = n ? strchr(dir->path + n + 1, '/') : NULL;
    if (layer && strncmp(dir->path + n + 1, SECRET_CACHES, sizeof SECRET_CACHES - 1) == 0)
        layer = strchr(layer + 1, '/'); /* SLOT/SECRET/NAME/upper */
    const char *end = layer ? strchr(layer + 1, '/') : NULL;
    return whiteout_make(dir->path, end ? (size_t)(end - dir->path) : 0, dir->opaque, e);
}

int private_begin(struct private_dirs *d, const struct plan *plan, struct err *e)
{
    struct listed seen = {.first = NULL};
    for (size_t i = 0; i < plan->n_make_dirs; i++) {
        const struct plan_dir *dir = &plan->make_dirs[i];
        size_t number = 0, n = dir->temporary ? 0 : slot_prefix(plan, dir->path, &number);
        int r = n ? take_slot(d, plan->workspace, dir->path, number, n, e) : 0;
        if (r == 0)
            r = dir->whiteout || dir->opaque        ? make_whiteout(dir, n, e)
                : is_listed(&seen, plan, dir->path) ? 0
                                                    : make_one(dir->path, e);
        if (r < 0)
            return r;
        d->plan = plan;
    }
    return 0;
}

void private_end(struct private_dirs *d)
{
    for (size_t i = 0; d->plan && i < d->plan->n_make_dirs; i++) {
        if (d->plan->make_dirs[i].temporary)
            remove_tree(AT_FDCWD, d->plan->make_dirs[i].path);
    }
    d->plan = NULL;
    d->lock = close_fd(d->lock);
}
