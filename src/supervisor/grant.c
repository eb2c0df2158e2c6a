/*
 * Grants of single files while the command runs (protocol/grant.h). Whoever is asked is shown the path of the object that the
 * guard has judged. The file of this name on the host is held before the question, must be that object, and is opened by that
 * descriptor after a yes: what the box or anybody puts in its place meanwhile is not.
 */
#include "protocol/grant.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>
#include "supervisor/parts.h"
#include "sys/fd.h"
#include "sys/file.h"

/* The box may see a file through a mask, an overlay, which shows it with its own device and all else as it is. */
static bool is_same(const struct stat *is, const struct stat *was, int seen)
{
    struct statfs fs;
    if (is->st_ino != was->st_ino || !S_ISREG(is->st_mode) || is->st_nlink != 1)
        return false;
    if (is->st_dev == was->st_dev)
        return true;
    return fstatfs(seen, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC && was->st_mode == is->st_mode &&
           was->st_size == is->st_size && was->st_uid == is->st_uid && was->st_ctim.tv_sec == is->st_ctim.tv_sec &&
           was->st_ctim.tv_nsec == is->st_ctim.tv_nsec;
}

/* The host's file at `path`, reached over no link, if it is what `seen` is and has no other name. O_PATH, or -1. */
static int hold_object(const char *path, int seen)
{
    struct stat is, was;
    auto_fd int fd =
        sys_openat2(AT_FDCWD, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    const bool same_one = fd >= 0 && fstat(fd, &is) == 0 && fstat(seen, &was) == 0 && is_same(&is, &was, seen);
    return same_one ? take_fd(&fd) : -1;
}

static int open_held(int held, int flags)
{
    char path[32];
    struct stat st;
    if (fstat(held, &st) < 0 || st.st_nlink != 1)
        return -EACCES; /* it is gone, or has got another name */
    snprintf(path, sizeof path, "/proc/self/fd/%d", held);
    int fd = open(path, (flags & GRANT_FLAGS) | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static bool is_answer_wanted(int from)
{
    struct pollfd p = {.fd = from};
    return poll(&p, 1, 0) == 0; /* not hung up: the guard waits */
}

static int decide(struct box *b, const struct grant_request *r, int seen, int from)
{
    bool allow = false, run = false;
    auto_fd int held = r->path[0] == '/' ? hold_object(r->path, seen) : -1;
    if (held < 0 || b->stage >= STAGE_ENDING || !is_answer_wanted(from))
        return -EACCES;
    const struct box_question q = {.target = r->path,
                                   .how = BOX_QUESTION_WRITE,
                                   .pid = r->pid,
                                   .command = r->command,
                                   .left_ms = b->spec->start.plan->policy->net_ask_ms};
    b->spec->on_question(b->spec->ctx, &q, &allow, &run);
    return allow ? open_held(held, r->flags) : -EACCES;
}

void grant_frame(struct box *b, int from)
{
    struct grant_request r;
    int seen = -1;
    long n = sys_recv_fd(from, &r, sizeof r, &seen, MSG_DONTWAIT);
    auto_fd int object = seen;
    if (n != sizeof r || object < 0 || !b->spec || !b->spec->on_question || !b->spec->start.plan->image->grants)
        return;
    r.path[sizeof r.path - 1] = r.command[sizeof r.command - 1] = 0;
    for (char *c = r.command; *c; c++)
        *c = (char)(*c > ' ' && *c < 127 ? *c : '?');
    const int fd = decide(b, &r, object, from);
    auto_fd int given = fd < 0 ? -1 : fd;
    const int answer = fd < 0 ? fd : 0;
    (void)sys_send_fd(from, &answer, sizeof answer, given, MSG_DONTWAIT);
}
