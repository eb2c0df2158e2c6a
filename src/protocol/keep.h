/*
 * The protocol of a session daemon's socket (SOCK_SEQPACKET, one request per connection): struct keep_request, then its
 * payload, or, if that is long, a memfd as the first descriptor. Answers are frames (protocol/control.h): FRAME_REFUSED
 * with a sentence; FRAME_ANSWER followed by bytes; for commands the frames of pid 1. Both ends belong to one user, but
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
#define KEEP_REVISION 5u
#define KEEP_MAGIC    (0x304b4e50u + (KEEP_REVISION << 24)) /* "PNK4" */
#define KEEP_MESSAGE  (32u << 10)                           /* of one message, head and payload */
#define KEEP_MAX      (4u << 20)                            /* of a payload in a memfd */
#define KEEP_DATA     (16u << 10)                           /* of one FRAME_DATA */
#define KEEP_FDS      6
#define KEEP_MAX_NAME 64 /* of a persistent shell */
#define KEEP_MAX_WAIT 0x7fffffffu

/* X(identifier, the most descriptors besides the memfd, whether a payload is required) */
#define KEEP_OPS(X)                                                                                                    \
    X(EXEC, 3, true)    /* job image; the descriptors of job_streams(). Pid 1 answers */                               \
    X(JOB, 1, true)     /* job image; stdin or none; number: timeout in ms. Answer: value = its number */              \
    X(SHELL, 0, true)   /* name, NUL, job image of the shell, used if there is none of that name yet */                \
    X(SHOW, 0, false)   /* JSON */                                                                                     \
    X(STOP, 0, false)   /* the connection closes when everything has ended */                                          \
    X(JOBS, 0, false)   /* JSON */                                                                                     \
    X(OUTPUT, 0, false) /* job, number: offset, b: most bytes. Answer: bytes; value, number: see FRAME_ANSWER */       \
    X(KILL, 0, false)   /* job, b: signal */                                                                           \
    X(ATTACH, 0, false) /* job, number: offset. FRAME_DATA until FRAME_EXIT */                                         \
    X(UPDATE, 0, true)  /* lines "allow HOST" and "deny HOST" */                                                       \
    X(DENIALS, 0,                                                                                                      \
      false) /* job: a command's session in the box, number: since: for each pid, kind, action, target,        \
                            rule, origin, how, address, command, why, NULs between; c: KEEP_LACKS_*                 */       \
    X(FILES, 1, false) /* a socket for the file API */                                                                 \
    X(FRESH, 0, false) /* what the host changed below a layer is seen. Before a call on a socket of the file API */

/* With b = 1 it is the number of a job that has ended. Why the answer to DENIALS may be incomplete: */
#define KEEP_LACKS_SOME    1 /* there were more than the daemon stores */
#define KEEP_LACKS_NETWORK 2 /* denials of the network whose process was not found */

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
    uint32_t apart; /* 1: it is in a memfd */
};

/*
 * Checks that `n` bytes, which came with `n_fds` descriptors, are a request: 0 or -EBADMSG. Does not check an image in
 * the payload.
 */
int keep_request_check(const void *bytes, size_t n, unsigned n_fds);
/* Whether it is a valid name of a shell: letters, digits, `-`, `_`, `.`, 1 to KEEP_MAX_NAME of them. */
bool keep_shell_name(const char *name, size_t n);
