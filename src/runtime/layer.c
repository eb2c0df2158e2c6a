/*
 * Private writable layers over directories of the host: caches.
 *
 *     OVERLAY  for one directory. It is mounted before ENTER, while its host paths are still writable.
 *     LAYER    for several: over everything the home directory shows at this step, mask included; never visible itself.
 *     PART     a directory of the LAYER, attached where it belongs. Mounting one overlay and cloning parts of it costs
 *              10 us per cache, an overlay of its own 150 and more (creating and removing directories on disk).
 *
 * An overlay does not show mounts below its lower directory. If the home directory had to be covered instead of masked
 * (veil.c) its entries are mounts, so the LAYER cannot show them; each PART then is an overlay of its own.
 */
#include <sys/file.h>
#include "runtime/runner.h"
#include "base/str.h"
#include "base/text.h"
#include "sys/poll.h"

bool component(const char **path, char name[NAME_BYTES])
{
    const size_t n = strcspn(*path, "/");
    if (n == 0 || !str_copy((struct str){*path, n}, name, NAME_BYTES) ||
        (name[0] == '.' && (n == 1 || (n == 2 && name[1] == '.'))))
        return false;
    *path += n + strspn(*path + n, "/");
    return true;
}

/* "/proc/self/fd/N", for kernels whose overlayfs takes layers only by path: short, and needs no escaping. */
char *put_fd_path(char *to, int fd)
{
    return put_number(put_text(to, "/proc/self/fd/"), (uint32_t)fd);
}

/* 'lower\nupper\nwork', and perhaps '\nhidden' and '\nbetween' of each layer below: the next path of *text; "" at its end. */
static int next_path(const char **text, char path[4096])
{
    struct str rest = {*text, strlen(*text)};
    if (!str_copy(str_until(&rest, '\n'), path, 4096))
        return -ENAMETOOLONG;
    *text = rest.p;
    return 0;
}

static int next_layer(const char **text)
{
    char path[4096];
    int e = next_path(text, path);
    return e < 0 ? e : open_place(path, O_DIRECTORY);
}

/*
 * 'dir/upper' and 'dir/work' in a mount of their own that has no place in any tree: overlayfs keeps their names from its
 * root, "/upper", and shows these in mountinfo. So the box does not learn where they are on the host. The mount lasts as long
 * as *ret_tree.
 */
static int next_secret(const char **text, int *ret_tree, int *ret_work)
{
    char upper[4096], work[4096];
    int e = next_path(text, upper);
    if (e == 0)
        e = next_path(text, work);
    size_t last = e < 0 ? 0 : str_of(upper).n;
    while (last && upper[last] != '/')
        last--;
    if (e < 0 || !last || str_of(work).n <= last || work[last] != '/')
        return e < 0 ? e : -EBADMSG;
    upper[last] = 0;
    own_fd int place = open_place(upper, O_DIRECTORY);
    if (place < 0)
        return place;
    *ret_tree = sys_open_tree(place, "", SYS_TREE_CLONE | SYS_TREE_CLOEXEC | SYS_AT_EMPTY_PATH);
    *ret_work = *ret_tree < 0 ? *ret_tree : open_in(*ret_tree, work + last + 1, O_RDONLY);
    return *ret_work < 0 ? *ret_work : open_in(*ret_tree, upper + last + 1, O_PATH);
}

/*
 * The box reads in its mountinfo where its layer is, and may write there what a program of the host would obey if it
 * were led there: a repository with hooks, to which a file .git of another box points. So the directory gets a name
 * that only its owner knows; the overlay has it open, and goes on showing the old one.
 */
static int hide_upper(const char *paths)
{
    char upper[4096], hidden[4096];
    int e = 0;
    for (int i = 0; e == 0 && i < 4; i++) /* the lower one, and work, come before them */
        e = next_path(&paths, i < 2 ? upper : hidden);
    return e < 0 || !hidden[0] ? e : sys_renameat2(AT_FDCWD, upper, AT_FDCWD, hidden, RENAME_NOREPLACE);
}

