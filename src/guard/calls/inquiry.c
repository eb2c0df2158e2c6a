/*
 * `pinfold why` in a box: connect(2) to a name that stands for pinfold. The caller's socket is replaced by one end of a new
 * pair, pinfold gets the other; the guard reads nothing of what goes through it.
 */
#include <errno.h>
#include <string.h>
#include "base/fd.h"
#include "guard/calls/calls.h"
#include "protocol/inquiry.h"

bool inquiry_is(const char *name, size_t n)
{
    return n == sizeof INQUIRY_NAME && name[0] == 0 && memcmp(name + 1, INQUIRY_NAME, n - 1) == 0;
}

long inquiry_call(struct guard *g, int fd)
{
    uint32_t dropped;
    if (g->ours || g->report < 0)
        return -ECONNREFUSED;
    if (!denial_passes(g->shared, &g->shared->inquiries, &dropped))
        return -EAGAIN;
    auto_fd int callers = report_pair(g, FRAME_INQUIRY, NULL, 0, -1);
    if (callers < 0)
        return callers == -EPIPE ? -ECONNREFUSED
                                 : callers; /* this engine passes no descriptors, or too much waits there */
    const int no = sys_notify_replace(g->notify, g->n.id, callers, fd, O_CLOEXEC);
    return no < 0 ? no : 0;
}
