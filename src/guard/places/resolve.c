/*
 * Resolves the text of a path to a descriptor of the directory that contains its last component.
 *
 * Three ways, each tried if the one before fails: the whole parent with one openat2() that follows no link (most
 * paths); with one that lets the kernel follow ordinary links but no magic ones (a link may lead anywhere: the verdict
 * is about the canonical path of the directory reached, never the text); and component by component, where /proc/self,
 * /proc/thread-self and magic links must refer to the caller, not to us. Paths are resolved from our root, which is the
 * box's; the filter refuses chroot.
 *
 * A directory in a mount outside of our mount namespace (an inherited descriptor, a nested namespace) has no place that
 * could be judged: EACCES.
 */
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/fd.h"
#include "guard/rules/rules.h"
#include "sys/process.h"

#define LINKS_MAX 40 /* MAXSYMLINKS of the kernel */
#define OPEN_DIR  (O_PATH | O_DIRECTORY | O_CLOEXEC)

int open_in_box(struct str path, int flags)
{
    char name[PLACE_PATH + 64];
    if (!str_copy(path, name, sizeof name))
        return -ENAMETOOLONG;
    return sys_openat2(AT_FDCWD, path.n ? name : "/", (uint64_t)flags | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS);
}

/* ---- canonical paths ---- */

/*
 * Whether the directory is below the root of its mount. One that the host moved out of the workspace is not, yet
 * processes in it stay in the writable mount. The kernel's path for it then begins at the root of the file system and
 * may equal the path of another directory of the box. The kernel checks this for ".." (path_connected() in fs/namei.c,
 * Linux 4.3), which costs one call.
 */
static int is_reachable(struct guard *g, int dir, struct str path)
{
    struct sys_stat st;
    int no = sys_stat_at(dir, "..", AT_STATX_DONT_SYNC, SYS_STAT_TYPE, &st);
    return no != -ENOENT ? no : deny(g, DENIAL_WRITE, NULL, path, "the host moved the directory out of the box");
}

/* Uses the place's directory in the box's own mount, and keeps the caller's beside it. */
static int place_own(struct place *p, const struct sys_stat *st)
{
    struct statfs fs;
    struct sys_stat there;
    if (sys_fstatfs(p->dir, &fs) < 0)
        return -EACCES;
    p->frozen = fs.f_flags & 1; /* ST_RDONLY */
    if (p->frozen)
        return 0;
    auto_fd int own = open_in_box((struct str){p->path, p->dir_n}, O_PATH | O_DIRECTORY);
    if (own < 0 || sys_stat_fd(own, SYS_STAT_BASIC, &there) < 0 || !sys_same(&there, st))
        return -EACCES;
    p->seen = p->dir;
    p->dir = take_fd(&own);
    return 0;
}

/*
 * The path of a directory by getcwd(2), which answers in one walk up what else takes four calls: the path, whether it leads
 * from our root (otherwise the text does not begin with "/"), whether each mount on the way is mounted there, so that it is
 * one of ours, and whether the directory is below the root of its mount. False: it is not so, or we may not go there;
 * nothing is known then.
 */
static bool reached_path(struct guard *g, struct place *p)
{
    if (sys_fchdir(p->dir) < 0)
        return false;
    const long n = sys_getcwd(p->path, PATH_MAX);
    if (sys_fchdir(g->self_fd) < 0)
        _exit(1); /* others use numbers of descriptors as paths: nothing may be looked up here */
    if (n < 2 || p->path[0] != '/')
        return false;
    p->dir_n = n == 2 ? 0 : (size_t)n - 1;
    return true;
}

/* Finds the path of the place's directory in the box; p->dir_n is 0 for the root. */
static int directory_path(struct guard *g, struct place *p)
{
    struct sys_stat st;
    if (reached_path(g, p))
        return 0;
    int no = sys_stat_fd(p->dir, SYS_STAT_BASIC | SYS_STAT_MOUNT, &st);
    if (no < 0)
        return no;
    if (mount_ours(g, st.mount)) {
        no = path_of(g, p->dir, p->path, &p->dir_n);
        /* Directories of /proc cannot be moved, and for some only the caller may look up "..". */
        return no < 0 || file_system_of(g, p->dir, &st) == FS_PROC
                   ? no
                   : is_reachable(g, p->dir, (struct str){p->path, p->dir_n});
    }
    no = nested_path(g, p->dir, &st, p->path, &p->dir_n);
    if (no == 0) {
        p->path[p->dir_n] = 0;
        no = place_own(p, &st);
    }
    return no < 0 ? no : 0;
}

