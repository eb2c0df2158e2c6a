/*
 * The directory of a box's socket to an agent's filter: created, found again after a pinfold that was killed,
 * removed. ssh.c and gpg.c share it; a lock in it tells whether its maker lives.
 */
#include "run/keys/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "sys/remove.h"

#define PLACES "/tmp/"
enum { YOUNG_SECONDS = 60 };

/* What a pinfold that was killed has left: nobody holds its lock. A young one may be between its two first steps. */
static void sweep_places(const char *prefix)
{
    DIR *d = opendir(PLACES);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        struct stat st;
        if (!str_starts(str_of(entry->d_name), str_of(prefix)))
            continue;
        auto_fd int fd = openat(dirfd(d), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && st.st_mtime < time(NULL) - YOUNG_SECONDS &&
            flock(fd, LOCK_EX | LOCK_NB) == 0)
            remove_tree(dirfd(d), entry->d_name);
    }
    if (d)
        (void)closedir(d);
}

int agent_place_make(const char *kind, struct agent_place *ret, int *ret_listener, struct err *e)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char dir[sizeof ret->dir], prefix[32];
    *ret = AGENT_PLACE;
    snprintf(prefix, sizeof prefix, "pinfold-%s-", kind);
    snprintf(dir, sizeof dir, PLACES "%sXXXXXX", prefix);
    if (!mkdtemp(dir))
        return err_sys(e, ERR_SYSTEM, errno, "cannot create a directory in " PLACES " for the %s-agent's socket", kind);
    memcpy(ret->dir, dir, sizeof dir);
    ret->lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (ret->lock < 0 || flock(ret->lock, LOCK_EX | LOCK_NB) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot lock '%s'", dir);
    sweep_places(prefix);
    snprintf(at.sun_path, sizeof at.sun_path, "%s/" AGENT_SOCKET, dir);
    auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* The box's user may be another one; outside, the directory admits only the caller. */
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || chmod(at.sun_path, 0666) < 0 || listen(fd, 64) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot create the socket '%s' for the %s-agent", at.sun_path, kind);
    *ret_listener = take_fd(&fd);
    return 0;
}

void agent_place_end(struct agent_place *p)
{
    if (p->dir[0]) {
        auto_fd int places = open(PLACES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (places >= 0)
            remove_tree(places, p->dir + strlen(PLACES));
    }
    p->lock = close_fd(p->lock);
    *p = AGENT_PLACE;
}
