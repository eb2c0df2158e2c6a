/*
 * Hard links. A regular file in a writable tree may have names outside of it: packages from pnpm's store, objects of
 * `git clone --local`, backups made by `cp -al`. A change under one name changes it under all, so such a (foreign) file
 * is not changed: it is copied first, the copy takes the name in the box's tree, and the call is performed on the copy.
 * Reading costs nothing more, and neither does changing a file with one name.
 *
 * A file with several names is the box's own if this guard created all of them. A table in shared memory counts, per
 * file, the names it created minus those it removed. If that does not match the file's link count, the file is foreign:
 * the host or another box created a name, or the table was full.
 *
 * The content is copied without the name lock, into a file without a name. Then the call starts over with the lock held
 * exclusively: the place is found and judged again, and the copy takes the name if that still is the same file's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/fd.h"
#include "guard/calls/calls.h"
#include "sys/fd.h"

#define PROBES       8
#define COPY_AT_ONCE (1u << 20) /* bytes copied while nobody else receives */
#define COPY_PIECE   (64u << 20)
#define TRIES        8 /* if the host keeps replacing the file */

/* ---- names made here ---- */

/* Finds its entry, or with `make` a free one. The table is locked. */
static struct links *links_find(struct shared *s, const struct born *of, bool make)
{
    uint64_t h = (of->inode ^ of->device << 7 ^ of->nanoseconds) * 0x9e3779b97f4a7c15u;
    struct links *room = NULL;
    for (unsigned i = 0; i < PROBES; i++) {
        struct links *l = &s->links[(h >> 32 ^ i) % LINKS_MADE];
        if (l->n && born_same(&l->is, of))
            return l;
        if (!room && l->n <= 1) /* a file with one name needs no entry */
            room = l;
    }
    return make ? room : NULL;
}

/* Whether this guard created each of its names. */
static bool links_own(struct guard *g, const struct sys_stat *st)
{
    if (atomic_load(&g->shared->linked) == 0)
        return false;
    const struct born of = born_of(st);
    table_lock(g->shared);
    const struct links *l = links_find(g->shared, &of, false);
    bool own = l && l->n == st->links;
    table_unlock(g->shared);
    return own;
}

void hardlink_made(struct guard *g, const struct object *o)
{
    const struct born of = born_of(&o->st);
    if (S_ISDIR(o->st.mode) || o->st.links == 0 || (o->st.links == 1 && o->magic && !object_leads(o)))
        return;
    table_lock(g->shared);
    struct links *l = links_find(g->shared, &of, o->st.links == 1);
    if (l && o->st.links == 1) {
        *l = (struct links){of, 2};
        atomic_store(&g->shared->linked, 1);
    } else if (l && l->n == o->st.links) { /* found, since none was to be made */
        l->n++;
    }
    table_unlock(g->shared);
}

bool hardlink_look(struct guard *g, const struct place *p, struct sys_stat *ret)
{
    return atomic_load(&g->shared->linked) && p->plain && born_at(p, ret) == 0 && !S_ISDIR(ret->mode) && ret->links > 1;
}

void hardlink_gone(struct guard *g, const struct sys_stat *st)
{
    const struct born of = born_of(st);
    table_lock(g->shared);
    struct links *l = links_find(g->shared, &of, false);
    if (l)
        l->n--;
    table_unlock(g->shared);
}

/* ---- which files are affected ---- */

bool hardlink_foreign(struct guard *g, const struct object *o)
{
    if (o->st.links < 2 || S_ISDIR(o->st.mode))
        return false;
    const struct rule *decider = rules_decider(&g->rules, object_path(o));
    return ((decider && decider->said->kind == GUARD_RULE_ROOT && !(decider->said->flags & GUARD_RULE_LAYERED)) ||
            !mount_ours(g, o->st.mount)) &&
           !links_own(g, &o->st);
}

bool hardlink_nameless(struct guard *g, const struct object *o)
{
    return o->st.links == 0 || links_own(g, &o->st);
}

/* The directory and the name in it; a magic link tells neither. */
struct link_spot {
    int dir;
    char name[NAME_MAX + 1];
};

static int spot_of_path(const struct object *o, struct link_spot *ret)
{
    const char *slash = memrchr(o->path, '/', o->n);
    if (!slash || o->n - (size_t)(slash - o->path) > NAME_MAX + 1)
        return -ENOENT;
    size_t n = (size_t)(slash - o->path);
    memcpy(ret->name, slash + 1, o->n - n);
    ret->dir = open_in_box((struct str){o->path, n}, O_PATH | O_DIRECTORY);
    if (ret->dir < 0 || sys_is_at(ret->dir, ret->name, &o->st))
        return ret->dir < 0 ? ret->dir : 0;
    ret->dir = close_fd(ret->dir);
    return -ENOENT;
}

static int spot_of(const struct place *p, const struct object *o, struct link_spot *ret)
{
    if (!p || o->magic)
        return spot_of_path(o, ret);
    memcpy(ret->name, place_bare(p), p->name_n + 1);
    ret->dir = sys_fcntl(p->dir, F_DUPFD_CLOEXEC, 0);
    return ret->dir < 0 ? ret->dir : 0;
}

