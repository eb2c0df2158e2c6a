/* Whose a directory is: the root of a repository that the box did not create, or of one of its own (reporoot.c says more).
   Told by the markers in it, such as .git. */
#include <errno.h>
#include <fcntl.h>
#include "base/fd.h"
#include "guard/rules/rules.h"

bool root_is_lost(struct guard *g, struct str directory)
{
    bool found = false;
    table_lock(g->shared);
    for (uint32_t at = 0; !found && at < g->shared->lost.n;)
        found = fold_eq(places_next(&g->shared->lost, &at), directory);
    table_unlock(g->shared);
    return found;
}

/* By the markers in it: one that this box did not create, and what cannot be examined, makes it another's. */
enum root_kind root_kind_at(struct guard *g, int dir, const char *const *names)
{
    enum root_kind kind = ROOT_NONE;
    struct sys_stat st;
    for (; *names; names++) {
        int no = born_stat(dir, *names, AT_SYMLINK_NOFOLLOW, &st);
        if (no == -ENOENT || no == -ENOTDIR)
            continue;
        if (no < 0 || !born_has(g, &st))
            return ROOT_OTHERS;
        kind = ROOT_OWN;
    }
    return kind;
}

enum root_kind root_kind_of(struct guard *g, struct str directory)
{
    auto_fd int dir = open_in_box(directory, O_PATH | O_DIRECTORY);
    if (dir < 0 && dir != -ENOENT && dir != -ENOTDIR)
        return ROOT_OTHERS;
    /* In this order, because a marker is added to `lost` before it is removed. */
    const enum root_kind kind = dir < 0 ? ROOT_NONE : root_kind_at(g, dir, repository_markers);
    return kind != ROOT_OTHERS && root_is_lost(g, directory) ? ROOT_OTHERS : kind;
}
