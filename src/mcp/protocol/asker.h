/* Questions to the user at the server's terminal, one at a time in order: for clients that cannot ask themselves. */
#pragma once
#include "user/dialogue.h"
#include "mcp/transport/loop.h"

struct asked { /* embedded in its owner */
    struct asked *next;
    void (*answer)(void *ctx, bool yes); /* called once, unless the question is withdrawn */
    void *ctx;
    char *sentence;
    uint64_t ends; /* ms; without an answer by then it is no */
};
struct asker {
    struct loop_source source;
    struct loop *loop;
    struct dialogue d;
    struct asked *first; /* the one that is shown, or will be next */
    bool listening, off; /* off: the user wants no more questions */
};

void asker_begin(struct asker *a, struct loop *loop);
/* Whether a question would be seen: we are in the terminal's foreground, and no full-screen program uses it. */
bool asker_possible(const struct asker *a);
/* Copies `sentence`; false without memory, or if nobody would see it. */
bool asker_ask(struct asker *a, struct asked *q, const char *sentence);
void asker_take_back(struct asker *a, struct asked *q);
/* Returns milliseconds until the next call; -1: none. */
int asker_tick(struct asker *a, uint64_t now);
void asker_end(struct asker *a);