/* ---- the copy ---- */

static void copy_drop(struct hardlink_copy *c)
{
    if (!c->waits)
        return;
    if (c->named)
        (void)sys_unlinkat(c->dir, c->temp, 0);
    c->fd = close_fd(c->fd);
    c->dir = close_fd(c->dir);
    c->waits = c->named = false;
}

void hardlink_done(struct guard *g)
{
    copy_drop(&g->copy);
    g->copy.tries = 0;
}

static int copy_by_hand(int from, int to, uint64_t at, uint64_t end)
{
    char bytes[16 << 10];
    while (at < end) {
        long n = sys_pread(from, bytes, end - at < sizeof bytes ? end - at : sizeof bytes, at);
        if (n <= 0)
            return (int)n;
        for (long done = 0, k; done < n; done += k) {
            k = sys_pwrite(to, bytes + done, (size_t)(n - done), at + (uint64_t)done);
            if (k <= 0)
                return k < 0 ? (int)k : -EIO;
        }
        at += (uint64_t)n;
    }
    return 0;
}

static int copy_range(struct guard *g, int from, int to, uint64_t at, uint64_t end)
{
    while (at < end) {
        uint64_t in = at, out = at;
        long n = sys_call(SYS_copy_file_range, from, &in, to, &out, end - at < COPY_PIECE ? end - at : COPY_PIECE, 0);
        if (n == -ENOSPC || n == -EDQUOT || n == -EFBIG || n == -EIO)
            return (int)n;
        if (n <= 0) /* not possible between these files, or the file has shrunk */
            return copy_by_hand(from, to, at, end);
        at += (uint64_t)n;
        int no = at < end ? target_valid(g) : 0; /* the caller no longer waits */
        if (no < 0)
            return no;
    }
    return 0;
}

/* Preserves holes. */
static int copy_content(struct guard *g, int from, int to, uint64_t size)
{
    if (sys_call(SYS_ioctl, to, SYS_CLONE_FILE, from, 0, 0, 0) == 0)
        return 0;
    for (uint64_t at = 0; at < size;) {
        long data = sys_lseek(from, at, SYS_SEEK_DATA);
        if (data == -ENXIO)
            break;
        long hole = data < 0 ? -1 : sys_lseek(from, data, SYS_SEEK_HOLE);
        uint64_t begin = data < 0 ? at : (uint64_t)data,
                 end = hole < 0 || (uint64_t)hole > size ? size : (uint64_t)hole;
        int no = copy_range(g, from, to, begin, end);
        if (no < 0)
            return no;
        at = end;
    }
    return sys_ftruncate(to, (int64_t)size);
}

void hardlink_attributes(int from, int to, unsigned mode)
{
    char path[12], *names = malloc(2 * (64u << 10)), *value = names ? names + (64u << 10) : NULL;
    long n = names ? sys_call(SYS_listxattr, decimal(path, from), names, 64u << 10, 0, 0, 0) : 0;
    for (long at = 0; at < n; at += (long)strlen(names + at) + 1) {
        long k = sys_call(SYS_getxattr, decimal(path, from), names + at, value, 64u << 10, 0, 0);
        int no = k < 0 ? (int)k : sys_fsetxattr(to, names + at, value, (size_t)k, 0);
        /* The group bits of the mode were the list's mask: without the list they would apply to the group. */
        if (no < 0 && strcmp(names + at, "system.posix_acl_access") == 0)
            (void)sys_fchmod(to, mode & ~070u);
    }
    free(names);
}

/* Sets the owner as far as possible, like an editor that cannot write in place; then the rest. */
static int copy_metadata(const struct object *o, int to)
{
    unsigned mode = o->st.mode & 07777;
    const struct timespec times[2] = {{o->st.accessed.seconds, o->st.accessed.nanoseconds},
                                      {o->st.modified.seconds, o->st.modified.nanoseconds}};
    struct sys_stat st;
    int no = sys_stat_fd(to, SYS_STAT_BASIC, &st);
    if (no < 0)
        return no;
    if (st.uid != o->st.uid)
        mode &= 01777;
    if (st.gid != o->st.gid && sys_fchown(to, (unsigned)-1, o->st.gid) < 0)
        mode = (mode & 05707) | (mode & 07) << 3;
    no = sys_fchmod(to, mode);
    if (no < 0)
        return no;
    hardlink_attributes(o->fd, to, mode);
    return sys_utimensat(to, NULL, times, 0);
}

