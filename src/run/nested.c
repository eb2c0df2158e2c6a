/* Detects whether this process runs inside a box, and says what a nested box needs. */
#include "run/nested.h"

#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "sys/process.h"

bool nested_in_box(void)
{
    return getenv("PINFOLD") && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER;
}

bool nested_allowed(void)
{
    const struct sys_clone how = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    if (!nested_in_box())
        return true;
    int status, pid = sys_clone3(&how);
    if (pid == 0)
        sys_exit(0);
    while (pid > 0 && sys_wait4(pid, &status, 0, NULL) == -EINTR)
        ;
    return pid > 0;
}

int nested_remedy(struct err *e, int r)
{
    if (access("/proc/self", F_OK) < 0)
        return err_hint(e, r, "/proc is not mounted here, and a box needs it: mount -t proc proc /proc");
    if (!nested_in_box())
        return r;
    if (nested_allowed() && geteuid() == 0)
        return err_hint(e, r,
                        "the outer box allows user namespaces, but the kernel does not map uid 0 again without "
                        "capabilities: start the outer box as an ordinary user, or with --user 1000:1000");
    if (nested_allowed())
        return r;
    return err_hint(e, r,
                    "this already runs in a box; a nested box needs the outer box to be started with "
                    "--allow-nested-userns; or run the command directly: the outer box confines it");
}
