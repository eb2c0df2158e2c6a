/*
 * The question: its words, the guard's rules of the plan, and the answer's parts. files.c answers about paths,
 * reach.c about everything else.
 */
#include "why/why.h"

#include "why/parts.h"

static const char act_names[][8] = {[WHY_READ] = "read", [WHY_WRITE] = "write",     [WHY_CREATE] = "create",
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
