/* What the files share that serve one client: the client, its requests under way, and messages to it. */
#pragma once
#include "mcp/protocol/asker.h"
#include "mcp/protocol/peer.h"
#include "mcp/protocol/watch.h"

#define ROOTS_MS 10000 /* a client that does not tell its roots has none */

extern const char *const peer_versions[4]; /* of the protocol, newest first */
extern const char *const peer_levels[8];   /* of messages */

struct call { /* a request under way that a worker carries out */
    struct peer *peer;
    struct call *next;
    struct task *task; /* NULL: waits for another one of its lane */
    const struct tool *tool;
    char *lane; /* calls of one lane come one after the other; NULL: of none */
    uint64_t affinity;
    struct buf waits; /* what the worker will be told then */
    size_t held;      /* bytes of it, here or with the worker */
    json_t *id, *progress_token;
    uint64_t tag, began, told;
    char *watches;          /* it is a subscription to this resource */
    char *doing;            /* the last word of what it does */
    char question[32];      /* id of the question the person is asked; "" for none */
    uint64_t question_ends; /* no answer until then is a no */
    struct asked asked;     /* the question, where it is put at the terminal */
};

struct peer {
    struct server *server;
    peer_send_fn *send;
    void *ctx;
    char name[40];
    const char *version;
    bool elicits, initialized, sessions, ending, has_roots;
    uint64_t roots_end; /* calls wait for the client's roots until then; 0: they do not */
    unsigned level;     /* of messages to its log; an index into levels */
    struct call *calls;
    size_t n_calls;
    unsigned questions;
    struct mcp_watch watch;
};

/* Hands it to a worker; false: out of memory. */
bool call_start(struct call *c, struct str what);
/* Whether another call of this lane is under way. */
bool call_lane_busy(const struct peer *p, const char *lane);
/* Those that waited for the client's roots. */
void calls_go(struct peer *p);
void call_free(struct call *c);
void call_send_progress(struct call *c, uint64_t now);
/* The person's answer to its question. */
void call_answered(void *ctx, bool yes);

void peer_send(struct peer *p, uint64_t tag, struct buf *message, bool last);
void peer_fault(struct peer *p, uint64_t tag, const json_t *id, enum rpc_code code, const char *text);
/* A result that says what went wrong. */
void peer_failure(struct peer *p, uint64_t tag, const json_t *id, const char *text);
/* A resource has changed that the client watches: `ctx` is the client. */
void peer_watched(void *ctx, const char *uri);
void peer_request(struct peer *p, const struct rpc_message *m, uint64_t tag);
