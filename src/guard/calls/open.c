/*
 * open, openat, creat. A new file is created with O_EXCL added, so that what was judged as new is new. An existing
 * object is first opened with O_PATH, judged by name and by identity, and then opened through our /proc/self/fd; no
 * name is looked up twice. The descriptor is installed with the answer.
 *
 * Two kinds of objects are special. /dev/tty means the terminal of its opener, so the caller's terminal is opened
 * instead. Files of /proc are opened as described in proc.c.
 */
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include "base/fd.h"
#include "guard/calls/calls.h"
#include "sys/fd.h"

#define WRITES (O_WRONLY | O_RDWR | O_TRUNC)

/* Flags that opening the object again must not repeat. O_NOCTTY: the terminal must not become ours. */
static int reopen_flags(int flags)
{
    return (flags & ~(O_CREAT | O_EXCL | O_NOFOLLOW)) | O_NOCTTY | O_CLOEXEC;
}

/*
 * In the Landlock tier the kernel refuses every box to write in /proc. The guard alone may where it has no other way to its
 * callers' memory (RULE_MEMORY); it must not hand that right on.
 */
static bool is_for_guard_alone(const struct guard *g, int fd, int flags)
{
    struct statfs fs;
    return g->plan->tier && (flags & O_ACCMODE) != O_RDONLY &&
           (sys_fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC);
}

/*
 * Installs `fd` in the caller, and closes ours before the caller continues: otherwise a program just written could not
 * be executed (ETXTBSY) and a FIFO would have one reader too many. If the caller has no free descriptor, a file created
 * for it is removed.
 */
static long give(struct guard *g, int *fd, int flags, const struct place *created)
{
    if (g->ours) {
        g->given = take_fd(fd);
        return 0;
    }
    int no = is_for_guard_alone(g, *fd, flags) ? -EACCES : descriptor_install(g, *fd, flags & O_CLOEXEC);
    *fd = close_fd(*fd);
    if (no == -EMFILE && created)
        (void)sys_unlinkat(created->dir, created->name, 0);
    return no;
}

