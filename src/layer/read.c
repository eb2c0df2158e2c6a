/*
 * Reads what a layer changes from its upper directory alone, beside the workspace: the time is in proportion to the changes, and
 * directories of the workspace are listed only where the layer hides them.
 *
 * What overlayfs leaves in an upper directory: a whiteout (character device 0/0) for a name that is gone; a directory
 * with user.overlay.opaque for one that hides the one below, with all directories in it; user.overlay.origin, empty,
 * on what was copied up.
 */
#include "layer/change.h"
#include "layer/repo/repo.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fd.h"
#include "base/json.h"
#include "git/gitconfig.h"
#include "match/manifest.h"
#include "match/path.h"
#include "match/spelling.h"
#include "sys/fd.h"

struct layer_reading {
    const struct layer_trees *t;
    struct arena *mem;
    struct changes *ret;
    struct ledger ledger;
    struct err *e;
    uint64_t (*inodes)[2]; /* of files with several names in the layer: inode, index + 1; open addressing */
    size_t n_inodes, room_inodes;
};

/* A directory of the walk; -1 where there is none. */
struct level {
    const struct level *above;
    int up, low;
    const char *path;          /* "" at the top */
    const char *plain;         /* the same in the plain spelling (match/spelling.h) */
    bool spelled;              /* itself or a directory above is another spelling of a name that is told of */
    bool opaque;               /* the layer hides the directory below: what it does not have itself is deleted */
    bool repository;           /* guarded names of a repository's top apply here */
    bool git;                  /* a repository's own directory, or below it */
    bool bare;                 /* it has what makes it a repository itself, whatever its name */
    bool bare_part;            /* in a directory of such a one whose contents programs obey */
    struct layer_object below; /* of the workspace */
    const char *conflict;      /* the directory itself is in the way, and so is all in it */
    unsigned depth;
};

static int read_failed(struct layer_reading *r, int e, const char *path, const char *what)
{
    auto_buf struct buf said = BUF(4 * LAYER_PATH_MAX);
    utf8_safe(&said, str_of(path));
    return err_sys(r->e, ERR_SYSTEM, -e, "layer %s: cannot read '%.300s' of the %s", r->t->id, buf_cstr(&said), what);
}

static int read_no_memory(struct layer_reading *r)
{
    return err_sys(r->e, ERR_SYSTEM, ENOMEM, "layer %s: cannot read its changes", r->t->id);
}

/* ---- names of a directory, sorted ---- */

struct name_list {
    struct arena *mem;
    const char **at;
    size_t n;
};

static int names_of(int dir, struct name_list *ret)
{
    char room[8192] __attribute__((aligned(8)));
    struct sys_entries entries = {.dir = dir, .room = room, .bytes = sizeof room};
    *ret = (struct name_list){.mem = arena_new(LAYER_READ_MAX)};
    if (!ret->mem)
        return -ENOMEM;
    (void)sys_lseek(dir, 0, SEEK_SET);
    for (const struct sys_dirent *d; (d = sys_next_entry(&entries));) {
        const char **slot = arena_push(ret->mem, &ret->at, &ret->n, sizeof *slot);
        if (!slot || !(*slot = arena_text(ret->mem, d->name)))
            return -ENOMEM;
    }
    if (ret->n)
        qsort(ret->at, ret->n, sizeof *ret->at, text_order);
    return entries.no;
}

static bool has_name(const struct name_list *names, const char *name)
{
    return names->n && bsearch(&name, names->at, names->n, sizeof *names->at, text_order);
}

/* ---- what a person is told first ---- */

static bool fits(const struct layer_guarded *g, struct str path, size_t at)
{
    size_t end;
    return names_fit(str_of(g->name), g->pattern, path, at, &end) && (end == path.n || path.p[end] == '/');
}

/* A change's path: as it is, or in the plain spelling. */
struct spelled {
    const char *path;
    bool plain;
};

/* Where names begin in a directory: behind its path, in the spelling of `s`. */
static size_t names_begin(const struct level *l, const struct spelled *s)
{
    const char *path = s->plain ? l->plain : l->path;
    return *path ? strlen(path) + 1 : 0;
}

