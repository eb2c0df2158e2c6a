/*
 * Locks what no other box may change between a verdict and its act.
 *
 * The lock of the name space (names_lock.c) belongs to one guard, but boxes share directories: two boxes in one
 * workspace, a session's file API and a run, root's box and a user's, a container and the host. So whatever a verdict
 * reads from the file system, and another box's act could change a moment later, is locked by flock(2) on the directory
 * in question. Such a lock belongs to the device and inode, so everybody who reaches the directory by any mount, name,
 * namespace or user meets the same lock; the kernel releases it when its holder dies; nothing is left on disk. A lock
 * file of pinfold's own would need a place that all users, containers and virtual machines of a kernel share. On a
 * network file system flock on a directory is local to this kernel: boxes on other machines are not locked out.
 *
 * Which directories: a verdict about a path depends on the names and contents of directories above it only through
 * rules of several components (".git/hooks", ".hg/hgrc") and through what makes a directory a repository (gitdir.c). So
 * an act takes locks
 *   - if its path has a component that comes after the first of such a rule, or is one of git's own: on the directory that
 *     contains it ("X" for X/hooks/pre-commit, X/objects, X/config);
 *   - if a directory gets a name below which a rule applies (x becomes ".git"): on that directory. Whoever creates x/hooks
 *     meanwhile locks the same x;
 *   - with submodules, on X/.git of each X/.git/modules that a verdict examines (module.c);
 *   - if its path has a name that applies at the root of a repository (".envrc"), or ends in what makes such a root
 *     (".git"): on the directory that contains both.
 * Everything else (the thousands of files of a checkout) takes no lock and costs nothing. Two consequences: an act on
 * an ordinary name may be under way in a directory that becomes a "hooks" meanwhile; so a hooks directory that becomes
 * effective is replaced by a new one, which nobody has ever had open (git_hooks_renew). And what a rename has judged
 * may be exchanged under its name before it is moved; so it is first renamed to a name that no box may touch, and
 * judged again there (rename_counted, name.c).
 *
 * Order: first the guard's name lock, then all directories at once or none. A guard that cannot get one releases the
 * others and tries again, so there is no deadlock. No lock is held during a call that waits for a process of a box
 * (handing over a descriptor, opening a FIFO) or for a program. After HOLD_MS a call is refused; so is one whose caller
 * may not read the directory, or on a file system without such locks. What a command has written and closed is put in
 * place after the end of its box, too (gitdir.c), and waits as long.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include "base/fd.h"
#include "guard/rules/rules.h"
#include "sys/poll.h"

#define HOLD_MS   10000 /* the holder may be a process that gets no processor for seconds */
#define MOVED     1     /* the place has changed */
#define MOVES_MAX 64    /* somebody keeps moving it */
#define OPEN_HELD (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
#define UNREADABLE                                                                                                     \
    "a directory on the path, which other boxes can change at the same time, cannot be read and therefore not be "     \
    "locked"
#define BUSY "another box has locked a directory on the path"

void holds_drop(struct guard *g)
{
    while (g->n_holds) {
        int fd = g->holds[--g->n_holds].fd;
        (void)sys_flock(fd, LOCK_UN); /* a child may have inherited it */
        (void)sys_close(fd);
    }
}

void holds_forget(struct guard *g)
{
    while (g->n_holds)
        (void)sys_close(g->holds[--g->n_holds].fd);
}

/* ---- which directories ---- */

static bool is_held(const struct guard *g, const struct sys_stat *st)
{
    for (unsigned i = 0; i < g->n_holds; i++)
        if (g->holds[i].inode == st->inode && g->holds[i].device == sys_stat_device(st))
            return true;
    return false;
}

