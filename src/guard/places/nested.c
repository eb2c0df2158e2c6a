/*
 * Callers in their own mount namespace (allow_nested_userns). They can mount what the box shows, and new file systems.
 * So a directory in a mount that is not ours is either one of the box's seen elsewhere, and is judged by its place in
 * the box; or it is in their own tmpfs (or /proc, or devpts), which concerns nobody else. Any other file system of
 * theirs (an overlay would write to the box's directories unseen) has no place.
 *
 * The kernel tells where in its file system the directory is: statmount(2) of the caller's mount, by an id that is
 * never reused, and of each of ours (Linux 6.11, which also gives the caller's namespace an id). Before, this is read
 * from the caller's mountinfo and ours. Either way only yields candidates: a place counts if the same inode of the same
 * file system is there, opened from our root without following a link. So an error in such a text can refuse, but never
 * grant:
 *   - newline and space in a name are written as \012, \040, so no line can be forged;
 *   - a removed directory has "//deleted" after its name, which is no existing path;
 *   - mounts outside of the caller's root, and detached ones, have no line, hence no candidate;
 *   - a mount id is reused only after its mount is gone: the caller's is held by the descriptor that is examined, and
 *     which ids are ours is asked each time (own.c), because the host can remove what ours are mounted on;
 *   - what is renamed meanwhile is found elsewhere, or not at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/fd.h"
#include "guard/places/places.h"
#include "match/proctext.h"

enum { MOUNTS_TEXT = 1 << 20, MQUEUE_MAGIC = 0x19800202 };

/* All of a mountinfo; malloc()ed, or NULL: it cannot be read to its end, and a part would hide what the box has. */
static char *mountinfo(int proc, const char *name)
{
    auto_fd int fd = sys_openat(proc, name, O_RDONLY | O_CLOEXEC, 0);
    char *text = fd < 0 ? NULL : malloc(MOUNTS_TEXT);
    long n = text ? sys_read_all(fd, text, MOUNTS_TEXT) : -1;
    if (n < 0 || n == MOUNTS_TEXT) {
        free(text);
        return NULL;
    }
    text[n] = 0;
    return text;
}

/* "/a" and "/b/c" to "/a/b/c"; the root is "/" or "". False if it is too long. */
static bool joined(char to[PLACE_PATH], const char *a, const char *b)
{
    size_t n = strlen(a), k = strlen(b);
    n = n == 1 ? 0 : n;
    k = k == 1 ? 0 : k;
    if (n + k + 2 > PLACE_PATH)
        return false;
    memcpy(to, a, n);
    memcpy(to + n, b, k);
    to[n + k] = 0;
    if (n + k == 0)
        strcpy(to, "/");
    return true;
}

/* The rest of `path` after `tree`, or NULL if it is not below. */
static const char *nested_below(const char *path, const char *tree)
{
    size_t n = strlen(tree);
    if (n == 1)
        return path;
    return strncmp(path, tree, n) == 0 && (path[n] == 0 || path[n] == '/') ? path + n : NULL;
}

static bool same_object(const char *path, const struct sys_stat *st)
{
    struct sys_stat there;
    auto_fd int fd = sys_openat2(AT_FDCWD, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS);
    return fd >= 0 && sys_stat_fd(fd, SYS_STAT_BASIC, &there) == 0 && sys_same(&there, st);
}

/* ---- statmount ---- */

#define STAT_MOUNT_UNIQUE 0x4000u     /* STATX_MNT_ID_UNIQUE */
#define NAMESPACE_ID      0x8008b705u /* NS_GET_MNTNS_ID */
enum { OF_DEVICE = 1, OF_ROOT = 8, OF_POINT = 16, LIST = 64 };

struct mount_ask {
    uint32_t size, spare;
    uint64_t id, param, space;
};
struct mount_said { /* struct statmount of the kernel */
    uint32_t size, options;
    uint64_t mask;
    uint32_t major, minor;
    uint64_t more[10];
    uint32_t root, point; /* offsets in text */
    uint64_t rest[50];
    char text[2 * PATH_MAX];
};
_Static_assert(offsetof(struct mount_said, root) == 104 && offsetof(struct mount_said, text) == 512,
               "struct statmount of the kernel");

/* `space`: id of a mount namespace, 0 for ours. */
static int mount_stat(uint64_t space, uint64_t id, struct mount_said *ret)
{
    const struct mount_ask ask = {
        .size = space ? 32 : 24, .id = id, .param = OF_DEVICE | OF_ROOT | OF_POINT, .space = space};
    int no = (int)sys_call(SYS_statmount, &ask, ret, sizeof *ret, 0, 0, 0);
    const bool whole = no == 0 && (ret->mask & (OF_DEVICE | OF_ROOT | OF_POINT)) == (OF_DEVICE | OF_ROOT | OF_POINT);
    return no < 0 ? no : whole && ret->root < sizeof ret->text && ret->point < sizeof ret->text ? 0 : -EIO;
}

