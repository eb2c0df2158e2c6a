/*
 * Layers of masks (veil.c) that are kept for the next start: a box like this one has the same stubs, some 150 names,
 * which cost two calls each to create. They lie in the user's runtime directory in /tmp (survey/runtime_dir.h), which no
 * box can change and nobody else enter. It is not below a directory that is masked: an overlay refuses a layer that lies
 * in another one (ELOOP).
 *
 *     masks/KEY/0p, 0w, 1p ...    the layers of the plan's masks, points and whiteouts
 *     masks/KEY/index             what they were made from, and what they were when they were complete
 *
 * KEY is a hash of the masks as the plan says them and of the ids of the box. The plan does not say what the builder
 * finds on the way to a stub: which directories exist below a masked one, and with which mode. So the index says that,
 * and it is looked at again before every use (SEEN). It also says inode, mode and times of each directory of the layers
 * (MADE): a name that was added, removed or replaced since changes them. File systems without multigrain timestamps
 * (tmpfs) count time in steps of some milliseconds, and a change within the same step would leave the same time; so the
 * time of modification is set back by some seconds. Any difference, and any error, means that the layers are made anew in
 * the box's own tmpfs, and that a process beside this box (settle_beside()) keeps these instead, while the command runs and,
 * if the disk is slow, when pinfold has ended. It renames the complete directory to its name, so a reader finds all or none.
 * The index is synced: file systems with a journal keep the order of what came before it. Where nothing can be kept (a
 * file system that has no whiteouts), an index without records says so.
 *
 * A name that is removed from a layer shows what it hides in every box that has mounted the layer. So pid 1 of such a box
 * holds a shared lock on the index, and only who gets an exclusive one removes layers; those in use are renamed, which
 * changes nothing for the box. KEY may be searched, not read or written, so that `rm -rf /tmp/...` by its owner removes nothing in it. Boxes that
 * last, sessions and those at a terminal, make layers of their own (backends/native/native.c).
 *
 * Mounts come and go below a masked directory (a container engine's), and no overlay can be over one. Two changes are made to an index
 * in its place, each by one write: that mounts are to be looked for before its layers are used (`asks`), and that it is good for nothing
 * because it lacks a mask that could be made (`bytes`). Whoever reads it meanwhile reads the one or the other.
 */
#include "runtime/kept_masks.h"
#include "base/str.h"
#include "base/text.h"

#define NEW ".new-" /* and a pid: the name of a directory that is not complete */
#define OLD ".old-" /* and a pid: layers that were in use when others took their name */
enum { KEEP_AT_MOST = 64 /* directories KEY */, SET_BACK = 2 /* seconds */, PATH = 4096, NAME_ROOM = 40 };
enum { MAY_BE_SEARCHED = 0111, LOCK_SHARED = 1 | 4, LOCK_ALONE = 2 | 4 /* LOCK_NB */ };
static const char mark[8] = "masks 3";

enum kept_kind { SEEN_DIR, SEEN_MISSING, SEEN_CLOSED, OWN, MADE };
struct kept_record {
    uint32_t bytes, veil, mode; /* of OWN, `mode` is the layer's name in the box's own tmpfs */
    uint16_t kind;
    bool whiteouts;
    uint64_t inode;
    int64_t seconds, modified; /* of the last change; of the modification that was set */
    uint32_t nanoseconds;
    char path[]; /* below the masked directory; of MADE below KEY */
};
struct kept_index {
    char mark[8];
    uint32_t bytes, lost; /* lost: it has no room for all */
    uint64_t asks;        /* a mount was found where there was none when they were made: look before each use */
    _Alignas(8) char records[];
};
_Static_assert(sizeof(struct kept_index) % 8 == 0, "records are aligned");

static struct kept_record *record_at(const struct kept_index *x, uint32_t at)
{
    return (struct kept_record *)((uintptr_t)x + at); // NOLINT(performance-no-int-to-ptr)
}

/* The record behind `it`, or the first; NULL at the end. */
static struct kept_record *next_record(const struct kept_index *x, const struct kept_record *it)
{
    const uintptr_t at = it ? (uintptr_t)it - (uintptr_t)x + it->bytes : sizeof *x;
    return at < x->bytes ? record_at(x, (uint32_t)at) : NULL;
}

