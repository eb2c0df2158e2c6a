/*
 * A question of a process in a box: would this be allowed (`pinfold why`)? The guard answers a connect(2) to the abstract
 * name below with one end of a SOCK_SEQPACKET pair and gives the other to pinfold (FRAME_INQUIRY). One question, one answer.
 * What the answer may say is decided in run/asked/inquiry.c.
 *
 * A login's box may ask on the same way for an address to be opened in the person's browser (INQUIRY_OPEN; supervisor/network/asker.c).
 * Its answer says only whether the person is asked.
 */
#pragma once
#include <stdint.h>

#define INQUIRY_NAME   "pinfold/why" /* after a NUL */
#define INQUIRY_TARGET 4096          /* with its NUL */
#define INQUIRY_OPEN   "open-url"    /* in `act` */

struct inquiry { /* texts end with NUL */
    char act[16];
    char target[INQUIRY_TARGET]; /* an absolute path without links, a host with a port, or an address */
};

struct inquiry_answer {
    int32_t verdict; /* enum why_verdict; -1: no answer, `reason` says why */
    int32_t no;      /* errno that the box gets; 0 */
    char cause[16], reason[256], rule[256], origin[64], mechanism[64]; /* "": none */
    char outside[INQUIRY_TARGET + 256];                                /* what whoever started the box can do */
};
