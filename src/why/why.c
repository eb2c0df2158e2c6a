/* The question: its words, the guard's rules of the plan, and the answer's parts. */
#include "why/why.h"

#include <stdarg.h>

#include "why/parts.h"

static const char *const act_names[] = {[WHY_READ] = "read", [WHY_WRITE] = "write",     [WHY_CREATE] = "create",
                                        [WHY_EXEC] = "exec", [WHY_CONNECT] = "connect", [WHY_SIGNAL] = "signal"};

enum why_act why_act_of(const char *name)
{
    for (int i = 0; i < WHY_ACTS; i++) {
        if (same(act_names[i], name))
            return (enum why_act)i;
    }
    return WHY_ACTS;
}

const char *why_act_name(enum why_act act)
{
    return act < WHY_ACTS ? act_names[act] : "?";
}

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
    q->ret->rule = arena_printf(q->mem, "%s %s", at->workspace && !at->said ? "workspace" : rule_word(at), at->dst);
    q->ret->origin = arena_text(q->mem, place_origin(q->plan, at, room, sizeof room));
}

static int take_rules(struct why_question *q)
{
    const struct plan_image *image = q->plan->image;
    q->guarded = image->filter & FILTER_GUARD && image->guard_bytes;
    q->reads = q->guarded && image->filter & FILTER_READS;
    if (!q->guarded)
        return 0;
    const struct guard_table *table = (const void *)((const char *)image + image->guard_at);
    int r = rules_load(&q->rules, table, image->guard_bytes, (const char *)image + image->strings_at,
                       image->strings_bytes, q->mem);
    return r < 0 ? err_sys(q->e, ERR_BUG, -r, "cannot read the plan's guard rules") : 0;
}

int why_ask(const struct plan *p, enum why_act act, const char *target, struct arena *mem, struct why *ret,
            struct err *e)
{
    struct why_question q = {.plan = p, .act = act, .target = target, .mem = mem, .e = e, .ret = ret};
    *ret = (struct why){.target = target};
    if (!target[0])
        return err_say(e, ERR_POLICY, "%s: the target is empty", why_act_name(act));
    int r = take_rules(&q);
    if (r < 0)
        return r;
    r = act == WHY_CONNECT ? why_connect(&q) : act == WHY_SIGNAL ? why_signal(&q) : why_file(&q);
    return r == 0 && arena_failed(mem) ? why_memory(&q) : r;
}
