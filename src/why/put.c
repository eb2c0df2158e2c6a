/*
 * The parts of an answer: the rule, where it is written, what decides. All other files of this folder fill them in by
 * these functions.
 */
#include "why/parts.h"

int why_memory(struct why_question *q)
{
    return err_sys(q->e, ERR_SYSTEM, ENOMEM, "cannot answer");
}

int why_say(struct why_question *q, enum why_verdict verdict, enum why_cause cause, int no, const char *mechanism,
            const char *reason)
{
    q->ret->verdict = verdict;
    q->ret->cause = cause;
    q->ret->no = no;
    q->ret->mechanism = mechanism;
    q->ret->reason = reason;
    return reason ? 0 : why_memory(q);
}

void why_rule(struct why_question *q, const char *rule, uint32_t origin)
{
    char room[512];
    q->ret->rule = rule;
    q->ret->origin = arena_text(q->mem, policy_origin(q->plan->policy, origin, room, sizeof room));
}

static const char *rule_word(const struct plan_place *at)
{
    switch ((enum place_kind)at->kind) {
    case PLACE_ROOT:
        return at->region == REGION_WRITABLE ? "writable" : "read-only";
    case PLACE_RW:
        return "rw";
    case PLACE_RO:
        return "ro";
    case PLACE_PROTECT:
        return "protect";
    case PLACE_HIDE:
        return "hide";
    case PLACE_PATTERN:
        return at->hides ? "hide" : "protect";
    case PLACE_CACHE:
        return "cache";
    case PLACE_STORAGE:
        return "storage";
    case PLACE_SOCKET:
        return "unix socket";
    case PLACE_TMPFS:
    case PLACE_DEVICES:
    case PLACE_PROC:
    case PLACE_DIR:
    case PLACE_FILE:
    case PLACE_LINK:
        break;
    }
    return "private";
}

void why_place(struct why_question *q, const struct plan_place *at)
{
    char room[512];
    if (!at)
        at = &q->plan->places[0];
    q->ret->rule = arena_printf(q->mem, "%s %s", at->workspace && !at->said ? "workspace" : rule_word(at), at->dst);
    q->ret->origin = arena_text(q->mem, place_origin(q->plan, at, room, sizeof room));
}
