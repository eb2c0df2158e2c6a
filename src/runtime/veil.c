/*
 * Hides or creates names in directories that otherwise stay as they are (masks and covers).
 *
 * VEIL mounts a mask, a read-only overlay, over a directory. Its layers, from the top:
 *     points     empty directories and files: mount points (mode 0755) and denied names (mode 0)
 *     whiteouts  a whiteout for every name that must not be visible from below: absent names, and denied ones again, so
 *                that a denied directory is not merged with the real one
 *     the directory itself, whatever the host changes in it later
 * A stub in a subdirectory needs that subdirectory in its layer. An overlay takes mode and owner of a merged directory
 * from its highest layer, so the copy gets those of the original. An owner that is not mapped in the box cannot be
 * copied: then the mode grants to all what the original grants to the caller (access(2)). Overlays with only lower
 * layers need neither xattrs nor a work directory. Names below are looked up with the builder's rights, then
 * permissions are checked with the box's (Documentation/filesystems/overlayfs.rst).
 *
 * Names that a profile hides outside of homes and that do not exist could only be created by the machine's
 * administration (plan/places/settle.c). Where no overlay is possible a mask with no others is left out.
 *
 * COVER replaces an overlay where that is not possible: it does not show mounts below its directory (the kernel then
 * refuses it with EINVAL, because mounts from the host are locked together), and stacking depth is limited. A tmpfs
 * replaces the directory, and every directory on the path to a stub; all other entries are bound as they are at the
 * start.
 */
#include "runtime/kept_masks.h"
#include "base/str.h"

#define UNREADABLE(e) ((e) == -EACCES)
/*
 * What is mounted there answers nobody any more (a FUSE program that has ended, a server that has forgotten it). Nothing in it can be
 * hidden, so that the box does not get it at all, though it may live again.
 */
#define DEAD(e)      ((e) == -ENOTCONN || (e) == -ECONNABORTED || (e) == -ESTALE || (e) == -EIO || (e) == -EHOSTDOWN)
#define NOT_THERE(e) ((e) == -ENOENT || (e) == -ENOTDIR || (e) == -ELOOP)

/* Of the directory of a relative path; 0: it has none. */
static size_t directory_bytes(const char *path)
{
    const char *last = strrchr(path, '/');
    return last ? (size_t)(last - path) : 0;
}

/* Creates the directory `name` in `at` with the mode and owner of `like`, or what of them matters to the box. In a box in a
   box the outer guard fills it, with no capability: so its owner may write, until it is read-only by its mount. */
static int mkdir_like(const struct runner *r, int at, const char *name, int like, unsigned *ret_mode)
{
    struct sys_stat st;
    int e = sys_stat_fd(like, SYS_STAT_BASIC, &st);
    if (e < 0)
        return e;
    *ret_mode = mode_like(r, like, ".", &st) | (r->plan->filter & FILTER_GUARD ? 0 : 0300);
    return sys_mkdirat(at, name, *ret_mode);
}

static int make_text(int dir, const char *name, const char *text)
{
    own_fd int fd = sys_openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return fd < 0 ? fd : sys_write_all(fd, text, str_of(text).n);
}

/* overlayfs.rst: a whiteout is a character device 0/0; creating one needs no capability. All whiteouts of a box are
   links of one inode, which is a quarter cheaper to create than separate inodes, and no dearer to remove. */
static int make_whiteout(struct runner *r, int dir, const char *name)
{
    int e = r->whiteout ? 0 : sys_mknodat(r->own, "w", S_IFCHR, 0);
    r->whiteout |= e == 0;
    if (e == 0)
        e = sys_linkat(r->own, "w", dir, name, 0);
    return e == -EEXIST ? 0 : e;
}

static int make_last(int dir, const char *name, unsigned stub, const char *text)
{
    int e;
    if (stub == STUB_TEXT_FILE)
        e = make_text(dir, name, text);
    else if (stub == STUB_LINK)
        e = sys_symlinkat(text, dir, name);
    else if (stub == STUB_DENIED_DIR || stub == STUB_POINT_DIR)
        e = sys_mkdirat(dir, name, stub == STUB_POINT_DIR ? 0755 : 0);
    else
        e = sys_mknodat(dir, name, S_IFREG | (stub == STUB_POINT_FILE ? 0644u : 0u), 0);
    return e == -EEXIST ? 0 : e;
}

