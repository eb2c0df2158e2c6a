/*
 * Effects of pinfold's orders (order.c) on existing connections: a client was identified, a question was answered, the
 * rules have changed.
 */
#include <string.h>
#include "egress/parts.h"

void conn_seen(uint32_t ticket)
{
    struct conn *c = conn_waiting(ticket, STAGE_HELD);
    if (c)
        refuse_held(c);
}

void conn_answered(uint32_t ticket, enum egress_answer answer)
{
    for (struct conn *c; (c = conn_waiting(ticket, STAGE_ASK));) {
        c->ticket = 0;
        if (answer == ANSWER_YES) {
            c->asked = true;
            c->rule = EGRESS_RULE_ASKED;
            admit(c);
        } else {
            refuse_answered(c, answer);
        }
    }
}

/* The host of an open connection. */
static struct host whom(const struct conn *c)
{
    struct host h = {.kind = HOST_ADDR};
    if (c->host)
        return *c->host;
    if (c->stand) {
        h.kind = HOST_NAME;
        strcpy(h.name, world.names[c->stand - 1]);
    } else {
        h.addr = c->addrs[c->at_addr ? c->at_addr - 1 : 0];
    }
    return h;
}

/* NULL: it may continue. */
static const char *forbidden(struct conn *c, const struct host *h)
{
    struct host inner = {.kind = HOST_NAME};
    if (c->how >= HOW_REACH)
        return NULL;
    enum host_decision d = judge_host(c, h);
    if (d != HOST_ALLOWED)
        return d == HOST_DENIED ? "denied by a rule" : "not allowed";
    if (c->any_bytes && !host_any_bytes(world.ask->rules, world.ask->n_rules, h, c->port))
        return c->port == 80 ? EGRESS_ONLY_HTTP : "other protocols are no longer allowed on the port";
    if (c->inner) {
        strcpy(inner.name, world.names[c->inner - 1]);
        if (host_judge(world.ask->rules, world.ask->n_rules, &inner, c->port, NULL) != HOST_ALLOWED)
            return "the name given inside is not allowed";
    }
    return c->at_addr && !c->parent ? judge_address(c, &c->addrs[c->at_addr - 1]) : NULL;
}

uint32_t conn_judge_again(void)
{
    uint32_t ended = 0;
    for (struct conn *c = world.all, *next; c; c = next) {
        next = c->other; /* whatever happens to this one, the next one stays */
        if (c->stage == STAGE_ASK) {
            admit(c);
            continue;
        }
        bool way = c->stage == STAGE_RESOLVE || c->stage == STAGE_DIAL || c->stage == STAGE_PARENT;
        if (!way && c->stage != STAGE_OPEN)
            continue;
        struct host h = whom(c);
        const char *why = forbidden(c, &h);
        if (!why)
            continue;
        if (c->lookup)
            lookup_cancel(c->lookup);
        if (way)
            source_close(&c->server);
        ended++;
        if (way) {
            refuse_denied(c, NULL, why, why);
            continue;
        }
        struct told nobody = {0}; /* ends now, before the new rules are reported to be in force */
        (void)egress_tell_refused(EGRESS_DENIED, c, &h, c->parent || !c->at_addr ? NULL : &c->addrs[c->at_addr - 1],
                                  why, &nobody);
        conn_reset(c);
    }
    return ended;
}
