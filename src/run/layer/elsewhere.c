/*
 * Words about a repository that lies outside of the workspace. They decide nothing: who may write the workspace may have
 * written its file .git, so a repository is named for --rw only if it names the workspace, too.
 */
#include "run/layer/elsewhere.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "match/path.h"
#include "run/world.h"

enum { POINTER_MAX = PATH_MAX + 16 };

/* The first line of a regular file; NULL where there is none. */
static const char *pointed_line(struct arena *mem, const char *path)
{
    struct err ignored = {0};
    struct str text;
    if (!path || read_whole(mem, path, POINTER_MAX, FILE_ANYBODYS, true, true, &text, &ignored) < 0 || !text.n)
        return NULL;
    return arena_str(mem, str_until(&text, '\n'));
}

const char *elsewhere_git(struct arena *mem, const char *workspace)
{
    const char *said = pointed_line(mem, arena_printf(mem, "%s/.git", workspace));
    if (!said || strncmp(said, "gitdir: ", 8) != 0 || !said[8])
        return NULL;
    const char *git = path_clean_at(mem, workspace, str_of(said + 8));
    return git && !path_at_or_below(git, workspace) ? git : NULL;
}

const char *elsewhere_main(struct arena *mem, const char *workspace, const char *git)
{
    const char *back = pointed_line(mem, arena_printf(mem, "%s/gitdir", git));
    const char *common = pointed_line(mem, arena_printf(mem, "%s/commondir", git));
    const char *here = arena_printf(mem, "%s/.git", workspace);
    if (!back || !common || !here)
        return NULL;
    const char *names = path_clean_at(mem, git, str_of(back));
    if (!names || strcmp(names, here) != 0)
        return NULL;
    const char *whole = path_clean_at(mem, git, str_of(common));
    return whole && path_below(git, whole) ? whole : NULL;
}

const char *elsewhere_above(struct arena *mem, const char *workspace)
{
    struct stat st;
    for (const char *dir = workspace; dir && dir[0] == '/' && dir[1]; dir = path_dir(mem, dir)) {
        const char *git = arena_printf(mem, "%s/.git", dir);
        if (git && lstat(git, &st) == 0)
            return dir == workspace ? NULL : dir;
    }
    return NULL;
}
