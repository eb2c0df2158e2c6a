/*
 * The check-in: how pinfold and a box that another program has made find each other (docs/INTERNALS.md, "Boxes of other
 * programs"). On one SOCK_SEQPACKET connection, made by descriptor or by path:
 *
 *     pinfold-init -> pinfold   struct checkin_hello: who it is, and which plan it was told to run
 *     pinfold -> pinfold-init   struct checkin_ask with descriptors: the streams to talk on, the command's standard
 *                               input, output and error, and one sealed memory file: plan image, job image, names
 *
 * Nothing is said on it afterwards; either side's end before that ends the other. What comes later is frames of
 * protocol/control.h on the streams, as with pinfold's own processes.
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

/* Descriptors that come with struct checkin_ask, in this order; `has` says which. */
enum checkin_fd {
    CHECKIN_MEMORY,  /* always: the memory file                              */
    CHECKIN_CONTROL, /* always: for pid 1, frames of protocol/control.h          */
    CHECKIN_REPORT,  /* always: for the builder and guard                    */
    CHECKIN_STDIN,
    CHECKIN_STDOUT,
    CHECKIN_STDERR,
    CHECKIN_EGRESS,  /* where CATCH sends its sockets (protocol/egress.h)        */
    CHECKIN_PUBLISH, /* where the namespaces are sent (protocol/egress.h)        */
    CHECKIN_GROUP,   /* directory of a control group, v2                     */
    CHECKIN_TASKS,   /* the first of `n_tasks` files `tasks`, v1             */
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
    /* Parts of the memory file, each at a multiple of 8. The plan is first; the others may be missing (0 bytes). */
    uint32_t plan_bytes;
    uint32_t job_at, job_bytes;     /* protocol/job.h; none: pid 1 serves */
    uint32_t names_at, names_bytes; /* three NUL-terminated paths: regular files among stdio, or "" */
    uint32_t n_groups, reserved;    /* the caller's supplementary groups, where another root starts the box */
    uint32_t groups[CHECKIN_MAX_GROUPS];
};
static_assert(sizeof(struct checkin_ask) == 48 + 4 * CHECKIN_MAX_GROUPS, "read by another program");

void checkin_hello_write(struct checkin_hello *h, const char *version, const char *digest);
/* 0; -EBADMSG: no hello at all; -EPROTONOSUPPORT: of another version; -ESTALE: it runs another plan than `digest`. */
int checkin_hello_check(const void *bytes, size_t n, const char *digest);
/* Whether `n` bytes with `n_fds` descriptors are an ask whose parts fit into a memory file of `memory` bytes; 0 or -EBADMSG. */
int checkin_ask_check(const void *bytes, size_t n, unsigned n_fds, uint64_t memory);
/*
 * Whether the memory file of an ask that was checked, mapped at `memory`, holds a plan that may be run, a job, and three names,
 * each absolute and of less than 4096 bytes, or empty; 0 or -EBADMSG.
 */
int checkin_memory_check(const struct checkin_ask *ask, const void *memory);
/* How many descriptors `ask` announces. */
unsigned checkin_ask_fds(const struct checkin_ask *ask);
/* The `which`-th name in a part of `n` bytes: three strings, each ended; NULL when they are not. */
const char *checkin_name(const char *names, size_t n, unsigned which);
