/*
 * Mount points at guarded names. bubblewrap, and with it codex and srt, creates missing mount points, and they mount
 * over names that are guarded here. So a caller that may mount in its own mount namespace may create such a name, empty:
 * what is below a guarded name stays guarded, and a file cannot be opened for writing. It is removed when the box ends.
 *
 * Excluded are names whose mere existence has a meaning (a repository's own), and names that the user protects. A repository's
 * hooks may be a file, over which srt mounts where there are none: git finds no hook in it, as it found none before. As a
 * directory it is judged like any (verdict.c), and stays.
 */
#include <errno.h>
#include <string.h>
#include "base/fd.h"
#include "guard/rules/rules.h"

/* A command in an inner box, which cannot mount, needs no mount points. */
static bool can_mount(struct guard *g)
{
    uint64_t caps;
    return target_caps(g, &caps) == 0 && caps >> CAP_ADMIN & 1;
}

/* Only what can be found again may be created. */
bool point_may(struct guard *g, const struct place *p, const struct rule *rule, bool directory)
{
    return p->seen >= 0 && rule_may_be_point(rule, place_path(p), directory) && can_mount(g) &&
           places_add(g, &g->shared->points, place_path(p));
}

/*
 * A .gitmodules that is created write-protected: what is written is judged, and then gets the name as another file, on which
 * nothing would be mounted. git's is not write-protected.
 */
bool point_modules(struct guard *g, const struct place *p, int flags, unsigned mode)
{
    struct sys_stat st;
    return p->seen >= 0 && flags & O_CREAT && !(mode & 0222) && gitconfig_kind_of(place_path(p)) == GITCONFIG_MODULES &&
           can_mount(g) && sys_stat_at(p->dir, p->name, AT_SYMLINK_NOFOLLOW, SYS_STAT_BASIC, &st) == -ENOENT;
}

/* Created in this box and empty; for a directory rmdir(2) finds out. */
static bool is_empty_and_ours(struct guard *g, int dir, const char *name, bool *ret_directory)
{
    struct sys_stat st;
    if (born_stat(dir, name, AT_SYMLINK_NOFOLLOW, &st) < 0)
        return false;
    *ret_directory = S_ISDIR(st.mode);
    return (S_ISDIR(st.mode) || (S_ISREG(st.mode) && st.size == 0 && st.links == 1)) && born_has(g, &st);
}

bool point_is(struct guard *g, const struct place *p, const struct rule *rule)
{
    bool directory;
    return is_empty_and_ours(g, p->dir, place_bare(p), &directory) && rule_may_be_point(rule, place_path(p), directory);
}

void points_end(struct guard *g)
{
    for (uint32_t at = 0; at < g->shared->points.n;) {
        const struct str path = places_next(&g->shared->points, &at);
        const char *slash = memrchr(path.p, '/', path.n);
        bool is_directory;
        auto_fd int dir = open_in_box((struct str){path.p, (size_t)(slash - path.p)}, O_PATH | O_DIRECTORY);
        if (dir >= 0 && is_empty_and_ours(g, dir, slash + 1, &is_directory))
            (void)sys_unlinkat(dir, slash + 1, is_directory ? AT_REMOVEDIR : 0);
    }
}
