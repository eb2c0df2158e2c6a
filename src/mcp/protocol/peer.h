/*
 * One client: the protocol, independent of the transport. Messages arrive by peer_take() and leave by the transport's
 * send(). The answer to a request, and notifications about it, carry the request's tag, by which HTTP finds the right
 * stream.
 */
#pragma once
#include "mcp/protocol/asker.h"
#include "mcp/workers/janitor.h"
#include "mcp/protocol/rpc.h"
#include "mcp/workers/work.h"

struct peer;

/* Sends one message (without line end). `tag`: of its request, 0 for none. `last`: it answers that request. */
typedef void peer_send_fn(void *ctx, uint64_t tag, struct str message, bool last);

struct server { /* shared by all clients */
    struct job_place place;
    struct loop loop;
    struct work *work;
    struct janitor janitor;
    struct asker asker;
    unsigned calls; /* so far; numbers the lines for the user */
    size_t held;    /* bytes of the calls in progress */
    /*
     * Where the server was started in no project, tries a directory that the client names as the workspace: false, with
     * a clause in `why`. NULL: there is nothing to try.
     */
    bool (*adopt)(struct server *s, const char *directory, char *why, size_t room);
};

struct peer *peer_new(struct server *server, const char *name, peer_send_fn *send, void *ctx);
/* Cancels all its requests. Takes NULL. Must not be called from send(). */
void peer_free(struct peer *p);
/* Parses one text from the client, a message or (where its version has them) a batch; NULL with the fault. */
json_t *peer_read(const struct peer *p, struct str text, struct rpc_fault *ret);
/*
 * Processes what peer_read() returned. `tag` is passed to send(). Returns how many requests in it will be answered
 * through send() (an invalid message counts as one): 0 for notifications and responses.
 */
size_t peer_take(struct peer *p, const json_t *root, uint64_t tag);
/* Answers a text that peer_read() refused. `id`: its id as it stood there, "" if it had none. */
void peer_refuse(struct peer *p, const struct rpc_fault *f, struct str id, uint64_t tag);
/* The same for a message that was too long. */
void peer_too_long(struct peer *p, struct str id, uint64_t tag);
/* Whether it has started boxes that stay. */
bool peer_has_boxes(const struct peer *p);
/* The negotiated protocol version; NULL before. */
const char *peer_version(const struct peer *p);
bool peer_knows_version(const char *version);
/* Sends progress that is due; returns milliseconds until the next call, -1: none. */
int peer_tick(struct peer *p, uint64_t now);
bool peer_busy(const struct peer *p);
