/*
 * Worker processes: each carries out one call at a time. A task that finds none free waits in line.
 */
#pragma once
#include "mcp/workers/job.h"
#include "mcp/transport/loop.h"

struct work;
struct task;

struct task_events { /* called from the loop; after `result`, `fault` or `lost` the task is gone */
    void (*say)(void *ctx, enum say_level level, struct str sentence);
    void (*progress)(void *ctx, struct str sentence);
    void (*question)(void *ctx, struct str sentence, uint32_t patience_ms); /* 0: as long as usual */
    void (*changed)(void *ctx);                                             /* there are other sessions than before */
    void (*result)(void *ctx, struct str json);
    void (*fault)(void *ctx, int code, struct str sentence); /* no result: an error of the protocol */
    void (*lost)(void *ctx);                                 /* its process ended without a result */
};

struct work *work_new(struct loop *loop, const struct job_place *place);
/* Ends all workers, and by that what they were at, and waits for them. Takes NULL. */
void work_free(struct work *w);
/*
 * `call` is a JSON object (carry_out() in work.c reads it); NULL without memory. `rests`: see struct tool. `affinity`: a number
 * for the session it is about, or 0; few workers know one session.
 */
struct task *work_start(struct work *w, struct str call, bool rests, uint64_t affinity,
                        const struct task_events *events, void *ctx);
void work_answer(struct task *t, bool yes);
/* Ends the task and what it was at; nothing is called any more. */
void work_cancel(struct task *t);
/* Makes a worker ready for the next call, and lets go those that were not needed for a while. `now`: loop_now(). Milliseconds
   until it wants to be called again, or -1. */
int work_idle(struct work *w, uint64_t now);
