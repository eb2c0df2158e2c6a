/*
 * A network namespace that is used again: for a caller that runs one command after the other under one policy without a
 * network. Making one and taking it down again is a quarter of what a box costs (1.1 ms of processor, most of it after the
 * box has ended), and one in which nothing is left is as good as a new one.
 *
 * It is handed on only when no socket of any family and no connection in TIME-WAIT is in it (proc_net(5), sockstat):
 * names in the abstract namespace, ports and what stands in queues are then gone. Nothing else of it can be changed from
 * inside a box, whose commands have no capability in it and see /proc/sys read-only. The user namespace that owns it is
 * kept with it, for only that one's powers can enter it (setns(2)).
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "plan/plan.h"

struct net_kept {
    int user, net; /* namespaces, or -1 */
    int sockets;   /* /proc/self/net/sockstat of the namespace, or -1 */
    uint32_t uid, gid, outside_uid, outside_gid;
};
#define NET_KEPT                                                                                                       \
    (struct net_kept)                                                                                                  \
    {                                                                                                                  \
        .user = -1, .net = -1, .sockets = -1                                                                           \
    }

/* Whether `k` can be entered for a box of this plan, made now when there was none or somebody was still in it. */
bool net_kept_ready(struct net_kept *k, const struct plan_image *image);
/* In the builder, first of all: into both, and into new ones of the kinds `others` (CLONE_NEW...). 0 or -errno. */
int net_kept_enter(const struct net_kept *k, unsigned long others);
void net_kept_end(struct net_kept *k);
