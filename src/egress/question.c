/* Open questions: one for each host and port, for all connections that wait for it.
   admit.c asks, order.c brings the answer. */
#include <string.h>
#include "egress/conn.h"

static struct egress_question {
    uint32_t ticket; /* 0: free; QUESTION_REFUSED: refused a moment ago */
    uint16_t port;
    uint64_t until; /* when the entry becomes free in any case */
    struct host host;
} questions[EGRESS_MAX_QUESTIONS];

uint32_t question_of(enum egress_how how, const struct host *host, uint16_t port, const struct told *who)
{
    struct egress_question *place = NULL;
    for (size_t i = 0; i < EGRESS_MAX_QUESTIONS; i++) {
        struct egress_question *q = &questions[i];
        if (q->ticket && q->until <= world.now)
            q->ticket = 0;
        if (q->ticket && q->port == port && host_same(&q->host, host))
            return q->ticket;
        if (!q->ticket || (q->ticket == QUESTION_REFUSED && (!place || place->ticket)))
            place = q; /* a free one, else one that is only remembered */
    }
    uint32_t ticket = place ? egress_tell_question(how, host, port, who) : 0;
    if (ticket)
        *place = (struct egress_question){
            .ticket = ticket, .port = port, .host = *host, .until = world.now + world.ask->ask_ms + ASK_SLACK_MS};
    return ticket;
}

void question_over(uint32_t ticket, bool yes)
{
    for (size_t i = 0; i < EGRESS_MAX_QUESTIONS; i++) {
        if (questions[i].ticket != ticket)
            continue;
        questions[i].ticket = yes ? 0 : QUESTION_REFUSED;
        questions[i].until = world.now + REFUSED_MS;
    }
}
