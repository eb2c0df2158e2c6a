/*
 * `pinfold why` in a box: connect(2) to a name that stands for pinfold. The caller's socket is replaced by one end of a new
 * pair, pinfold gets the other; the guard reads nothing of what goes through it.
 */
#include <errno.h>
#include <string.h>
#include "base/fd.h"
#include "guard/inside.h"
#include "protocol/inquiry.h"
#include "sys/fd.h"
#include "sys/socket.h"

bool inquiry_is(const char *name, size_t n)
{
    return n == sizeof INQUIRY_NAME && name[0] == 0 && memcmp(name + 1, INQUIRY_NAME, n - 1) == 0;
}

long inquiry_call(struct guard *g, int fd)
{
    const struct frame f = {.kind = FRAME_INQUIRY};
    uint32_t dropped;
    int ends[2];
    if (g->ours || g->report < 0)
        return -ECONNREFUSED;
    if (!denial_passes(g->shared, &g->shared->inquiries, &dropped))
        return -EAGAIN;
    int no = sys_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
    if (no < 0)
        return no;
    auto_fd int theirs = ends[0], callers = ends[1];
    if (sys_send_fd(g->report, &f, sizeof f, theirs, MSG_DONTWAIT) != sizeof f)
        return -ECONNREFUSED; /* this engine passes no descriptors, or too much waits there */
    no = sys_notify_replace(g->notify, g->n.id, callers, fd, O_CLOEXEC);
    return no < 0 ? no : 0;
}