/* The name and everything below it, also where the policy speaks of the name alone: the box decides of which type it
   is. */
static bool is_guarded(const struct layer_reading *r, const struct level *l, const struct spelled *s)
{
    const char *path = s->path;
    const struct str whole = str_of(path);
    for (size_t i = 0; i < r->t->n_guarded; i++) {
        const struct layer_guarded *g = &r->t->guarded[i];
        for (size_t at = 0; (g->any_depth || g->deep) && at < whole.n; at++) {
            if ((at == 0 || path[at - 1] == '/') && fits(g, whole, at) &&
                (g->any_depth || !path_is_foreign((struct str){path, at}, true)))
                return true;
        }
        for (const struct level *top = g->any_depth ? NULL : l; top; top = top->above) {
            if ((top->repository || !top->above) && fits(g, whole, names_begin(top, s)))
                return true;
        }
    }
    return false;
}

/* By its text: absolute, with more ".." than there are directories above the link, or with some behind a name that may be a link. */
static bool leads_out(const char *path, const char *target)
{
    int depth = 0;
    if (*target == '/' || path_climbs_again(str_of(target)))
        return true;
    for (const char *p = path; *p; p++)
        depth += *p == '/';
    struct str part, whole = str_of(target);
    for (size_t at = 0; part_next(whole, &at, &part);) {
        depth += str_is(part, "..") ? -1 : str_is(part, ".") || part.n == 0 ? 0 : 1;
        if (depth < 0)
            return true;
    }
    return false;
}

/* Of a repository without a name of its own what git obeys, and what makes a directory one. */
static bool is_bare_part(const struct level *l, struct str name)
{
    static const char *const anywhere[] = {"commondir", "config.worktree"};
    static const char in_bare[][12] = {"config", "hooks", "remotes", "branches", "objects", "refs", "info"};
    for (size_t i = 0; i < sizeof anywhere / sizeof *anywhere; i++)
        if (str_is_nocase(name, anywhere[i]))
            return true;
    for (size_t i = 0; l->bare && i < sizeof in_bare / sizeof *in_bare; i++)
        if (str_is_nocase(name, in_bare[i]))
            return true;
    return l->bare_part;
}

/* Whether `path` is a directory on the way to a guarded name: with a link there, another name would become it. */
static bool leads_to_guarded(const struct layer_reading *r, const struct level *l, const struct spelled *s)
{
    const char *path = s->path;
    const size_t n = strlen(path);
    for (size_t i = 0; i < r->t->n_guarded; i++) {
        const struct layer_guarded *g = &r->t->guarded[i];
        for (size_t at = 0; at < n; at++) {
            bool starts = at == 0 || path[at - 1] == '/';
            if (starts && !g->any_depth) {
                starts = false;
                for (const struct level *top = l; top; top = top->above)
                    starts |= (top->repository || !top->above) && at == names_begin(top, s);
            }
            if (starts && strncasecmp(g->name, path + at, n - at) == 0 && g->name[n - at] == '/')
                return true;
        }
    }
    return false;
}

static bool into_git(const char *target)
{
    char plain[PATH_MAX];
    size_t n;
    struct str part, whole = str_of(target);
    if (whole.n < sizeof plain && path_respell(whole, 0, plain, &n))
        whole = (struct str){plain, n};
    for (size_t at = 0; part_next(whole, &at, &part);)
        if (str_is_nocase(part, ".git"))
            return true;
    return false;
}

/* What the name alone tells. */
static unsigned name_alarms(const struct layer_reading *r, const struct level *l, const struct spelled *s)
{
    const struct str name = str_of(path_name(s->path));
    return (l->git || str_is_nocase(name, ".git") ? ALARM_GIT : 0) |
           (repo_part_of(s->path) == REPO_OTHER || is_guarded(r, l, s) || is_bare_part(l, name) ? ALARM_GUARDED : 0);
}

