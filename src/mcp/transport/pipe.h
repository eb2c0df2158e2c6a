/* A client on standard input and output: one message per line. */
#pragma once
#include "mcp/protocol/peer.h"

struct pipe;
/* Serves until its input ends, then sets loop.done. NULL with errno. */
struct pipe *pipe_new(struct server *server);
struct pipe *pipe_free(struct pipe *s); /* writes pending output first; returns NULL */
struct peer *pipe_peer(const struct pipe *s);
/* Splits input into lines; also driven by the fuzz target. Calls `too_long` once for a line longer than `max`. */
struct lines {
    struct buf in;
    size_t max, looked; /* bytes already searched for a line end */
    bool skipping;
};
void lines_take(struct lines *l, struct str bytes, void (*line)(void *ctx, struct str text),
                void (*too_long)(void *ctx), void *ctx);