/* Opens the controlling terminal of the caller: field 7 of /proc/TID/stat, after the name in parentheses. */
static int open_terminal(struct guard *g, int flags)
{
    char text[1024], path[32];
    (void)sys_read_text(g->who->proc, "stat", text, sizeof text);
    const char *p = strrchr(text, ')');
    int tty = 0;
    if (!p || sscanf(p + 1, " %*c %*d %*d %*d %d", &tty) != 1 || tty == 0)
        return -ENXIO;
    unsigned major = ((unsigned)tty >> 8) & 0xfff, minor = ((unsigned)tty & 0xff) | (((unsigned)tty >> 12) & 0xfff00);
    if (major < 136 || major > 143) /* not a Unix98 pseudo-terminal: the box has no other terminal of its own */
        return -ENXIO;
    (void)snprintf(path, sizeof path, "/dev/pts/%u", (major - 136) * 256 + minor);
    auto_fd int pts = sys_openat(AT_FDCWD, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    struct sys_stat st;
    if (pts < 0 || sys_stat_fd(pts, SYS_STAT_BASIC, &st) < 0 || !S_ISCHR(st.mode) || st.device_major != major ||
        st.device_minor != minor || file_system_of(g, pts, &st) != FS_PTS)
        return -ENXIO;
    return own_reopen(g, pts, reopen_flags(flags));
}

/* fs.protected_regular and protected_fifos concern opens with O_CREAT in sticky directories: let the kernel decide. */
static int sticky_refuses(const struct place *p, const struct object *o, int flags)
{
    struct sys_stat dir;
    if (!(flags & O_CREAT) || !p->plain || o->magic || !S_ISREG(o->st.mode) || sys_geteuid() == o->st.uid ||
        sys_stat_fd(p->dir, SYS_STAT_BASIC, &dir) < 0 || !(dir.mode & S_ISVTX))
        return 0;
    int fd =
        sys_openat(p->dir, p->name, (flags & ~O_TRUNC & ~O_EXCL) | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    (void)close_fd(fd);
    return fd < 0 ? fd : 0;
}

/* Somebody is asked; the answer is the call's. */
static long open_granted(struct guard *g, struct object *o, int flags)
{
    int no = guard_may_block(g);
    auto_fd int fd = no == 0 ? grant_ask(g, o, flags) : -1;
    if (no != GONE_ON && fd < 0)
        no = verdict_outside(g, DENIAL_WRITE, o->fd, object_path(o));
    object_drop(o);
    return fd < 0 ? no : give(g, &fd, flags, NULL);
}

/*
 * /dev/null is what shells open most often for writing, so what a first call has found and judged there stays open. A later call with
 * the same text gets it if the name still leads to it, as one look tells; another object there is found and judged as any. What
 * is given is the null device in any case, so nothing is gained by a change after the look. Where names mean other objects for a
 * caller than here (`nested`, a view of /proc that shows us), or reads are judged, nothing is kept.
 */
#define NULL_DEVICE "/dev/null"
#define NULL_FLAGS  (O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_LARGEFILE)

static bool null_asked(const struct guard *g, int flags)
{
    return flags & WRITES && !(flags & ~NULL_FLAGS) && !g->ours && !g->nested && !g->proc_has_us &&
           !(g->plan->filter & FILTER_READS) && strcmp(g->text[0], NULL_DEVICE) == 0;
}

static bool null_stat(struct sys_stat *ret)
{
    return sys_stat_at(AT_FDCWD, NULL_DEVICE, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC | SYS_STAT_MOUNT, ret) == 0 &&
           ret->mask & SYS_STAT_MOUNT && S_ISCHR(ret->mode) && ret->device_major == 1 && ret->device_minor == 3;
}

static bool null_same(const struct sys_stat *a, const struct sys_stat *b)
{
    return a->inode == b->inode && a->major == b->major && a->minor == b->minor && a->mount == b->mount;
}

/* Keeps the object, which may be written, if it is that. */
static void null_keep(struct guard *g, struct object *o, int flags)
{
    struct sys_stat st;
    if (g->null_kept || !S_ISCHR(o->st.mode) || !null_asked(g, flags) || !null_stat(&st) || !null_same(&st, &o->st))
        return;
    g->null_kept = true;
    g->null_is = st;
    g->null = take_fd(&o->fd);
}

/* The call's answer, or GONE_ON: it is to be found and judged. */
static long null_open(struct guard *g, int flags)
{
    struct sys_stat st;
    if (!g->null_kept || !null_asked(g, flags))
        return GONE_ON;
    if (target_sure(g) < 0)
        return -ENOENT;
    if (!null_stat(&st) || !null_same(&st, &g->null_is)) {
        g->null_kept = false;
        g->null = close_fd(g->null);
        return GONE_ON;
    }
    auto_fd int fd = own_reopen(g, g->null, reopen_flags(flags));
    return fd < 0 ? fd : give(g, &fd, flags, NULL);
}

/* Opens an existing object. The name lock is held on entry and free on return. */
static long open_object(struct guard *g, struct place *p, struct object *o, int flags)
{
    int no = S_ISDIR(o->st.mode) && (flags & O_CREAT) ? -EISDIR : 0;
    if (no == 0 && g->ours && (o->proc || (!S_ISREG(o->st.mode) && !S_ISDIR(o->st.mode))))
        no = -ENODEV; /* /proc, devices, pipes, sockets */
    const bool asks = no == 0 && grant_wanted(g, o, flags);
    if (no == 0 && !asks)
        no = verdict_object(g, o, flags & WRITES ? DENIAL_WRITE : DENIAL_READ);
    if (no == -EROFS) { /* the kernel checks permissions before EROFS (may_open() in fs/namei.c) */
        long may = sys_call(SYS_faccessat2, o->fd, "", W_OK, AT_EMPTY_PATH | AT_EACCESS, 0, 0);
        no = may < 0 ? (int)may : no;
    }
    if (no == 0)
        no = sticky_refuses(p, o, flags);
    if (no == 0)
        no = target_valid(g);
    if (no == 0 && !asks && flags & WRITES && hardlink_foreign(g, o))
        no = hardlink_own(g, p, o, flags & O_TRUNC ? HARDLINK_EMPTY : HARDLINK_CONTENT);
    if (no == HARDLINK_AGAIN || no == GONE_ON) {
        object_drop(o);
        return no;
    }
    const enum proc_way way = no == 0 && o->proc ? proc_way(g, p, o, flags) : PROC_CLOSED;
    auto_fd int memory = no == 0 ? running_memory(g, p, o) : -ENOENT;
    if (memory == -EACCES)
        no = -EACCES;
    int map = no == 0 && g->nested && nested_is_map(p, o) ? proc_open_whole(g, o, reopen_flags(flags)) : -ENOENT;
    if (map >= 0 && flags & WRITES && g->plan->uid == 0)
        deny_root_map(g);
    if (no == 0 && flags & WRITES && p->plain)
        told_refs(g, p);
    if (g->names_held)
        names_unlock(g);
    place_drop(p);
    if (no == 0 && asks)
        return open_granted(g, o, flags);
    if (map != -ENOENT) {
        auto_fd int fd = map;
        object_drop(o);
        return fd < 0 ? fd : give(g, &fd, flags, NULL);
    }
    bool fifo = S_ISFIFO(o->st.mode) && !(flags & O_NONBLOCK) && (flags & O_ACCMODE) != O_RDWR;
    if (no == 0 && fifo)
        no = guard_may_block(g);
    if (no == GONE_ON) {
        object_drop(o);
        return ANSWERED;
    }
    if (no == 0) {
        if (S_ISCHR(o->st.mode) && o->st.device_major == 5 && o->st.device_minor == 0)
            no = open_terminal(g, flags);
        else if (o->proc)
            no = proc_open(g, o, way, reopen_flags(flags));
        else
            no = own_reopen(g, o->fd, reopen_flags(flags));
        if (no >= 0)
            null_keep(g, o, flags);
    }
    object_drop(o);
    if (no < 0)
        return no;
    auto_fd int fd = no;
    if (memory >= 0 && running_closed(g, memory))
        return -EACCES;
    return give(g, &fd, flags, NULL);
}

/* Creates the file: a descriptor or -errno; locks on directories are held on return. */
static int open_fresh(struct guard *g, struct place *p, int flags, unsigned mode)
{
    int no = target_umask(g);
    if (no == 0)
        no = hold_place(g, p, DENIAL_CREATE);
    if (no == 0)
        no = verdict_new(g, p, MADE_EMPTY_FILE, NULL);
    if (g->point)
        flags = (flags & ~O_ACCMODE) | O_RDONLY;
    bool birth = g->birth;
    if (no < 0)
        return refused_or_there(p, no); /* an existing object is judged as such */
    no = target_valid(g);
    if (no == 0)
        no = sys_openat(place_seen(p), p->name, flags | O_EXCL | O_CLOEXEC, mode);
    if (no < 0)
        return no;
    auto_fd int fd = no;
    struct sys_stat st;
    no = !g->n_holds || place_stays(g, p) ? 0 : place_again(g, p);
    if (birth && born_stat(fd, "", AT_EMPTY_PATH, &st) == 0)
        born_add(g, &st);
    if (no == 0 && g->n_holds)
        no = verdict_made(g, p, MADE_EMPTY_FILE);
    if (no < 0) { /* the host was faster */
        (void)sys_unlinkat(p->dir, p->name, 0);
        return no;
    }
    if (birth)
        reporoot_made(g, p);
    told_refs(g, p);
    return take_fd(&fd);
}

/* Creates the file: returns the answer, -EEXIST, or another error. */
static long open_new(struct guard *g, struct place *p, int flags, unsigned mode)
{
    auto_fd int fd = open_fresh(g, p, flags, mode);
    holds_drop(g); /* the caller may make us wait for it */
    return fd < 0 ? fd : give(g, &fd, flags, p);
}

/* A final link that must not be followed: the kernel knows the right errno for the flags. */
static long open_link(struct place *p, int flags)
{
    int fd = sys_openat(p->dir, p->name, (flags & ~O_TRUNC & ~O_CREAT) | O_NOFOLLOW | O_CLOEXEC, 0);
    (void)close_fd(fd);
    return fd < 0 ? fd : -ELOOP;
}

static long open_in_place(struct guard *g, struct place *p, const struct rule *rule, int flags, unsigned mode)
{
    int no = hold_place(g, p, DENIAL_GIT_CONFIG);
    long r = no < 0 ? no : git_in_place_open(g, p, rule, flags, mode);
    holds_drop(g);
    return r;
}

/* One round: AGAIN to continue with the changed `p`. */
static long open_step(struct guard *g, struct place *p, int flags, unsigned mode, unsigned *links, unsigned *tries)
{
    struct object *o = &g->object;
    const bool writer = (flags & O_ACCMODE) == O_WRONLY || (flags & O_ACCMODE) == O_RDWR;
    const struct rule *rule = NULL;
    if (writer && g->rules.git && !g->ours && !p->frozen && !point_modules(g, p, flags, mode) &&
        verdict_in_place(g, p, flags, &rule))
        return open_in_place(g, p, rule, flags, mode);
    if (flags & O_CREAT) {
        long made = open_new(g, p, flags, mode);
        if (made != -EEXIST || (flags & O_EXCL))
            return made;
    }
    const bool slash = p->slash;
    p->slash = false; /* the link itself, not its target */
    int no = object_find(g, p, false, o);
    p->slash = slash;
    if (no == -ENOENT && (flags & O_CREAT) && ++*tries < 64)
        return AGAIN; /* it has gone meanwhile */
    if (no < 0)
        return no;
    if (S_ISLNK(o->st.mode)) {
        if ((flags & O_NOFOLLOW) && !slash) {
            object_drop(o);
            return open_link(p, flags);
        }
        no = link_follow(g, p, o, links);
        if (no < 0) {
            object_drop(o);
            return no;
        }
        if (!o->magic)
            return AGAIN;
    }
    if (slash && !S_ISDIR(o->st.mode)) {
        object_drop(o);
        return -ENOTDIR;
    }
    return open_object(g, p, o, flags);
}

/* `alone`: take the name lock exclusively. */
static long open_once(struct guard *g, int dir, int flags, unsigned mode, bool alone)
{
    struct place *p = &g->from;
    unsigned links = 0, tries = 0;
    int no = names_lock(g, alone);
    if (no < 0)
        return no;
    no = place_find_alone(g, dir, g->text[0], p, !alone && flags & O_CREAT);
    long r = no;
    if (no == 0) {
        do
            r = open_step(g, p, flags, mode & 07777, &links, &tries);
        while (r == AGAIN);
        place_drop(p);
    }
    if (g->names_held)
        names_unlock(g);
    return r;
}

long open_call(struct guard *g, int dir, uint64_t path, int flags, unsigned mode)
{
    if ((flags & (O_CREAT | O_DIRECTORY)) == (O_CREAT | O_DIRECTORY))
        return -EINVAL; /* Linux 6.4; before, it created a file and returned ENOTDIR */
    int no = target_string(g, path, g->text[0]);
    if (no < 0)
        return no;
    if (rules_told_at(g, flags))
        return rules_tell(g, flags);
    long r = null_open(g, flags);
    if (r != GONE_ON)
        return r;
    r = open_once(g, dir, flags, mode, false);
    while (r == HARDLINK_AGAIN)
        r = open_once(g, dir, flags, mode, true);
    hardlink_done(g);
    return r;
}