/* ---- walking by component ---- */

struct walk {
    struct guard *g;
    int root;                /* the caller's, or -1 for ours */
    int at;                  /* the current directory, owned */
    char rest[2 * PATH_MAX]; /* the rest of the path */
    unsigned links;
};

static int root_open(int root)
{
    return root < 0 ? sys_openat(AT_FDCWD, "/", OPEN_DIR, 0) : sys_fcntl(root, F_DUPFD_CLOEXEC, 0);
}

static int walk_restart(struct walk *w)
{
    int root = root_open(w->root);
    if (root < 0)
        return root;
    (void)sys_close(w->at);
    w->at = root;
    return 0;
}

/* Prepends the link's text to the rest. */
static int walk_push(struct walk *w, const char *text, size_t n)
{
    size_t rest = strlen(w->rest);
    if (n == 0)
        return -ENOENT;
    if (n + 1 + rest + 1 > sizeof w->rest)
        return -ENAMETOOLONG;
    memmove(w->rest + n + 1, w->rest, rest + 1);
    memcpy(w->rest, text, n);
    w->rest[n] = rest ? '/' : 0;
    return text[0] == '/' ? walk_restart(w) : 0;
}

long proc_self(struct guard *g, const struct sys_stat *st, const char *name, char *text, size_t room)
{
    struct target *t = g->who;
    const bool self = strcmp(name, "self") == 0, thread = strcmp(name, "thread-self") == 0;
    if (!self && !thread)
        return 0;
    if (t->tgid == 0 && target_status(g, t) < 0)
        return -ESRCH;
    const bool ours = !g->nested || proc_is_box(g, st);
    const int tgid = ours ? t->box_tgid : t->own_tgid, tid = ours ? t->box_tid : t->own_tid;
    return self ? snprintf(text, room, "%d", tgid) : snprintf(text, room, "%d/task/%d", tgid, tid);
}

long proc_link(struct guard *g, int dir, const char *name, int link, char *text, size_t room)
{
    struct sys_stat st;
    if (g->ours)
        return -EACCES; /* unknown whose */
    /* PROC_ROOT_INO: the root of a proc file system is inode 1. */
    if (sys_stat_fd(dir, SYS_STAT_BASIC, &st) == 0 && st.inode == 1) {
        long n = proc_self(g, &st, name, text, room);
        if (n)
            return n;
    }
    int ordinary = sys_openat2(dir, name, O_PATH | O_CLOEXEC, 0, RESOLVE_NO_MAGICLINKS);
    if (ordinary == -ELOOP)
        return 0;
    (void)close_fd(ordinary);
    return sys_readlinkat(link, "", text, room);
}

/* Walks one component: w->at moves on, or a link's text is added to w->rest. */
static int walk_step(struct walk *w, const char *name)
{
    struct guard *g = w->g;
    struct sys_stat st;
    int fd = sys_openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    auto_fd int owned = fd;
    int no = sys_stat_fd(fd, SYS_STAT_BASIC, &st);
    if (no < 0)
        return no;
    if (S_ISLNK(st.mode)) {
        char text[PATH_MAX];
        if (++w->links > LINKS_MAX)
            return -ELOOP;
        long n = file_system_of(g, fd, &st) == FS_PROC ? proc_link(g, w->at, name, fd, text, sizeof text)
                                                       : sys_readlinkat(fd, "", text, sizeof text);
        if (n < 0)
            return (int)n;
        if (n > 0 || file_system_of(g, fd, &st) != FS_PROC)
            return walk_push(w, text, (size_t)n);
        bool writes;
        int jumped = magic_open(g, w->at, name, OPEN_DIR, &writes);
        if (jumped < 0)
            return jumped;
        (void)close_fd(owned);
        owned = jumped;
    } else if (!S_ISDIR(st.mode)) {
        return -ENOTDIR;
    }
    (void)sys_close(w->at);
    w->at = take_fd(&owned);
    return 0;
}