/* A layer being filled. Plans sort their stubs, so successive stubs mostly share a directory. */
struct veil_layer {
    int top, lower;     /* the layer and the masked directory */
    bool whiteouts;     /* which layer */
    const char *parent; /* the last stub's path: its first `n` bytes name its directory, relative to `top` */
    size_t n;
    int at, below; /* that directory, in the layer and (or -1) in the masked one; `top` and `lower` if n is 0 */
    bool closed;   /* nothing in it is visible or reachable: stubs in it are not needed */
};

static void layer_leave(struct veil_layer *l)
{
    if (l->at != l->top)
        sys_shut(l->at);
    if (l->below != l->lower)
        sys_shut(l->below);
    l->at = l->top;
    l->below = l->lower;
    l->n = 0;
    l->closed = false;
}

/* Descends into the directory `path` of `n` bytes, whose last component is `name`, creating it if needed. */
static int layer_descend(struct runner *r, struct veil_layer *l, const char *path, size_t n, const char *name,
                         unsigned stub)
{
    int below = l->below < 0 ? -ENOENT : open_in(l->below, name, O_PATH), e = 0;
    unsigned mode = 0755;
    if (below < 0)
        kept_missed(r, path, n, UNREADABLE(below));
    if (UNREADABLE(below) && stub < STUB_POINT_DIR) {
        l->closed = true; /* the box cannot get there either */
        return 0;
    }
    if (below < 0 && !NOT_THERE(below))
        return below;
    if (below < 0 && l->whiteouts) { /* missing, or not a directory: the name as a whole must never become visible */
        l->closed = true;
        return make_whiteout(r, l->at, name);
    }
    e = below < 0 ? sys_mkdirat(l->at, name, mode) : mkdir_like(r, l->at, name, below, &mode);
    if (below >= 0)
        kept_saw(r, path, n, mode);
    int at = e < 0 && e != -EEXIST ? e : open_in(l->at, name, O_PATH);
    if (l->below != l->lower)
        sys_shut(l->below);
    l->below = below < 0 ? -1 : below;
    if (at == -ENOTDIR && l->whiteouts) {
        l->closed = true; /* already a whiteout */
        return 0;
    }
    if (at < 0)
        return at;
    if (l->at != l->top)
        sys_shut(l->at);
    l->at = at;
    return 0;
}

/* Adds one stub to a layer, with the directories above it. */
static int layer_stub(struct runner *r, struct veil_layer *l, const char *path, unsigned stub, const char *text)
{
    char name[NAME_BYTES];
    const size_t n = directory_bytes(path);
    const char *rest = path;
    if (n != l->n || (n && __builtin_memcmp(path, l->parent, n) != 0)) {
        layer_leave(l);
        while (!l->closed && rest < path + n) {
            if (!component(&rest, name))
                return -EINVAL;
            size_t through = (size_t)(rest - path);
            while (path[through - 1] == '/')
                through--;
            int e = layer_descend(r, l, path, through, name, stub);
            if (e < 0)
                return e;
        }
        l->parent = path;
        l->n = n;
    }
    if (l->closed)
        return 0;
    rest = path + n + (n > 0);
    if (!component(&rest, name) || *rest)
        return -EINVAL;
    return l->whiteouts ? make_whiteout(r, l->at, name) : make_last(l->at, name, stub, text);
}

static bool needs_whiteout(unsigned stub)
{
    return stub == STUB_ABSENT || stub == STUB_DENIED_DIR;
}

/* Builds one layer of the mask `s` as a new directory of the own tmpfs; *ret stays -1 if it would be empty. */
static int layer_new(struct runner *r, const struct step *s, int lower, bool whiteouts, int *ret)
{
    const uint32_t first = (uint32_t)(s - plan_steps(r->plan)) + 1;
    struct veil_layer l = {.top = -1, .lower = lower, .whiteouts = whiteouts, .at = -1, .below = lower};
    unsigned mode = 0;
    int e = 0;
    for (uint32_t i = 0; e == 0 && i < s->b; i++) {
        const struct step *stub = s + 1 + i;
        if (whiteouts ? !needs_whiteout(stub->mode) : stub->mode == STUB_ABSENT)
            continue;
        if (l.top < 0) {
            char name[OWN_NAME];
            own_name(r, name);
            e = mkdir_like(r, r->own, name, lower, &mode);
            kept_saw(r, "", 0, mode);
            kept_layer(r, whiteouts, r->n_own - 1);
            if (e == 0)
                e = l.at = l.top = open_in(r->own, name, O_PATH);
            if (e < 0)
                break;
        }
        r->failed = first + i;
        e = layer_stub(r, &l, step_text(r, stub->a), stub->mode, step_text(r, stub->b));
    }
    layer_leave(&l);
    if (e < 0) {
        sys_shut(l.top);
        return e;
    }
    r->failed = first - 1;
    *ret = l.top;
    return 0;
}

