/*
 * A client's subscriptions. While there are any, a worker checks once a second for changes: files change without
 * notification, and the box's rules must also apply to looking.
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
    struct task *look; /* running, for everything that was in the list when it started */
    uint64_t next;
};

/* `stamp`: the present state. 0; -ENOSPC: there are too many; -ENOMEM. */
int watch_add(struct mcp_watch *w, const char *uri, const char *stamp);
bool watch_remove(struct mcp_watch *w, const char *uri);
/* Returns milliseconds until the next call; -1: nothing is watched, or a check is running. */
int watch_tick(struct mcp_watch *w, uint64_t now);
void watch_end(struct mcp_watch *w);
/* The call for a worker: see work_start(). */
void watch_call(struct buf *out, const char *client, const struct watched *list, size_t n);
