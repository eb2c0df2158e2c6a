/*
 * Sends descriptors. The kernel counts those that a user has sent and nobody has received yet, over all of his processes and boxes, and
 * refuses more of them than the sender itself may have open (ETOOMANYREFS). A box that leaves as many unread as its own limit allows would
 * keep pinfold from starting others. So what is refused is sent once more under the hard limit, which is above that of boxes
 * (step_rlimit() of runtime/steps.c).
 */
#include "sys/fd.h"

#include <errno.h>
#include <sys/resource.h>

#include "sys/process.h"

long sys_send_again(int s, const struct msghdr *m, int flags)
{
    struct sys_rlimit was, most, now;
    if (sys_prlimit(RLIMIT_NOFILE, NULL, &was) < 0 || was.soft >= was.hard)
        return -ETOOMANYREFS;
    most = (struct sys_rlimit){was.hard, was.hard};
    if (sys_prlimit(RLIMIT_NOFILE, &most, &now) < 0)
        return -ETOOMANYREFS;
    const long r = sys_sendmsg(s, m, flags);
    if (now.soft < now.hard) /* another thread is not here as well, which has raised it and puts it back */
        (void)sys_prlimit(RLIMIT_NOFILE, &now, NULL);
    return r;
}
