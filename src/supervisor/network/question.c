/* A question and its end: the answer goes to the egress proxy, and becomes a rule if it is for the whole run. */
#include <string.h>
#include "supervisor/network/live.h"

void question_settle(struct box *b, struct question *q, enum egress_answer answer)
{
    struct egress_order o = {.kind = ORDER_ANSWER, .ticket = q->ticket, .answer = answer};
    (void)order_send(b, &o, -1); /* where it does not arrive, the egress's own clock says no */
    q->state = QUESTION_FREE;
}

struct question *question_find(struct live *l, uint32_t id)
{
    for (size_t i = 0; i < EGRESS_MAX_QUESTIONS; i++) {
        if (l->questions[i].state != QUESTION_FREE && l->questions[i].id == id)
            return &l->questions[i];
    }
    return NULL;
}

void question_answer(struct box *b, struct question *q, struct answer a)
{
    struct live *l = b->live;
    struct err ignored = {0};
    uint32_t ticket;
    if (a.run && rules_add(l, str_of(q->target), a.allow ? RULE_ALLOW : RULE_DENY, FROM_ASKED, 0, NULL, &ignored) == 0)
        (void)rules_send(b, &ticket);
    question_settle(b, q, a.allow ? ANSWER_YES : ANSWER_NO);
}
