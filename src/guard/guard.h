/*
 * The guard: a supervisor in the builder's process. It shares the box's user, mount and network namespaces, is outside
 * of its pid namespace, not dumpable, and has no capability but CAP_SYS_PTRACE. It receives the calls that the filter
 * notifies (seccomp_unotify(2)) and performs them itself on the objects it has judged. It answers "continue" only where
 * something else enforces the rule.
 */
#pragma once
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
    /* The program in which the guard continues (guard_become()), O_PATH, owned; -1: it stays in this process. Of `kept`,
       GUARD_KEPT bytes at most, guard_resume() returns a copy there. */
    int program;
    uint64_t text; /* where this program's texts are in the memory of pid 1, if that is another process's image; or 0 */
    const void *kept;
    uint32_t kept_bytes;
};
enum { GUARD_KEPT = 64 };

/*
 * Serves until pid 1 has ended; forks workers as needed. Returns pid 1's wait status, or -errno.
 *
 * With a `program`, this process only waits until something is to be judged: a call, or the file API. Then it executes
 * that program as `NAME --guard N`, whose main must call guard_resume(N), and the guard has memory of its own. What
 * comes from a box is never read in memory that pinfold or pid 1 uses.
 */
int guard_serve(const struct guard_ask *ask);

/* In the executed program: takes what guard_serve() left in descriptor `fd` and its `kept` bytes; 0 or -errno. `*ret`
   points to static memory. */
int guard_resume(int fd, struct guard_ask *ret, void *kept, uint32_t kept_bytes);
/* The value of N if this program was executed as `NAME --guard N`, otherwise -1. */
int guard_word(int argc, char **argv);
