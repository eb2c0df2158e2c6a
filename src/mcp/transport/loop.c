/*
 * A small poll(2) loop of event sources. The server has some dozens of descriptors at most, for which nothing larger
 * is needed.
 */
#include "mcp/transport/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

uint64_t loop_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int loop_add(struct loop *l, struct loop_source *s)
{
    if (l->n == l->room) {
        size_t room = l->room ? 2 * l->room : 16;
        struct loop_source **list = realloc(l->list, room * sizeof *list);
        if (!list)
            return -ENOMEM;
        l->list = list;
        struct pollfd *polled = realloc(l->polled, room * sizeof *polled);
        if (!polled)
            return -ENOMEM;
        l->polled = polled;
        l->room = room;
    }
    s->at = l->n;
    l->list[l->n++] = s;
    return 0;
}

/* Its place stays empty until the next turn: the list is being walked. */
void loop_remove(struct loop *l, struct loop_source *s)
{
    if (s->at < l->n && l->list[s->at] == s)
        l->list[s->at] = NULL;
}

static void close_gaps(struct loop *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->n; i++) {
        if (!l->list[i])
            continue;
        l->list[kept] = l->list[i];
        l->list[kept]->at = kept;
        kept++;
    }
    l->n = kept;
}

int loop_turn(struct loop *l, int timeout_ms)
{
    close_gaps(l);
    size_t n = l->n;
    for (size_t i = 0; i < n; i++)
        l->polled[i] = (struct pollfd){.fd = l->list[i]->fd, .events = l->list[i]->events};
    int ready = poll(l->polled, (nfds_t)n, timeout_ms);
    if (ready < 0)
        return errno == EINTR ? 0 : -errno;
    /* A callback may add sources, which moves both arrays: they are read anew each time. */
    for (size_t i = 0; i < n && ready > 0; i++) {
        short revents = l->polled[i].revents;
        if (!revents)
            continue;
        ready--;
        if (l->list[i])
            l->list[i]->ready(l->list[i], revents);
    }
    return 0;
}

void loop_free(struct loop *l)
{
    free(l->list);
    free(l->polled);
    *l = (struct loop){0};
}
