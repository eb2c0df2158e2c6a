/*
 * Answers while the command runs: to writes of single files that are there, and to hosts. What was answered yes is granted to the
 * command that waits, and is a rule as if it had been answered after the pass. All else is refused and waits for that.
 */
#include <string.h>

#include "learn/learn.h"

enum { MOST_ASKED = 256 }; /* of one pass: a command may try any number of files */

static void granted(struct learn *l, struct learn_rule *rule, const char *action)
{
    rule->count = rule->pass == l->passes ? rule->count + 1 : 1;
    rule->pass = l->passes;
    rule->act = action;
    rule->tried = rule->granted = true;
}

enum pinfold_answer learn_asked(void *ctx, const struct pinfold_question *q)
{
    struct learn *l = ctx;
    struct pinfold_error ignored = {0};
    const bool file = strcmp(q->how, "write") == 0;
    const struct pinfold_denial d = {.kind = file ? "file" : "network",
                                     .action = file ? "write" : "connect",
                                     .target = q->target,
                                     .rule = "",
                                     .origin = "",
                                     .how = "asked",
                                     .pid = q->pid};
    struct learn_rule *rule = l->asked++ < MOST_ASKED ? learn_rule_about(l, l->policy_now, &d, &ignored) : NULL;
    /* The rule is what is shown and answered, so it has to be about this very object. */
    if (!rule || rule->gone || strcmp(rule->option, file ? "rw" : "allow") != 0 || strcmp(rule->value, q->target) != 0)
        return PINFOLD_NO;
    if (rule->answer == LEARN_OPEN)
        rule->answer = learn_answered(l, rule);
    if (rule->answer == LEARN_OPEN && l->ask && rule->care != LEARN_SECRET) {
        l->waits = q;
        rule->answer = l->ask(l->ctx, rule);
        l->waits = NULL;
    }
    if (rule->answer != LEARN_ALLOW)
        return !file && rule->answer == LEARN_DENY ? PINFOLD_NEVER : PINFOLD_NO;
    granted(l, rule, d.action);
    return file ? PINFOLD_YES : PINFOLD_ALWAYS;
}
