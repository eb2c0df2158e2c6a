/*
 * What pid 1 gives up before it starts a command, for itself and everything below it.
 *
 * Capabilities: with SECBIT_NOROOT an exec by uid 0 grants none, no_new_privs ignores set-id bits and file
 * capabilities, and all sets are empty; each of the three would suffice (capabilities(7)). Locked securebits make the
 * first one final. The bounding set is emptied in addition, in case the others change.
 */
#include "runtime/filter.h"
#include "runtime/runner.h"
#include "sys/caps.h"
#include "sys/notify.h"

int step_no_caps(struct runner *r, const struct step *s)
{
    (void)r, (void)s;
    int e = sys_prctl(PR_SET_SECUREBITS,
                      SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
                          SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
                      0, 0, 0);
    if (e == -EPERM && r->plan->tier)
        e = 0; /* without a user namespace an ordinary caller has none to drop */
    for (unsigned c = 0; e == 0; c++)
        e = sys_caps_unbound(c);
    if (e != -EINVAL && !(e == -EPERM && r->plan->tier)) /* -EINVAL: beyond the last capability of the kernel */
        return e;
    return sys_caps_keep(0);
}

int step_no_new_privs(struct runner *r, const struct step *s)
{
    (void)r, (void)s;
    return sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

int step_undumpable(struct runner *r, const struct step *s)
{
    (void)r, (void)s;
    return sys_prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

int step_keyring(struct runner *r, const struct step *s)
{
    (void)r, (void)s;
    int e = sys_keyring_new();
    /* A kernel without keyrings has none to share. A container's filter answers EPERM, which the kernel itself does not
       for an anonymous keyring (keyctl(2)): then the box keeps the caller's, and our filter refuses every call that
       could use it, as the container's does. */
    return e < 0 && e != -ENOSYS && e != -EPERM ? e : 0;
}

/* No core dumps from here on: the filter prevents any change. If the caller's hard limit is 0 it stays so, and only
   files are not written (see plan/finish.c). */
static int no_core_dumps(void)
{
    const struct sys_rlimit one = {1, 1}, none = {0, 0};
    int e = sys_prlimit(RLIMIT_CORE, &one, NULL);
    return e == -EPERM ? sys_prlimit(RLIMIT_CORE, &none, NULL) : e;
}

/* These the kernel counts for the user, whose work outside needs some, too. Where the limit is smaller already it stays. */
static int leave_some(void)
{
    static const struct {
        int what;
        struct sys_rlimit most;
    } shared[] = {{RLIMIT_SIGPENDING, {8192, 8192}}, {RLIMIT_MSGQUEUE, {409600, 409600}}};
    int e = 0;
    for (size_t i = 0; e == 0 && i < sizeof shared / sizeof *shared; i++) {
        e = sys_prlimit(shared[i].what, &shared[i].most, NULL);
        if (e == -EPERM)
            e = 0;
    }
    return e;
}

int step_filter(struct runner *r, const struct step *s)
{
    if (s->a >= FILTER_VARIANTS)
        return -EBADMSG;
    int e = no_core_dumps();
    if (e == 0)
        e = leave_some();
    if (e < 0)
        return e;
    const struct filter_program *f = &filters[s->a];
    const struct sock_filter *code = filter_code + f->at;
    if (!(s->a & (FILTER_GUARD | FILTER_READS)))
        return sys_seccomp_filter(code, f->n, 0);
    int fd = sys_seccomp_filter(code, f->n, SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
    if (fd == -EINVAL)
        fd = sys_seccomp_filter(code, f->n, SECCOMP_FILTER_FLAG_NEW_LISTENER);
    if (fd < 0)
        return fd;
    r->notify = fd;
    return 0;
}