/* FAT's "GIT~1", which the directory itself knows, or the nearest one above that the workspace has. */
static bool is_short_name(const struct level *l, const char *name)
{
    const char *mark = strchr(name, '~');
    while (mark && !(mark[1] >= '0' && mark[1] <= '9'))
        mark = strchr(mark + 1, '~');
    while (mark && l && l->low < 0)
        l = l->above;
    return mark && l && sys_has_short_names(l->low);
}

/* Whether a file system may take `path` for another name, of which more is to be told: the guard refuses such names, too. */
static bool is_other_spelling(const struct layer_reading *r, const struct level *l, const char *path, const char *plain)
{
    const struct spelled is = {path, false}, as = {plain, true};
    return l->spelled || is_short_name(l, path_name(path)) ||
           (!same(path, plain) && ((name_alarms(r, l, &as) & ~name_alarms(r, l, &is)) ||
                                   (leads_to_guarded(r, l, &as) && !leads_to_guarded(r, l, &is))));
}

/* `path`, a whole one or a name, in the plain spelling, in `mem` where that is another; NULL without memory. */
static const char *plain_spelling(struct arena *mem, const char *path)
{
    bool odd = false;
    size_t n = 0;
    for (; path[n]; n++)
        odd |= (unsigned char)path[n] >= 0x80 || ((path[n] == '.' || path[n] == ' ') && (path[n + 1] | '/') == '/');
    char *plain = odd ? arena_zero(mem, n + 1) : NULL;
    return !odd ? path : plain && !path_respell((struct str){path, n}, 0, plain, &n) ? path : plain;
}

/* Fills in what tells of a directory's names. */
static int level_spelling(const struct layer_reading *r, struct level *ret)
{
    ret->plain = plain_spelling(r->mem, ret->path);
    ret->spelled = ret->plain && is_other_spelling(r, ret->above, ret->path, ret->plain);
    return ret->plain ? 0 : -ENOMEM;
}

/* The text of a file on one side; empty where there is none. False: it cannot be known. */
static bool manifest_of(int dir, const char *name, const struct layer_object *o, struct buf *ret)
{
    if (dir < 0 || !o->mode || object_whiteout(o))
        return true;
    own_fd int fd = object_is(o, S_IFREG) && o->size <= MANIFEST_MAX ? object_open(dir, name, S_IFREG) : -1;
    return fd >= 0 && fd_read_all(fd, ret) == 0;
}

/* Whether a package.json gets other keys that hooks obey. */
static bool changes_hooks(const struct level *l, const struct change *c)
{
    const char *name = path_name(c->path);
    if (!same(name, MANIFEST))
        return false;
    auto_buf struct buf before = BUF(2 * MANIFEST_MAX), after = BUF(2 * MANIFEST_MAX), keys = BUF(1024);
    return !manifest_of(l->low, name, &c->old, &before) || !manifest_of(l->up, name, &c->new, &after) ||
           manifest_changed(buf_view(&before), buf_view(&after), &keys);
}

static unsigned alarms_of(const struct layer_reading *r, const struct level *l, const struct change *c,
                          const char *plain)
{
    const struct spelled is = {c->path, false};
    unsigned alarms = name_alarms(r, l, &is) | (is_other_spelling(r, l, c->path, plain) ? ALARM_SPELLING : 0);
    if (c->kind == CHANGE_DELETED)
        return alarms;
    const bool file = object_is(&c->new, S_IFREG), directory = object_is(&c->new, S_IFDIR);
    if (c->new_link && leads_out(c->path, c->new_link))
        alarms |= ALARM_LINK_OUT;
    if (c->new_link && (object_is(&c->old, S_IFDIR) || into_git(c->new_link) || leads_to_guarded(r, l, &is) ||
                        path_into_process(str_of(c->new_link))))
        alarms |= ALARM_LINK_PLACE;
    if (!file && !directory && !c->new_link)
        alarms |= ALARM_SPECIAL;
    /* A file also if it had the bit: the kernel takes it away when one is written, but not when one is mapped and changed so. */
    if ((file && c->new.mode &(S_ISUID | S_ISGID)) || (directory && c->new.mode &S_ISUID & ~c->old.mode))
        alarms |= ALARM_SETUID;
    if (file && c->new.mode & 0111 && !(object_is(&c->old, S_IFREG) && c->old.mode & 0111))
        alarms |= ALARM_EXECUTABLE;
    if (file && c->what != CHANGED_MODE && changes_hooks(l, c))
        alarms |= ALARM_HOOKS;
    return alarms;
}

