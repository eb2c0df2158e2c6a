/*
 * The passes: each runs the command under the policy and what was allowed before it began; none is ever less strict
 * than that. They end when a pass has nothing new to allow, or by --passes.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "learn/learn.h"

/* The workspace, and whether the network can be one that knows names: with no rule at all it lets nothing out either. */
static int look(struct learn *l, struct pinfold_policy *policy, struct pinfold_error *error)
{
    struct pinfold_report *report;
    char real[PATH_MAX];
    const char *home = getenv("HOME"), *said;
    int r = pinfold_explain_report(policy, 0, &report, error);
    if (r < 0)
        return r;
    const struct pinfold_value *v = pinfold_report_value(report);
    said = pinfold_value_text(pinfold_value_get(v, "workspace"), NULL);
    l->workspace = arena_text(l->mem, said ? said : "/");
    said = pinfold_value_text(pinfold_value_get(v, "network"), NULL);
    l->named_network =
        said && strcmp(said, "none") == 0 && pinfold_value_count(pinfold_value_get(v, "network_rules")) == 0;
    pinfold_report_free(report);
    l->home = arena_text(l->mem, home && realpath(home, real) && real[1] ? real : "");
    said = strrchr(l->argv[0], '/');
    l->command = said ? said + 1 : l->argv[0];
    return l->workspace && l->home ? 0 : learn_memory(error);
}

static int begin(struct learn *l, struct pinfold_error *error)
{
    struct pinfold_policy *policy;
    int r = learn_load(l, NULL, 0, &policy, error);
    if (r < 0)
        return r;
    r = look(l, policy, error);
    if (r == 0)
        r = learn_look(l, error);
    if (r == 0 && l->shrink)
        r = learn_kept_read(l, policy, error);
    pinfold_policy_free(policy);
    if (r < 0 || !l->named_network)
        return r;
    /* What cannot be enforced with names here, nobody should miss without them. */
    struct pinfold_error ignored = {0};
    char *text = NULL;
    r = learn_load(l, NULL, 0, &policy, &ignored);
    if (r == 0) {
        r = pinfold_explain(policy, PINFOLD_EXPLAIN_BRIEF, 0, &text, &ignored);
        pinfold_policy_free(policy);
    }
    free(r == 0 ? text : NULL);
    l->named_network = r == 0;
    return 0;
}

/* Asks about what is open. The number of rules that were allowed. */
static size_t ask(struct learn *l)
{
    size_t allowed = 0;
    for (size_t i = 0; i < l->n_rules; i++) {
        struct learn_rule *rule = l->rules[i];
        if (rule->gone || rule->answer != LEARN_OPEN)
            continue;
        rule->answer = learn_answered(l, rule);
        if (rule->answer == LEARN_OPEN && l->ask && rule->care != LEARN_SECRET)
            rule->answer = l->ask(l->ctx, rule);
        allowed += rule->answer == LEARN_ALLOW;
    }
    return allowed;
}

static int one_pass(struct learn *l, size_t *ret_allowed, bool *ret_stopped, struct pinfold_error *error)
{
    struct pinfold_policy *policy;
    struct pinfold_result *result;
    int r = learn_load(l, NULL, 0, &policy, error);
    if (r < 0)
        return r;
    for (size_t i = 0; i < l->n_rules; i++)
        l->rules[i]->tried |= l->rules[i]->answer == LEARN_ALLOW;
    l->passes++;
    r = learn_pass(l, policy, &result, error);
    if (r == 0) {
        l->status = pinfold_result_status(result);
        l->again = pinfold_result_reraise(result);
        *ret_stopped = l->again != 0 || pinfold_result_end(result) == PINFOLD_SANDBOX;
        r = learn_collect(l, policy, result, error);
        if (l->shrink)
            learn_kept_used(l, result);
        pinfold_result_free(result);
    }
    pinfold_policy_free(policy);
    if (r == 0)
        r = learn_generalise(l, error);
    *ret_allowed = r == 0 && !*ret_stopped && l->asking ? ask(l) : 0;
    return r;
}

int learn_run(struct learn *l, struct pinfold_error *error)
{
    size_t allowed = 1;
    bool stopped = false;
    int r = begin(l, error);
    while (r == 0 && allowed && l->passes < l->max)
        r = one_pass(l, &allowed, &stopped, error);
    l->untried = r == 0 && allowed;
    if (r == 0 && l->asking)
        r = learn_generalise(l, error); /* what was allowed may hold some of the rest */
    if (r == 0 && l->shrink && !stopped)
        r = learn_shrink(l, error);
    return r;
}
