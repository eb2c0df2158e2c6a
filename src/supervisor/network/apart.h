/*
 * Processes of pinfold that read what a box or the network sends: the egress proxy, the process of the published ports, and the
 * filters of the ssh-agent and the gpg-agent. Each executes the running program again, by a descriptor, so it has nothing of its starter's memory;
 * what it must know comes by a memfd. Nothing is copied for it either: a copying fork is the dearest part of a small start.
 */
#pragma once
#include "egress/egress.h"
#include "gpg/gpg_filter.h"
#include "ssh/filter.h"

struct net_process {
    /* One of these; their pointers are followed. `counts` is set: memory shared with the process, apart_end(). */
    struct egress_ask *ask;
    const struct ssh_filter *ssh;
    const struct gpg_filter *gpg;
    int sockets; /* where the builder sends sockets or namespaces; -1: it sends none */
};

/* Starts it, as a child that waitpid(2) finds; the descriptors stay the caller's. The pid, or an error. */
int apart_start(struct net_process *a, struct err *e);
void apart_end(struct egress_counts *counts);

/* What the executed program is given; the pointers in it lead to its own memory. */
struct apart_handed {
    char mark[8];
    uint64_t bytes; /* of all that follows the page of counters */
    struct egress_ask ask;
    struct proxies proxies;
    struct ssh_filter ssh;
    struct gpg_filter gpg;
    int sockets;
    bool counts, proxied, of_ssh, of_gpg;
};
/* For the main of a program that starts boxes: NULL if apart_start() has not executed it. */
struct apart_handed *apart_take(int argc, char **argv);
/* There: becomes what was asked for, and does not return (serve.c). */
void network_main(int argc, char **argv);
/* What it then is for published ports (publish.c). */
_Noreturn void publish_serve(struct egress_ask *ask, int sockets);
