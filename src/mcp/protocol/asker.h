/*
 * Questions to the person at the server's terminal, one at a time in the order they came: for clients that cannot put one themselves.
 */
#pragma once
#include "sys/dialogue.h"
#include "mcp/transport/loop.h"

struct asked { /* lies in its owner */
    struct asked *next;
    void (*answer)(void *ctx, bool yes); /* called once, unless it is taken back before */
    void *ctx;
    char *sentence;
    uint64_t ends; /* milliseconds: no answer until then is a no */
};
struct asker {
    struct loop_source source;
    struct loop *loop;
    struct dialogue d;
    struct asked *first; /* the one that is shown, or will be */
    bool listening, off; /* off: the person wants no more questions */
};

void asker_begin(struct asker *a, struct loop *loop);
/* Whether a question would be seen now: a terminal whose foreground is ours, and not a program's that draws on it. */
bool asker_possible(const struct asker *a);
/* `sentence` is copied; false without memory, or when nobody would see it. */
bool asker_ask(struct asker *a, struct asked *q, const char *sentence);
void asker_take_back(struct asker *a, struct asked *q);
/* Milliseconds until it wants to be called again; -1: never. */
int asker_tick(struct asker *a, uint64_t now);
void asker_end(struct asker *a);