static size_t text_bytes(const char *s)
{
    return str_of(s).n + 1;
}

static struct kept_record *add(struct kept_index *x, enum kept_kind kind, uint32_t veil, const char *path, size_t n)
{
    const size_t bytes = (sizeof(struct kept_record) + n + 1 + 7) & ~(size_t)7;
    if (x->lost || bytes > KEPT_ROOM - x->bytes) {
        x->lost = 1;
        return NULL;
    }
    struct kept_record *r = record_at(x, x->bytes);
    *r = (struct kept_record){.bytes = (uint32_t)bytes, .veil = veil, .kind = kind};
    memcpy(r->path, path, n);
    r->path[n] = 0;
    x->bytes += (uint32_t)bytes;
    return r;
}

static bool is_noted(const struct kept_index *x, uint32_t veil, const char *path, size_t n)
{
    for (const struct kept_record *r = NULL; (r = next_record(x, r));) {
        if (r->kind <= SEEN_CLOSED && r->veil == veil && strncmp(r->path, path, n) == 0 && !r->path[n])
            return true;
    }
    return false;
}

static void note(struct runner *r, enum kept_kind kind, const char *path, size_t n, unsigned mode)
{
    if (!r->kept.noting || is_noted(r->kept.index, r->kept.veil, path, n))
        return;
    struct kept_record *it = add(r->kept.index, kind, r->kept.veil, path, n);
    if (it)
        it->mode = mode;
}

void kept_saw(struct runner *r, const char *path, size_t n, unsigned mode)
{
    note(r, SEEN_DIR, path, n, mode);
}

void kept_missed(struct runner *r, const char *path, size_t n, bool closed)
{
    note(r, closed ? SEEN_CLOSED : SEEN_MISSING, path, n, 0);
}

void kept_layer(struct runner *r, bool whiteouts, uint32_t own)
{
    struct kept_record *it = r->kept.noting ? add(r->kept.index, OWN, r->kept.veil, "", 0) : NULL;
    if (it) {
        it->mode = own;
        it->whiteouts = whiteouts;
    }
}

unsigned mode_like(const struct runner *r, int at, const char *path, const struct sys_stat *st)
{
    unsigned mode = st->mode & 07777;
    if (st->uid == r->plan->uid && st->gid != r->plan->gid)
        mode = (mode & 0707) | (mode & 07) << 3; /* in the box others of its group have only the rights of others */
    if (st->uid != r->plan->uid) {
        mode = 0;
        if (sys_may(at, path, 4) == 0)
            mode |= 0444;
        if (sys_may(at, path, 1) == 0)
            mode |= 0111;
    }
    return mode;
}

/* ---- before BUILD ---- */

static bool is_whole(const struct kept_index *x, long n)
{
    if (n < (long)sizeof *x || memcmp(x->mark, mark, sizeof mark) != 0 || x->bytes != (uint32_t)n || x->lost)
        return false;
    for (uint32_t at = sizeof *x; at < x->bytes;) {
        const struct kept_record *r = record_at(x, at);
        if (x->bytes - at < sizeof *r || r->bytes < sizeof *r + 1 || r->bytes % 8 || r->bytes > x->bytes - at ||
            r->kind > MADE || ((const char *)r)[r->bytes - 1])
            return false;
        at += r->bytes;
    }
    return true;
}

static bool is_useless(const struct kept_index *x, long n)
{
    return n == (long)sizeof *x && memcmp(x->mark, mark, sizeof mark) == 0 && x->lost;
}

static bool is_as_seen(const struct runner *r, const char *dir, const struct kept_record *was)
{
    char path[PATH];
    struct sys_stat st;
    size_t n = text_bytes(dir) - 1, rest = text_bytes(was->path);
    if (n + 1 + rest > sizeof path)
        return false;
    memcpy(path, dir, n);
    if (was->path[0])
        path[n++] = '/';
    memcpy(path + n, was->path, rest);
    int e = sys_stat_at(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, SYS_STAT_BASIC, &st);
    if (was->kind == SEEN_CLOSED)
        return e == -EACCES;
    if (was->kind == SEEN_MISSING)
        return e == -ENOENT || e == -ENOTDIR || (e == 0 && (st.mode & S_IFMT) != S_IFDIR);
    return e == 0 && (st.mode & S_IFMT) == S_IFDIR && mode_like(r, AT_FDCWD, path, &st) == was->mode;
}