/* ---- conflicts ---- */

/* What stands there now was changed by the host since the box began, and neither apply nor undo has put it there. */
static const char *touched(const struct layer_reading *r, const char *path, const struct layer_object *low)
{
    if (low->changed < r->t->since)
        return NULL;
    const struct ledger_entry *known = ledger_find(&r->ledger, path);
    if (known && object_untouched(&known->now, low) && (object_is(low, S_IFDIR) || known->now.changed == low->changed))
        return NULL;
    return r->t->since ? CONFLICT_TOUCHED : CONFLICT_CLOCK;
}

/* A directory is as apply or undo has left it. */
static bool is_ours(const struct layer_reading *r, const char *path, const struct layer_object *low)
{
    const struct ledger_entry *known = ledger_find(&r->ledger, path);
    return known && object_same_inode(&known->now, low) && known->now.changed == low->changed;
}

/*
 * A directory that was moved to this place has files that are older than the box and that the box never saw. The move has changed the
 * times of the directory and of the one that holds it; that is all there is to tell by.
 */
static const char *moved_here(const struct layer_reading *r, const struct level *l, const char *path,
                              const struct layer_object *low)
{
    if (low->changed < r->t->since || l->below.changed < r->t->since || is_ours(r, l->path, &l->below))
        return NULL;
    const struct ledger_entry *known = ledger_find(&r->ledger, path);
    if (known && object_same_inode(&known->now, low))
        return NULL;
    return r->t->since ? CONFLICT_ABOVE : CONFLICT_CLOCK;
}

/* Something that the layer has a copy of is gone. */
static const char *gone(const struct layer_reading *r, const struct level *l, int up, const char *name,
                        const char *path)
{
    const struct ledger_entry *known = ledger_find(&r->ledger, path);
    if (known && !known->now.mode)
        return NULL;
    if (l->low < 0 || l->below.changed < r->t->since || is_ours(r, l->path, &l->below))
        return NULL;
    char itself[32 + NAME_MAX];
    struct layer_object o;
    own_fd int fd = object_look(up, name, &o) == 0 && (object_is(&o, S_IFREG) || object_is(&o, S_IFDIR))
                        ? object_open(up, name, o.mode & S_IFMT)
                        : -1;
    /* Without a copied-up mark the box made it itself, and nothing can be in its way. */
    return fd >= 0 && sys_fgetxattr(fd, "user.overlay.origin", itself, sizeof itself) >= 0
               ? r->t->since ? "the host removed it after the box began" : CONFLICT_CLOCK
               : NULL;
}

/* ---- the walk ---- */

/* On either side: what the layer has removed may stay, as each path is applied by itself. */
static bool on_a_side(const struct level *l, const char *name)
{
    struct layer_object o;
    return (l->up >= 0 && object_look(l->up, name, &o) == 0 && o.mode && !object_whiteout(&o)) ||
           (l->low >= 0 && object_look(l->low, name, &o) == 0 && o.mode);
}

/* Whether this directory is a repository's own that the workspace does not have, or below one. */
static bool is_born(const struct level *l)
{
    const struct level *git = NULL;
    for (; l && l->git; l = l->above) {
        git = l;
        if (!l->below.mode && repo_is_way(l->path) && repo_is_dir(l->path) && on_a_side(l, "HEAD"))
            return true;
    }
    return git && !git->below.mode;
}

/* A new directory that holds nothing but submodules' repositories is made when these are. */
static bool is_new_way(const struct change *c)
{
    return c->kind == CHANGE_ADDED && object_is(&c->new, S_IFDIR) && repo_is_way(c->path);
}

