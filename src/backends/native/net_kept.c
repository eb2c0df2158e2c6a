/* Keeps an empty network namespace for the next box. The helper that makes it uses sys/ only, as does all between clone and exec. */
#include "backends/native/net_kept.h"

#include <net/if.h>
#include <sched.h>
#include <string.h>
#include "runtime/builder.h"
#include "runtime/command.h"
#include "sys/fd.h"
#include "sys/file.h"
#include "sys/process.h"
#include "sys/socket.h"

enum { KEPT = 4 };

static uint32_t caller(long which)
{
    return (uint32_t)sys_call(which, 0, 0, 0, 0, 0, 0);
}

/* A helper is cloned into both namespaces, sends them, and exits. */
static _Noreturn void helper(const struct net_kept *k, int to)
{
    static const char *const names[KEPT] = {"/proc/self/ns/user", "/proc/self/ns/net", "/proc/self/net/sockstat",
                                            "/proc/self/net/snmp"};
    int e = map_ids(k->uid, k->gid, k->outside_uid, k->outside_gid);
    if (e == 0)
        e = loopback_up();
    if (e == 0)
        e = send_files(to, names, KEPT);
    sys_exit(e < 0);
}

static int make(struct net_kept *k)
{
    int ends[2], *const kept[KEPT] = {&k->user, &k->net, &k->sockets, &k->counters};
    int e = sys_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), status;
    if (e < 0)
        return e;
    const struct sys_clone how = {.flags = CLONE_NEWUSER | CLONE_NEWNET | SYS_CLONE_CLEAR_SIGHAND};
    int pid = sys_clone3(&how);
    if (pid == 0)
        helper(k, ends[1]);
    sys_shut(ends[1]);
    for (int i = 0; pid > 0 && e >= 0 && i < KEPT; i++) {
        char word;
        long n = sys_recv_fd(ends[0], &word, 1, kept[i], 0);
        e = n < 0 ? (int)n : *kept[i] < 0 ? -ECONNRESET : 0;
    }
    sys_shut(ends[0]);
    while (pid > 0 && sys_wait4(pid, &status, __WALL, NULL) == -EINTR)
        ;
    return pid < 0 ? pid : e;
}

/* Whether it is empty. */
static bool is_empty(const struct net_kept *k)
{
    static const char none[] = "sockets: used 0\n", waiting[] = " tw ";
    char text[1024];
    long n = sys_pread(k->sockets, text, sizeof text - 1, 0);
    if (n <= 0)
        return false;
    text[n] = 0;
    const char *tw = strstr(text, waiting);
    if (strncmp(text, none, sizeof none - 1) != 0 || !tw || strncmp(tw + sizeof waiting - 1, "0 ", 2) != 0)
        return false;
    char counted[4096];
    n = sys_pread(k->counters, counted, sizeof counted - 1, 0);
    counted[n < 0 ? 0 : n] = 0;
    return n > 0 && !counts_network_tries(counted);
}

/* Whether the plan needs nothing of its network namespace except that it is separate. */
static bool suits(const struct plan_image *image)
{
    const uint32_t both = CLONE_NEWUSER | CLONE_NEWNET;
    return plan_has(image, STEP_LOOPBACK) && !plan_has(image, STEP_CATCH) && (image->namespaces & both) == both &&
           !(image->outer & both);
}

bool net_kept_ready(struct net_kept *k, const struct plan_image *image)
{
    const struct net_kept wanted = {-1, -1, -1, -1, image->uid, image->gid, caller(SYS_geteuid), caller(SYS_getegid)};
    if (!suits(image))
        return false;
    if (k->net >= 0 && k->uid == wanted.uid && k->gid == wanted.gid && k->outside_uid == wanted.outside_uid &&
        k->outside_gid == wanted.outside_gid && is_empty(k))
        return true;
    net_kept_end(k);
    *k = wanted;
    if (make(k) == 0 && is_empty(k))
        return true;
    net_kept_end(k);
    return false;
}

int net_kept_enter(const struct net_kept *k, unsigned long others)
{
    int e = sys_setns(k->user, CLONE_NEWUSER);
    if (e == 0)
        e = sys_unshare(others & ~(unsigned long)(CLONE_NEWUSER | CLONE_NEWNET));
    if (e == 0)
        e = sys_setns(k->net, CLONE_NEWNET);
    /* Gaining capabilities makes a process undumpable; its own /proc/self then belongs to root (prctl(2)). */
    return e < 0 ? e : sys_prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

void net_kept_end(struct net_kept *k)
{
    k->user = sys_shut(k->user);
    k->net = sys_shut(k->net);
    k->sockets = sys_shut(k->sockets);
    k->counters = sys_shut(k->counters);
}