static bool is_as_made(int dir, const struct kept_record *was)
{
    struct sys_stat st;
    return sys_stat_at(dir, was->path, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) == 0 && st.mode == was->mode &&
           st.inode == was->inode && st.changed.seconds == was->seconds && st.changed.nanoseconds == was->nanoseconds &&
           st.modified.seconds == was->modified && st.modified.nanoseconds == 0;
}

static bool is_usable(const struct runner *r, int dir)
{
    const struct kept_index *x = r->kept.index;
    const struct step *veil = NULL;
    uint32_t of = UINT32_MAX;
    for (const struct kept_record *it = NULL; (it = next_record(x, it));) {
        if (it->veil != of) {
            of = it->veil;
            veil = plan_nth(r->plan, STEP_VEIL, of);
        }
        if (!veil ||
            (it->kind == MADE ? !is_as_made(dir, it) : it->kind != OWN && !is_as_seen(r, step_text(r, veil->a), it)))
            return false;
    }
    return true;
}

void kept_begin(struct runner *r)
{
    struct kept_masks *k = &r->kept;
    char path[PATH];
    if (!k->home || !plan_has(r->plan, STEP_VEIL) ||
        text_bytes(k->home) + sizeof "/masks/" + text_bytes(k->key) > sizeof path)
        return;
    put_text(put_text(put_text(path, k->home), "/masks/"), k->key);
    own_fd int dir = open_place(path, O_DIRECTORY);
    own_fd int file = dir < 0 ? -1 : sys_openat(dir, "index", O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    const int locked = file < 0 ? file : sys_flock(file, LOCK_SHARED); /* before anything is looked at */
    const long n = locked < 0 ? locked : sys_read(file, k->index, KEPT_ROOM);
    if (is_useless(k->index, n))
        return;
    if (is_whole(k->index, n) && is_usable(r, dir)) {
        k->dir = sys_taken(&dir);
        k->lock = sys_taken(&file);
        return;
    }
    done_with(r, &file);
    own_fd int home = open_place(k->home, O_DIRECTORY);
    /* stays writable when the root does not */
    k->keep_in = home < 0 ? -1 : sys_open_tree(home, "", SYS_TREE_CLONE | SYS_TREE_CLOEXEC | SYS_AT_EMPTY_PATH);
    k->noting = k->keep_in >= 0;
    memcpy(k->index->mark, mark, sizeof mark);
    k->index->bytes = sizeof *k->index;
    k->index->lost = 0;
    k->index->asks = 0;
}

/* ---- in BUILD ---- */

static char *layer_name(char name[NAME_ROOM], uint32_t veil, bool whiteouts)
{
    put_text(put_number(name, veil), whiteouts ? "w" : "p");
    return name;
}

bool kept_layers(struct runner *r, int *ret_points, int *ret_whiteouts)
{
    const struct kept_index *x = r->kept.index;
    char points[NAME_ROOM], whiteouts[NAME_ROOM];
    bool some = false; /* none: when these were kept, this mask could not be made */
    if (r->kept.dir < 0)
        return false;
    layer_name(points, r->kept.veil, false);
    layer_name(whiteouts, r->kept.veil, true);
    for (const struct kept_record *it = NULL; (it = next_record(x, it));) {
        const bool is_points = str_is(str_of(it->path), points);
        if (it->kind != MADE || (!is_points && !str_is(str_of(it->path), whiteouts)))
            continue;
        int *ret = is_points ? ret_points : ret_whiteouts;
        *ret = open_in(r->kept.dir, it->path, O_PATH);
        if (*ret < 0) {
            sys_drop(ret_points);
            sys_drop(ret_whiteouts);
            return false;
        }
        some = true;
    }
    return some;
}

bool kept_has(const struct runner *r)
{
    const struct kept_index *x = r->kept.index;
    for (const struct kept_record *it = NULL; r->kept.dir >= 0 && (it = next_record(x, it));)
        if (it->kind == MADE && it->veil == r->kept.veil)
            return true;
    return false;
}

bool kept_asks(const struct runner *r)
{
    return r->kept.index->asks != 0;
}

/* By a clone of the mount, which is writable although the root is not by now. Others may read the index meanwhile. */
static void kept_change(const struct runner *r, const void *bytes, size_t n, size_t at)
{
    struct sys_mount_attr writable = {.clear = SYS_MOUNT_RDONLY};
    own_fd int tree = sys_open_tree(r->kept.dir, "", SYS_TREE_CLONE | SYS_TREE_CLOEXEC | SYS_AT_EMPTY_PATH);
    int e = tree < 0 ? tree : sys_mount_setattr(tree, "", SYS_AT_EMPTY_PATH, &writable);
    own_fd int index = e < 0 ? e : sys_openat(tree, "index", O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (index >= 0)
        (void)sys_pwrite(index, bytes, n, at);
}

void kept_ask(struct runner *r)
{
    r->kept.index->asks = 1;
    kept_change(r, &r->kept.index->asks, sizeof r->kept.index->asks, offsetof(struct kept_index, asks));
}

void kept_lacks(struct runner *r)
{
    static const uint32_t none = 0;
    if (r->kept.dir >= 0)
        kept_change(r, &none, sizeof none, offsetof(struct kept_index, bytes));
}

/* ---- afterwards ---- */

/* Frames of what follows are small, and so many at most: the helper's stack lies beside pid 1's memory. */
enum { DEEPEST = 16, ENTRIES = 512 };

static int remove_tree(int at, const char *name, unsigned depth);

/* All that is in this directory. */
static int remove_entries(int dir, unsigned depth)
{
    _Alignas(8) char room[ENTRIES];
    const struct sys_dirent *d;
    int e = depth > DEEPEST ? -ELOOP : 0;
    for (bool any = true; e == 0 && any;) { /* from the start again: removing moves entries */
        struct sys_entries all = {.dir = dir, .room = room, .bytes = sizeof room};
        any = false;
        while (e == 0 && (d = sys_next_entry(&all))) {
            e = remove_tree(dir, d->name, depth + 1);
            any = true;
        }
        if (e == 0)
            e = all.no < 0 ? all.no : sys_lseek(dir, 0, SEEK_SET) < 0 ? -EIO : 0;
    }
    return e;
}

static int remove_tree(int at, const char *name, unsigned depth)
{
    int e = sys_unlinkat(at, name, AT_REMOVEDIR);
    if (e == -ENOTDIR)
        return sys_unlinkat(at, name, 0);
    if (e != -ENOTEMPTY && e != -EEXIST)
        return e;
    own_fd int dir = sys_openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    e = dir < 0 ? dir : remove_entries(dir, depth);
    return e < 0 ? e : sys_unlinkat(at, name, AT_REMOVEDIR);
}

struct kept_copy {
    struct kept_index *index;
    uint32_t veil;
    int keep; /* KEY, under its temporary name */
    unsigned depth;
    char path[PATH], text[PATH];
    size_t n;
};

static int copy_text(struct kept_copy *c, int from, int to, const char *name)
{
    own_fd int in = sys_openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    long n = in < 0 ? in : sys_read(in, c->text, sizeof c->text);
    if (n < 0 || n == (long)sizeof c->text)
        return n < 0 ? (int)n : -EFBIG;
    own_fd int out = sys_openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (out < 0)
        return out;
    const int e = sys_write_all(out, c->text, (size_t)n);
    return e < 0 ? e : (int)sys_call(SYS_fdatasync, out, 0, 0, 0, 0, 0);
}

static int copy_link(struct kept_copy *c, int from, int to, const char *name)
{
    long n = sys_readlinkat(from, name, c->text, sizeof c->text - 1);
    c->text[n > 0 ? n : 0] = 0;
    return n < 0 ? (int)n : sys_symlinkat(c->text, to, name);
}

static int copy_dir(struct kept_copy *c, int from, int to);

/* The new directory c->path, which is `name` in `to`, and what is in it. */
static int copy_into(struct kept_copy *c, int from, const char *from_name, int to, const char *name, unsigned mode)
{
    int e = c->depth > DEEPEST ? -ELOOP : sys_mkdirat(to, name, mode & 07777);
    own_fd int in = e < 0 ? e : sys_openat(from, from_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    own_fd int out = in < 0 ? in : sys_openat(to, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    struct kept_record *made = out < 0 ? NULL : add(c->index, MADE, c->veil, c->path, c->n);
    if (!made)
        return out < 0 ? out : -E2BIG;
    made->mode = mode;
    return copy_dir(c, in, out);
}

static int copy_entry(struct kept_copy *c, int from, int to, const char *name)
{
    struct sys_stat st;
    int e = sys_stat_at(from, name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st);
    if (e < 0)
        return e;
    const size_t n = c->n, more = text_bytes(name);
    switch (st.mode & S_IFMT) {
    case S_IFCHR:
        return sys_linkat(c->keep, "w", to, name, 0);
    case S_IFLNK:
        return copy_link(c, from, to, name);
    case S_IFDIR:
        break;
    default:
        return st.size ? copy_text(c, from, to, name) : sys_mknodat(to, name, st.mode, 0);
    }
    if (n + 1 + more > sizeof c->path)
        return -ENAMETOOLONG;
    c->path[n] = '/';
    memcpy(c->path + n + 1, name, more);
    c->n += more;
    c->depth++;
    e = copy_into(c, from, name, to, name, st.mode);
    c->depth--;
    c->n = n;
    c->path[n] = 0;
    return e;
}

static int copy_dir(struct kept_copy *c, int from, int to)
{
    _Alignas(8) char room[ENTRIES];
    struct sys_entries all = {.dir = from, .room = room, .bytes = sizeof room};
    const struct sys_dirent *d;
    while ((d = sys_next_entry(&all))) {
        int e = copy_entry(c, from, to, d->name);
        if (e < 0)
            return e;
    }
    return all.no;
}

/* Copies the layer that is `own` in the box's tmpfs. */
static int copy_layer(struct kept_copy *c, int own_root, const struct kept_record *own)
{
    char name[NAME_ROOM];
    struct sys_stat st;
    put_number(name, own->mode);
    layer_name(c->path, own->veil, own->whiteouts);
    c->n = text_bytes(c->path) - 1;
    c->veil = own->veil;
    c->depth = 0;
    const int e = sys_stat_at(own_root, name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st);
    return e < 0 ? e : copy_into(c, own_root, name, c->keep, c->path, st.mode);
}

/* Its time of modification is one that no later change can set. */
static int set_back(int dir, const char *path, const struct sys_stat *st)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = (time_t)st->changed.seconds - SET_BACK}};
    return sys_utimensat(dir, path, times, AT_SYMLINK_NOFOLLOW);
}

/* Once all is created: what each directory is. One that did not get its mode (an ACL for new files) makes all of it
   unusable. */
static int look_again(const struct kept_copy *c)
{
    for (struct kept_record *it = NULL; (it = next_record(c->index, it));) {
        struct sys_stat st;
        if (it->kind != MADE)
            continue;
        int e = sys_stat_at(c->keep, it->path, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st);
        if (e == 0)
            e = set_back(c->keep, it->path, &st);
        if (e == 0)
            e = sys_stat_at(c->keep, it->path, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st);
        if (e < 0)
            return e;
        if (st.mode != it->mode)
            return -EBADMSG;
        it->inode = st.inode;
        it->seconds = st.changed.seconds;
        it->nanoseconds = st.changed.nanoseconds;
        it->modified = st.modified.seconds;
    }
    return 0;
}

static int write_index(const struct kept_copy *c)
{
    own_fd int file = sys_openat(c->keep, "index", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const int e = file < 0 ? file : sys_write_all(file, c->index, c->index->bytes);
    return e < 0 ? e : (int)sys_call(SYS_fdatasync, file, 0, 0, 0, 0, 0);
}

static int copy_all(struct kept_copy *c, int own_root)
{
    const uint32_t end = c->index->bytes;
    int e = sys_mknodat(c->keep, "w", S_IFCHR, 0);
    for (uint32_t at = sizeof *c->index; e == 0 && at < end; at += record_at(c->index, at)->bytes) {
        if (record_at(c->index, at)->kind == OWN)
            e = copy_layer(c, own_root, record_at(c->index, at));
    }
    if (e == 0)
        e = c->index->lost ? -E2BIG : look_again(c);
    return e < 0 ? e : write_index(c);
}

/* Removes what no box uses. -EAGAIN: one does, or that cannot be known. Not by its name, which another start may have given to layers of
   its own meanwhile, that a box uses: then they would go that are in use. */
static int remove_unused(int masks, const char *name)
{
    own_fd int dir = sys_openat(masks, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    own_fd int index = dir < 0 ? dir : sys_openat(dir, "index", O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    int e = dir < 0 ? dir : index < 0 ? -EAGAIN : sys_flock(index, LOCK_ALONE);
    if (e == 0)
        e = sys_fchmodat(dir, ".", 0700);
    own_fd int all = e < 0 ? e : sys_openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (e == 0)
        e = all < 0 ? all : remove_entries(all, 0);
    return e < 0 ? e : sys_unlinkat(masks, name, AT_REMOVEDIR);
}

/* Frees the name of these layers. */
static int make_way(int masks, const char *key)
{
    char old[NAME_ROOM];
    int e = remove_unused(masks, key);
    if (e != -EAGAIN)
        return e == -ENOENT ? 0 : e;
    put_number(put_text(old, OLD), (uint32_t)sys_getpid());
    return sys_renameat2(masks, key, masks, old, 1 /* RENAME_NOREPLACE */);
}

/* Whether `name` is that of a directory that a process makes which has ended before it was complete. */
static bool is_abandoned(const char *name)
{
    unsigned pid = 0;
    if (!str_starts(str_of(name), STR(NEW)))
        return false;
    for (const char *p = name + sizeof NEW - 1; *p >= '0' && *p <= '9'; p++)
        pid = pid * 10 + (unsigned)(*p - '0');
    return sys_kill((int)pid, 0) == -ESRCH;
}

/* One that is empty was emptied while another start gave it this name. */
static void forget(int masks, const char *name)
{
    if (remove_unused(masks, name) == -EAGAIN)
        (void)sys_unlinkat(masks, name, AT_REMOVEDIR);
}

/* These are only kept for speed: when there are too many, all go that no box uses. */
static void forget_many(int masks)
{
    _Alignas(8) char room[ENTRIES];
    unsigned n = 0;
    for (int pass = 0; pass < 2; pass++) {
        own_fd int dir = sys_openat(masks, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        struct sys_entries all = {.dir = dir, .room = room, .bytes = sizeof room};
        const struct sys_dirent *d;
        while (dir >= 0 && (d = sys_next_entry(&all))) {
            n += d->name[0] != '.';
            if (is_abandoned(d->name))
                (void)remove_tree(masks, d->name, 0);
            else if (str_starts(str_of(d->name), STR(OLD)) || (d->name[0] != '.' && pass == 1))
                forget(masks, d->name);
        }
        if (n <= KEEP_AT_MOST)
            return;
    }
}

void kept_store(struct runner *r)
{
    struct kept_masks *k = &r->kept;
    struct kept_copy c = {.index = k->index, .keep = -1};
    char name[NAME_ROOM];
    if (!k->noting || r->own < 0)
        return;
    int e = sys_mkdirat(k->keep_in, "masks", 0700);
    own_fd int masks =
        e < 0 && e != -EEXIST ? e : sys_openat(k->keep_in, "masks", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (masks < 0)
        return;
    forget_many(masks);
    put_number(put_text(name, NEW), (uint32_t)sys_getpid());
    (void)remove_tree(masks, name, 0); /* of a process that was killed */
    e = sys_mkdirat(masks, name, 0700);
    c.keep = e < 0 ? e : sys_openat(masks, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (c.keep < 0)
        return;
    e = copy_all(&c, r->own);
    if (e < 0 && e != -ENOSPC && e != -EDQUOT) {
        *c.index = (struct kept_index){.bytes = sizeof *c.index, .lost = 1};
        memcpy(c.index->mark, mark, sizeof mark);
        e = write_index(&c);
    }
    if (e == 0)
        e = sys_fchmodat(masks, name, MAY_BE_SEARCHED);
    if (e == 0)
        e = make_way(masks, k->key);
    if (e == 0)
        e = sys_renameat2(masks, name, masks, k->key, 1 /* RENAME_NOREPLACE */);
    if (e < 0) {
        (void)sys_fchmodat(masks, name, 0700);
        (void)remove_tree(masks, name, 0);
    }
    sys_drop(&c.keep);
}