static struct change *add_change(struct layer_reading *r, const struct level *l, const struct change *c)
{
    const char *plain = plain_spelling(r->mem, c->path);
    struct change *slot = plain ? arena_push(r->mem, &r->ret->all, &r->ret->n, sizeof *slot) : NULL;
    if (!slot)
        return NULL;
    *slot = *c;
    if (!slot->conflict)
        slot->conflict = l->conflict;
    slot->born = is_born(l) || is_new_way(c);
    slot->alarms = alarms_of(r, l, slot, plain);
    if (lfs_is_object(slot))
        slot->alarms &= ~(unsigned)ALARM_GUARDED;
    return slot;
}

static char *path_of(struct layer_reading *r, const struct level *l, const char *name)
{
    return arena_printf(r->mem, "%s%s%s", l->path, *l->path ? "/" : "", name);
}

static int link_of(struct layer_reading *r, int dir, const char *name, const char **ret)
{
    char target[PATH_MAX];
    long n = sys_readlinkat(dir, name, target, sizeof target);
    if (n < 0 || n == (long)sizeof target)
        return n < 0 ? (int)n : -ENAMETOOLONG;
    *ret = arena_str(r->mem, (struct str){target, (size_t)n});
    return *ret ? 0 : -ENOMEM;
}

static int inodes_grow(struct layer_reading *r)
{
    const size_t room = r->room_inodes ? r->room_inodes * 2 : 256;
    uint64_t(*more)[2] = arena_zero(r->mem, room * sizeof *more);
    for (size_t i = 0; more && i < r->room_inodes; i++) {
        size_t at = r->inodes[i][0] * 0x9e3779b97f4a7c15u % room;
        while (r->inodes[i][1] && more[at][1])
            at = (at + 1) % room;
        if (r->inodes[i][1])
            memcpy(more[at], r->inodes[i], sizeof *more);
    }
    r->inodes = more;
    r->room_inodes = room;
    return more ? 0 : -ENOMEM;
}

/* The first change of the same inode; makes `index` the first if there is none. */
static int linked_to(struct layer_reading *r, uint64_t ino, size_t index, size_t *ret)
{
    if (r->n_inodes * 2 >= r->room_inodes && inodes_grow(r) < 0)
        return -ENOMEM;
    size_t at = ino * 0x9e3779b97f4a7c15u % r->room_inodes;
    while (r->inodes[at][1] && r->inodes[at][0] != ino)
        at = (at + 1) % r->room_inodes;
    if (r->inodes[at][1]) {
        *ret = (size_t)r->inodes[at][1];
        return 0;
    }
    r->inodes[at][0] = ino;
    r->inodes[at][1] = index + 1;
    r->n_inodes++;
    return 0;
}

static int walk_level(struct layer_reading *r, struct level *l);

/* Whose contents programs obey, all of them. */
static bool in_bare_directory(const char *name)
{
    const struct str s = str_of(name);
    return str_is_nocase(s, "hooks") || str_is_nocase(s, "remotes") || str_is_nocase(s, "branches");
}

/* A directory of the workspace whose entries can be looked at; -EACCES if its mode keeps its owner from that. */
static int open_below(int dir, const char *name)
{
    struct layer_object inside;
    int fd = sys_openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    int e = fd < 0 ? 0 : object_look(fd, ".", &inside);
    if (e < 0)
        sys_drop(&fd);
    return e < 0 ? e : fd;
}

/* Everything of the workspace below a directory that is gone. */
static int walk_deleted(struct layer_reading *r, const struct level *l, const char *name, const char *path)
{
    struct level below = {.above = l,
                          .up = -1,
                          .path = path,
                          .opaque = true,
                          .git = l->git || str_is_nocase(str_of(name), ".git"),
                          .conflict = l->conflict,
                          .bare_part = l->bare_part || (l->bare && in_bare_directory(name)),
                          .depth = l->depth + 1};
    if (level_spelling(r, &below) < 0)
        return read_no_memory(r);
    own_fd int low = open_below(l->low, name);
    if (low == -EACCES)
        return 0; /* if anything is in it, apply does not remove it */
    int e = low < 0 ? low : object_look(low, "", &below.below);
    if (e < 0)
        return read_failed(r, e, path, "workspace");
    below.low = low;
    return walk_level(r, &below);
}

