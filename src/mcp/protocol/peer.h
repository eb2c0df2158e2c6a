/*
 * One client: the protocol, whatever carries it. Messages come in by peer_take(), go out by the carrier's send(); a
 * request's answer and what is said on its way carry the tag that it came with, so that HTTP finds the right stream.
 */
#pragma once
#include "mcp/protocol/asker.h"
#include "mcp/workers/janitor.h"
#include "mcp/protocol/rpc.h"
#include "mcp/workers/work.h"

struct peer;

/* Carries one message (no line end). `tag`: of the request it belongs to, 0 for none. `last`: it answers that request. */
typedef void peer_send_fn(void *ctx, uint64_t tag, struct str message, bool last);

struct server { /* what all clients share */
    struct job_place place;
    struct loop loop;
    struct work *work;
    struct janitor janitor;
    struct asker asker;
    unsigned calls; /* so far, for the person's lines */
};

struct peer *peer_new(struct server *server, const char *name, peer_send_fn *send, void *ctx);
/* Ends all that it asked for. Takes NULL. Not to be called from send(). */
void peer_free(struct peer *p);
/*
 * One text from the client, a message or a batch. `tag` comes back in send(). The number of requests in it that will be
 * answered through send() (a fault of the text itself is one): 0 for notifications and responses.
 */
size_t peer_take(struct peer *p, struct str text, uint64_t tag);
/* A message that was too long to be read. */
void peer_too_long(struct peer *p, uint64_t tag);
/* Nobody waits any more for the answers to this tag. */
void peer_forget(struct peer *p, uint64_t tag);
/* The protocol version agreed on; NULL before. */
const char *peer_version(const struct peer *p);
bool peer_knows_version(const char *version);
/* Progress that is due; milliseconds until more may be, -1: nothing. */
int peer_tick(struct peer *p, uint64_t now);
bool peer_busy(const struct peer *p);
