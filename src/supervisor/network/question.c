/* A question and its end: the answer goes to who asked. To the egress proxy it becomes a rule if it is for the whole run. */
#include <string.h>
#include <sys/socket.h>
#include "ssh/filter.h"
#include "supervisor/network/live.h"

static void answer_filter(struct box *b, const struct question *q, bool allow, bool run)
{
    const struct ssh_order o = {.kind = SSH_ORDER_ANSWER, .id = q->ticket, .allow = allow, .run = run};
    const int events = b->filters[q->filter].events;
    if (events >= 0)
        (void)send(events, &o, sizeof o, MSG_DONTWAIT | MSG_NOSIGNAL);
}

const char *question_how(const struct question *q)
{
    if (!q->filtered)
        return network_how(q->how);
    return q->filter == FILTER_SSH ? "ssh-agent" : "gpg-agent";
}

void question_settle(struct box *b, struct question *q, enum egress_answer answer)
{
    struct egress_order o = {.kind = ORDER_ANSWER, .ticket = q->ticket, .answer = answer};
    if (q->url)
        (void)browser_answered(b, q, false);
    else if (q->filtered)
        answer_filter(b, q, answer == ANSWER_YES, false);
    else
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
    if (q->filtered) {
        answer_filter(b, q, a.allow, a.run);
        q->state = QUESTION_FREE;
        return;
    }
    if (a.run && rules_add(l, str_of(q->target), a.allow ? RULE_ALLOW : RULE_DENY, FROM_ASKED, 0, NULL, &ignored) == 0)
        (void)rules_send(b, &ticket);
    question_settle(b, q, a.allow ? ANSWER_YES : ANSWER_NO);
}
