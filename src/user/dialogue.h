/*
 * One question at a time to the user at the controlling terminal, shared by all callers in this process. Earlier output
 * may have left the terminal inside an escape sequence, with other colours or another character set, or so that text shows in a few
 * lines alone; this is reset first. Input typed before the question and in the first moment after it is thrown away, so that keys meant for
 * something else do not answer it. Programs of one terminal ask one after the other, since an answer goes to whichever
 * reads first. Times are microseconds of the monotonic clock.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ends unfinished sequences: the window of xterm's Tektronix mode (first, since there no other sequence means what it means here), CAN, string
   terminator, attributes, character set, cursor. ECMA-48, ISO 2022. Then what keeps text from being seen where it is written: VT52, output to a
   printer, insertion, no wrapping, waiting with what is drawn, margins, lines that scroll (which would put the cursor to the top). */
#define TERMINAL_CLEAN                                                                                                 \
    "\033\003\030\033\\\033[0m\017\033(B\033[?25h"                                                                     \
    "\033<\033[4i\033[4l\033[?7h\033[?2026l\0337\033[?69l\033[r\0338"

struct dialogue {
    int fd;           /* the terminal, or -1 */
    bool raw;         /* this process has set it to raw mode */
    bool shown, open; /* the question is shown; input counts */
    bool has_turn;    /* no other program asks at this terminal: `turn` is locked */
    int turn;
    uint64_t opens_at;   /* when input begins to count, or when to check again whether the terminal is free */
    const char *choices; /* the characters that are answers, and how to repeat the question */
    const char *again;
    char line[16];
    size_t n;
};

/* What dialogue_read() returns besides one of `choices`. */
enum { DIALOGUE_NOTHING = 0, DIALOGUE_HUNG_UP = -1, DIALOGUE_INTERRUPT = -2, DIALOGUE_ENDED = -3 };

/* The controlling terminal, or -1. */
int dialogue_terminal(void);
/* Whether we may use the terminal: we are in the foreground, and no other program (a pager) has set it to raw mode. */
bool dialogue_is_ours(const struct dialogue *d);
bool dialogue_in_foreground(const struct dialogue *d);
/* Shows `text`, one line. False: another program uses the terminal, or asks there; try again at `opens_at`. */
bool dialogue_begin(struct dialogue *d, const char *text, uint64_t now);
/* Call this at `opens_at`. */
void dialogue_due(struct dialogue *d, uint64_t now);
/* What was typed: one of `choices`, or one of the values above. */
int dialogue_read(struct dialogue *d);
/* Shows `words` and discards the rest of the input. */
void dialogue_end(struct dialogue *d, const char *words);
