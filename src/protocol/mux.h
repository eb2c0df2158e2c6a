/*
 * The protocol of the serial line between a virtual machine and pinfold: messages of a head and `n` bytes. H is the
 * bridge on the host, G pinfold-init in the machine. Neither trusts the other: a head that mux_head_check() refuses
 * ends the connection.
 *
 * The data of commands goes in lanes (job, stream), each with its own window, so that a reader that does not read
 * blocks only its own lane: a sender may send MUX_WINDOW bytes plus what MUX_CREDIT gives back.
 */
#pragma once
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "protocol/egress.h"
#include "protocol/job.h"

#define MUX_MAGIC  0x31584d50u /* "PMX1" */
#define MUX_WINDOW (256u << 10)
#define MUX_CHUNK  (32u << 10) /* of one MUX_DATA */

enum mux_kind {
    MUX_HELLO = 1, /* G -> H: struct mux_hello */
    MUX_CONFIG,    /* H -> G: struct mux_config, followed by the plan image */
    MUX_JOB,       /* H -> G: a job image (protocol/job.h); `job` is its number from now on */
    MUX_FRAME,     /* struct frame: from or to pid 1 about a job; job 0: about the builder or the box */
    MUX_DATA,      /* bytes of a lane */
    MUX_CREDIT,    /* the lane's reader has passed on struct mux_credit bytes */
    MUX_EOF,       /* the lane's writer sends no more */
    MUX_GONE,      /* the lane has no reader any more; of MUX_REPLY: the caller of the job is gone */
    MUX_KINDS
};
/*
 * Lanes of a job: its streams; two lanes for all streams that are its terminal; and what it writes into a standard
 * input that is a socket (JOB_DUPLEX), which is delivered only after all its earlier output.
 */
enum mux_stream { MUX_IN, MUX_OUT, MUX_ERR, MUX_REPLY, MUX_TTY_IN, MUX_TTY_OUT, MUX_BACK, MUX_STREAMS };
/* Whether a lane goes from the host to the machine. */
static inline bool mux_inward(uint32_t stream)
{
    return stream == MUX_IN || stream == MUX_TTY_IN;
}

struct mux_head {
    uint32_t kind, job, stream, n;
};
static_assert(sizeof(struct mux_head) == 16, "read by another program");
struct mux_hello {
    uint32_t magic, reserved;
    char version[24];
};
enum mux_network { MUX_NET_NONE, MUX_NET_OWN, MUX_NET_HOST /* the host's 127.0.0.1 is reached */ };
struct mux_config {
    uint32_t magic;
    uint32_t network; /* enum mux_network */
    /* of the box: bytes, thousandths of a processor, number; UINT64_MAX: no limit besides the machine's */
    uint64_t memory, cpus, processes;
    int64_t seconds;                      /* current time, since 1970 */
    uint16_t published[EGRESS_MAX_REACH]; /* ports of the box, ended by 0 (VM_PUBLISHED in protocol/vm.h) */
};
static_assert(sizeof(struct mux_config) == 40 + 2 * EGRESS_MAX_REACH, "read by another program");
struct mux_credit {
    uint32_t bytes;
};

#define MUX_MAX_CONFIG (32u << 20) /* MAX_PLAN_BYTES and the config */

/* Whether this head may come from the machine (`from_guest`) or from the host. */
bool mux_head_check(const struct mux_head *h, bool from_guest);
/*
 * Parses the first message of the `n` bytes at `p`: returns its whole length and its head in *ret; 0 if more bytes are
 * needed (*ret_want, or NULL: how many in total); -EBADMSG.
 */
long mux_next(const void *p, size_t n, bool from_guest, struct mux_head *ret, size_t *ret_want);
