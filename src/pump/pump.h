/*
 * One end of the line between a virtual machine and the host (protocol/mux.h): messages in order, and the data of
 * commands in lanes. Both ends use this code. The owner calls pump_turn() and gets messages, except data, in
 * on_message().
 */
#pragma once
#include <poll.h>
#include "protocol/mux.h"

#define PUMP_LANES 8192
#define PUMP_QUEUE (1u << 20) /* bytes that may wait to be sent before lanes are no longer read */

struct lane {
    uint32_t job;
    uint8_t stream;
    bool source;     /* `fd` is read and sent; otherwise received data is written to it */
    bool ended;      /* source: nothing more is read; sink: nothing more arrives */
    int fd;          /* owned */
    uint32_t credit; /* source: bytes that may be sent; sink: bytes passed on but not yet credited */
    char *hold;      /* sink: MUX_WINDOW bytes, a ring; NULL before the first data */
    uint32_t at, n;
    bool quiet; /* source: there was nothing to read the last time */
};

struct pump {
    int line; /* both ways, non-blocking */
    bool guest;
    void *ctx;
    /* HELLO, CONFIG, JOB, FRAME, and GONE of MUX_REPLY; `p` is aligned. A negative result ends the pump. */
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
/* Adds a lane for `fd`, which the pump owns from now on, also on failure; 0 or -errno. MUX_BACK comes after a job's
   others. */
int pump_lane(struct pump *p, uint32_t job, enum mux_stream stream, bool source, int fd);
/* Closes the lanes of a job. */
void pump_close(struct pump *p, uint32_t job);
/* Whether the job's sources were found empty, or its sinks have passed on everything. */
bool pump_quiet(const struct pump *p, uint32_t job);
/*
 * Waits at most `ms` (-1: no limit) for the line, the lanes and the `n` others, whose revents it fills in, and moves
 * data. 0; -EPIPE if the line was closed; -EBADMSG; or the result of on_message().
 */
int pump_turn(struct pump *p, struct pollfd *others, unsigned n, int ms);
