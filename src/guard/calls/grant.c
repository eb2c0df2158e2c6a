/*
 * A write that nothing but the place refuses may be granted while the command runs (`pinfold learn`, ask_writes of the
 * library): pinfold is given the object that was judged, asks, opens that very object itself, and hands the descriptor back.
 * The guard waits without a lock, in a worker that nobody else waits for, and no longer than the plan says.
 */
#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/time.h>
#include "base/fd.h"
#include "guard/calls/calls.h"
#include "protocol/grant.h"
#include "sys/fd.h"
#include "sys/socket.h"

#define GRANT_SLACK_MS 10000 /* pinfold keeps the time; what it granted in the last moment arrives */

bool grant_wanted(struct guard *g, const struct object *o, int flags)
{
    return g->plan->grants && !g->ours && g->report >= 0 && !o->magic && o->n < GRANT_PATH &&
           (flags & (O_WRONLY | O_RDWR | O_TRUNC)) && verdict_grantable(g, o);
}

static void grant_fill(struct guard *g, const struct object *o, int flags, struct grant_request *r)
{
    *r = (struct grant_request){.pid = pid_inside(g), .flags = flags & GRANT_FLAGS};
    memcpy(r->path, o->path, o->n);
    const long n = sys_read_text(g->who->proc, "comm", r->command, sizeof r->command);
    r->command[n > 0 ? n - 1 : 0] = 0; /* without its newline */
}

/* Whether it is the object, opened as it was asked for. */
static bool is_that(int fd, const struct object *o, int flags)
{
    struct sys_stat st;
    struct statfs fs; /* a mask shows another device (supervisor/grant.c) */
    const bool masked = sys_fstatfs(o->fd, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC;
    const int got = sys_fcntl(fd, F_GETFL, 0);
    return got >= 0 && (got & (O_ACCMODE | O_APPEND)) == (flags & (O_ACCMODE | O_APPEND)) &&
           sys_stat_fd(fd, SYS_STAT_BASIC, &st) == 0 && S_ISREG(st.mode) && st.inode == o->st.inode &&
           (masked || (st.major == o->st.major && st.minor == o->st.minor));
}

int grant_ask(struct guard *g, const struct object *o, int flags)
{
    const uint32_t ms = g->plan->grants + GRANT_SLACK_MS;
    const struct timeval patience = {.tv_sec = ms / 1000, .tv_usec = (long)(ms % 1000) * 1000};
    struct grant_request request;
    uint32_t dropped;
    int answer = 0, fd = -1;
    if (!denial_passes(g->shared, &g->shared->grants, &dropped))
        return -EAGAIN;
    grant_fill(g, o, flags, &request);
    auto_fd int own = report_pair(g, FRAME_GRANT, &request, sizeof request, o->fd);
    const int no = own < 0 ? own : sys_setsockopt(own, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (no < 0)
        return no;
    long n = sys_recv_fd(own, &answer, sizeof answer, &fd, 0);
    auto_fd int given = fd;
    if (n != sizeof answer || answer < 0 || given < 0 || !is_that(given, o, flags))
        return -EACCES;
    return take_fd(&given);
}
