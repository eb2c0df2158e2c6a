/*
 * What makes a layer's start and end cheap: an empty one that is ready for the next box, and a place for those that ended without a change.
 * Both are in STATE/layers/, under names that are no ID's, so no verb takes them for layers:
 *
 *     .spare       upper/, work/, lock, and files of an earlier layer, which the next one writes over
 *     .gone.N      a layer that ended empty
 *
 * Making and removing directories is most of what a layer costs: some file systems search long for a free inode, and some wait in rmdir(2) for
 * the disk to be told of a free block. So a layer that ended empty becomes the spare again, which is done while another box lives and its
 * supervisor has nothing else to do (layer_tend()), one call at a time. Nothing that a box could write to is used again: upper/ is removed
 * when the layer ends, and a new one is made. What is used again is looked at first: what is not exactly as it should be is removed.
 *
 * Who has the lock of one of these directories may change it; it is taken before the name changes, so of two that find the spare one gets
 * it. A process that is killed leaves one of these names, and the next box goes on with it, or `layers prune` removes it.
 */
#include "layer/spare.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "layer/repo/repo.h"
#include "layer/store.h"
#include "sys/fd.h"
#include "sys/file.h"
#include "sys/remove.h"

#define SPARE    ".spare"
#define GONE     ".gone."
#define GONE_MAX 4 /* further ones are removed by whom they belong to */

#define ROOM_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static void gone_name(unsigned n, char ret[16])
{
    snprintf(ret, 16, GONE "%u", n);
}

static void close_room(struct layer_room *room)
{
    sys_drop(&room->dir);
    sys_drop(&room->upper);
    sys_drop(&room->lock);
}

static bool is_at(int layers, const char *name, int dir)
{
    struct stat named, is;
    return fstatat(layers, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && fstat(dir, &is) == 0 &&
           named.st_dev == is.st_dev && named.st_ino == is.st_ino;
}

/* ---- what is in one ---- */

int layer_furnish(int dir, struct layer_room *ret)
{
    int e = sys_mkdirat(dir, "upper", 0755);
    if (e == 0)
        e = sys_mkdirat(dir, "work", 0700);
    if (e == 0)
        e = ret->upper = sys_openat(dir, "upper", ROOM_DIR, 0);
    if (e >= 0)
        e = ret->lock = sys_openat(dir, "lock", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    return e < 0 ? e : layer_lock_now(ret->lock, LOCK_EX);
}

/* `top`: of the directory that it is in, which is ours. */
static bool made_by_us(int fd, mode_t kind, const struct stat *top)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == kind && st.st_uid == top->st_uid &&
           st.st_dev == top->st_dev && (kind == S_IFDIR || (st.st_size == 0 && st.st_nlink == 1));
}

static bool is_usual(const struct sys_dirent *d)
{
    static const struct {
        const char *name;
        unsigned char type;
    } usual[] = {{"upper", DT_DIR},  {"work", DT_DIR},        {"lock", DT_REG},
                 {"record", DT_REG}, {REPO_BASE_DIR, DT_REG}, {REPO_BASE_NEW, DT_REG}};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        if (same(d->name, usual[i].name) && d->type == usual[i].type)
            return true;
    }
    return false;
}

/* `only`: no other names than usual ones, instead of none at all. */
static bool has_names(int dir, bool only)
{
    char room[512] __attribute__((aligned(8)));
    struct sys_entries entries = {.dir = dir, .room = room, .bytes = sizeof room};
    for (const struct sys_dirent *d; (d = sys_next_entry(&entries));) {
        if (!only || !is_usual(d))
            return !only;
    }
    return only == (entries.no == 0);
}

/* An attribute that overlayfs would obey (an opaque directory, a redirect), or an access list that it would show; not a label that every
   new directory of the file system has. */
static bool has_attributes(int fd)
{
    char names[1024];
    const long n = sys_flistxattr(fd, names, sizeof names);
    if (n < 0)
        return n != -ENOTSUP;
    for (long at = 0; at < n; at += (long)strlen(names + at) + 1) {
        const struct str name = str_of(names + at);
        if (!str_starts(name, STR("security.")) && !str_starts(name, STR("btrfs.")))
            return true;
    }
    return false;
}

