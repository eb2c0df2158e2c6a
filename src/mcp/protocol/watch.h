/*
 * What one client has subscribed to. While there is something, a worker looks once a second whether it has changed: files
 * change by hands that tell nobody, and the rules of the box hold for looking, too.
 */
#pragma once
#include "mcp/workers/janitor.h"
#include "mcp/transport/loop.h"
#include "mcp/workers/work.h"

#define WATCH_MAX 256 /* of one client */

struct watched {
    char *uri, *stamp;
};
struct mcp_watch {
    struct work *work;
    const char *client;
    void (*changed)(void *ctx, const char *uri);
    void *ctx;
    struct watched *list;
    size_t n;
    struct task *look; /* under way, at all that were in the list then */
    uint64_t next;
};

/* `stamp`: how it is now. 0; -ENOSPC: there are too many; -ENOMEM. */
int watch_add(struct mcp_watch *w, const char *uri, const char *stamp);
bool watch_remove(struct mcp_watch *w, const char *uri);
/* Milliseconds until it wants to be called again; -1: nothing is watched, or a look is under way. */
int watch_tick(struct mcp_watch *w, uint64_t now);
void watch_end(struct mcp_watch *w);
/* What a worker is told: see work_start(). */
void watch_call(struct buf *out, const char *client, const struct watched *list, size_t n);