static int copy_open(struct guard *g, const struct link_spot *s)
{
    struct hardlink_copy *c = &g->copy;
    c->fd = sys_openat(s->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (c->fd >= 0 || (c->fd != -EOPNOTSUPP && c->fd != -EISDIR && c->fd != -ENOENT))
        return c->fd;
    c->fd = sys_openat(s->dir, c->temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    c->named = c->fd >= 0;
    return c->fd;
}

/* Creates the copy; no lock is held. */
static int copy_make(struct guard *g, const struct link_spot *s, const struct object *o, bool content)
{
    struct hardlink_copy *c = &g->copy;
    copy_drop(c);
    int no = content && S_ISREG(o->st.mode) && o->st.size > COPY_AT_ONCE ? guard_may_block(g) : 0;
    if (no != 0)
        return no;
    *c = (struct hardlink_copy){
        .waits = true, .tries = c->tries, .fd = -1, .dir = sys_fcntl(s->dir, F_DUPFD_CLOEXEC, 0), .of = o->st};
    (void)snprintf(c->temp, sizeof c->temp, GUARD_TEMP "%x-%llx", g->n.pid, (unsigned long long)g->n.id);
    if (!S_ISREG(o->st.mode)) /* a symbolic link: created when the name is taken */
        return 0;
    auto_fd int from = content ? own_reopen(g, o->fd, O_RDONLY | O_NONBLOCK | O_NOCTTY) : -1;
    no = content && from < 0 ? from : copy_open(g, s);
    if (no >= 0 && content)
        no = copy_content(g, from, c->fd, o->st.size);
    if (no >= 0)
        no = copy_metadata(o, c->fd);
    if (no < 0)
        copy_drop(c);
    return no < 0 ? no : 0;
}

/* ---- the name ---- */

static int link_again(struct hardlink_copy *c, const struct object *o)
{
    char text[PATH_MAX];
    const struct timespec times[2] = {{o->st.accessed.seconds, o->st.accessed.nanoseconds},
                                      {o->st.modified.seconds, o->st.modified.nanoseconds}};
    long n = sys_readlinkat(o->fd, "", text, sizeof text);
    if (n < 0 || n >= (long)sizeof text)
        return n < 0 ? (int)n : -ENAMETOOLONG;
    text[n] = 0;
    int no = sys_symlinkat(text, c->dir, c->temp);
    c->named = no == 0;
    return no < 0 ? no : sys_utimensat(c->dir, c->temp, times, AT_SYMLINK_NOFOLLOW);
}

/* Gives the name to the copy, which `o` refers to from now on. The lock is held exclusively. */
static int name_take(struct guard *g, const struct link_spot *s, struct object *o)
{
    struct hardlink_copy *c = &g->copy;
    struct sys_stat st;
    int no = sys_stat_at(s->dir, s->name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st);
    if (no == 0 && !sys_same(&st, &c->of))
        no = -ESTALE; /* changed by the host */
    if (no == 0 && S_ISLNK(o->st.mode))
        no = link_again(c, o);
    else if (no == 0 && !c->named) {
        no = own_link(g, c->fd, c->dir, c->temp);
        c->named = no == 0;
    }
    int fd = no < 0 ? no : sys_openat(c->dir, c->temp, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    no = fd < 0 ? fd : sys_renameat2(c->dir, c->temp, s->dir, s->name, 0);
    if (no == 0)
        no = born_stat(fd, "", AT_EMPTY_PATH, &o->st);
    c->named &= no < 0;
    copy_drop(c);
    if (no < 0) {
        (void)close_fd(fd);
        return no;
    }
    (void)sys_close(o->fd);
    o->fd = fd;
    return 0;
}

/* Whether the caller could change it at all: checked before anything is copied. */
static int may_change(const struct object *o, enum hardlink_change change)
{
    if (change == HARDLINK_CONTENT || change == HARDLINK_EMPTY)
        return (int)sys_call(SYS_faccessat2, o->fd, "", W_OK, AT_EMPTY_PATH | AT_EACCESS, 0, 0);
    if (o->st.uid != sys_geteuid())
        return -EPERM;
    /* git touches a pack that it still needs; if it cannot, it writes the object again. */
    if (change == HARDLINK_TOUCH && o->st.size > COPY_AT_ONCE && !(o->st.mode & 0222))
        return -EPERM;
    return 0;
}

int hardlink_own(struct guard *g, const struct place *p, struct object *o, enum hardlink_change change)
{
    struct link_spot s;
    const enum denial_action action =
        change == HARDLINK_CONTENT || change == HARDLINK_EMPTY ? DENIAL_WRITE : DENIAL_CHANGE;
    if (!S_ISREG(o->st.mode) && !S_ISLNK(o->st.mode))
        return action == DENIAL_WRITE ? 0 : deny(g, action, NULL, object_path(o), "it may have a name outside");
    int no = may_change(o, change);
    if (no == 0 && spot_of(p, o, &s) < 0)
        no = deny(g, action, NULL, object_path(o), "it may have a name outside, and has none in the box");
    if (no < 0)
        return no;
    auto_fd int dir __attribute__((unused)) = s.dir;
    if (g->copy.waits && g->names_held == 2 && sys_same(&g->copy.of, &o->st)) {
        no = name_take(g, &s, o);
        if (no != -ESTALE)
            return no;
        names_unlock(g);
        return HARDLINK_AGAIN;
    }
    names_unlock(g);
    no = ++g->copy.tries < TRIES ? copy_make(g, &s, o, change != HARDLINK_EMPTY) : -EAGAIN;
    return no == 0 ? HARDLINK_AGAIN : no;
}
