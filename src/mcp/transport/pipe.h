/* A client on standard input and output: one message per line. */
#pragma once
#include "mcp/protocol/peer.h"

struct pipe;
/* Serves until its input ends, then sets loop.done. NULL with errno. */
struct pipe *pipe_new(struct server *server);
struct pipe *pipe_free(struct pipe *s); /* writes pending output first; returns NULL */
/* As peer_tick(). A client that has ended gets the answers to what it has asked, if they come soon; then the loop ends. */
int pipe_tick(struct pipe *s, uint64_t now);
/* Finds the member "id" of the object that a line begins, though the line is too long to be kept, or is no JSON. */
struct id_search {
    unsigned depth; /* of objects and arrays */
    bool text, escaped, key, is_id, value;
    char word[4]; /* a name at the top */
    size_t n_word;
    char id[RPC_MAX_ID + 3]; /* as it stands there */
    size_t n_id;
};
void id_search(struct id_search *s, struct str bytes);
struct str id_found(const struct id_search *s); /* "": none */

/*
 * Splits input into lines; also driven by the fuzz target. Calls `too_long` once for a line longer than `max`, at its
 * end, with the id that it has (or "").
 */
struct lines {
    struct buf in;
    size_t max, looked; /* bytes already searched for a line end */
    bool skipping;
    struct id_search search; /* while skipping */
};
void lines_take(struct lines *l, struct str bytes, void (*line)(void *ctx, struct str text),
                void (*too_long)(void *ctx, struct str id), void *ctx);
