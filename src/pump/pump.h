/*
 * One end of the line between a virtual machine and the host (protocol/mux.h): messages in order, and the bytes of commands in
 * lanes. The same code runs on both ends. Who owns a pump calls pump_turn() and gets what is not bytes in on_message().
 */
#pragma once
#include <poll.h>
#include "protocol/mux.h"

#define PUMP_LANES 8192
#define PUMP_QUEUE (1u << 20) /* what waits to be sent before lanes are read no further */

struct lane {
    uint32_t job;
    uint8_t stream;
    bool source;     /* `fd` is read and sent; otherwise what comes is written to it */
    bool ended;      /* source: nothing more is read; sink: nothing more will come    */
    int fd;          /* owned */
    uint32_t credit; /* source: may be sent; sink: was passed on and not yet given back */
    char *hold;      /* sink: MUX_WINDOW bytes, a ring; NULL while nothing came */
    uint32_t at, n;
    bool quiet; /* source: the last look found nothing to read */
};

struct pump {
    int line; /* both ways, non-blocking */
    bool guest;
    void *ctx;
    /* HELLO, CONFIG, JOB, FRAME, and GONE of MUX_REPLY; `p` is aligned. Less than 0 ends the pump. */
    int (*on_message)(void *ctx, const struct mux_head *h, void *p);

    /* Private. */
    char *in, *out;
    size_t in_n, in_room, out_at, out_n, out_room;
    struct lane *lanes;
    size_t n_lanes, lanes_room;
    struct pollfd *polled;
    size_t polled_room;
};

void pump_begin(struct pump *p, int line, bool guest, void *ctx,
                int (*on_message)(void *ctx, const struct mux_head *h, void *bytes));
void pump_end(struct pump *p);
/* Queues a message of two parts; 0 or -errno (-ENOMEM). */
int pump_send(struct pump *p, enum mux_kind kind, uint32_t job, uint32_t stream, const void *a, size_t n_a,
              const void *b, size_t n_b);
/* A lane over `fd`, which becomes the pump's whatever is returned; 0 or -errno. MUX_BACK comes after a job's others. */
int pump_lane(struct pump *p, uint32_t job, enum mux_stream stream, bool source, int fd);
/* Closes the lanes of a job. */
void pump_close(struct pump *p, uint32_t job);
/* Whether the job's sources were found empty, or its sinks have passed on all that came. */
bool pump_quiet(const struct pump *p, uint32_t job);
/*
 * Waits at most `ms` (-1: for ever) for the line, the lanes and the `n` others, whose revents it fills, and moves what can be
 * moved. 0; -EPIPE when the line has ended; -EBADMSG; what on_message() said.
 */
int pump_turn(struct pump *p, struct pollfd *others, unsigned n, int ms);