/* Where in its file system an object is. The device is the mount's: each subvolume of btrfs tells another one in stat(2). */
struct inside {
    unsigned major, minor;
    bool known;
    char path[PLACE_PATH];
};

/* Where the kernel's path for `fd` is; 0, -ENOENT, or -ENOSYS: the kernel cannot tell. */
static int inside_asked(struct guard *g, int fd, const char *path, struct inside *ret)
{
    struct sys_stat st;
    struct mount_said said;
    uint64_t space = 0;
    auto_fd int ns = sys_openat(g->who->proc, "ns/mnt", O_RDONLY | O_CLOEXEC, 0);
    if (ns < 0 || sys_stat_fd(fd, STAT_MOUNT_UNIQUE, &st) < 0 || !(st.mask & STAT_MOUNT_UNIQUE) ||
        sys_call(SYS_ioctl, ns, NAMESPACE_ID, &space, 0, 0, 0) < 0)
        return -ENOSYS;
    int no = mount_stat(space, st.mount, &said);
    if (no < 0)
        return no == -ENOENT ? no : -ENOSYS;
    const char *rest = nested_below(path, said.text + said.point);
    ret->major = said.major;
    ret->minor = said.minor;
    ret->known = rest && joined(ret->path, said.text + said.root, rest);
    return 0;
}

/* The same, from the caller's mountinfo. */
static void inside_read(struct guard *g, uint64_t id, const char *path, struct inside *ret)
{
    char *theirs = mountinfo(g->who->proc, "mountinfo"), *at = theirs;
    struct proc_mount l;
    while (at && !ret->known && proc_next_mount(&at, &l)) {
        const char *rest = l.id == id ? nested_below(path, l.at) : NULL;
        if (l.id == id) {
            ret->major = l.major;
            ret->minor = l.minor;
        }
        ret->known = rest && joined(ret->path, l.root, rest);
    }
    free(theirs);
}

/* ---- the box's own mounts ---- */

struct shown {
    struct shown *next;
    unsigned major, minor;
    const char *root, *at; /* in text */
    char text[];
};

static bool shown_add(struct guard *g, unsigned major, unsigned minor, const char *root, const char *at)
{
    size_t n = strlen(root) + 1, k = strlen(at) + 1;
    struct shown *one = malloc(sizeof *one + n + k);
    if (!one)
        return false;
    *one = (struct shown){.next = g->shown, .major = major, .minor = minor};
    one->root = memcpy(one->text, root, n);
    one->at = memcpy(one->text + n, at, k);
    g->shown = one;
    return true;
}

static bool shown_ask(struct guard *g)
{
    struct mount_ask ask = {.size = 24, .id = UINT64_MAX}; /* LSMT_ROOT */
    struct mount_said said;
    uint64_t ids[LIST];
    for (;;) {
        long n = sys_call(SYS_listmount, &ask, ids, LIST, 0, 0, 0);
        if (n <= 0)
            return n == 0 && g->shown;
        for (long i = 0; i < n; i++) {
            const int no = mount_stat(0, ids[i], &said);
            if (no != -ENOENT && /* it is gone */
                (no < 0 || !shown_add(g, said.major, said.minor, said.text + said.root, said.text + said.point)))
                return false;
        }
        ask.param = ids[n - 1];
    }
}

static bool shown_read(struct guard *g)
{
    char *ours = mountinfo(g->host_proc, "self/mountinfo"), *at = ours;
    struct proc_mount l;
    bool whole = ours != NULL;
    while (whole && proc_next_mount(&at, &l))
        whole = shown_add(g, l.major, l.minor, l.root, l.at);
    free(ours);
    return whole;
}

static void shown_drop(struct guard *g)
{
    for (struct shown *next; g->shown; g->shown = next) {
        next = g->shown->next;
        free(g->shown);
    }
}

/* Loads it again: nobody in the box mounts in our namespace, but the host may have renamed what is mounted. It is whole, or nothing:
   what it lacks counts as the caller's own. */
static void shown_load(struct guard *g)
{
    shown_drop(g);
    if (shown_ask(g))
        return;
    shown_drop(g);
    if (!shown_read(g))
        shown_drop(g);
}

/* The place in the box of the object at `inside` of its file system; writable places first. *ret_known: the box has the
   file system. */
