/*
 * Renames a directory that the host's tree below a copy-on-write layer has, which overlayfs refuses with EXDEV: git mv, os.rename and
 * fs.renameSync would fail. The new directory is made beside, everything is moved into it by name, and the old one is removed.
 *
 * Not one step, so whoever looks meanwhile sees a part in each place, and the moved directories are new ones to processes that are in
 * them. Everything is moved back if one call fails. Above MOVE_MAX entries, and deeper than MOVE_DEPTH, EXDEV is what the caller gets.
 * Names of one file stay names of one file, as far as they lie in the directory; overlayfs would copy the file for each of them.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "guard/calls/calls.h"
#include "sys/fd.h"

#define MOVE_MAX   5000u
#define MOVE_DEPTH 48u /* of the stack: each level has a buffer for names */
#define MOVE_ROOM  2048
#define MOVE_PATH  4096

static int open_below(int dir, const char *name)
{
    return sys_openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
}

/* How many entries there are below; more than MOVE_MAX: too many, too deep, or something cannot be read. */
static unsigned count_below(int dir, const char *name, unsigned depth)
{
    _Alignas(8) char room[MOVE_ROOM];
    own_fd int fd = depth ? open_below(dir, name) : -ENAMETOOLONG;
    struct sys_entries entries = {.dir = fd, .room = room, .bytes = sizeof room};
    unsigned n = 0;
    if (fd < 0)
        return MOVE_MAX + 1;
    for (const struct sys_dirent *d; n <= MOVE_MAX && (d = sys_next_entry(&entries));) {
        struct sys_stat st;
        n++;
        if (d->type == DT_DIR ||
            (d->type == DT_UNKNOWN && sys_stat_at(fd, d->name, AT_SYMLINK_NOFOLLOW, SYS_STAT_TYPE, &st) == 0 &&
             S_ISDIR(st.mode)))
            n += count_below(fd, d->name, depth - 1);
    }
    return entries.no < 0 ? MOVE_MAX + 1 : n;
}

/* A file of several names, the first of which has arrived. */
struct carried_file {
    uint64_t was, is; /* its inode there and here: it may be a copy now */
    uint32_t major, minor;
    char *path; /* owned, below `top` */
};
struct carrying {
    struct guard *g;
    int top;   /* the directory that gets the new one */
    bool back; /* into the one that it came from, if that is left */
    struct carried_file *arrived;
    size_t n, room;
    size_t length; /* MOVE_PATH: the path is too long for what lies there to be found again */
    char path[MOVE_PATH];
};

static void enter_name(struct carrying *c, const char *name)
{
    const size_t n = strlen(name);
    if (c->length + n + 2 > MOVE_PATH) {
        c->length = MOVE_PATH;
        return;
    }
    memcpy(c->path + c->length, name, n);
    c->path[c->length + n] = '/';
    c->length += n + 1;
}

static void remember_arrived(struct carrying *c, const struct sys_stat *was, int to, const char *name)
{
    struct sys_stat is;
    const size_t n = strlen(name);
    if (c->n == c->room) {
        const size_t room = c->room ? 2 * c->room : 16;
        struct carried_file *more = realloc(c->arrived, room * sizeof *more);
        if (!more)
            return;
        c->arrived = more;
        c->room = room;
    }
    char *path = c->length < MOVE_PATH && sys_stat_at(to, name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &is) == 0
                     ? malloc(c->length + n + 1)
                     : NULL;
    if (!path)
        return;
    memcpy(path, c->path, c->length);
    memcpy(path + c->length, name, n + 1);
    c->arrived[c->n++] = (struct carried_file){was->inode, is.inode, was->major, was->minor, path};
}

static const struct carried_file *find_arrived(const struct carrying *c, const struct sys_stat *st)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->arrived[i].was == st->inode && c->arrived[i].major == st->major && c->arrived[i].minor == st->minor)
            return &c->arrived[i];
    return NULL;
}

