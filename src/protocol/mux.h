/*
 * What goes over the one serial line between a virtual machine and pinfold: messages of a head and `n` bytes. H is the bridge
 * on the host, G pinfold-init in the machine. Neither believes the other: a head that mux_head_check() refuses ends the line.
 *
 * Bytes of commands go in lanes (job, stream), each with a window of its own, so that nobody who does not read holds
 * back another: who sends may send MUX_WINDOW bytes, and as many more as MUX_CREDIT gives back.
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
    MUX_HELLO = 1, /* G -> H: struct mux_hello                                                          */
    MUX_CONFIG,    /* H -> G: struct mux_config, then the plan image                                     */
    MUX_JOB,       /* H -> G: a job image (protocol/job.h); `job` is its number from now on                  */
    MUX_FRAME,     /* struct frame: of pid 1 about a job, or to it; job 0: of the builder, or of the box */
    MUX_DATA,      /* bytes of a lane                                                                    */
    MUX_CREDIT,    /* the lane's reader has passed on struct mux_credit bytes                            */
    MUX_EOF,       /* the lane's writer will send no more                                                */
    MUX_GONE,      /* nobody reads the lane any more; of MUX_REPLY: whoever asked for the job is gone    */
    MUX_KINDS
};
/*
 * Lanes of a job: its streams, those of them that are its terminal in two lanes for all, and what it writes into a standard
 * input that is a socket (JOB_DUPLEX), which is passed on when nothing that it wrote elsewhere before is on its way.
 */
enum mux_stream { MUX_IN, MUX_OUT, MUX_ERR, MUX_REPLY, MUX_TTY_IN, MUX_TTY_OUT, MUX_BACK, MUX_STREAMS };
/* From the host to the machine. */
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
    uint32_t network;                 /* enum mux_network */
    uint64_t memory, cpus, processes; /* of the box: bytes, thousandths, number; UINT64_MAX: as the machine has them */
    int64_t seconds;                  /* the time */
    uint16_t published[EGRESS_MAX_REACH]; /* ports of the box, until 0 (protocol/vm.h: VM_PUBLISHED) */
};
static_assert(sizeof(struct mux_config) == 40 + 2 * EGRESS_MAX_REACH, "read by another program");
struct mux_credit {
    uint32_t bytes;
};

#define MUX_MAX_CONFIG (32u << 20) /* MAX_PLAN_BYTES and the config */

/* Whether such a head may come from the machine (`from_guest`) or from the host. */
bool mux_head_check(const struct mux_head *h, bool from_guest);
/*
 * The first message of the `n` bytes at `p`: its whole length, with *ret its head; 0 when more bytes are needed (*ret_want,
 * may be NULL: how many there must be); -EBADMSG.
 */
long mux_next(const void *p, size_t n, bool from_guest, struct mux_head *ret, size_t *ret_want);
