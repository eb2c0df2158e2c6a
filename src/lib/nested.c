#include "lib/nested.h"

#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

bool nested_in_box(void)
{
    return getenv("PINFOLD") && prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER;
}

int nested_remedy(struct err *e, int r)
{
    if (access("/proc/self", F_OK) < 0)
        return err_hint(e, r, "/proc is not mounted here, and a box cannot be made without: mount -t proc proc /proc");
    if (!nested_in_box())
        return r;
    return err_hint(e, r,
                    "this runs in a box already, and a box within needs the outer one to be started with "
                    "--allow-nested-userns; or run the command as it is: the outer box holds it");
}
