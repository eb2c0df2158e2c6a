/*
 * Events of the egress proxy: to denials, to the result's list of allowed connections, and to the audit log. The box
 * decides how many there are: equal ones are kept once and counted, and those beyond the limit are only counted.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "supervisor/network/live.h"

/* The service that a step of the plan makes appear inside, the `index`th of them. */
static const char *reach_rule(struct box *b, uint32_t index, char *origin, size_t n)
{
    const struct policy *p = b->spec->start.plan->policy;
    const struct plan_image *image = b->spec->start.plan->image;
    const struct step *s = plan_steps(image);
    for (uint32_t i = 0; i < image->n_steps; i++) {
        if (s[i].kind != STEP_REACH || index--)
            continue;
        char room[512];
        snprintf(origin, n, "%s", policy_origin(p, s[i].origin, room, sizeof room));
        for (size_t k = 0; k < p->n_net_rules; k++) {
            if (p->net_rules[k].verb == NET_RULE_REACH && p->net_rules[k].origin == s[i].origin)
                return p->net_rules[k].text;
        }
        break;
    }
    return "reach";
}

struct network_words {
    char target[EGRESS_NAME + 64], rule[HOST_RULE_TEXT], origin[512];
    bool ruled; /* by a rule that denies */
};

static void words_of_event(struct box *b, const struct egress_event *v, struct network_words *w)
{
    const struct live *l = b->live;
    char room[512];
    bool by_rule = !*v->reason || same(v->reason, "denied by a rule") || same(v->reason, "is at a denied address");

    w->ruled = by_rule && v->how != HOW_REACH && v->rule < l->n_rules && l->rules[v->rule].rule.verb == RULE_DENY;
    network_target(v, w->target, sizeof w->target);
    snprintf(w->origin, sizeof w->origin, "%s", rules_origin(b, v->rule, room, sizeof room));
    if (v->how == HOW_REACH && v->what != EGRESS_FAILED)
        snprintf(w->rule, sizeof w->rule, "%s", reach_rule(b, v->rule, w->origin, sizeof w->origin));
    else if (by_rule && v->rule < l->n_rules)
        snprintf(w->rule, sizeof w->rule, "%s", l->rules[v->rule].text);
    else if (by_rule && v->rule == EGRESS_RULE_ASKED)
        snprintf(w->rule, sizeof w->rule, "asked");
    else
        snprintf(w->rule, sizeof w->rule, "%s", by_rule || same(v->reason, "not allowed") ? "default" : v->reason);
}

static void attempt_refused(struct box *b, const struct egress_event *v, const struct network_words *w)
{
    char kind[] = "network", action[16], how[40], target[sizeof w->target], rule[sizeof w->rule],
         origin[sizeof w->origin], address[sizeof v->address];
    struct who who = {0};
    snprintf(action, sizeof action, "%s",
             v->how == HOW_DNS          ? "resolve"
             : v->what == EGRESS_FAILED ? "dial"
                                        : "connect");
    snprintf(how, sizeof how, "%s%s", network_how(v->how), v->by_proxy ? ", parent proxy" : "");
    memcpy(target, w->target, sizeof target);
    memcpy(rule, w->rule, sizeof rule);
    memcpy(origin, w->origin, sizeof origin);
    memcpy(address, v->address, sizeof address);
    struct denial d = {.kind = kind,
                       .action = action,
                       .target = target,
                       .rule = rule,
                       .origin = origin,
                       .how = how,
                       .address = *address ? address : NULL,
                       .ruled = w->ruled};
    if (denial_is_new(b, &d) || (b->sessiond && b->sessiond->denied)) {
        who_is(b, v, &who);
        d.session = who.session;
        d.pid = who.pid;
        d.command = *who.command ? who.command : NULL;
    }
    denial_keep(b, &d);
}

static void free_allowed(struct allowed *a)
{
    free(a->action);
    free(a->target);
    free(a->address);
    free(a->rule);
    free(a->origin);
    *a = (struct allowed){0};
}

void network_free(struct box_result *r)
{
    for (size_t i = 0; i < r->n_allowed; i++)
        free_allowed(&r->allowed[i]);
    free(r->allowed);
    r->allowed = NULL;
    r->n_allowed = 0;
}

