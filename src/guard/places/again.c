/*
 * The callers' descriptors where pidfd_getfd(2) is refused, as containers' filters do (it needs CAP_SYS_PTRACE there).
 *
 * A file or directory is opened again by its link in /proc, in the mode that the caller has it open in. The kernel tells
 * mode, inode and mount of one open file at a time (proc_pid_fdinfo(5)), and only what has that inode and mount is
 * opened, so a caller that exchanges its descriptors meanwhile gains no mode that it did not have. Anything else is
 * a descriptor with O_PATH. A new open file is not the caller's own: flock(2) is left to the kernel, and a Unix socket is
 * replaced in the caller by one of the guard's that was bound or connected for it. What the caller had set on it
 * before, and its duplicates of it, stay behind (docs/CONTAINERS.md).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "base/fd.h"
#include "guard/places/places.h"
#include "sys/fd.h"
#include "sys/socket.h"

struct opened { /* what fdinfo says */
    unsigned flags;
    uint64_t inode, mount;
};

static int opened_read(struct guard *g, int fd, struct opened *ret)
{
    char name[32], text[512];
    (void)snprintf(name, sizeof name, "fdinfo/%d", fd);
    const long n = sys_read_text(g->who->proc, name, text, sizeof text);
    if (n < 0)
        return n == -ENOENT ? -EBADF : (int)n;
    const char *flags = strstr(text, "flags:\t"), *mount = strstr(text, "\nmnt_id:\t"),
               *inode = strstr(text, "\nino:\t");
    if (!flags || !mount || !inode)
        return -EPERM; /* Linux 5.14 tells the inode */
    *ret = (struct opened){(unsigned)strtoul(flags + 7, NULL, 8), strtoull(inode + 6, NULL, 10),
                           strtoull(mount + 9, NULL, 10)};
    return 0;
}

/* O_PATH, with what the caller has open there. */
static int link_open(struct guard *g, int fd, struct sys_stat *st, struct opened *was)
{
    char name[32];
    int no = opened_read(g, fd, was);
    if (no < 0)
        return no;
    (void)snprintf(name, sizeof name, "fd/%d", fd);
    own_fd int link = sys_openat(g->who->proc, name, O_PATH | O_CLOEXEC, 0);
    if (link < 0)
        return link == -ENOENT ? -EBADF : link;
    no = sys_stat_fd(link, SYS_STAT_BASIC | SYS_STAT_MOUNT, st);
    if (no == 0 && (st->inode != was->inode || (!S_ISSOCK(st->mode) && st->mount != was->mount)))
        no = -EBADF; /* exchanged meanwhile */
    return no < 0 ? no : sys_taken(&link);
}

int again_fd(struct guard *g, int fd)
{
    struct sys_stat st;
    struct opened was;
    own_fd int link = link_open(g, fd, &st, &was);
    if (link < 0 || was.flags & O_PATH || (!S_ISREG(st.mode) && !S_ISDIR(st.mode)))
        return link < 0 ? link : sys_taken(&link);
    int own = own_reopen(g, link, (int)(was.flags & (O_ACCMODE | O_APPEND)) | O_NONBLOCK);
    if (own == -EACCES && was.flags & O_ACCMODE) /* its mode has changed since */
        own = own_reopen(g, link, O_RDONLY | O_NONBLOCK);
    return own >= 0 ? own : sys_taken(&link);
}

int again_socket(struct guard *g, int fd, int type)
{
    struct sys_stat st;
    struct opened was;
    auto_fd int link = link_open(g, fd, &st, &was);
    if (link < 0)
        return link;
    if (!S_ISSOCK(st.mode))
        return -ENOTSOCK;
    return sys_socket(AF_UNIX, type | SOCK_CLOEXEC | (was.flags & O_NONBLOCK ? SOCK_NONBLOCK : 0), 0);
}

int again_inode(struct guard *g, int fd, uint64_t *ret)
{
    struct sys_stat st;
    struct opened was;
    auto_fd int link = link_open(g, fd, &st, &was);
    *ret = link < 0 ? 0 : st.inode;
    return link < 0 ? link : S_ISSOCK(st.mode) ? 0 : -ENOTSOCK;
}

int again_hand_over(struct guard *g, int fd, int own)
{
    struct opened was;
    int no = opened_read(g, fd, &was);
    return no < 0 ? no : sys_notify_replace(g->notify, g->n.id, own, fd, was.flags & O_CLOEXEC);
}
