/*
 * The guard: a supervisor in the builder's process (same user, mount and network namespaces as the box, outside its
 * pid namespace, not dumpable, no capability but CAP_SYS_PTRACE) that receives the calls the filter notifies and
 * performs them itself on the objects it judged. It never answers "continue" where nothing else enforces.
 */
#pragma once
#include <stdint.h>
#include "protocol/guard_table.h"
#include "protocol/step.h"

struct guard;
/* The file API on a socket, in a worker of its own (calls/file_api.c): returns at its end. */
void guard_files(struct guard *g, int socket);

struct guard_ask {
    const struct plan_image *plan;
    int notify;     /* the listener, owned */
    int host_proc;  /* the outer /proc, O_PATH, owned */
    int report;     /* SOCK_SEQPACKET to pinfold for struct denial_frame; never blocks on it */
    int init_pidfd; /* pid 1 of the box: when it ends, so does the guard */
    int begun; /* SOCK_SEQPACKET, owned: gets a byte once no command can be too early for the guard; -1: nobody waits */
    void (*files)(struct guard *g, int socket); /* guard_files, or NULL where nobody asks for files */
};

/* Serves until pid 1 ended. Forks workers as needed; they end with it. Returns pid 1's wait status, or -errno. */
int guard_serve(const struct guard_ask *ask);
