/*
 * What is said on a session daemon's socket (SOCK_SEQPACKET, one request a connection): struct keep_request, then its payload, or
 * a memory file as the first descriptor when that is long. Answers are frames (protocol/control.h): FRAME_REFUSED with a
 * sentence; FRAME_ANSWER with bytes behind it; for commands what pid 1 says itself. Both ends are of one user, and
 * neither trusts a length.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "protocol/control.h"

/*
 * Of everything that the two ends say: requests, answers, job images, records of jobs. A session may outlive the program that
 * started it, so another revision is refused by both ends. tests/lint/revision.py knows which files it stands for.
 */
#define KEEP_REVISION 2u
#define KEEP_MAGIC    (0x304b4e50u + (KEEP_REVISION << 24)) /* "PNK2" */
#define KEEP_MESSAGE  (32u << 10)                           /* of one message, head and payload */
#define KEEP_MAX      (4u << 20)                            /* of a payload in a memory file */
#define KEEP_DATA     (16u << 10)                           /* of one FRAME_DATA */
#define KEEP_FDS      6
#define KEEP_MAX_NAME 64 /* of a persistent shell */
#define KEEP_MAX_WAIT 0x7fffffffu

/*  X(identifier, the most descriptors besides the memory file, whether a payload is needed) */
#define KEEP_OPS(X)                                                                                                    \
    X(EXEC, 3, true)    /* job image; the descriptors of job_streams(): pid 1 answers                               */ \
    X(JOB, 1, true)     /* job image; stdin or none; number: milliseconds until it is ended: value = its number     */ \
    X(SHELL, 0, true)   /* name, NUL, job image of the shell: for when there is none of that name yet               */ \
    X(SHOW, 0, false)   /* JSON                                                                                     */ \
    X(STOP, 0, false)   /* the connection ends when everything has                                                  */ \
    X(JOBS, 0, false)   /* JSON                                                                                     */ \
    X(OUTPUT, 0, false) /* job, number: from where, b: how much at most: bytes; value, number: see FRAME_ANSWER     */ \
    X(KILL, 0, false)   /* job, b: signal                                                                           */ \
    X(ATTACH, 0, false) /* job, number: from where: FRAME_DATA until FRAME_EXIT                                     */ \
    X(UPDATE, 0, true)  /* lines "allow HOST" and "deny HOST"                                                       */ \
    X(DENIALS, 0,                                                                                                      \
      false) /* job: a command's session in the box, number: since: for each pid, kind, action, target,        \
                            rule, origin, how, address, command, why, NULs between; c: KEEP_LACKS_*                 */       \
    X(FILES, 1, false) /* a socket for the box's files                                                             */

/* With b = 1 it is a job's number, of one that has ended. What an answer to DENIALS may lack: */
#define KEEP_LACKS_SOME    1 /* there were more than are kept                        */
#define KEEP_LACKS_NETWORK 2 /* refusals of the network whose process was not found */

enum keep_op {
    KEEP_NONE,
#define X(id, fds, payload) KEEP_##id,
    KEEP_OPS(X)
#undef X
        KEEP_OP_COUNT
};

struct keep_request {
    uint32_t magic, op;
    uint32_t job, b;
    uint64_t number;
    uint32_t bytes; /* of the payload */
    uint32_t apart; /* 1: it is in a memory file */
};

/*
 * Whether these `n` bytes, which came with `n_fds` descriptors, are a request: 0 or -EBADMSG. An image in the payload is
 * not looked at.
 */
int keep_request_check(const void *bytes, size_t n, unsigned n_fds);
/* A name of a shell: letters, digits, `-`, `_`, `.`, 1 to KEEP_MAX_NAME. */
bool keep_shell_name(const char *name, size_t n);