/* As layer_furnish() has made it, by us, and nothing that a box has seen. */
static bool is_as_made(const struct layer_room *r)
{
    struct stat top;
    own_fd int work = sys_openat(r->dir, "work", ROOM_DIR, 0);
    return fstat(r->dir, &top) == 0 && top.st_uid == geteuid() && (top.st_mode & 01777) == 0700 &&
           made_by_us(r->lock, S_IFREG, &top) && made_by_us(r->upper, S_IFDIR, &top) &&
           made_by_us(work, S_IFDIR, &top) && has_names(r->dir, true) && !has_names(r->upper, false) &&
           !has_names(work, false) && !has_attributes(r->upper) && !has_attributes(work);
}

/* Opens and locks what is at `name`. -ENOENT: nothing is; -EBUSY: somebody has it; -EBADMSG: it is none of ours. */
static int open_room(int layers, const char *name, struct layer_room *ret)
{
    *ret = (struct layer_room){.dir = sys_openat(layers, name, ROOM_DIR, 0), .upper = -1, .lock = -1};
    if (ret->dir < 0)
        return ret->dir == -ENOENT ? -ENOENT : -EBADMSG;
    ret->lock = sys_openat(ret->dir, "lock", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
    int e = ret->lock < 0 ? -EBADMSG : layer_lock_now(ret->lock, LOCK_EX) < 0 ? -EBUSY : 0;
    if (e == 0 && !is_at(layers, name, ret->dir)) /* it was somebody's meanwhile, who has given it another name */
        e = -EBUSY;
    if (e == -EBUSY)
        close_room(ret);
    return e;
}

/* ---- the spare as a layer ---- */

static bool set_aside(int layers, const char *name)
{
    char gone[16];
    int e = -EEXIST;
    for (unsigned i = 0; i < GONE_MAX && e == -EEXIST; i++) {
        gone_name(i, gone);
        e = sys_renameat2(layers, name, layers, gone, RENAME_NOREPLACE);
    }
    return e == 0;
}

bool layer_set_aside(const struct layer *l)
{
    own_fd int layers = sys_openat(l->dir, "..", ROOM_DIR, 0);
    return layers >= 0 && set_aside(layers, l->id);
}

bool layer_is_there(const struct layer *l)
{
    own_fd int layers = sys_openat(l->dir, "..", ROOM_DIR, 0);
    struct stat st;
    return layers >= 0 && is_at(layers, l->id, l->dir) && fstatat(l->dir, "record", &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Without a lock it never becomes a spare again. */
void layer_spoil_spare(int layers, int dir)
{
    if (dir >= 0)
        (void)sys_unlinkat(dir, "lock", 0);
    (void)set_aside(layers, SPARE);
}

int layer_take_spare(int layers, struct layer_room *ret)
{
    struct layer_room r;
    int e = open_room(layers, SPARE, &r);
    if (e == 0) {
        r.upper = sys_openat(r.dir, "upper", ROOM_DIR, 0);
        e = is_as_made(&r) ? 0 : -EBADMSG;
    }
    if (e == -EBADMSG)
        layer_spoil_spare(layers, r.dir);
    if (e < 0)
        close_room(&r);
    else
        *ret = r;
    return e;
}

int layer_name_spare(int layers, int dir, const char *id)
{
    const int e = sys_renameat2(layers, SPARE, layers, id, RENAME_NOREPLACE);
    if (e < 0 || is_at(layers, id, dir))
        return e;
    (void)set_aside(layers, id); /* ours was spoilt, and another one has come */
    return -EBUSY;
}

int layer_open_over(int dir, const char *name, uint64_t *ret_room)
{
    struct stat st;
    own_fd int fd = sys_openat(dir, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    if (fd < 0 || fstat(fd, &st) < 0)
        return fd < 0 ? fd : -errno;
    if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
        return -EBADMSG;
    *ret_room = (uint64_t)st.st_size;
    return sys_taken(&fd);
}

int layer_write_over(int dir, const char *name, const char *text, size_t n)
{
    uint64_t room = 0;
    own_fd int fd = layer_open_over(dir, name, &room);
    const long wrote = fd < 0 ? fd : sys_write(fd, text, n);
    int e = wrote == (long)n ? 0 : wrote < 0 ? (int)wrote : -ENOSPC;
    /* Not cut off first: its block is used again. */
    if (e == 0 && room > n)
        e = sys_ftruncate(fd, (int64_t)n);
    return e < 0 ? e : sys_taken(&fd);
}

/* ---- while a box lives ---- */

/* What overlayfs keeps in its work directory, and a box does not reach (open_work() in runtime/layer.c), and of a policy. */
static const struct {
    const char *name;
    int flags;
} leavings[] = {
    {"work/work/incompat/volatile/dirty", 0},
    {"work/work/incompat/volatile", AT_REMOVEDIR},
    {"work/work/incompat", AT_REMOVEDIR},
    {"work/work", AT_REMOVEDIR},
    {LAYER_VERIFY, 0},
};

/* A new upper/, and it is the spare; removed where there is one already, or where something is not as it should be. */
static void restore(int layers, const char *name, struct layer_room *r)
{
    int e = sys_mkdirat(r->dir, "upper", 0755);
    if (e == 0)
        r->upper = sys_openat(r->dir, "upper", ROOM_DIR, 0);
    (void)sys_renameat2(r->dir, REPO_BASE, r->dir, REPO_BASE_NEW, 0);
    if (e < 0 || !is_as_made(r) || sys_renameat2(layers, name, layers, SPARE, RENAME_NOREPLACE) < 0)
        remove_tree(layers, name);
}

static void make_spare(int layers)
{
    char name[16];
    struct layer_room r = {.dir = -1, .upper = -1, .lock = -1};
    gone_name(0, name);
    if (sys_mkdirat(layers, name, 0700) < 0)
        return;
    r.dir = sys_openat(layers, name, ROOM_DIR, 0);
    if (r.dir < 0 || layer_furnish(r.dir, &r) < 0 || !is_as_made(&r) ||
        sys_renameat2(layers, name, layers, SPARE, RENAME_NOREPLACE) < 0)
        remove_tree(layers, name);
    close_room(&r);
}

static void next_gone(struct layer_tending *t)
{
    char gone[16];
    for (t->at = 0; t->gone < GONE_MAX && t->room.dir < 0; t->gone++) {
        gone_name(t->gone, gone);
        if (open_room(t->layers, gone, &t->room) == -EBADMSG) { /* without a lock nobody can have it */
            close_room(&t->room);
            remove_tree(t->layers, gone);
        }
    }
}

static void tend_gone(struct layer_tending *t)
{
    char gone[16];
    if (t->at < sizeof leavings / sizeof *leavings) {
        (void)sys_unlinkat(t->room.dir, leavings[t->at].name, leavings[t->at].flags);
        t->at++;
        return;
    }
    gone_name(t->gone - 1, gone);
    restore(t->layers, gone, &t->room);
    close_room(&t->room);
}

bool layer_tend(struct layer_tending *t)
{
    if (t->layers < 0 && (t->layer < 0 || (t->layers = sys_openat(t->layer, "..", ROOM_DIR, 0)) < 0))
        return false;
    if (t->room.dir < 0)
        next_gone(t);
    if (t->room.dir >= 0) {
        tend_gone(t);
        return true;
    }
    if (faccessat(t->layers, SPARE, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        make_spare(t->layers);
    return false;
}

void layer_tend_end(struct layer_tending *t)
{
    sys_drop(&t->layers);
    close_room(&t->room);
}

/* ---- all at once ---- */

#define BEGUN_SECONDS                                                                                                  \
    3600 /* whoever makes a layer holds its lock within a millisecond, and writes the record in the next */

/* A directory with the name of a layer and no record, which nobody is about to give one. */
static bool is_dead(int dir, int lock)
{
    struct stat st;
    return (lock >= 0 || lock == -ENOENT) && fstat(dir, &st) == 0 && time(NULL) - st.st_mtim.tv_sec > BEGUN_SECONDS &&
           fstatat(dir, "record", &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

void layer_sweep(int layers)
{
    char names[4096] __attribute__((aligned(8)));
    struct sys_entries entries = {.dir = layers, .room = names, .bytes = sizeof names};
    for (const struct sys_dirent *d; (d = sys_next_entry(&entries));) {
        const bool ours = str_starts(str_of(d->name), STR(GONE)) || same(d->name, SPARE);
        struct layer_room r;
        if (!ours && !layer_is_id(d->name))
            continue;
        const int e = open_room(layers, d->name, &r);
        if (e != -EBUSY && e != -ENOENT && (ours || is_dead(r.dir, r.lock)))
            remove_tree(layers, d->name);
        close_room(&r);
    }
}
