/*
 * Questions. If no rule decides, the egress proxy holds the connection and sends one question for all that wait for the
 * same host and port. It goes to the library caller's callback, else to the control connection, else to the user at the
 * terminal. The timeout is handled here: without an answer in time it is no.
 */
#include <stdio.h>
#include <string.h>
#include "match/url.h"
#include "protocol/inquiry.h"
#include "supervisor/network/live.h"

#define BROWSER_QUESTIONS 4u         /* of one box: an agent asks once or twice */
#define BROWSER_WAIT_US   120000000u /* for the person, who reads it */

int question_begin(struct box *b)
{
    const struct policy *p = b->spec->start.plan->policy;
    char room[512];
    if (!p->net_ask && !b->spec->on_question)
        return 0;
    if (b->spec->on_question || control_there(b) || prompt_possible(b))
        return 0;
    return err_say(b->err, ERR_CANNOT,
                   "net.ask (%s): no terminal to ask at; use --control-fd N, or allow hosts with --allow",
                   policy_origin(p, p->net_ask_origin, room, sizeof room));
}

/* The library's caller answers on the spot. */
static void call_back(struct box *b, struct question *q)
{
    struct box_question asked = {.target = q->target,
                                 .port = q->port,
                                 .how = question_how(q),
                                 .pid = q->who.pid,
                                 .command = q->who.command,
                                 .left_ms = b->spec->start.plan->policy->net_ask_ms};
    bool allow = false, run = false;
    b->spec->on_question(b->spec->ctx, &asked, &allow, &run);
    question_answer(b, q, (struct answer){allow, run});
}

static struct question *free_question(struct live *l)
{
    for (size_t i = 0; i < EGRESS_MAX_QUESTIONS; i++) {
        if (l->questions[i].state == QUESTION_FREE)
            return &l->questions[i];
    }
    return NULL;
}

/* To whoever can be asked. */
static void put_question(struct box *b, struct question *q)
{
    if (b->spec->on_question)
        call_back(b, q);
    else if (control_there(b))
        control_ask(b, q);
    else if (!prompt_possible(b) || b->live->prompt.off)
        question_settle(b, q, ANSWER_NOBODY);
}

void question_filter(struct box *b, enum filter_kind kind, uint32_t ticket, const char *action, const char *target)
{
    struct question *q = b->live ? free_question(b->live) : NULL;
    if (!q || b->stage >= STAGE_ENDING) {
        struct question none = {.filtered = true, .filter = kind, .ticket = ticket};
        question_settle(b, &none, ANSWER_NOBODY);
        return;
    }
    *q = (struct question){.state = QUESTION_WAITS,
                           .filtered = true,
                           .filter = kind,
                           .ticket = ticket,
                           .id = ++b->live->questions_asked,
                           .until = now_us() + (uint64_t)b->spec->start.plan->policy->net_ask_ms * 1000};
    snprintf(q->target, sizeof q->target, "%s %s", action, target);
    put_question(b, q);
}

void question_event(struct box *b, const struct egress_event *v)
{
    struct live *l = b->live;
    struct question *q = free_question(l);
    if (!q || b->stage >= STAGE_ENDING) {
        struct egress_order o = {.kind = ORDER_ANSWER, .ticket = v->ticket, .answer = ANSWER_NOBODY};
        (void)order_send(b, &o, -1);
        return;
    }
    *q = (struct question){.state = QUESTION_WAITS,
                           .ticket = v->ticket,
                           .id = ++l->questions_asked,
                           .until = now_us() + (uint64_t)b->spec->start.plan->policy->net_ask_ms * 1000,
                           .port = v->port,
                           .how = v->how};
    network_target(v, q->target, sizeof q->target);
    who_is(b, v, &q->who);
    put_question(b, q);
}

/* ---- addresses for a browser ---- */

/* Why nobody is asked; NULL: somebody can be. */
static const char *not_asked(struct box *b)
{
    const struct live *l = b->live;
    if (!b->spec->browser || !l)
        return "only a login's box can have an address opened outside (pinfold login)";
    if (!prompt_possible(b) || l->prompt.off)
        return "there is no terminal at which a person could be asked";
    if (l->browser_off)
        return "the person has said no";
    for (size_t i = 0; i < EGRESS_MAX_QUESTIONS; i++) {
        if (l->questions[i].state == QUESTION_WAITS && l->questions[i].url)
            return "the person is being asked about another address";
    }
    return l->browser_asked >= BROWSER_QUESTIONS ? "this box has asked too often" : NULL;
}

void question_browser(struct box *b, const char *url, struct inquiry_answer *a)
{
    struct url_asked asked = {0};
    const char *why = not_asked(b);
    if (!why && url_judge(str_of(url), b->spec->browser->hosts, &asked, &why) == 0 && asked.port &&
        !publish_can(b, asked.port))
        why = "its answer could not reach this box";
    struct question *q = why ? NULL : free_question(b->live);
    char *copy = q ? strdup(url) : NULL;
    if (!copy) {
        snprintf(a->reason, sizeof a->reason, "%s", why ? why : "pinfold cannot ask now");
        return;
    }
    *q = (struct question){.state = QUESTION_WAITS,
                           .id = ++b->live->questions_asked,
                           .url = copy,
                           .port = asked.port,
                           .until = now_us() + BROWSER_WAIT_US};
    b->live->browser_asked++;
    a->verdict = 0;
    snprintf(a->reason, sizeof a->reason, "the person is asked");
}

void question_drop_all(struct box *b, enum egress_answer why)
{
    struct live *l = b->live;
    for (size_t i = 0; l && i < EGRESS_MAX_QUESTIONS; i++) {
        struct question *q = &l->questions[i];
        if (q->state == QUESTION_FREE)
            continue;
        if (q->id == l->prompt.id)
            prompt_over(b, NULL);
        question_settle(b, q, why);
    }
}

uint64_t question_next(const struct box *b)
{
    const struct live *l = b->live;
    uint64_t next = NEVER;
    if (!l)
        return NEVER;
    for (size_t i = 0; i < EGRESS_MAX_QUESTIONS; i++) {
        const struct question *q = &l->questions[i];
        if (q->state != QUESTION_FREE && q->until < next)
            next = q->until;
    }
    uint64_t prompt = prompt_next(b);
    return prompt < next ? prompt : next;
}

/* Who was asked is gone, or wants to hear no more. */
static void question_lost(struct box *b, struct question *q)
{
    bool person = b->spec->start.plan->policy->net_ask && prompt_possible(b) && !b->live->prompt.off;
    if (q->told && person)
        q->told = false;
    else
        question_settle(b, q, q->told ? ANSWER_NOBODY : ANSWER_NO);
}

void question_due(struct box *b, uint64_t now)
{
    struct live *l = b->live;
    for (size_t i = 0; l && i < EGRESS_MAX_QUESTIONS; i++) {
        struct question *q = &l->questions[i];
        if (q->state != QUESTION_FREE && (q->told ? !control_there(b) : l->prompt.off))
            question_lost(b, q);
        if (q->state == QUESTION_FREE || q->until > now)
            continue;
        if (q->id == l->prompt.id)
            prompt_over(b, q->url ? "not answered: not opened" : "not answered: denied");
        if (q->told)
            control_asked(b, q);
        question_settle(b, q, ANSWER_LATE);
    }
    if (l)
        prompt_due(b, now);
}
