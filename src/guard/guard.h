/*
 * The guard: a supervisor in the builder's process. It shares the box's user, mount and network namespaces, is outside
 * of its pid namespace, not dumpable, and has no capability but CAP_SYS_PTRACE. It receives the calls that the filter
 * notifies (seccomp_unotify(2)) and performs them itself on the objects it has judged. It answers "continue" only where
 * something else enforces the rule.
 */
#pragma once
#include <linux/seccomp.h>
#include <stdint.h>
#include "protocol/guard_table.h"
#include "protocol/step.h"

struct guard;
/* Serves the file API on a socket, in its own worker (calls/file_api.c); returns when the socket is closed. */
void guard_files(struct guard *g, int socket);

struct guard_ask {
    const struct plan_image *plan;
    int notify;     /* the listener, owned */
    int host_proc;  /* the outer /proc, O_PATH, owned */
    int report;     /* SOCK_SEQPACKET to pinfold for struct denial_frame; the guard never blocks on it */
    int init_pidfd; /* pid 1 of the box: the guard ends when it does */
    int begun;      /* SOCK_SEQPACKET, owned: gets a byte once the guard is ready for commands; -1: nobody waits */
    void (*files)(struct guard *g, int socket); /* guard_files, or NULL if the file API is not used */
    uint64_t text; /* where this program's texts are in the memory of pid 1, if not where they are here; or 0 */
    struct seccomp_notif first; /* a call that was received already; id 0: none */
};

/* Serves until pid 1 has ended; forks workers as needed. Returns pid 1's wait status, or -errno. */
int guard_serve(const struct guard_ask *ask);
