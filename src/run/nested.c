/*
 * Detects whether this process runs inside a box, and says what a nested box needs. By a variable that boxes have; a
 * guard of the box around this one answers whatever the environment says.
 */
#include "run/nested.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "protocol/guard_table.h"
#include "sys/process.h"

#define MAX_RULES (16 << 20) /* bytes */

static bool look_for_box(void)
{
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != SECCOMP_MODE_FILTER)
        return false;
    /* A box has this value (plan/env.c); others may use the name for something else. */
    const char *said = getenv("PINFOLD");
    if (said && same(said, "1"))
        return true;
    auto_fd int rules = open(GUARD_TOLD_AT, O_RDWR | O_CLOEXEC); /* a guard answers whatever the environment says */
    return rules >= 0;
}

bool nested_in_box(void)
{
    static _Atomic int known; /* 1: no, 2: yes; a process does not leave a box, nor does pinfold enter one */
    if (!known)
        known = look_for_box() ? 2 : 1;
    return known == 2;
}

bool nested_allowed(void)
{
    const struct sys_clone how = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    struct plan_image told;
    if (!nested_in_box())
        return true;
    auto_fd int rules = open(GUARD_TOLD_AT, O_RDWR | O_CLOEXEC);
    if (rules >= 0 && pread(rules, &told, sizeof told, 0) == sizeof told && told.magic == PLAN_MAGIC &&
        !(told.filter & FILTER_USERNS))
        return false; /* an attempt would be told to whoever started that box */
    int status, pid = sys_clone3(&how);
    if (pid == 0)
        sys_exit(0);
    while (pid > 0 && sys_wait4(pid, &status, 0, NULL) == -EINTR)
        ;
    return pid > 0;
}

const struct plan_image *nested_around(struct arena *mem, const char **top)
{
    const char *with_top = top && *top ? arena_printf(mem, GUARD_TOLD_AT "%s", *top) : NULL;
    auto_fd int fd = with_top ? open(with_top, O_RDWR | O_CLOEXEC) : -1;
    struct stat st;
    if (fd < 0) {
        fd = open(GUARD_TOLD_AT, O_RDWR | O_CLOEXEC);
        if (top)
            *top = NULL;
    }
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > MAX_RULES)
        return NULL;
    const size_t n = (size_t)st.st_size;
    struct plan_image *image = n < sizeof *image ? NULL : arena_zero(mem, n);
    /* Others in the box have the same file open, and with it its position. */
    if (!image || pread(fd, image, n, 0) != (ssize_t)n || plan_image_check(image, n) < 0 ||
        image->guard_bytes < sizeof(struct guard_table))
        return NULL;
    return image;
}

int nested_no_proc(struct err *e, int r)
{
    if (access("/proc/self", F_OK) == 0)
        return r;
    return err_hint(e, r, "/proc is not mounted here, and a box needs it: mount -t proc proc /proc");
}

int nested_remedy(struct err *e, int r)
{
    if (access("/proc/self", F_OK) < 0)
        return nested_no_proc(e, r);
    if (!nested_in_box())
        return r;
    if (nested_allowed() && geteuid() == 0)
        return err_hint(e, r, "%s", NESTED_UID_ZERO);
    if (nested_allowed())
        return r;
    return err_hint(e, r,
                    "this already runs in a box; for a tighter one inside it, start the outer one with "
                    "--allow-nested-userns; or run the command directly: the outer box confines it");
}

int nested_keeps_nothing(struct err *e, int r)
{
    if (e->kind != ERR_SYSTEM || !nested_in_box())
        return r;
    return err_hint(e, r,
                    "this already runs in a box, where no layer can be kept; start the box around this one with --cow, "
                    "or use: pinfold run");
}
