/*
 * The check-in: how pinfold and a box created by another program find each other (docs/internals/backends.md, "Boxes of
 * other programs"). On one SOCK_SEQPACKET connection, inherited as a descriptor or connected by path:
 *
 *     pinfold-init -> pinfold   struct checkin_hello: its version, and the plan it was told to run
 *     pinfold -> pinfold-init   struct checkin_ask with descriptors: the control sockets, the command's standard
 *                               input, output and error, and one sealed memfd: plan image, job image, names
 *
 * Nothing follows on this connection; if one side closes it before that, the other gives up. Everything later is frames
 * of protocol/control.h on the control sockets, as with pinfold's own processes.
 */
#pragma once
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECKIN_MAGIC    0x31434e50u /* "PNC1" */
#define CHECKIN_PROTOCOL 2u
#define CHECKIN_DIGEST   64 /* hexadecimal digits of a plan's digest */

struct checkin_hello {
    uint32_t magic, protocol;
    char version[24];            /* of pinfold-init, NUL-terminated */
    char digest[CHECKIN_DIGEST]; /* no NUL */
};
static_assert(sizeof(struct checkin_hello) == 96, "read by another program");

/* Descriptors sent with struct checkin_ask, in this order; `has` says which ones. */
enum checkin_fd {
    CHECKIN_MEMORY,  /* always: the memfd */
    CHECKIN_CONTROL, /* always: for pid 1, frames of protocol/control.h */
    CHECKIN_REPORT,  /* always: for the builder and guard */
    CHECKIN_STDIN,
    CHECKIN_STDOUT,
    CHECKIN_STDERR,
    CHECKIN_EGRESS,  /* where CATCH sends its sockets (protocol/egress.h) */
    CHECKIN_PUBLISH, /* where the namespaces are sent (protocol/egress.h) */
    CHECKIN_GROUP,   /* directory of a control group, v2 */
    CHECKIN_TASKS,   /* the first of `n_tasks` files `tasks`, v1 */
    CHECKIN_MAX_TASKS = 8,
    CHECKIN_MAX_FDS = CHECKIN_TASKS + CHECKIN_MAX_TASKS
};
#define CHECKIN_MAX_GROUPS 256
#define CHECKIN_HAS(fd)    (1u << CHECKIN_##fd)

struct checkin_ask {
    uint32_t magic, protocol;
    uint32_t has;     /* bits CHECKIN_HAS(...) */
    uint32_t n_tasks; /* descriptors from CHECKIN_TASKS on */
    uint32_t joins;   /* 1: pid 1 enters a control group */
    /* Parts of the memfd, each at a multiple of 8. The plan comes first; the others may be absent (0 bytes). */
    uint32_t plan_bytes;
    uint32_t job_at, job_bytes; /* protocol/job.h; none: pid 1 serves a session */
    /* three NUL-terminated paths: of regular files among standard input, output and error, or "" */
    uint32_t names_at, names_bytes;
    uint32_t n_groups, reserved; /* supplementary groups of the caller, if a root process starts the box */
    uint32_t groups[CHECKIN_MAX_GROUPS];
};
static_assert(sizeof(struct checkin_ask) == 48 + 4 * CHECKIN_MAX_GROUPS, "read by another program");

void checkin_hello_write(struct checkin_hello *h, const char *version, const char *digest);
/* Checks a hello: 0; -EBADMSG: it is none; -EPROTONOSUPPORT: another version; -ESTALE: a plan other than `digest`. */
int checkin_hello_check(const void *bytes, size_t n, const char *digest);
/* Checks that `n` bytes with `n_fds` descriptors are an ask whose parts fit into a memfd of `memory` bytes: 0 or
   -EBADMSG. */
int checkin_ask_check(const void *bytes, size_t n, unsigned n_fds, uint64_t memory);
/*
 * Checks the memfd of an ask that checkin_ask_check() accepted, mapped at `memory`: a plan that may be run, a job, and
 * three names, each empty or absolute and shorter than 4096 bytes. 0 or -EBADMSG.
 */
int checkin_memory_check(const struct checkin_ask *ask, const void *memory);
/* Number of descriptors that `ask` announces. */
unsigned checkin_ask_fds(const struct checkin_ask *ask);
/* The `which`-th of the three NUL-terminated strings in `n` bytes; NULL if they are malformed. */
const char *checkin_name(const char *names, size_t n, unsigned which);