static int deleted(struct layer_reading *r, const struct level *l, const char *name, const struct layer_object *low)
{
    struct change c = {.path = path_of(r, l, name), .kind = CHANGE_DELETED, .old = *low};
    if (!c.path)
        return read_no_memory(r);
    if (!object_is(low, S_IFDIR))
        c.conflict = touched(r, c.path, low);
    if (object_is(low, S_IFLNK) && link_of(r, l->low, name, &c.old_link) < 0)
        return read_failed(r, -EIO, c.path, "workspace");
    if (!add_change(r, l, &c))
        return read_no_memory(r);
    return object_is(low, S_IFDIR) ? walk_deleted(r, l, name, c.path) : 0;
}

/* The same of a name in any spelling. The workspace's file system knows those that it takes for it; `up`: the layer's names. */
static bool is_in_some_way(const struct level *l, const struct name_list *up, const char *name)
{
    struct layer_object o;
    bool found = on_a_side(l, name);
    for (size_t i = 0; i < up->n && !found; i++) {
        const char *plain = plain_spelling(up->mem, up->at[i]);
        found = plain && str_is_nocase(str_of(plain), name) && object_look(l->up, up->at[i], &o) == 0 && o.mode &&
                !object_whiteout(&o);
    }
    return found;
}

static bool is_repository(const struct level *l, const struct name_list *up)
{
    for (size_t i = 0; repository_markers[i]; i++)
        if (is_in_some_way(l, up, repository_markers[i]))
            return true;
    return false;
}

static void look_around(struct level *l, const struct name_list *up)
{
    l->repository = !l->above || is_repository(l, up);
    l->bare = is_in_some_way(l, up, "objects") && is_in_some_way(l, up, "refs");
    l->bare_part |= l->above && l->above->bare_part;
}

/* What is in a directory without its owner's x is shown to nobody but root, and what lies too deep to nobody; so it is
   not applied either. */
static int unread(struct layer_reading *r, const char *path, int e, const char *why)
{
    struct change *last = r->ret->n ? &r->ret->all[r->ret->n - 1] : NULL;
    if (!last || !same(last->path, path))
        return read_failed(r, e, path, "layer");
    last->conflict = why;
    last->unread = true;
    return 0;
}

/* A directory of the layer; `low`: what the workspace has there. `hides`: all of that is gone. */
static int directory(struct layer_reading *r, const struct level *l, const char *name, const char *path,
                     const struct layer_object *low, bool hides, const char *conflict)
{
    char mark = 0;
    struct level below = {.above = l,
                          .path = path,
                          .low = -1,
                          .git = l->git || str_is_nocase(str_of(name), ".git"),
                          .below = *low,
                          .conflict = conflict ? conflict : l->conflict,
                          .bare_part = l->bare && in_bare_directory(name),
                          .depth = l->depth + 1};
    if (level_spelling(r, &below) < 0)
        return read_no_memory(r);
    if (below.depth > LAYER_DEPTH_MAX)
        return unread(r, path, -ENAMETOOLONG, "it is nested too deeply to be read");
    own_fd int up = object_open(l->up, name, S_IFDIR);
    own_fd int under = -1;
    struct layer_object inside;
    if (up < 0)
        return up == -ENOENT || up == -ESTALE ? 0 : read_failed(r, up, path, "layer"); /* the box lives: gone again */
    if (object_look(up, ".", &inside) == -EACCES)
        return unread(
            r, path, -EACCES,
            "the box has closed it (its mode), so what is in it cannot be read; open it in a box with the layer");
    if (object_is(low, S_IFDIR)) {
        below.low = under = open_below(l->low, name);
        if (under == -EACCES)
            below.conflict = "the host has closed the directory above it (its mode), so what is there cannot be read";
        else if (under < 0)
            return read_failed(r, under, path, "workspace");
    }
    below.up = up;
    below.opaque = hides || (sys_fgetxattr(up, "user.overlay.opaque", &mark, 1) == 1 && mark == 'y');
    return walk_level(r, &below);
}