static bool equal(const struct allowed *a, const struct egress_event *v, const struct network_words *w)
{
    return same(a->target, w->target) && same(a->address, v->address) && same(a->how, network_how(v->how)) &&
           a->by_proxy == (v->by_proxy != 0) && same(a->rule, w->rule) && same(a->origin, w->origin);
}

static struct allowed *find_allowed(struct box *b, const struct egress_event *v, const struct network_words *w)
{
    struct box_result *r = b->result;
    size_t *last = &b->live->last_allowed;
    if (*last < r->n_allowed && equal(&r->allowed[*last], v, w))
        return &r->allowed[*last];
    for (size_t i = 0; i < r->n_allowed; i++) {
        if (equal(&r->allowed[i], v, w)) {
            *last = i;
            return &r->allowed[i];
        }
    }
    return NULL;
}

static void log_allowed(struct box *b, const struct allowed *a, uint64_t count)
{
    char kind[] = "network-allowed", how[40];
    snprintf(how, sizeof how, "%s%s", a->how, a->by_proxy ? ", parent proxy" : "");
    struct denial d = {.kind = kind,
                       .action = a->action,
                       .target = a->target,
                       .rule = a->rule,
                       .origin = a->origin,
                       .how = how,
                       .address = *a->address ? a->address : NULL,
                       .count = count};
    denial_log(b, &d);
}

static void counted(struct box *b, const struct egress_event *v, size_t index)
{
    if (v->counted && v->counted <= EGRESS_COUNTS)
        b->live->counted[v->counted - 1] = (uint16_t)(index + 1);
}

static void count_allowed(struct box *b, const struct egress_event *v, const struct network_words *w)
{
    struct box_result *r = b->result;
    struct allowed *a = find_allowed(b, v, w);
    if (a) {
        a->count++;
        counted(b, v, (size_t)(a - r->allowed));
        return;
    }
    if (!r->allowed)
        r->allowed = calloc(MAX_ALLOWED, sizeof *r->allowed);
    if (!r->allowed || r->n_allowed == MAX_ALLOWED) {
        r->allowed_dropped++;
        return;
    }
    struct allowed mine = {.action = strdup(v->how == HOW_DNS ? "resolve" : "connect"),
                           .target = strdup(w->target),
                           .address = strdup(v->address),
                           .rule = strdup(w->rule),
                           .origin = strdup(w->origin),
                           .how = network_how(v->how),
                           .by_proxy = v->by_proxy != 0,
                           .count = 1};
    if (!mine.action || !mine.target || !mine.address || !mine.rule || !mine.origin) {
        free_allowed(&mine);
        r->allowed_dropped++;
        return;
    }
    counted(b, v, r->n_allowed);
    r->allowed[r->n_allowed++] = mine;
    log_allowed(b, &mine, 1);
}

void network_counts(struct box *b, const struct egress_counts *c)
{
    struct box_result *r = b->result;
    for (size_t i = 0; i < EGRESS_COUNTS; i++) {
        uint64_t n = atomic_load_explicit(&c->n[i], memory_order_relaxed);
        size_t k = b->live->counted[i];
        if (k && k <= r->n_allowed)
            r->allowed[k - 1].count += n;
        else
            r->allowed_dropped += n;
    }
    r->events_lost += atomic_load_explicit(&c->lost, memory_order_relaxed);
}

void network_event(struct box *b, const struct egress_event *v)
{
    struct network_words w;
    b->result->events_lost += v->lost;
    switch ((enum egress_said)v->said) {
    case SAID_RULES:
        control_rules(b, v);
        return;
    case SAID_ASK:
        question_event(b, v);
        return;
    case SAID_DECISION:
        break;
    }
    words_of_event(b, v, &w);
    if (v->what == EGRESS_ALLOWED) {
        count_allowed(b, v, &w);
        return;
    }
    attempt_refused(b, v, &w);
    if (v->ticket) {
        struct egress_order o = {.kind = ORDER_SEEN, .ticket = v->ticket};
        (void)order_send(b, &o, -1);
    }
}

void network_end(struct box *b)
{
    const struct box_result *r = b->result;
    for (size_t i = 0; i < r->n_allowed; i++) {
        if (r->allowed[i].count > 1) /* the first one stands there already */
            log_allowed(b, &r->allowed[i], r->allowed[i].count - 1);
    }
}