/* Walks all of w->rest; w->at is then the directory. */
static int walk_all(struct walk *w)
{
    for (;;) {
        char *p = w->rest + strspn(w->rest, "/");
        size_t n = strcspn(p, "/");
        char name[NAME_MAX + 1];
        if (n == 0)
            return 0;
        if (n > NAME_MAX)
            return -ENAMETOOLONG;
        memcpy(name, p, n);
        name[n] = 0;
        memmove(w->rest, p + n, strlen(p + n) + 1);
        int no = walk_step(w, name);
        if (no < 0)
            return no;
    }
}

/*
 * The rule that hides a link, or what may be one, by its name. Its target is not opened either, because a rule about a
 * name does not depend on whether it is a link. In places that the box cannot write, the plan has left visible links on
 * purpose (/lib, if only /usr is shown).
 */
static const struct rule *link_hidden(const struct guard *g, struct str path)
{
    const struct rule *rule = rules_hidden(&g->rules, path);
    return rule && (rule->any_depth || rules_root(&g->rules, path).n) ? rule : NULL;
}

/* A path with a link in it must not pass a hidden name, which could be that link. This check is textual: other names
   for the target of a hidden link have their own rules. */
static int passes_hidden(struct guard *g, int base, const char *text)
{
    char path[PLACE_PATH];
    size_t n = 0;
    if (!(g->plan->filter & FILTER_READS) || (text[0] != '/' && path_of(g, base, path, &n) < 0))
        return 0;
    const int more = snprintf(path + n, sizeof path - n, "%s%s", text[0] == '/' ? "" : "/", text);
    if (more < 0 || (size_t)more >= sizeof path - n)
        return -ENAMETOOLONG;
    const struct str at = {path, n + (size_t)more};
    const struct rule *rule = link_hidden(g, at);
    return rule ? deny(g, DENIAL_READ, rule, at, "a hidden name on the path") : 0;
}

/* The directory that `text`, which has links in it, names for the caller. */
static int parent_walk(struct guard *g, int root, int base, const char *text)
{
    if (!g->proc_has_us && root < 0) {
        /* /proc/self fails here, because it would refer to us; such a path is walked below. */
        const int dir = sys_openat2(base, text, OPEN_DIR, 0, RESOLVE_NO_MAGICLINKS);
        if (dir >= 0 || (dir != -ENOENT && dir != -ELOOP))
            return dir;
    }
    struct walk w = {.g = g, .root = root};
    w.at = text[0] == '/' ? root_open(root) : sys_openat(base, ".", OPEN_DIR, 0);
    if (w.at < 0)
        return w.at;
    strcpy(w.rest, text);
    const int no = walk_all(&w);
    if (no < 0) {
        (void)sys_close(w.at);
        return no;
    }
    return w.at;
}

int directory_seen(struct guard *g, int base, const char *text)
{
    const int dir = sys_openat2(base, text, OPEN_DIR, 0, RESOLVE_NO_SYMLINKS);
    return dir != -ELOOP ? dir : parent_walk(g, -1, base, text);
}

/* Opens the directory that `text` (of `n` bytes, in g->walk) names, relative to `base` unless absolute. */
static int parent_open(struct guard *g, int root, int base, const char *text, bool *ret_plain)
{
    const bool theirs = root >= 0 && text[0] == '/';
    int dir =
        sys_openat2(theirs ? root : base, text, OPEN_DIR, 0, RESOLVE_NO_SYMLINKS | (theirs ? RESOLVE_IN_ROOT : 0u));
    *ret_plain = root < 0;
    if (dir != -ELOOP)
        return dir;
    *ret_plain = false;
    const int no = passes_hidden(g, base, text);
    return no < 0 ? no : parent_walk(g, root, base, text);
}