/* By descriptor: the box may have put something else there meanwhile. */
static int link_arrived(const struct carrying *c, const struct carried_file *first, int to, const char *name)
{
    struct sys_stat st;
    own_fd int fd = sys_openat2(c->top, first->path, O_PATH | O_CLOEXEC, 0,
                                RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
    const int no = fd < 0 ? fd : sys_stat_fd(fd, SYS_STAT_BASIC, &st);
    if (no < 0 || !S_ISREG(st.mode) || st.inode != first->is)
        return no < 0 ? no : -ESTALE;
    return own_link(c->g, fd, to, name);
}

static int carry_name(struct carrying *c, int from, int to, const struct sys_dirent *d)
{
    struct sys_stat st;
    const bool several = (d->type == DT_REG || d->type == DT_UNKNOWN) &&
                         sys_stat_at(from, d->name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) == 0 &&
                         S_ISREG(st.mode) && st.links > 1;
    const struct carried_file *first = several ? find_arrived(c, &st) : NULL;
    if (first && link_arrived(c, first, to, d->name) == 0) {
        const int no = sys_unlinkat(from, d->name, 0);
        if (no < 0)
            (void)sys_unlinkat(to, d->name, 0);
        return no;
    }
    const int no = sys_rename_new(from, d->name, to, d->name);
    if (no == 0 && several && !first)
        remember_arrived(c, &st, to, d->name);
    return no;
}

static int carry_directory(struct carrying *c, int from_dir, const char *from, int to_dir, const char *to,
                           unsigned depth);

static int carry_entries(struct carrying *c, int from, int to, unsigned depth)
{
    _Alignas(8) char room[MOVE_ROOM];
    struct sys_entries entries = {.dir = from, .room = room, .bytes = sizeof room};
    for (const struct sys_dirent *d; (d = sys_next_entry(&entries));) {
        int no = carry_name(c, from, to, d);
        if (no == -EXDEV || (c->back && no == -EEXIST))
            no = carry_directory(c, from, d->name, to, d->name, depth);
        if (no < 0)
            return no;
    }
    return entries.no;
}

/* The directory as a new one, with all that the old one had. */
static int carry_directory(struct carrying *c, int from_dir, const char *from, int to_dir, const char *to,
                           unsigned depth)
{
    const size_t length = c->length;
    struct sys_stat st = {0};
    own_fd int a = depth ? open_below(from_dir, from) : -ENAMETOOLONG;
    int no = a < 0 ? a : sys_stat_fd(a, SYS_STAT_BASIC, &st);
    if (no == 0)
        no = sys_mkdirat(to_dir, to, 0700);
    const bool made = no == 0;
    if (no < 0 && !(c->back && no == -EEXIST))
        return no;
    own_fd int b = open_below(to_dir, to);
    enter_name(c, to);
    no = b < 0 ? b : carry_entries(c, a, b, depth - 1);
    c->length = length;
    if (no == 0 && made) {
        const struct timespec times[2] = {{st.accessed.seconds, st.accessed.nanoseconds},
                                          {st.modified.seconds, st.modified.nanoseconds}};
        hardlink_attributes(a, b, st.mode & 07777u);
        no = sys_fchmod(b, st.mode & 07777u);
        (void)sys_utimensat(b, NULL, times, 0);
    }
    return no < 0 ? no : sys_unlinkat(from_dir, from, AT_REMOVEDIR);
}

static int carry_whole(struct guard *g, const struct place *from, const struct place *to, bool back)
{
    struct carrying *c = malloc(sizeof *c);
    if (!c)
        return -ENOMEM;
    c->g = g;
    c->top = to->dir;
    c->back = back;
    c->arrived = NULL;
    c->n = c->room = c->length = 0;
    const int no = carry_directory(c, from->dir, from->name, to->dir, to->name, MOVE_DEPTH);
    for (size_t i = 0; i < c->n; i++)
        free(c->arrived[i].path);
    free(c->arrived);
    free(c);
    return no;
}

int move_directory(struct guard *g, const struct place *from, const struct place *to, unsigned flags)
{
    if (!rules_in_one_layer(&g->rules, place_path(from), place_path(to)) || flags & ~(unsigned)RENAME_NOREPLACE ||
        count_below(from->dir, from->name, MOVE_DEPTH) > MOVE_MAX)
        return -EXDEV;
    /* As rename(2): in place of an empty directory, of nothing else. */
    int no = flags & RENAME_NOREPLACE ? 0 : sys_unlinkat(to->dir, to->name, AT_REMOVEDIR);
    if (no < 0 && no != -ENOENT)
        return no;
    no = carry_whole(g, from, to, false);
    if (no < 0 && no != -EEXIST)
        (void)carry_whole(g, to, from, true);
    return no;
}