/*
 * A volatile overlay is not synced when it is unmounted, which would take milliseconds at the end of every run. In
 * return overlayfs leaves a mark that forbids using it again, in case the machine crashed. These layers hold only
 * caches, whose programs check what they find, so the mark is removed: before the next use, and as soon as there is
 * time (overlays_settle), because its owner cannot remove directories of mode 0. A disk may take half a millisecond for that, so
 * where nobody else can get in it is done after the box has ended. Then nothing else keeps the next box of this layer from mounting it, which
 * would fail if a directory of the new mark went at this moment: both lock the work directory.
 */
static int remove_mark(int work, bool aside)
{
    static const char names[][2][32] = {{"work/incompat/volatile/dirty", "old/incompat/volatile/dirty"},
                                        {"work/incompat/volatile", "old/incompat/volatile"},
                                        {"work/incompat", "old/incompat"}};
    int e = 0;
    for (int i = 0; i < 3 && (e == 0 || e == -ENOENT); i++)
        e = sys_unlinkat(work, names[i][aside], i ? AT_REMOVEDIR : 0);
    return e == -ENOENT ? 0 : e;
}

/* The next mount then finds no mark, and nothing to remove; what stays until then is an empty directory, which its owner can remove, and
   read: a search or a backup of the home does not fail at it. */
static void put_by(int work)
{
    (void)sys_unlinkat(work, "old", AT_REMOVEDIR);
    int e = sys_renameat2(work, "work", work, "old", RENAME_NOREPLACE);
    e = e == -EEXIST ? sys_renameat2(work, "work", work, "old", RENAME_EXCHANGE) : e; /* marks are left in it */
    (void)remove_mark(work, e == 0);
    (void)sys_fchmodat(work, e == 0 ? "old" : "work", 0700);
}

static int forget_volatile(int work)
{
    int e = sys_unlinkat(work, "work/incompat", AT_REMOVEDIR); /* mostly there is none */
    if (e != -ENOTEMPTY && e != -EEXIST)
        return e == -ENOENT ? 0 : e;
    return remove_mark(work, false);
}

static int lock_work(struct runner *r, int work)
{
    enum { PATIENCE = 20000 };
    int e;
    for (unsigned ms = 0; (e = sys_flock(work, LOCK_EX | LOCK_NB)) == -EAGAIN && ms < PATIENCE; ms++)
        (void)sys_poll_ms(NULL, 0, 1);
    r->n_locked += e == 0;
    return e == -EAGAIN ? -EBUSY : 0;
}

/* What an overlay is made of; kept layers lie above the lowest. */
struct overlaid {
    int upper, work;
    int lower[OVERLAY_BETWEEN + 1]; /* the uppermost first */
    int n;
};

/* By path: only while /proc is the host's, so never in parallel with pid 1. */
static int name_layers_by_path(int fs, const int *lower, int n, int upper, int work)
{
    char path[(OVERLAY_BETWEEN + 1) * (FD_PATH + 1)], *to = path;
    for (int i = 0; i < n; i++) {
        to = put_fd_path(to, lower[i]);
        *to++ = i + 1 < n ? ':' : 0;
    }
    int e = sys_fsconfig(fs, SYS_FS_STRING, "lowerdir", path, 0);
    put_fd_path(path, upper);
    if (e == 0 && upper >= 0)
        e = sys_fsconfig(fs, SYS_FS_STRING, "upperdir", path, 0);
    put_fd_path(path, work);
    return e < 0 || upper < 0 ? e : sys_fsconfig(fs, SYS_FS_STRING, "workdir", path, 0);
}

/* By descriptor, since Linux 6.15. Before, the first one leaves the context as it was; to free one makes the kernel wait for all processors. */
int name_layers(int fs, const int *lower, int n, int upper, int work)
{
    int e = sys_fsconfig(fs, SYS_FS_FD, "lowerdir+", NULL, lower[0]);
    if (sys_layer_by_path(e))
        return name_layers_by_path(fs, lower, n, upper, work);
    for (int i = 1; e == 0 && i < n; i++)
        e = sys_fsconfig(fs, SYS_FS_FD, "lowerdir+", NULL, lower[i]);
    if (e == 0 && upper >= 0)
        e = sys_fsconfig(fs, SYS_FS_FD, "upperdir", NULL, upper);
    return e < 0 || upper < 0 ? e : sys_fsconfig(fs, SYS_FS_FD, "workdir", NULL, work);
}