/* What differs between two objects; of directories not their entries. */
static int compare_entry(const struct level *l, const char *name, struct change *c)
{
    const struct layer_object *a = &c->old, *b = &c->new;
    if ((a->mode & S_IFMT) != (b->mode & S_IFMT)) {
        c->what = CHANGED_TYPE;
        return 0;
    }
    c->what = (a->mode != b->mode && !object_is(a, S_IFLNK) ? CHANGED_MODE : 0) |
              (a->uid != b->uid || a->gid != b->gid ? CHANGED_OWNER : 0);
    if (object_is(a, S_IFLNK)) {
        c->what |= same(c->old_link, c->new_link) ? 0 : CHANGED_CONTENT;
        return 0;
    }
    if (!object_is(a, S_IFREG) && !object_is(a, S_IFDIR)) {
        c->what |= a->node == b->node ? 0 : CHANGED_CONTENT;
        return 0;
    }
    if (object_is(a, S_IFREG) && a->size != b->size)
        c->what |= CHANGED_CONTENT;
    own_fd int up = object_open(l->up, name, a->mode & S_IFMT);
    own_fd int low = object_open_as_is(l->low, name, a->mode & S_IFMT);
    if (low == -EACCES) { /* what cannot be read counts as changed */
        c->what |= object_is(a, S_IFREG) ? CHANGED_CONTENT : 0;
        return 0;
    }
    if (up < 0 || low < 0)
        return up < 0 ? up : low;
    int same_bytes = object_is(a, S_IFREG) && a->size == b->size ? object_same_content(up, low) : 1;
    int same_attributes = object_same_attributes(up, low);
    if (same_bytes < 0 || same_attributes < 0)
        return same_bytes < 0 ? same_bytes : same_attributes;
    c->what |= (same_bytes ? 0 : CHANGED_CONTENT) | (same_attributes ? 0 : CHANGED_ATTRIBUTES);
    return 0;
}

/* Fills in `c` of a name that the layer has; c->kind stays 0 if it is as it was. */
static int present(struct layer_reading *r, const struct level *l, const char *name, struct change *c)
{
    int e = object_is(&c->new, S_IFLNK) ? link_of(r, l->up, name, &c->new_link) : 0;
    if (e == 0 && object_is(&c->old, S_IFLNK))
        e = link_of(r, l->low, name, &c->old_link);
    if (e == 0 && !c->old.mode) {
        c->kind = CHANGE_ADDED;
        c->conflict = gone(r, l, l->up, name, c->path);
        return 0;
    }
    if (e == 0)
        e = compare_entry(l, name, c);
    if (e < 0 || !c->what)
        return e;
    c->kind = CHANGE_EDITED;
    /* Of a directory only its own permissions count, and only if it can be said who changed them. */
    c->conflict = touched(r, c->path, &c->old);
    return 0;
}

static int entry(struct layer_reading *r, const struct level *l, const char *name)
{
    struct change c = {.path = NULL};
    int e = object_look(l->up, name, &c.new);
    if (e == 0 && l->low >= 0)
        e = object_look(l->low, name, &c.old);
    if (e < 0 || !c.new.mode) /* a box that lives has removed it */
        return e < 0 ? read_failed(r, e, name, "layer") : 0;
    if (object_whiteout(&c.new))
        return c.old.mode ? deleted(r, l, name, &c.old) : 0;
    if (!(c.path = path_of(r, l, name)))
        return read_no_memory(r);
    e = present(r, l, name, &c);
    const bool too_long = strlen(c.path) >= LAYER_PATH_MAX;
    if (c.kind && too_long) {
        c.conflict = "its path is too long";
        c.unread = true;
    }
    if (e == -ESTALE || e == -ENOENT)
        return 0;
    if (e < 0)
        return read_failed(r, e, c.path, "layer");
    if (c.kind && object_is(&c.new, S_IFREG) && c.new.links > 1 && linked_to(r, c.new.ino, r->ret->n, &c.linked) < 0)
        return read_no_memory(r);
    if (c.kind && !add_change(r, l, &c))
        return read_no_memory(r);
    const bool was_directory = object_is(&c.old, S_IFDIR), is_directory = object_is(&c.new, S_IFDIR);
    if (too_long)
        return c.kind || !is_directory ? 0 : read_failed(r, -ENAMETOOLONG, c.path, "layer");
    if (was_directory && !is_directory)
        return walk_deleted(r, l, name, c.path);
    if (!is_directory)
        return 0;
    const char *conflict = was_directory ? moved_here(r, l, c.path, &c.old) : c.conflict;
    return directory(r, l, name, c.path, &c.old, l->opaque, conflict);
}