/* A detached read-only overlay of the layers, from the top. */
static int overlay_lower(struct runner *r, const int *layers, int n, unsigned attributes)
{
    own_fd int fs = sys_fsopen("overlay");
    if (fs < 0)
        return fs;
    const int e = mount_new(fs, name_layers(fs, layers, n, -1, -1), attributes);
    if (e >= 0)
        fresh_or_done(r, &fs, true);
    else
        done_with(r, &fs);
    return e;
}

/* A new file system must keep the restrictions of the mount below. */
static unsigned attributes_below(int dir)
{
    struct statfs fs;
    unsigned a = SYS_MOUNT_RDONLY | SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV;
    return sys_fstatfs(dir, &fs) == 0 && !(fs.f_flags & 8 /* ST_NOEXEC */) ? a : a | SYS_MOUNT_NOEXEC;
}

static int mask_of(struct runner *r, int points, int whiteouts, int place)
{
    int layers[3], n = 0;
    if (points >= 0)
        layers[n++] = points;
    if (whiteouts >= 0)
        layers[n++] = whiteouts;
    layers[n++] = place;
    return overlay_lower(r, layers, n, attributes_below(place));
}

/* By layers of an earlier box; less than 0 if there are none, or they are good for nothing. */
static int kept_mask(struct runner *r, int place)
{
    own_fd int points = -1, whiteouts = -1;
    if (!kept_layers(r, &points, &whiteouts))
        return -ENOENT;
    int tree = mask_of(r, points, whiteouts, place);
    done_with(r, &points);
    done_with(r, &whiteouts);
    return tree;
}

static int veil(struct runner *r, const struct step *s, int place)
{
    int e = own_begin(r);
    if (e < 0)
        return e;
    own_fd int points = -1, whiteouts = -1;
    e = layer_new(r, s, place, false, &points);
    if (e == 0)
        e = layer_new(r, s, place, true, &whiteouts);
    if (e < 0 || (points < 0 && whiteouts < 0))
        return e;
    own_fd int tree = mask_of(r, points, whiteouts, place);
    if (tree == -EINVAL && own_show(r) == 0) /* before Linux 6.15 layers must be attached somewhere */
        tree = mask_of(r, points, whiteouts, place);
    return tree < 0 ? tree : attach(tree, place);
}

/* Whether its names could only be created by the machine's administration: not worth binding all their neighbours. */
static bool only_optional(const struct step *s)
{
    for (uint32_t i = 1; i <= s->b; i++) {
        if (!(s[i].flags & STEP_OPTIONAL))
            return false;
    }
    return true;
}

/* An overlay needs a clone of its directory alone, which the kernel refuses for the same reason. That costs a call and,
   when it is dropped, a wait for all processors; an overlay that fails costs a superblock besides, and its stubs. */
static bool has_mounts_below(int place)
{
    own_fd int tree = sys_open_tree(place, "", SYS_TREE_CLONE | SYS_TREE_CLOEXEC | SYS_AT_EMPTY_PATH);
    if (tree >= 0)
        (void)sys_taken(&tree); /* dropping it makes the kernel wait: later, with all others */
    return tree == -EINVAL;
}

/*
 * Whether the mask is to be made in vain is asked before its stubs are. Where stubs are kept it is not, because then there were no
 * mounts below when they were made; if there are by now, the kept layers say from then on that it is to be asked.
 */
static int mask(struct runner *r, const struct step *s, int place)
{
    const bool kept = kept_has(r);
    if ((!kept || kept_asks(r)) && has_mounts_below(place))
        return -EXDEV;
    own_fd int tree = kept ? kept_mask(r, place) : -ENOENT;
    if (tree >= 0) {
        int e = attach(tree, place);
        done_with(r, &tree);
        return e;
    }
    if (kept && tree == -EINVAL && !kept_asks(r) && has_mounts_below(place)) {
        kept_ask(r);
        return -EXDEV;
    }
    int e = veil(r, s, place);
    if (e == 0 && !kept)
        kept_lacks(r);
    return e;
}