/* A detached writable overlay; volatile, see above. The caller removes the mark in `work` later. */
static int overlay_new(struct runner *r, const struct overlaid *o, unsigned attributes)
{
    const int lowest = o->lower[o->n - 1];
    if (lowest < 0 || o->upper < 0 || o->work < 0)
        return lowest < 0 ? lowest : o->upper < 0 ? o->upper : o->work;
    int e = forget_volatile(o->work);
    own_fd int fs = e < 0 ? e : sys_fsopen("overlay");
    /* userxattr: the only overlayfs attributes that a user namespace may write; they are the user's own. */
    e = fs < 0 ? fs : sys_fsconfig(fs, SYS_FS_FLAG, "userxattr", NULL, 0);
    if (e == 0)
        e = sys_fsconfig(fs, SYS_FS_FLAG, "volatile", NULL, 0);
    if (e == 0)
        e = name_layers(fs, o->lower, o->n, o->upper, o->work);
    e = mount_new(fs, e, SYS_MOUNT_NOSUID | SYS_MOUNT_NODEV | attributes);
    if (e >= 0)
        fresh_or_done(r, &fs, false);
    else
        done_with(r, &fs);
    return e;
}

/* Takes ownership of `work`, also on failure. */
static int settle_later(struct runner *r, int work)
{
    if (r->n_works < sizeof r->works / sizeof *r->works) {
        r->works[r->n_works++] = work;
        return 0;
    }
    int e = forget_volatile(work);
    sys_shut(work);
    return e;
}

/*
 * The mark of the workspace's overlay stays until the layer is taken up or removed. overlayfs makes it and what holds it without any
 * permissions; so that their owner can copy and remove them, whatever ends the box, they get some.
 */
static void open_work(int work)
{
    static const char made[][32] = {"work", "work/incompat", "work/incompat/volatile", "work/incompat/volatile/dirty"};
    for (int i = 0; i < 4; i++)
        (void)sys_fchmodat(work, made[i], 0700);
}

/* What comes after the mount of the workspace's layer. */
static int workspace_prepared(const struct runner *r, const struct step *s, int work)
{
    open_work(work);
    return hide_upper(step_text(r, s->b));
}

/* As mounts of their own, so that the box reads in its mountinfo no name of theirs. */
static int next_between(const char *text, struct overlaid *o)
{
    char hidden[4096];
    int e = next_path(&text, hidden);
    while (e == 0 && *text) {
        own_fd int place = o->n == OVERLAY_BETWEEN ? -E2BIG : next_layer(&text);
        e = place < 0 ? place : sys_open_tree(place, "", SYS_TREE_CLONE | SYS_TREE_CLOEXEC | SYS_AT_EMPTY_PATH);
        if (e >= 0)
            o->lower[o->n++] = e;
        e = e < 0 ? e : 0;
    }
    return e;
}

int overlay_prepare(struct runner *r, const struct step *s, int *ret_tree)
{
    const char *text = step_text(r, s->b);
    const bool secret = s->mode == OVERLAY_SECRET;
    int at = -1;
    own_fd int apart = -1;
    own_fd int lower = next_layer(&text);
    own_fd int upper = secret ? next_secret(&text, &apart, &at) : next_layer(&text);
    own_fd int work = secret ? at : next_layer(&text);
    struct overlaid o = {.upper = upper, .work = work};
    int e = secret ? lock_work(r, work) : *text ? next_between(text, &o) : 0;
    const int between = o.n;
    o.lower[o.n++] = lower;
    own_fd int tree = e < 0 ? e : overlay_new(r, &o, (unsigned)mount_attributes(s->flags));
    for (int i = 0; i < between; i++)
        sys_shut(o.lower[i]);
    if (tree < 0)
        return tree;
    const bool workspace = *text != 0; /* a name to hide it under */
    e = workspace ? workspace_prepared(r, s, work) : 0;
    /* A separate mount, because the one that `work` was opened through becomes read-only. */
    int later = workspace || e < 0 ? -1
                : secret           ? sys_taken(&work)
                                   : sys_open_tree(work, "", SYS_TREE_CLONE | SYS_TREE_CLOEXEC | SYS_AT_EMPTY_PATH);
    if (e == 0 && !workspace)
        e = later < 0 ? forget_volatile(work) : settle_later(r, later);
    if (e < 0)
        return e;
    if (secret && r->apart < 0)
        r->apart = sys_taken(&apart);
    *ret_tree = sys_taken(&tree);
    return 0;
}

