/*
 * Judges what native can do here: see trial.h. Pure: the probe has tried it, and gives what the kernel answered.
 */
#include "plan/trial.h"

#include <string.h>

const char *trial_clause(struct arena *mem, const char *what, int no)
{
    const char *text = arena_printf(mem, "%s: %s", what, strerror(no));
    return text ? text : what;
}

void facts_lack(struct facts *f, features which, struct reason r)
{
    for (int i = 0; i < FEATURE_COUNT; i++) {
        if (!(which >> i & 1))
            continue;
        f->can &= ~((features)1 << i);
        f->why_not[i] = r.why;
        f->remedy[i] = r.remedy;
    }
}

void facts_of_kernel(struct facts *f, bool supervised, struct reason unread)
{
    if (!supervised && unread.why)
        facts_lack(f, F(GUARD) | F(UNIX_SOCKETS) | F(HIDES_ANY_DEPTH), unread);
    else if (supervised)
        facts_lack(f, F(GUARD) | F(UNIX_SOCKETS) | F(HIDES_ANY_DEPTH),
                   (struct reason){
                       "this already is a supervised box, and the kernel allows one supervisor of system calls", NULL});
    else if (!f->notify)
        facts_lack(
            f, F(GUARD) | F(UNIX_SOCKETS) | F(HIDES_ANY_DEPTH),
            (struct reason){"the kernel has no seccomp user notification (Linux 5.0, CONFIG_SECCOMP_FILTER)", NULL});
    if (f->landlock_abi < 6 && f->tier != TIER_LANDLOCK)
        facts_lack(f, F(ABSTRACT_SOCKETS),
                   (struct reason){"with the host's network, Landlock's scopes are needed for it (Linux 6.12)", NULL});
}

/* What is lost for want of namespaces and of something of Landlock's: `what`, and why there are no namespaces. */
static struct reason for_both(struct arena *mem, const char *what, struct reason r)
{
    const char *why = r.why ? arena_printf(mem, "%s: %s", what, r.why) : NULL;
    return (struct reason){why ? why : what, r.remedy};
}

void facts_without_namespaces(struct facts *f, struct arena *mem, bool memory_files, struct reason r)
{
    f->tier = TIER_LANDLOCK;
    f->memory_files = memory_files;
    f->catch = CATCH_SOCKET;
    facts_lack(f,
               F(REMAP) | F(PID_NAMESPACE) | F(PRIVATE_IPC) | F(PRIVATE_TMP) | F(FRESH_PROC) | F(NO_SURVIVORS) |
                   F(NETWORK_TRANSPARENT) | F(NETWORK_PORTS) | F(NETWORK_ADDRESSES) | F(HOST_NETWORK) | F(USER_ROOT) |
                   F(CACHES) | F(LIMIT_PROCESSES),
               r);
    if (f->landlock_abi < 3)
        facts_lack(f, F(FILES) | F(HIDES),
                   for_both(mem,
                            f->landlock_abi ? "without namespaces, files need Landlock's right to truncate (Linux 6.2)"
                                            : "neither namespaces nor Landlock are available",
                            r));
    if (f->landlock_abi < 6)
        facts_lack(f, F(SIGNALS) | F(ABSTRACT_SOCKETS),
                   for_both(mem, "without namespaces, Landlock's scopes are needed (Linux 6.12)", r));
}

void facts_of_catch(struct facts *f, struct arena *mem, const struct tried *t)
{
    const int *no = t->no + TRIAL_CATCH;
    int way = CATCH_TPROXY;
    while (way < CATCH_LOOPBACK && no[way])
        way++;
    f->catch = (enum catch_way)way;
    if (way == CATCH_TPROXY)
        return;
    const char *what = arena_printf(mem, "nf_tables TPROXY cannot be used here (%s), so connections are redirected %s",
                                    strerror(-no[CATCH_TPROXY]),
                                    way == CATCH_ROUTES ? "at listed ports only: list them, as in --allow HOST:443"
                                                        : "by name and at listed ports only, as in --allow HOST:443");
    f->catch_why = what ? what : "nf_tables TPROXY cannot be used here";
    facts_lack(f, F(NETWORK_PORTS) | (way == CATCH_LOOPBACK ? F(NETWORK_ADDRESSES) : 0),
               (struct reason){f->catch_why, NULL});
    if (no[way])
        facts_lack(f, F(NETWORK_TRANSPARENT),
                   (struct reason){trial_clause(mem, "connections cannot be redirected", -no[way]), NULL});
}