int step_veil(struct runner *r, const struct step *s)
{
    own_fd int place = open_place(step_text(r, s->a), O_DIRECTORY);
    if (place < 0)
        return place;
    r->kept.veil = 0;
    for (const struct step *before = plan_steps(r->plan); before < s; before++)
        r->kept.veil += before->kind == STEP_VEIL;
    int e = mask(r, s, place);
    switch (e) {
    case 0:
        done_with(r, &place);
        return 0;
    case -EXDEV:  /* mounts below */
    case -EINVAL: /* too deep */
    case -ENODEV: /* no overlayfs in this kernel */
    case -EPERM:
    case -EACCES:
    case -ELOOP:
    case -EOPNOTSUPP:
        r->failed = (uint32_t)(s - plan_steps(r->plan));
        return only_optional(s) ? 0 : cover(r, s, place, NULL);
    default:
        return e;
    }
}

int step_cover(struct runner *r, const struct step *s)
{
    const char *dst = step_text(r, s->a);
    if (!dst[1])
        return 0; /* of the root: done by ENTER */
    own_fd int place = open_place(dst, O_DIRECTORY);
    return place < 0 ? place : cover(r, s, place, NULL);
}

static int bind_entry(struct runner *r, int from, int to, const struct sys_dirent *d)
{
    unsigned type = d->type;
    if (type == 0 /* DT_UNKNOWN */ || type == 10 /* DT_LNK */) {
        struct sys_stat st;
        int e = sys_stat_at(from, d->name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, SYS_STAT_BASIC, &st);
        if (e < 0)
            return e == -ENOENT ? 0 : e;
        type = (st.mode & S_IFMT) == S_IFDIR ? 4 : (st.mode & S_IFMT) == S_IFLNK ? 10 : 8;
    }
    if (type == 10) {
        char target[4096];
        ssize_t n = sys_readlinkat(from, d->name, target, sizeof target - 1);
        if (n < 0)
            return n == -ENOENT ? 0 : (int)n;
        target[n] = 0;
        return sys_symlinkat(target, to, d->name);
    }
    own_fd int tree = sys_open_tree(
        from, d->name, SYS_TREE_CLONE | SYS_TREE_CLOEXEC | SYS_AT_RECURSIVE | SYS_AT_NOFOLLOW | SYS_AT_NO_AUTOMOUNT);
    if (tree == -ENOENT)
        return 0; /* removed since it was listed */
    if (tree < 0)
        return tree;
    int e = type == 4 ? sys_mkdirat(to, d->name, 0755) : sys_mknodat(to, d->name, S_IFREG | 0644, 0);
    if (e == 0)
        e = sys_move_mount(tree, "", to, d->name, SYS_MOVE_FROM_EMPTY);
    if (e == 0)
        done_with(r, &tree);
    /* Removed since it was cloned: remove its mount point, too. */
    return e == -ENOENT ? sys_unlinkat(to, d->name, type == 4 ? AT_REMOVEDIR : 0) : e;
}

struct veil_place { /* a directory being covered */
    int from, to;
    char prefix[4096];
    size_t n;
};

