/*
 * A client at standard input and output: one message a line.
 */
#pragma once
#include "mcp/protocol/peer.h"

struct pipe;
/* Serves until its input ends, which sets loop.done. NULL with errno. */
struct pipe *pipe_new(struct server *server);
struct pipe *pipe_free(struct pipe *s); /* what is written already is passed on first; returns NULL */
struct peer *pipe_peer(const struct pipe *s);
/* Lines out of bytes as they come; also what the fuzz target drives. `too_long` is called once for a line past `max`. */
struct lines {
    struct buf in;
    size_t max, looked; /* bytes that hold no line end */
    bool skipping;
};
void lines_take(struct lines *l, struct str bytes, void (*line)(void *ctx, struct str text),
                void (*too_long)(void *ctx), void *ctx);
