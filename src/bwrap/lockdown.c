/*
 * What the command may still do: capabilities and the line's seccomp programs. Last before the command, because what
 * comes before needs what they take away.
 */
#include <errno.h>

#include "bwrap/bwrap.h"
#include "sys/caps.h"

static void unbind(uint64_t keep)
{
    for (unsigned i = 0; i < 64; i++) {
        int e = keep >> i & 1 ? 0 : sys_caps_unbound(i);
        if (e == -EINVAL)
            break; /* the kernel knows no more of them */
        if (e < 0)
            bw_die_sys(e, "Can't drop capability %u from the bounding set", i);
    }
}

/*
 * The host's root keeps what it has, another user nothing; --cap-add and --cap-drop change that. What remains by an
 * option is in the ambient set, too: the program need not run as user 0 to have it.
 */
void bw_drop_caps(const struct bw_line *l, bool root, bool own)
{
    const uint64_t keep = l->caps & bw_caps_permitted();
    int e = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (e < 0)
        bw_die_sys(e, "prctl(PR_SET_NO_NEW_PRIVS) failed");
    if (root && !own && !l->caps_said)
        return;
    unbind(keep);
    e = l->caps_said && keep ? sys_caps_bequeath(keep) : sys_caps_keep(keep);
    if (e < 0)
        bw_die_sys(e, "Can't set the capabilities that the options ask for");
}

/* By prctl(2), not seccomp(2): the programs of callers permit the former, for the sake of those that come after them. */
void bw_load_filters(const struct bw_line *l)
{
    for (size_t i = 0; i < l->n_filters; i++) {
        const struct sock_fprog program = {.len = (unsigned short)(l->filters[i].bytes / sizeof(struct sock_filter)),
                                           .filter = l->filters[i].code};
        int e = sys_prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (unsigned long)&program, 0, 0);
        if (e == -EINVAL)
            bw_die("Unable to set up system call filtering as requested: prctl(PR_SET_SECCOMP) reported EINVAL. (Hint: "
                   "this requires a kernel configured with CONFIG_SECCOMP and CONFIG_SECCOMP_FILTER.)");
        if (e < 0)
            bw_die_sys(e, "prctl(PR_SET_SECCOMP)");
    }
}
