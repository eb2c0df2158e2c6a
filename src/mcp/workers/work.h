/* Worker processes: each carries out one call at a time. Tasks wait in a queue while all are busy. */
#pragma once
#include "mcp/workers/job.h"
#include "mcp/transport/loop.h"

struct work;
struct task;

struct task_events { /* called from the loop; after `result`, `fault` or `lost` the task no longer exists */
    void (*say)(void *ctx, enum say_level level, struct str sentence);
    void (*denied)(void *ctx, struct str json); /* NULL: nobody listens */
    void (*progress)(void *ctx, struct str sentence);
    void (*question)(void *ctx, struct str sentence, uint32_t patience_ms); /* 0: the default */
    void (*changed)(void *ctx);                                             /* the list of sessions has changed */
    void (*result)(void *ctx, struct str json);
    void (*fault)(void *ctx, int code, struct str sentence); /* no result, but a protocol error */
    void (*lost)(void *ctx);                                 /* its process ended without a result */
};

struct work *work_new(struct loop *loop, const struct job_place *place);
/* Ends all workers with what they are doing, and waits for them. Takes NULL. */
void work_free(struct work *w);
/*
 * `call` is a JSON object (see carry_out() in work.c); NULL without memory. `rests`: see struct tool. `affinity`: a
 * number for the session it is about, or 0; calls with the same number use few workers.
 */
struct task *work_start(struct work *w, struct str call, bool rests, uint64_t affinity,
                        const struct task_events *events, void *ctx);
/* The place has changed: workers that wait know the old one, and are replaced. */
void work_renew(struct work *w);
void work_answer(struct task *t, bool yes);
/* Ends the task and its command; no callback is called any more. */
void work_cancel(struct task *t);
/* Prepares a worker for the next call, and ends those idle for a while. `now`: loop_now(). Returns milliseconds
   until the next call, or -1. */
int work_idle(struct work *w, uint64_t now);
