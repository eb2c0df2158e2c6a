/*
 * Words about a repository that lies outside of the workspace. They decide nothing: who may write the workspace may have
 * written its file .git, so a repository is named for --rw only if it names the workspace, too.
 */
#include "run/layer/elsewhere.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "match/path.h"

/* The first line of a regular file; NULL where there is none. */
static const char *pointed_line(struct arena *mem, const char *path)
{
    char text[PATH_MAX + 16];
    struct stat st;
    if (!path || lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return NULL;
    auto_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return NULL;
    text[n] = 0;
    text[strcspn(text, "\n")] = 0;
    return arena_text(mem, text);
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