/* A separate mount, which stays writable when the root is marked. */
int layer_prepare(struct runner *r, const struct step *s)
{
    own_fd int place = open_place(step_text(r, s->b), O_DIRECTORY);
    if (place < 0)
        return place;
    int tree = sys_open_tree(place, "", SYS_TREE_CLONE | SYS_TREE_CLOEXEC | SYS_AT_EMPTY_PATH);
    if (tree < 0)
        return tree;
    r->layer = s;
    r->layer_dir = tree;
    done_with(r, &place);
    return 0;
}

int step_layer(struct runner *r, const struct step *s)
{
    if (s != r->layer)
        return -EBADMSG;
    struct statfs fs;
    own_fd int place = open_place(step_text(r, s->a), O_DIRECTORY);
    own_fd int upper = open_in(r->layer_dir, "upper", O_PATH);
    own_fd int work = open_in(r->layer_dir, "work", O_RDONLY);
    if (place < 0)
        return place;
    if (sys_fstatfs(place, &fs) == 0 && fs.f_type != SYS_OVERLAYFS)
        return 0; /* covered, not masked: parts are overlays of their own */
    const int e = lock_work(r, work);
    int tree = e < 0 ? e
                     : overlay_new(r, &(struct overlaid){.lower = {place}, .n = 1, .upper = upper, .work = work},
                                   (unsigned)mount_attributes(s->flags));
    if (tree < 0)
        return tree;
    r->layer_tree = tree;
    done_with(r, &place);
    done_with(r, &upper);
    return settle_later(r, sys_taken(&work));
}

/* Opens the directory `path` below `dir`, creating what is missing. */
static int make_path(int dir, const char *path)
{
    char name[NAME_BYTES];
    own_fd int at = sys_fcntl(dir, F_DUPFD_CLOEXEC, 0);
    while (at >= 0 && *path) {
        if (!component(&path, name))
            return -EINVAL;
        int e = sys_mkdirat(at, name, 0755);
        if (e < 0 && e != -EEXIST)
            return e;
        int next = open_in(at, name, O_PATH);
        sys_drop(&at);
        at = next;
    }
    return sys_taken(&at);
}

/* The private files that the part would have shown, as an overlay over what is bound at `place`. */
static int part_alone(struct runner *r, const struct step *s, const char *rest, int place)
{
    char name[] = "work-00";
    unsigned n = r->n_parts++;
    name[5] = (char)('0' + n / 10 % 10);
    name[6] = (char)('0' + n % 10);
    if (n > 99)
        return -E2BIG;
    own_fd int uppers = open_in(r->layer_dir, "upper", O_PATH);
    own_fd int upper = uppers < 0 ? uppers : make_path(uppers, rest);
    own_fd int work = make_path(r->layer_dir, name);
    own_fd int tree = overlay_new(r, &(struct overlaid){.lower = {place}, .n = 1, .upper = upper, .work = work},
                                  (unsigned)mount_attributes(s->flags));
    if (tree < 0)
        return tree;
    int e = settle_later(r, sys_taken(&work));
    return e < 0 ? e : attach(tree, place);
}

int step_part(struct runner *r, const struct step *s)
{
    if (!r->layer)
        return -EBADMSG;
    const char *dst = step_text(r, s->a), *rest = dst + str_of(step_text(r, r->layer->a)).n + 1;
    own_fd int place = open_place(dst, O_DIRECTORY);
    if (place < 0)
        return place;
    if (r->layer_tree < 0)
        return part_alone(r, s, rest, place);
    own_fd int tree = sys_open_tree(r->layer_tree, rest, SYS_TREE_CLONE | SYS_TREE_CLOEXEC | SYS_AT_NOFOLLOW);
    return attach_last(r, &tree, &place);
}

void overlays_settle(struct runner *r, bool here)
{
    while (r->n_works) {
        int work = r->works[--r->n_works];
        if (here)
            put_by(work);
        sys_shut(work);
    }
}
