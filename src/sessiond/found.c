/*
 * Whether a session daemon can still be found, by its record and its socket, and how it makes itself unfindable. One
 * that nobody can find ends, because nobody else could end it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "sessiond/parts.h"

/* Whether clients still find the socket: the signal only means that one did not, a moment ago. */
bool sessiond_is_found(const struct sessiond *k)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct stat st;
    auto_fd int dir = open(k->ask->run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    auto_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/" KEEP_SOCKET, dir);
    if (k->listener < 0 || dir < 0 || fstatat(dir, KEEP_SOCKET, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    /* A full queue means that it was found. */
    return fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) == 0 || errno == EAGAIN;
}

/* If it was removed, or belongs to another session of the same name, nobody can find this one any more. */
bool sessiond_has_record(struct sessiond *k)
{
    struct stat st;
    if (stat(k->ask->record, &st) < 0)
        return errno != ENOENT && errno != ENOTDIR;
    if (!k->record_ino)
        k->record_ino = st.st_ino;
    return st.st_ino == k->record_ino;
}

void sessiond_leave(struct sessiond *k)
{
    auto_fd int dir = k->listener < 0 ? -1 : open(k->ask->run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0 && sessiond_has_record(k))
        (void)unlinkat(dir, KEEP_SOCKET, 0);
    k->listener = close_fd(k->listener);
}