static bool in_box(struct guard *g, const struct sys_stat *st, const struct inside *inside, char path[PLACE_PATH],
                   bool *ret_known)
{
    char candidate[PLACE_PATH];
    bool found = false;
    *ret_known = false;
    for (const struct shown *l = g->shown; l; l = l->next) {
        if (l->major != inside->major || l->minor != inside->minor)
            continue;
        *ret_known = true;
        const char *rest = inside->known ? nested_below(inside->path, l->root) : NULL;
        if (!rest || !joined(candidate, l->at, rest) || !same_object(candidate, st))
            continue;
        const struct rule *decider = rules_decider(&g->rules, str_of(candidate));
        bool writable = decider && decider->said->kind == GUARD_RULE_ROOT;
        if (!found || writable)
            strcpy(path, candidate);
        found = true;
        if (writable)
            break;
    }
    return found;
}

bool nested_shows(struct guard *g, unsigned major, unsigned minor)
{
    if (!g->shown)
        shown_load(g);
    for (const struct shown *l = g->shown; l; l = l->next)
        if (l->major == major && l->minor == minor)
            return true;
    return !g->shown;
}

/* A harmless place: below a private tree of the box, but with the name at its end. */
static int private_path(struct guard *g, const char *seen, char path[PLACE_PATH])
{
    if (g->rules.n_private == 0)
        return -EACCES;
    struct str tree = g->rules.private_trees[0].path;
    return snprintf(path, PLACE_PATH, "%.*s/.nested%s", (int)tree.n, tree.p, seen) < PLACE_PATH ? 1 : -EACCES;
}

/* File systems that a user namespace can create and that contain only their own data. */
static bool is_theirs(int fd)
{
    struct statfs fs;
    return sys_fstatfs(fd, &fs) == 0 &&
           (fs.f_type == TMPFS_MAGIC || fs.f_type == PROC_SUPER_MAGIC || fs.f_type == DEVPTS_SUPER_MAGIC ||
            fs.f_type == SYSFS_MAGIC || fs.f_type == MQUEUE_MAGIC);
}

/* The kernel's path for an object in the box's own mounts. */
int path_of(struct guard *g, int fd, char path[PLACE_PATH], size_t *ret_n)
{
    char room[12];
    long n = sys_readlinkat(g->self_fd, decimal(room, fd), path, PATH_MAX);
    if (n < 0)
        return (int)n;
    if (n == PATH_MAX || path[0] != '/')
        return -EACCES; /* too long to judge, or not in our tree */
    path[n] = 0;
    *ret_n = n == 1 ? 0 : (size_t)n; /* the root is "", so that "/name" can follow */
    return 0;
}

int nested_path(struct guard *g, int fd, const struct sys_stat *st, char path[PLACE_PATH], size_t *ret_n)
{
    char seen[PLACE_PATH];
    struct inside inside = {.major = st->major, .minor = st->minor};
    size_t n = 0;
    if (!g->nested || g->ours)
        return -EACCES;
    int no = path_of(g, fd, seen, &n);
    if (no < 0)
        return no;
    if (inside_asked(g, fd, n ? seen : "/", &inside) == -ENOSYS)
        inside_read(g, st->mount, n ? seen : "/", &inside);
    bool known = true, found = g->shown && in_box(g, st, &inside, path, &known);
    if (!found && known) { /* the set of file systems does not change */
        shown_load(g);
        found = in_box(g, st, &inside, path, &known);
    }
    no = found ? 0 : !known && g->shown && is_theirs(fd) ? private_path(g, n ? seen : "", path) : -EACCES;
    *ret_n = no < 0 ? 0 : strlen(path);
    *ret_n = *ret_n == 1 ? 0 : *ret_n;
    return no;
}

/* ---- id maps ---- */

/* The kernel checks who opened an id map: it must be in the mapped user namespace or in its parent
   (proc_uid_map_write() in kernel/user_namespace.c). So a process that has entered the caller's opens it. */
bool nested_is_map(const struct place *p, const struct object *o)
{
    static const char names[][12] = {"uid_map", "gid_map", "projid_map", "setgroups"};
    const bool named = o->proc && object_is_named(o, p->dir);
    for (size_t i = 0; named && i < sizeof names / sizeof *names; i++)
        if (strcmp(p->name, names[i]) == 0)
            return true;
    return false;
}

int caller_root(struct guard *g, bool *ret_ours)
{
    struct sys_stat ours, theirs;
    auto_fd int own = sys_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    auto_fd int root = own < 0 ? own : sys_openat(g->who->proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (root < 0 || sys_stat_fd(own, SYS_STAT_BASIC | SYS_STAT_MOUNT, &ours) < 0 ||
        sys_stat_fd(root, SYS_STAT_BASIC | SYS_STAT_MOUNT, &theirs) < 0)
        return -EACCES;
    *ret_ours = ours.mount == theirs.mount && ours.inode == theirs.inode;
    return take_fd(&root);
}

int nested_root(struct guard *g)
{
    bool ours = true;
    auto_fd int root = g->nested && !g->ours ? caller_root(g, &ours) : -1;
    return ours ? -1 : take_fd(&root);
}