/* ---- places ---- */

void place_drop(struct place *p)
{
    if (!p->borrowed)
        (void)close_fd(p->dir);
    p->dir = -1;
    p->seen = close_fd(p->seen);
}

/* The last component of `text`, without trailing slashes. */
static int last_part(const char *text, size_t n, struct place *ret, size_t *ret_from)
{
    size_t end = n;
    while (end > 0 && text[end - 1] == '/')
        end--;
    ret->slash = end < n;
    size_t from = end;
    while (from > 0 && text[from - 1] != '/')
        from--;
    *ret_from = from;
    ret->name_n = end - from;
    if (ret->name_n == 0) { /* only slashes: the root, a special kind of last component for the kernel */
        strcpy(ret->name, "/");
        ret->plain = false;
        return 0;
    }
    if (ret->name_n > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(ret->name, text + from, ret->name_n);
    ret->name[ret->name_n] = ret->slash ? '/' : 0;
    ret->name[ret->name_n + ret->slash] = 0;
    ret->plain = !(ret->name[0] == '.' && (ret->name_n == 1 || (ret->name_n == 2 && ret->name[1] == '.')));
    return 0;
}

/* Once ret->dir is open: finds its canonical path and appends the name. */
static int place_name(struct guard *g, struct place *ret, const char *clean, size_t clean_n)
{
    if (clean) {
        memcpy(ret->path, clean, clean_n);
        ret->dir_n = clean_n == 1 ? 0 : clean_n;
    } else {
        int no = directory_path(g, ret);
        if (no < 0)
            return no;
    }
    ret->n = ret->dir_n;
    ret->path[ret->n++] = '/';
    memcpy(ret->path + ret->n, ret->name, ret->name_n);
    ret->n += ret->name_n;
    ret->path[ret->n] = 0;
    return place_spelling(g, ret);
}

bool place_stays(struct guard *g, const struct place *p)
{
    char path[PLACE_PATH];
    size_t n = 0;
    return p->frozen || (path_of(g, p->dir, path, &n) == 0 && n == p->dir_n && memcmp(path, p->path, n) == 0);
}

int place_again(struct guard *g, struct place *p)
{
    return place_name(g, p, NULL, 0);
}

/*
 * The directory that the last relative path led to stays open: programs call for one directory several times in a row. It is taken for
 * the next path with the same text if this leads to it now: one statx(2) by way of the caller's link in /proc, in place of four calls.
 * What is decided does not rest on that look: the directory's path is asked for anew, as always, and the call is performed in that
 * directory. The look only says that it is the one that the caller means. So whoever exchanges directories or links, changes the working
 * directory or replaces the descriptor at that moment gets a verdict about the directory in which the call is performed. A link
 * that has come onto the way meanwhile is followed for this look, and the directory at its end was reached before without any; where
 * links must not be followed to hidden names (FILTER_READS), or by the guard's own view of /proc, nothing is kept. Its number and mount
 * cannot be another's, since it is open. Callers' own mounts (`nested`) take the other way.
 */
static bool last_dir_may(const struct guard *g, size_t n)
{
    return !g->ours && !g->nested && !g->proc_has_us && !(g->plan->filter & FILTER_READS) && n < KEPT_TEXT;
}

static bool last_dir_stat(int dir, const char *text, int flags, struct sys_stat *ret)
{
    return sys_stat_at(dir, text, flags | AT_STATX_DONT_SYNC, SYS_STAT_BASIC | SYS_STAT_MOUNT, ret) == 0 &&
           ret->mask & SYS_STAT_MOUNT;
}

/* Whether the parent's `text`, relative to `dir_fd` of the caller, leads to it. */
static bool last_dir_is(struct guard *g, int dir_fd, const char *text, size_t n)
{
    struct last_dir *last = &g->last;
    struct sys_stat st;
    char link[16 + KEPT_TEXT];
    if (last->n != n + 1 || memcmp(last->text, text, n) != 0 || !last_dir_may(g, n))
        return false;
    if (!last->known && !last_dir_stat(last->fd, "", AT_EMPTY_PATH, &last->is))
        return false;
    last->known = true;
    const int began =
        dir_fd == AT_FDCWD ? snprintf(link, sizeof link, "cwd") : snprintf(link, sizeof link, "fd/%d", dir_fd);
    (void)snprintf(link + began, sizeof link - (size_t)began, "%s%.*s", n ? "/" : "", (int)n, text);
    if (!last_dir_stat(g->who->proc, link, 0, &st) || st.inode != last->is.inode || st.major != last->is.major ||
        st.minor != last->is.minor || st.mount != last->is.mount)
        return false;
    g->sure = true; /* as target_dir() */
    last->used = true;
    return true;
}

/* Keeps the place's directory, to which the parent's `text` led over no link. */
static void last_dir_keep(struct guard *g, const char *text, size_t n, struct place *p)
{
    struct last_dir *last = &g->last;
    if (last->used || !last_dir_may(g, n))
        return;
    if (last->n)
        (void)sys_close(last->fd);
    last->used = p->borrowed = true;
    last->known = false;
    last->fd = p->dir;
    last->n = (uint16_t)(n + 1);
    memcpy(last->text, text, n);
}

/* Opens the place's directory, to which the first `to` bytes of `text` lead. `base`: an open directory, or -1: open the caller's `dir_fd`
   if needed. */
static int place_open(struct guard *g, int base, int dir_fd, const char *text, size_t to, struct place *ret,
                      bool *ret_plain)
{
    const bool absolute = text[0] == '/', looked = !absolute && base < 0;
    auto_fd int opened = -1;
    *ret_plain = true;
    if (absolute && target_sure(g) < 0)
        return -ENOENT;
    if (looked) {
        base = opened = target_dir(g, dir_fd);
        if (base < 0)
            return base;
    }
    auto_fd int root = nested_root(g);
    if (ret->name_n == 0) {
        ret->dir = root_open(root);
    } else if (to == 0) { /* a name without a slash */
        ret->dir = opened >= 0 ? take_fd(&opened) : sys_fcntl(base, F_DUPFD_CLOEXEC, 0);
    } else {
        memcpy(g->walk, text, to);
        g->walk[to] = 0;
        ret->dir = parent_open(g, root, absolute ? AT_FDCWD : base, g->walk, ret_plain);
    }
    if (ret->dir >= 0 && looked && *ret_plain)
        last_dir_keep(g, text, to, ret);
    return ret->dir < 0 ? ret->dir : 0;
}

static int place_from(struct guard *g, int base, int dir_fd, const char *text, size_t n, struct place *ret)
{
    size_t to;
    bool plain = true;
    ret->dir = ret->seen = -1;
    ret->borrowed = ret->frozen = false;
    const int named = last_part(text, n, ret, &to);
    if (named < 0 && named != -ENAMETOOLONG)
        return named;
    while (to > 1 && text[to - 1] == '/')
        to--;
    const bool absolute = text[0] == '/';
    if (!absolute && base < 0 && last_dir_is(g, dir_fd, text, to)) {
        ret->dir = g->last.fd;
        ret->borrowed = true;
    } else {
        const int no = place_open(g, base, dir_fd, text, to, ret, &plain);
        if (no < 0)
            return no;
    }
    const int no =
        named < 0
            ? named
            : place_name(g, ret, absolute && plain && path_is_clean((struct str){g->walk, to}) ? g->walk : NULL, to);
    if (no < 0)
        place_drop(ret);
    return no;
}

int place_find_at(struct guard *g, int base, int dir_fd, const char *text, struct place *ret)
{
    ret->dir = ret->seen = -1;
    if (text[0] == 0)
        return -ENOENT;
    return place_from(g, base, dir_fd, text, strlen(text), ret);
}

int place_find(struct guard *g, int dir_fd, const char *text, struct place *ret)
{
    return place_find_at(g, -1, dir_fd, text, ret);
}

/* Where the last component of `text` begins. */
static size_t last_at(const char *text)
{
    const char *slash = strrchr(text, '/');
    return slash ? (size_t)(slash + 1 - text) : 0;
}

/* Whether both lead to their directories by the same text. */
static bool begin_equal(const char *a, const char *b)
{
    return last_at(a) == last_at(b) && memcmp(a, b, last_at(a)) == 0;
}

bool place_beside(struct guard *g, const struct place *a, const char *a_text, int a_dir, const char *b_text, int b_dir,
                  struct place *ret, int *ret_no)
{
    size_t to;
    if (g->nested || a->dir < 0 || a->seen >= 0 || a->frozen || a->slash || !a->plain || !begin_equal(a_text, b_text) ||
        (a_dir != b_dir && b_text[0] != '/') || last_part(b_text, strlen(b_text), ret, &to) < 0 || ret->slash ||
        !ret->plain)
        return false;
    ret->dir = a->dir;
    ret->seen = -1;
    ret->borrowed = true;
    ret->frozen = false;
    *ret_no = place_name(g, ret, a->path, a->dir_n ? a->dir_n : 1);
    return true;
}

int place_base(struct guard *g, const char *a, const char *b, int a_dir, int b_dir)
{
    if (a_dir != b_dir || a[0] == '/' || b[0] == '/' || (!g->nested && begin_equal(a, b)))
        return -1;
    const int base = target_dir(g, a_dir);
    return base < 0 ? -1 : base; /* each finds the error */
}

/* ---- objects ---- */

void object_drop(struct object *o)
{
    o->fd = close_fd(o->fd);
}

static int object_stat(struct guard *g, struct object *o)
{
    int no = born_stat(o->fd, "", AT_EMPTY_PATH, &o->st);
    if (no == 0)
        o->proc = file_system_of(g, o->fd, &o->st) == FS_PROC;
    return no;
}

/* The kernel's path for o->fd; "" for an object without one (a pipe, a memfd, a deleted file). */
static int object_path_of(struct guard *g, struct object *o)
{
    o->path[0] = 0;
    o->n = 0;
    if (o->st.links == 0)
        return 0;
    const bool foreign = g->nested && !mount_ours(g, o->st.mount);
    o->placed = foreign && nested_path(g, o->fd, &o->st, o->path, &o->n) >= 0;
    if (foreign && !o->placed) { /* the caller has chosen the kernel's path there */
        o->path[o->n = 0] = 0;
        return 0;
    }
    int no = o->placed ? 0 : path_of(g, o->fd, o->path, &o->n);
    if (no == 0 && o->n == 0)
        o->path[o->n++] = '/';
    return no == -EACCES && o->path[0] != '/' ? 0 : no;
}

int object_behind(struct guard *g, int fd, int mode, struct object *ret)
{
    const bool held = mode >= 0 && !(mode & O_PATH) && (mode & O_ACCMODE) != O_RDONLY;
    *ret = (struct object){.fd = fd, .magic = true, .held = held};
    const int no = object_stat(g, ret);
    return no == 0 ? object_path_of(g, ret) : no;
}

int object_of_fd(struct guard *g, int fd, struct object *ret)
{
    const int own = sys_fcntl(fd, F_DUPFD_CLOEXEC, 0);
    const int no = own < 0 ? own : object_behind(g, own, sys_fcntl(fd, F_GETFL, 0), ret);
    if (no < 0)
        ret->fd = close_fd(own);
    return no;
}

/* fs.protected_symlinks: in a sticky, world-writable directory a link is followed only by its owner, or if it
   belongs to the directory's owner. */
static int link_allowed(struct place *p, const struct sys_stat *link)
{
    struct sys_stat dir;
    if (sys_stat_fd(p->dir, SYS_STAT_BASIC, &dir) < 0)
        return 0;
    if ((dir.mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH) || dir.uid == link->uid)
        return 0;
    return sys_geteuid() == link->uid ? 0 : -EACCES;
}

int link_follow(struct guard *g, struct place *p, struct object *o, unsigned *links)
{
    if (++*links > LINKS_MAX)
        return -ELOOP;
    int no = link_allowed(p, &o->st);
    if (no < 0)
        return no;
    const struct rule *rule = link_hidden(g, object_path(o));
    if (rule)
        return deny(g, DENIAL_READ, rule, object_path(o), "a hidden name");
    char text[PATH_MAX];
    long n = o->proc ? proc_link(g, p->dir, place_bare(p), o->fd, text, sizeof text)
                     : sys_readlinkat(o->fd, "", text, sizeof text);
    if (n < 0)
        return (int)n;
    if (n == 0 && o->proc) {
        bool writes;
        int fd = magic_open(g, p->dir, place_bare(p), O_PATH | O_CLOEXEC, &writes);
        if (fd < 0)
            return fd;
        object_drop(o);
        o->fd = fd;
        o->magic = true;
        o->held = writes;
        no = object_stat(g, o);
        return no < 0 ? no : object_path_of(g, o);
    }
    if (n == 0)
        return -ENOENT;
    if (n >= (long)sizeof text)
        return -ENAMETOOLONG;
    text[n] = 0;
    bool slash = p->slash;
    struct place next;
    no = place_from(g, place_seen(p), AT_FDCWD, text, (size_t)n, &next);
    if (no < 0)
        return no;
    place_drop(p);
    *p = next;
    if (slash && !p->slash && p->name_n) {
        p->slash = true;
        p->name[p->name_n] = '/';
        p->name[p->name_n + 1] = 0;
    }
    object_drop(o);
    return 0;
}

/* Whether an object found by its name in `dir` was mounted over that name; in our own mounts the path shows that. */
static bool mounted_over(struct guard *g, int dir, const struct sys_stat *st)
{
    struct sys_stat at;
    return g->nested && !mount_ours(g, st->mount) &&
           (sys_stat_fd(dir, SYS_STAT_MOUNT, &at) < 0 || at.mount != st->mount);
}

bool place_mounted(struct guard *g, const struct place *p)
{
    struct sys_stat st;
    return g->nested &&
           sys_stat_at(place_seen(p), place_bare(p), AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC | SYS_STAT_MOUNT, &st) == 0 &&
           mounted_over(g, place_seen(p), &st);
}

/* Opens the last component by a name without a slash, so that a link itself can be examined. */
static int object_at(struct guard *g, const struct place *p, struct object *ret)
{
    const char *name = p->name_n ? place_bare(p) : "."; /* for the root: "/" would be ours */
    const int dir = place_seen(p);
    *ret = (struct object){.fd = sys_openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0)};
    if (ret->fd < 0)
        return ret->fd;
    int no = object_stat(g, ret);
    if (no == 0 && p->plain && !mounted_over(g, dir, &ret->st)) {
        memcpy(ret->path, p->path, p->n + 1);
        ret->n = p->n;
    } else if (no == 0) {
        no = object_path_of(g, ret);
        if (no == 0 && g->nested && !ret->placed && !mount_ours(g, ret->st.mount))
            no = deny(g, DENIAL_READ, NULL, place_path(p), "it is in a mount that does not belong to the box");
    }
    if (no < 0)
        object_drop(ret);
    return no;
}

int object_find(struct guard *g, struct place *p, bool follow, struct object *ret)
{
    unsigned links = 0;
    for (;;) {
        int no = object_at(g, p, ret);
        if (no < 0)
            return no;
        if (S_ISLNK(ret->st.mode) && (follow || p->slash)) {
            no = link_follow(g, p, ret, &links);
            if (no < 0) {
                object_drop(ret);
                return no;
            }
            if (!ret->magic)
                continue;
        }
        if (p->slash && !S_ISDIR(ret->st.mode)) {
            object_drop(ret);
            return -ENOTDIR;
        }
        return 0;
    }
}

/* Without following a link: the box could create one that leads to a file it has open. */
bool object_leads(const struct object *o)
{
    struct sys_stat st;
    if (!o->n)
        return false;
    auto_fd int fd = sys_openat2(AT_FDCWD, o->path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS);
    return fd >= 0 && sys_stat_fd(fd, SYS_STAT_BASIC | SYS_STAT_MOUNT, &st) == 0 && sys_same(&st, &o->st) &&
           (st.mask & SYS_STAT_MOUNT) && st.mount == o->st.mount;
}
