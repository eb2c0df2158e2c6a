/*
 * What is sent to a client about one request, kept for a while: a client whose connection broke asks for the rest of it
 * by the id of the last event that it got (Last-Event-ID; MCP 2025-11-25, "Resumability and Redelivery"). Pure.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/str.h"

#define STREAM_KEPT      (1u << 20) /* bytes kept of what was sent whole */
#define STREAM_GENERAL   (1u << 18) /* bytes kept of what belongs to no request */
#define STREAMS_OF_ONE   64         /* ended ones kept for a client */
#define STREAM_SENT_MS   60000      /* how long after it was sent */
#define STREAM_UNSENT_MS 300000     /* and where the connection broke before */

struct event_stream {
    struct event_stream *next;
    uint64_t tag;    /* of its request; 0: of no request */
    uint64_t ended;  /* milliseconds, of loop_now(); 0: not ended */
    struct buf log;  /* messages, one a line */
    size_t dropped;  /* messages that are no longer in it */
    size_t expected; /* answers */
    size_t answered; /* of these */
    bool events;     /* the client takes events: more than answers is told */
    bool sent;       /* whole */
};

/* NULL without memory. It becomes the first of `*list`. */
struct event_stream *stream_new(struct event_stream **list, uint64_t tag, size_t max);
/* NULL: there is none. */
struct event_stream *stream_find(struct event_stream *list, uint64_t tag);
void stream_drop(struct event_stream **list, struct event_stream *s);
/* Of no request: forgets the oldest messages beyond STREAM_GENERAL. False without memory. */
bool stream_add(struct event_stream *s, struct str message);
/* Byte in the log where what follows the first `n` messages begins. */
size_t stream_after(const struct event_stream *s, size_t n);
size_t stream_messages(const struct event_stream *s); /* in its log */
/* "TAG-N", N messages were sent: false if it is not of that form. */
bool stream_id(struct str text, uint64_t *ret_tag, size_t *ret_n);
/* Drops what is too old or too much. Not what `held` says is in use. */
void streams_prune(struct event_stream **list, uint64_t now, bool (*held)(void *ctx, const struct event_stream *s),
                   void *ctx);
