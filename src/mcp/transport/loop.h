/* The poll() loop of the protocol process. */
#pragma once
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define READ_STEP (1u << 14) /* bytes read from a client at a time */

struct loop_source { /* embedded in its owner; ready() may remove any source, also its own */
    int fd;
    short events;
    void (*ready)(struct loop_source *s, short revents);
    size_t at; /* index in the loop's list */
};

struct loop {
    struct loop_source **list;
    struct pollfd *polled;
    size_t n, room;
    bool done;
};

int loop_add(struct loop *l, struct loop_source *s); /* 0, -ENOMEM */
void loop_remove(struct loop *l, struct loop_source *s);
/* Waits at most timeout_ms (-1: no limit) and calls sources that are ready. 0 or -errno. */
int loop_turn(struct loop *l, int timeout_ms);
void loop_free(struct loop *l);
uint64_t loop_now(void); /* monotonic */
