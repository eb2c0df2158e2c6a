/*
 * Subscriptions to resources: checks once a second whether one has changed. A worker looks, as for every call; one
 * look is under way at a time.
 */
#include "mcp/protocol/watch.h"

#include <errno.h>
#include <stdlib.h>

#define EVERY_MS 1000

static void drop(struct watched *one)
{
    free(one->uri);
    free(one->stamp);
}

static struct watched *find_watched(const struct mcp_watch *w, const char *uri)
{
    for (size_t i = 0; uri && i < w->n; i++) {
        if (same(w->list[i].uri, uri))
            return &w->list[i];
    }
    return NULL;
}

int watch_add(struct mcp_watch *w, const char *uri, const char *stamp)
{
    struct watched one = {strdup(uri), strdup(stamp)}, *old = find_watched(w, uri);
    struct watched *list = old || w->n == WATCH_MAX ? NULL : realloc(w->list, (w->n + 1) * sizeof *list);

    if (list)
        w->list = list;
    if (!one.uri || !one.stamp || (!old && !list)) {
        drop(&one);
        return !old && w->n == WATCH_MAX ? -ENOSPC : -ENOMEM;
    }
    if (old)
        drop(old);
    *(old ? old : &w->list[w->n++]) = one;
    return 0;
}

bool watch_remove(struct mcp_watch *w, const char *uri)
{
    struct watched *one = find_watched(w, uri);
    if (!one)
        return false;
    drop(one);
    *one = w->list[--w->n];
    return true;
}

void watch_call(struct buf *out, const char *client, const struct watched *list, size_t n)
{
    struct json j = JSON(out);
    json_object(&j, NULL);
    json_text(&j, "tool", "resources/look");
    json_text(&j, "client", client);
    json_object(&j, "arguments");
    json_array(&j, "uris");
    for (size_t i = 0; i < n; i++)
        json_text(&j, NULL, list[i].uri);
    json_array_end(&j);
    json_array(&j, "before");
    for (size_t i = 0; i < n; i++)
        json_text(&j, NULL, list[i].stamp ? list[i].stamp : "");
    json_array_end(&j);
    json_object_end(&j);
    json_object_end(&j);
}

/* ---- a look's end */

static void look_said(void *ctx, enum say_level level, struct str sentence)
{
    (void)ctx;
    (void)level;
    (void)sentence;
}
static void look_words(void *ctx, struct str sentence)
{
    (void)ctx;
    (void)sentence;
}
static void look_question(void *ctx, struct str sentence, uint32_t patience_ms)
{
    (void)patience_ms;
    look_words(ctx, sentence);
}
static void nothing(void *ctx)
{
    (void)ctx;
}
static void lost(void *ctx)
{
    struct mcp_watch *w = ctx;
    w->look = NULL;
    w->next = loop_now() + EVERY_MS;
}
static void look_fault(void *ctx, int code, struct str sentence)
{
    (void)code;
    (void)sentence;
    lost(ctx);
}

static void seen(void *ctx, struct str json)
{
    struct mcp_watch *w = ctx;
    char why[128];
    auto_value json_t *root = value_read(json, why, sizeof why);
    json_t *seen = json_object_get(root, "stamps");

    lost(ctx);
    for (void *at = json_object_iter(seen); at; at = json_object_iter_next(seen, at)) {
        struct watched *one = find_watched(w, json_object_iter_key(at)); /* it may have been removed meanwhile */
        const char *stamp = json_string_value(json_object_iter_value(at));
        if (!one || !stamp || same(one->stamp, stamp))
            continue;
        char *copy = strdup(stamp);
        if (!copy)
            return;
        free(one->stamp);
        one->stamp = copy;
        w->changed(w->ctx, one->uri);
    }
}

int watch_tick(struct mcp_watch *w, uint64_t now)
{
    static const struct task_events events = {.say = look_said,
                                              .progress = look_words,
                                              .question = look_question,
                                              .changed = nothing,
                                              .result = seen,
                                              .fault = look_fault,
                                              .lost = lost};
    if (!w->n || w->look)
        return -1;
    if (w->next > now)
        return (int)(w->next - now);
    auto_buf struct buf call = BUF(2 * (size_t)MCP_MAX_MESSAGE);
    watch_call(&call, w->client, w->list, w->n);
    if (buf_ok(&call))
        w->look = work_start(w->work, buf_view(&call), false, 0, &events, w);
    if (w->look)
        return -1;
    w->next = now + EVERY_MS;
    return EVERY_MS;
}

void watch_end(struct mcp_watch *w)
{
    if (w->look)
        work_cancel(w->look);
    w->look = NULL;
    while (w->n)
        drop(&w->list[--w->n]);
    free(w->list);
    w->list = NULL;
}