static int walk_level(struct layer_reading *r, struct level *l)
{
    struct name_list up = {0}, low = {0};
    if (l->depth > LAYER_DEPTH_MAX)
        return read_failed(r, -ENAMETOOLONG, l->path, "layer");
    int e = l->up >= 0 ? names_of(l->up, &up) : 0;
    if (e == 0 && l->opaque && l->low >= 0)
        e = names_of(l->low, &low);
    if (e < 0)
        e = read_failed(r, e, *l->path ? l->path : ".", "layer");
    if (l->up >= 0)
        look_around(l, &up);
    for (size_t i = 0, k = 0; e == 0 && (i < up.n || k < low.n);) {
        const int order = i == up.n ? 1 : k == low.n ? -1 : strcmp(up.at[i], low.at[k]);
        struct layer_object o;
        if (order <= 0) {
            e = entry(r, l, up.at[i++]);
            k += order == 0;
            continue;
        }
        const char *name = low.at[k++];
        if (has_name(&up, name))
            continue;
        e = object_look(l->low, name, &o);
        e = e < 0 ? read_failed(r, e, name, "workspace") : o.mode ? deleted(r, l, name, &o) : 0;
    }
    (void)arena_free(up.mem);
    (void)arena_free(low.mem);
    return e;
}

int changes_walk(const struct layer_trees *t, struct arena *mem, struct changes *ret, struct err *e)
{
    struct layer_reading r = {.t = t, .mem = mem, .ret = ret, .e = e};
    struct level top = {.up = t->upper, .low = t->workspace, .path = "", .repository = true};
    top.plain = top.path;
    *ret = (struct changes){.interrupted = transaction_pending(t)};
    int no = ledger_of(t, mem, &r.ledger, e);
    if (no < 0)
        return no;
    no = object_look(t->workspace, "", &top.below);
    if (no < 0)
        return read_failed(&r, no, ".", "workspace");
    return walk_level(&r, &top);
}

const struct change *changes_find(const struct changes *all, const char *path)
{
    size_t low = 0, high = all->n;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const int order = path_order(all->all[mid].path, path);
        if (order == 0)
            return &all->all[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* ---- paths that a person gives ---- */

bool path_wanted(const char *path, const char *const *paths, bool *ret_exact)
{
    bool wanted = !paths, exact = false;
    for (size_t i = 0; paths && paths[i]; i++) {
        const size_t n = strlen(paths[i]);
        const bool below = n == 0 || (strncmp(path, paths[i], n) == 0 && (path[n] == '/' || !path[n]));
        wanted |= below;
        exact |= below && n && !path[n];
    }
    if (ret_exact)
        *ret_exact = exact;
    return wanted;
}

const char *path_given(struct arena *mem, const char *top, const char *cwd, const char *given, struct err *e)
{
    const char *whole = *given ? path_clean_at(mem, cwd, str_of(given)) : NULL;
    auto_buf struct buf said = BUF(4 * LAYER_PATH_MAX);
    if (whole && path_at_or_below(whole, top))
        return path_rest(whole, top);
    utf8_safe(&said, str_of(given));
    (void)err_say(e, ERR_POLICY, "'%.300s' is not in the workspace '%s'; write a path in it, relative or absolute",
                  buf_cstr(&said), top);
    return NULL;
}
