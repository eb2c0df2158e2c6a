/*
 * Renames a directory that the host's tree below a copy-on-write layer has, which overlayfs refuses with EXDEV: git mv, os.rename and
 * fs.renameSync would fail. The new directory is made beside, everything is moved into it by name, and the old one is removed.
 *
 * Not one step, so whoever looks meanwhile sees a part in each place, and the moved directories are new ones to processes that are in
 * them. Everything is moved back if one call fails. Above MOVE_MAX entries, and deeper than MOVE_DEPTH, EXDEV is what the caller gets.
 */
#include <errno.h>
#include <string.h>
#include "guard/inside.h"
#include "sys/fd.h"

#define MOVE_MAX   5000u
#define MOVE_DEPTH 48u /* of the stack: each level has a buffer for names */
#define MOVE_ROOM  2048

/* Whether nothing of both places is the host's before apply; the same layer. */
static bool in_one_layer(const struct guard *g, const struct place *from, const struct place *to)
{
    const struct rule *a = rules_decider(&g->rules, place_path(from)), *b = rules_decider(&g->rules, place_path(to));
    return a && a == b && a->said->kind == GUARD_RULE_ROOT && a->said->flags & GUARD_RULE_LAYERED;
}

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
        if (sys_stat_at(fd, d->name, AT_SYMLINK_NOFOLLOW, SYS_STAT_TYPE, &st) == 0 && S_ISDIR(st.mode))
            n += count_below(fd, d->name, depth - 1);
    }
    return entries.no < 0 ? MOVE_MAX + 1 : n;
}

static int carry_directory(int from_dir, const char *from, int to_dir, const char *to, unsigned depth, bool back);

static int carry_entries(int from, int to, unsigned depth, bool back)
{
    _Alignas(8) char room[MOVE_ROOM];
    struct sys_entries entries = {.dir = from, .room = room, .bytes = sizeof room};
    for (const struct sys_dirent *d; (d = sys_next_entry(&entries));) {
        int no = sys_renameat2(from, d->name, to, d->name, RENAME_NOREPLACE);
        if (no == -EXDEV || (back && no == -EEXIST))
            no = carry_directory(from, d->name, to, d->name, depth, back);
        if (no < 0)
            return no;
    }
    return entries.no;
}

/* The directory as a new one, with all that the old one had. `back`: into the one that it came from, if that is left. */
static int carry_directory(int from_dir, const char *from, int to_dir, const char *to, unsigned depth, bool back)
{
    struct sys_stat st = {0};
    own_fd int a = depth ? open_below(from_dir, from) : -ENAMETOOLONG;
    int no = a < 0 ? a : sys_stat_at(a, "", AT_EMPTY_PATH, SYS_STAT_BASIC, &st);
    if (no == 0)
        no = sys_mkdirat(to_dir, to, 0700);
    const bool made = no == 0;
    if (no < 0 && !(back && no == -EEXIST))
        return no;
    own_fd int b = open_below(to_dir, to);
    no = b < 0 ? b : carry_entries(a, b, depth - 1, back);
    if (no == 0 && made) {
        const struct timespec times[2] = {{st.accessed.seconds, st.accessed.nanoseconds},
                                          {st.modified.seconds, st.modified.nanoseconds}};
        hardlink_attributes(a, b, st.mode & 07777u);
        no = sys_fchmod(b, st.mode & 07777u);
        (void)sys_utimensat(b, NULL, times, 0);
    }
    return no < 0 ? no : sys_unlinkat(from_dir, from, AT_REMOVEDIR);
}

int move_directory(struct guard *g, const struct place *from, const struct place *to, unsigned flags)
{
    if (!in_one_layer(g, from, to) || flags & ~(unsigned)RENAME_NOREPLACE ||
        count_below(from->dir, from->name, MOVE_DEPTH) > MOVE_MAX)
        return -EXDEV;
    /* As rename(2): in place of an empty directory, of nothing else. */
    int no = flags & RENAME_NOREPLACE ? 0 : sys_unlinkat(to->dir, to->name, AT_REMOVEDIR);
    if (no < 0 && no != -ENOENT)
        return no;
    no = carry_directory(from->dir, from->name, to->dir, to->name, MOVE_DEPTH, false);
    if (no < 0 && no != -EEXIST)
        (void)carry_directory(to->dir, to->name, from->dir, from->name, MOVE_DEPTH, true);
    return no;
}
