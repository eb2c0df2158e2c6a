/*
 * git.verify: required, in a box that can write the repository itself. Where a protected branch is to move, the guard sends the
 * moves, a line "REF ID" each, on one end of a SOCK_SEQPACKET pair, and gives pinfold the other (FRAME_MOVES), which hands it to
 * its checker (run/moves.h, project/moves.c). The answer is one struct moves_answer, however long hooks take; its end means no.
 */
#pragma once
#include <stdint.h>

#define MOVES_PROGRAM "--check-moves" /* with which pinfold starts itself as that checker */
#define MOVES_SOCKET  3 /* its end of the pair with pinfold: it says first whether it is ready, by a moves_answer */
#define MOVES_PACK                                                                                                     \
    4 /* with MOVES_MORE as its first argument: a pack of objects that the repository does not have yet, and its index */
#define MOVES_INDEX 5
#define MOVES_MORE  "more"

#define MOVES_TEXT 65536 /* of all lines */
#define MOVES_WHY  1600  /* with its NUL */

struct moves_answer {
    int32_t passed;
    char why[MOVES_WHY]; /* a clause: what did not pass; "" */
};
