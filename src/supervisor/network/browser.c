/*
 * Addresses that the box of a login wants opened in the person's browser, which runs outside, after the person's word (asker.c). The person
 * has seen the very text that is handed to the browser. If the address sends its answer to a port of this machine, that port leads into this box from the yes on,
 * until it ends, and nowhere before.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "supervisor/network/live.h"

static const char *open_outside(struct box *b, const struct question *q)
{
    static char words[200];
    const struct box_browser *browser = b->spec->browser;
    int r = q->port ? publish_more(b, q->port) : 0;
    if (r < 0) {
        snprintf(words, sizeof words, "not opened: its answer would come to port %u of 127.0.0.1, %s", q->port,
                 r == -EADDRINUSE ? "which another program has" : strerror(-r));
        return words;
    }
    r = browser->open(browser->ctx, q->url);
    if (r < 0)
        snprintf(words, sizeof words, "not opened: the browser does not start: %s", strerror(-r));
    return r < 0 ? words : "opened";
}

const char *browser_answered(struct box *b, struct question *q, bool yes)
{
    const char *words = yes ? open_outside(b, q) : "not opened";
    b->live->browser_off |= !yes;
    free(q->url);
    *q = (struct question){.state = QUESTION_FREE};
    return words;
}
