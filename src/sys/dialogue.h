/*
 * One question to the person at the controlling terminal, shared by all who ask there. What was written before may have left the
 * terminal in the middle of an escape sequence, with other colours, invisible or with another alphabet: that is ended
 * first. For a moment after the question appears nothing that is typed counts, and all that was typed until then is thrown
 * away: nobody answers by what was meant for something else. Times in microseconds of the monotonic clock.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dialogue {
    int fd;              /* the terminal, or -1 */
    bool raw;            /* it was set to raw mode by this process */
    bool shown, open;    /* a question is there; what is typed counts */
    uint64_t opens_at;   /* when it will, or when to look again whether the terminal is free */
    const char *choices; /* characters that are answers, and how they are asked for again */
    const char *again;
    char line[16];
    size_t n;
};

/* Something other than an answer's character. */
enum { DIALOGUE_NOTHING = 0, DIALOGUE_HUNG_UP = -1, DIALOGUE_INTERRUPT = -2, DIALOGUE_ENDED = -3 };

/* The controlling terminal, or -1. */
int dialogue_terminal(void);
/* Ours to write to and to read from: we are in the foreground, and nobody else (a pager) has set it to raw mode. */
bool dialogue_is_ours(const struct dialogue *d);
bool dialogue_in_foreground(const struct dialogue *d);
/* Shows `text`, one line; false: somebody else has the terminal, until `opens_at` at least. */
bool dialogue_begin(struct dialogue *d, const char *text, uint64_t now);
/* To be called at `opens_at`. */
void dialogue_due(struct dialogue *d, uint64_t now);
/* What was typed: one of `choices`, or one of those above. */
int dialogue_read(struct dialogue *d);
/* `words` are shown; what is left of the answer is for nobody. */
void dialogue_end(struct dialogue *d, const char *words);