static int hold_add(struct guard *g, int fd)
{
    struct sys_stat st;
    auto_fd int own = fd;
    int no = own < 0 ? own : sys_stat_fd(own, SYS_STAT_BASIC, &st);
    if (no < 0)
        return no;
    if (is_held(g, &st))
        return 0;
    if (g->n_holds == HOLDS_MAX)
        return -EACCES;
    g->holds[g->n_holds++] = (struct hold){take_fd(&own), sys_stat_device(&st), st.inode};
    return 0;
}

/* Locks the directory that is the first `n` bytes of the place's path. */
static int hold_above(struct guard *g, const struct place *p, size_t n)
{
    return hold_add(g, n == p->dir_n && !g->nested ? sys_openat(p->dir, ".", OPEN_HELD, 0)
                                                   : open_in_box((struct str){p->path, n}, OPEN_HELD));
}

typedef int each_fn(struct guard *g, const struct place *p, size_t n);

/* Names of the `root` list apply where a repository's marker is (reporoot.c): creating such a name, or a marker beside
   it, locks the directory that contains both. */
static int each_rooted(struct guard *g, const struct place *p, each_fn *each)
{
    int no = 0;
    if (g->rules.n_rooted == 0)
        return 0;
    for (struct rooted w = {0}; no == 0 && rules_rooted(&g->rules, place_path(p), &w);)
        no = each(g, p, w.directory.n);
    for (struct rooted w = {0}; no == 0 && rules_rooted_below(&g->rules, place_path(p), &w);)
        no = each(g, p, w.directory.n);
    return no == 0 && reporoot_marks(g, p) ? each(g, p, p->dir_n) : no;
}

/* Calls `each` for every directory of the place that needs a lock, until one does not return 0. */
static int each_held(struct guard *g, const struct place *p, each_fn *each)
{
    int no = 0;
    for (struct held_directory w = {0}; no == 0 && rules_next_held(&g->rules, place_path(p), &w);)
        no = each(g, p, w.n);
    return no ? no : each_rooted(g, p, each);
}

/* ---- taking locks ---- */

