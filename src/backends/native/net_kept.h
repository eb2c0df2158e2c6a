/*
 * A reusable network namespace, for a caller that runs one command after another under one policy without a network.
 * Creating and destroying one is a quarter of what a box costs (1.1 ms of processor time, most of it after the box has
 * ended), and an empty one is as good as new.
 *
 * It is reused only if it contains no socket of any family and no connection in TIME-WAIT (proc_net(5), sockstat); then
 * abstract names, ports and queued data are gone, too. And only if nothing in it has looked for a network, which the kernel counts for
 * as long as it is there: the next command that fails would be told that it did. Nothing else in it can be changed from a box, whose commands
 * have no capability in it and see /proc/sys read-only. The user namespace that owns it is kept with it, because only
 * its capabilities permit entering it (setns(2)).
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "plan/plan.h"

struct net_kept {
    int user, net; /* namespaces, or -1 */
    int sockets;   /* /proc/self/net/sockstat of the namespace, or -1 */
    int counters;  /* /proc/self/net/snmp of it, or -1 */
    uint32_t uid, gid, outside_uid, outside_gid;
};
#define NET_KEPT                                                                                                       \
    (struct net_kept)                                                                                                  \
    {                                                                                                                  \
        .user = -1, .net = -1, .sockets = -1, .counters = -1                                                           \
    }

/* Whether `k` can be entered for a box of this plan; creates it if there is none or it is still in use. */
bool net_kept_ready(struct net_kept *k, const struct plan_image *image);
/* In the builder, first: enters both, and creates new namespaces of the kinds `others` (CLONE_NEW...). 0 or -errno. */
int net_kept_enter(const struct net_kept *k, unsigned long others);
void net_kept_end(struct net_kept *k);
