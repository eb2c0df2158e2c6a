/*
 * Makes the directories in which pinfold keeps things, but never a home directory, and as root none in another user's
 * home. sudo keeps HOME on some systems: root's files would be in the way there.
 */
#include "user/own_dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

static bool is_in_home(const char *path, const char *home)
{
    size_t n = strlen(home);
    while (n > 1 && home[n - 1] == '/')
        n--;
    return strncmp(path, home, n) == 0 && (path[n] == '/' || !path[n] || n == 1);
}

int own_dirs_allowed(const char *path)
{
    const char *home = getenv("HOME");
    char real[PATH_MAX];
    struct stat st;
    const bool root = geteuid() == 0;
    if (!home || home[0] != '/')
        return 0;
    /* Paths of ours have no links, HOME may have some; that counts only where the home exists. */
    if (!is_in_home(path, home) && !(root && realpath(home, real) && is_in_home(path, real)))
        return 0;
    if (stat(home, &st) < 0)
        return -errno;
    return !S_ISDIR(st.st_mode) ? -ENOTDIR : root && st.st_uid != 0 ? -EPERM : 0;
}

/*
 * A directory below one that hands its group down (setgid) has that group, and so has all that is made in it. In a box only one's own
 * group is known, and the kernel mounts no overlay of a directory of another one.
 */
static void take_own_group(const char *path)
{
    struct stat st;
    if (lstat(path, &st) < 0 || (st.st_gid == getegid() && !(st.st_mode & S_ISGID)))
        return;
    auto_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid())
        return;
    if (st.st_gid != getegid() && fchown(fd, (uid_t)-1, getegid()) < 0)
        return;
    if (st.st_gid != getegid() || st.st_mode & S_ISGID)
        (void)fchmod(fd, 0700);
}

/* mkdir(2), and one that is there is none of its errors. `with_group`: a new one gets the caller's own. */
static int make_if_missing(const char *path, bool with_group)
{
    if (mkdir(path, 0700) < 0)
        return errno != EEXIST ? -errno : 0;
    if (with_group)
        take_own_group(path);
    return 0;
}

int own_dirs_make(const char *path)
{
    char part[PATH_MAX];
    const size_t n = strlen(path);
    int r = own_dirs_allowed(path);
    if (r < 0)
        return r;
    if (n >= sizeof part)
        return -ENAMETOOLONG;
    memcpy(part, path, n + 1);
    size_t at = n;
    /* Back to what is there: as a rule only the last ones are missing. */
    while ((r = make_if_missing(part, true)) == -ENOENT) {
        while (at && part[at] != '/')
            at--;
        if (at == 0)
            break;
        part[at] = 0;
    }
    /* One that is there may answer otherwise (EROFS); what counts is whether the last one is there. */
    const int first = at ? r : -ENOENT;
    while (at < n) {
        part[at] = '/';
        at += strlen(part + at);
        r = make_if_missing(part, false); /* its group comes from the one above */
    }
    return r == 0 ? 0 : first ? first : r;
}

const char *own_dirs_why(const char *path, char *to, size_t room)
{
    const char *home = getenv("HOME");
    const int r = own_dirs_allowed(path);
    to[0] = 0;
    if (r == -EPERM)
        snprintf(
            to, room,
            "HOME is another user's, %.200s, where root makes nothing; set HOME=/root (sudo -H), or XDG_STATE_HOME",
            home);
    else if (r < 0)
        snprintf(to, room,
                 "there is no home directory %.200s, and pinfold makes none; set HOME or XDG_STATE_HOME to a directory "
                 "of yours",
                 home);
    return to;
}
