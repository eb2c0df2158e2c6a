/*
 * Messages that are kept until a client has surely got them. One whose connection broke names the last event that it
 * saw, and goes on from there.
 */
#include "mcp/transport/stream.h"

#include <stdlib.h>
#include <string.h>

struct event_stream *stream_new(struct event_stream **list, uint64_t tag, size_t max)
{
    struct event_stream *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    *s = (struct event_stream){.next = *list, .tag = tag, .log = BUF(max)};
    *list = s;
    return s;
}

struct event_stream *stream_find(struct event_stream *list, uint64_t tag)
{
    while (list && list->tag != tag)
        list = list->next;
    return list;
}

void stream_drop(struct event_stream **list, struct event_stream *s)
{
    while (*list && *list != s)
        list = &(*list)->next;
    if (!*list)
        return;
    *list = s->next;
    buf_free(&s->log);
    free(s);
}

bool stream_add(struct event_stream *s, struct str message)
{
    size_t cut = 0;
    buf_str(&s->log, message);
    buf_char(&s->log, '\n');
    while (!s->tag && s->log.n - cut > STREAM_GENERAL) {
        const char *end = memchr(s->log.p + cut, '\n', s->log.n - cut);
        cut = (size_t)(end + 1 - s->log.p);
        s->dropped++;
    }
    if (cut) {
        memmove(s->log.p, s->log.p + cut, s->log.n - cut);
        s->log.n -= cut;
    }
    return buf_ok(&s->log);
}

size_t stream_after(const struct event_stream *s, size_t n)
{
    size_t at = 0;
    for (size_t i = s->dropped; i < n && at < s->log.n; i++) {
        const char *end = memchr(s->log.p + at, '\n', s->log.n - at);
        at = (size_t)(end + 1 - s->log.p);
    }
    return at;
}

size_t stream_messages(const struct event_stream *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->log.n; i++)
        n += s->log.p[i] == '\n';
    return n;
}

static bool number(struct str digits, uint64_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < digits.n; i++) {
        if (digits.p[i] < '0' || digits.p[i] > '9')
            return false;
        *ret = *ret * 10 + (uint64_t)(digits.p[i] - '0');
    }
    return digits.n > 0 && digits.n < 19;
}

bool stream_id(struct str text, uint64_t *ret_tag, size_t *ret_n)
{
    uint64_t n = 0;
    struct str tag = str_until(&text, '-');
    bool good = number(tag, ret_tag) && number(text, &n);
    *ret_n = (size_t)n;
    return good;
}

void streams_prune(struct event_stream **list, uint64_t now, bool (*held)(void *ctx, const struct event_stream *s),
                   void *ctx)
{
    size_t kept = 0;
    for (struct event_stream *s = *list, *following; s; s = following) { /* the youngest first */
        following = s->next;
        if (!s->tag || !s->ended || held(ctx, s))
            continue;
        uint64_t most = s->sent ? STREAM_SENT_MS : STREAM_UNSENT_MS;
        if (now - s->ended > most || (s->sent && s->log.n > STREAM_KEPT) || ++kept > STREAMS_OF_ONE)
            stream_drop(list, s);
    }
}