static int cover_one(struct runner *r, const struct step *s, const struct veil_place *p)
{
    _Alignas(8) char room[8192];
    own_fd int dir = sys_openat(p->from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    struct sys_entries all = {.dir = dir, .room = room, .bytes = sizeof room};
    const struct sys_dirent *d;
    if (dir < 0)
        return dir;
    while ((d = sys_next_entry(&all))) {
        if (step_cover_says(r->plan, s, (struct str){p->prefix, p->n}, str_of(d->name)) != COVER_BINDS)
            continue;
        int e = bind_entry(r, p->from, p->to, d);
        if (e < 0)
            return e;
    }
    return all.no;
}

/* A cover being filled. As in a mask, successive stubs mostly share a directory. */
struct cover_at {
    const struct veil_place *top;
    const char *parent; /* the last stub's path: its first `n` bytes name its directory, which both are open at */
    size_t n;
    int from, to; /* those of `top` if n is 0 */
};

static void cover_leave(struct runner *r, struct cover_at *c)
{
    if (c->from != c->top->from)
        done_with(r, &c->from);
    if (c->to != c->top->to)
        done_with(r, &c->to);
    c->from = c->top->from;
    c->to = c->top->to;
    c->n = 0;
}

/* Descends into the directory `path` of `n` bytes, whose last component is `name`, covering it if that was not done. */
static int cover_descend(struct runner *r, const struct step *s, struct cover_at *c, const char *path, size_t n,
                         const char *name, int below)
{
    struct veil_place p = {.prefix = "", .n = n};
    int e = below < 0 ? sys_mkdirat(c->to, name, 0755) : mkdir_like(r, c->to, name, below, &(unsigned){0});
    if (DEAD(e)) {
        done_with(r, &below);
        return e;
    }
    int next = open_in(c->to, name, O_PATH);
    if (c->from != c->top->from)
        done_with(r, &c->from);
    c->from = below;
    if (next < 0)
        return next;
    if (c->to != c->top->to)
        done_with(r, &c->to);
    c->to = next;
    if (e < 0)
        return e == -EEXIST ? 0 : e;
    if (n >= sizeof p.prefix)
        return -ENAMETOOLONG;
    __builtin_memcpy(p.prefix, path, n);
    p.from = below;
    p.to = next;
    e = below < 0 ? 0 : cover_one(r, s, &p);
    return e == -EEXIST ? 0 : e;
}

/* Directories on the path to the stub `path` are covered, too, each when its first stub needs it. A missing one is
   created for stubs that must exist, and stays missing otherwise. */
static int cover_stub(struct runner *r, const struct step *s, const char *path, unsigned stub, const char *text,
                      struct cover_at *c)
{
    char name[NAME_BYTES];
    const size_t n = directory_bytes(path);
    const char *rest = path;
    if (n != c->n || (n && __builtin_memcmp(path, c->parent, n) != 0)) {
        cover_leave(r, c);
        while (rest < path + n) {
            if (!component(&rest, name))
                return -EINVAL;
            int below = c->from < 0 ? -ENOENT : open_in(c->from, name, O_PATH);
            if (below < 0 && !NOT_THERE(below) && !UNREADABLE(below))
                return below;
            if (below < 0 && (stub == STUB_ABSENT || UNREADABLE(below))) {
                cover_leave(r, c);
                return 0;
            }
            int e = cover_descend(r, s, c, path, (size_t)(rest - path), name, below < 0 ? -1 : below);
            if (DEAD(e)) {
                cover_leave(r, c);
                return 0;
            }
            if (e < 0)
                return e;
        }
        c->parent = path;
        c->n = n;
    }
    rest = path + n + (n > 0);
    if (!component(&rest, name) || *rest)
        return -EINVAL;
    return stub == STUB_ABSENT ? 0 : make_last(c->to, name, stub, text);
}

int cover(struct runner *r, const struct step *s, int place, int *ret_tree)
{
    char name[OWN_NAME];
    const uint32_t first = (uint32_t)(s - plan_steps(r->plan)) + 1;
    int e = own_begin(r);
    if (e < 0)
        return e;
    own_name(r, name);
    e = mkdir_like(r, r->own, name, place, &(unsigned){0});
    if (e < 0)
        return e;
    own_fd int tree = own_clone(r, name, SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV);
    if (tree < 0)
        return tree;
    e = attach(tree, place);
    struct veil_place top = {.from = place, .to = tree, .prefix = "", .n = 0};
    struct cover_at at = {.top = &top, .from = place, .to = tree};
    if (e == 0)
        e = cover_one(r, s, &top);
    for (uint32_t i = 0; e == 0 && i < s->b; i++) {
        const struct step *stub = s + 1 + i;
        r->failed = first + i;
        e = cover_stub(r, s, step_text(r, stub->a), stub->mode, step_text(r, stub->b), &at);
    }
    cover_leave(r, &at);
    if (e < 0)
        return e;
    r->failed = first - 1;
    struct sys_mount_attr attr = {.set = SYS_MOUNT_RDONLY | mount_attributes(s->flags)};
    e = sys_mount_setattr(tree, "", SYS_AT_EMPTY_PATH, &attr);
    if (e == 0 && ret_tree)
        *ret_tree = sys_taken(&tree);
    return e;
}