static int hold_order(const void *a, const void *b)
{
    const struct hold *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static int lock_all(struct guard *g)
{
    if (g->n_holds > 1)
        qsort(g->holds, g->n_holds, sizeof *g->holds, hold_order);
    for (unsigned i = 0; i < g->n_holds; i++) {
        int no = sys_flock(g->holds[i].fd, LOCK_EX | LOCK_NB);
        if (no == 0)
            continue;
        while (i-- > 0)
            (void)sys_flock(g->holds[i].fd, LOCK_UN);
        return no;
    }
    return 0;
}

/* Sleeps a little longer each time, and differently in each guard; -ETIMEDOUT after too many, or if the box has ended and
   with it who waits for the call. */
static int pause_a_moment(struct guard *g, unsigned turn, uint64_t *until)
{
    struct pollfd end = {.fd = g->watches ? -1 : g->init_pidfd, .events = POLLIN};
    const uint64_t ns = exact_ns(), ms = ns / 1000000;
    if (!*until)
        *until = ms + HOLD_MS;
    if (ms > *until)
        return -ETIMEDOUT;
    long most = turn < 6 ? 10000l << turn : 1000000;
    struct timespec t = {.tv_nsec = most / 2 + (long)(ns % (uint64_t)most)};
    return sys_poll(&end, 1, &t) > 0 ? -ETIMEDOUT : 0;
}

static int wait_all(struct guard *g)
{
    uint64_t until = 0;
    int no;
    for (unsigned turn = 0; (no = lock_all(g)) == -EWOULDBLOCK || no == -EINTR; turn++)
        if (pause_a_moment(g, turn, &until) < 0)
            return -ETIMEDOUT;
    return no;
}

static int is_there(struct guard *g, const struct place *p, size_t n)
{
    char name[PLACE_PATH];
    struct sys_stat st;
    if (n == p->dir_n && !g->nested)
        return 0; /* the place's own directory */
    memcpy(name, p->path, n);
    name[n] = 0;
    return sys_stat_at(AT_FDCWD, n ? name : "/", AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) < 0 || !is_held(g, &st)
               ? MOVED
               : 0;
}

/* Once locked: checks that these are still the place's directories. */
static int still(struct guard *g, const struct place *p)
{
    return place_stays(g, p) ? each_held(g, p, is_there) : MOVED;
}

static int refused(struct guard *g, const struct place *p, enum denial_action action, int no)
{
    return deny(g, action, NULL, place_path(p), no == -ETIMEDOUT ? BUSY : UNREADABLE);
}

/* Locks what was opened for `p` and (unless NULL) `other`. MOVED: nothing is locked; find the places again. */
static int hold_all(struct guard *g, struct place *p, struct place *other, enum denial_action action, int no)
{
    if (no == 0 && g->n_holds == 0)
        return 0;
    if (no == 0)
        no = wait_all(g);
    else if (no == -ENOENT || no == -ENOTDIR || no == -ELOOP)
        no = MOVED;
    if (no == 0)
        no = still(g, p);
    if (no == 0 && other)
        no = still(g, other);
    if (no == 0)
        return 0;
    holds_forget(g);
    if (no < 0)
        return no == -EMFILE || no == -ENFILE || no == -ENOMEM ? no : refused(g, p, action, no);
    no = place_again(g, p);
    if (no == 0 && other)
        no = place_again(g, other);
    return no < 0 ? no : MOVED;
}

int hold_place(struct guard *g, struct place *p, enum denial_action action)
{
    int no = MOVED;
    g->n_holds = 0;
    if (!p->plain || p->frozen) /* the kernel or the verdict will refuse it */
        return 0;
    for (unsigned turn = 0; no == MOVED && turn < MOVES_MAX; turn++)
        no = hold_all(g, p, NULL, action, each_held(g, p, hold_above));
    return no == MOVED ? refused(g, p, action, -ETIMEDOUT) : no;
}

/* Locks the directory at `from`, if it is one that gets the name `to`. */
static int hold_moved(struct guard *g, const struct place *from, const struct place *to)
{
    if (!rules_counts(&g->rules, place_path(to)) &&
        (!g->rules.git || (!layout_has_git(place_path(from)) && !layout_has_git(place_path(to)))))
        return 0;
    int no = hold_add(g, sys_openat(from->dir, place_bare(from), OPEN_HELD, 0));
    return no == -ENOTDIR || no == -ENOENT || no == -ELOOP ? 0 : no;
}

int hold_rename(struct guard *g, struct place *from, struct place *to, unsigned flags)
{
    int no = MOVED;
    g->n_holds = 0;
    if (!from->plain || !to->plain || from->frozen || to->frozen)
        return 0;
    for (unsigned turn = 0; no == MOVED && turn < MOVES_MAX; turn++) {
        no = each_held(g, from, hold_above);
        if (no == 0)
            no = each_held(g, to, hold_above);
        if (no == 0)
            no = hold_moved(g, from, to);
        if (no == 0 && (flags & RENAME_EXCHANGE))
            no = hold_moved(g, to, from);
        no = hold_all(g, from, to, DENIAL_RENAME, no);
    }
    return no == MOVED ? refused(g, to, DENIAL_RENAME, -ETIMEDOUT) : no;
}

bool hold_more(struct guard *g, int dir, const char *name)
{
    const unsigned before = g->n_holds;
    uint64_t until = 0;
    if (hold_add(g, sys_openat(dir, name, OPEN_HELD & ~O_NOFOLLOW, 0)) < 0)
        return false;
    int no = 0;
    for (unsigned turn = 0; g->n_holds > before; turn++) {
        no = sys_flock(g->holds[before].fd, LOCK_EX | LOCK_NB);
        if ((no != -EWOULDBLOCK && no != -EINTR) || pause_a_moment(g, turn, &until) < 0)
            break;
    }
    if (no < 0)
        (void)sys_close(g->holds[--g->n_holds].fd);
    return no == 0;
}
