/* The passes: each runs the command under the policy and what was allowed before it began; none is ever less strict than that. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "learn/learn.h"

static void add_option(struct pinfold_option *to, size_t *n, const char *name, const char *value)
{
    to[(*n)++] = (struct pinfold_option){name, value};
}

int learn_load(const struct learn *l, const struct pinfold_option *more, size_t n_more, struct pinfold_policy **ret,
               struct pinfold_error *error)
{
    struct pinfold_policy_options o = l->policy;
    size_t n = 0;
    struct pinfold_option *options = calloc(l->n_options + l->n_rules + n_more + 2, sizeof *options);
    if (!options)
        return learn_memory(error);
    for (size_t i = 0; i < l->n_options; i++)
        add_option(options, &n, l->policy.options[i].name, l->policy.options[i].value);
    if (l->named_network)
        add_option(options, &n, "net", "allow");
    for (size_t i = 0; i < l->n_rules; i++) {
        if (l->rules[i]->answer == LEARN_ALLOW && !l->rules[i]->gone)
            add_option(options, &n, l->rules[i]->option, l->rules[i]->value);
    }
    for (size_t i = 0; i < n_more; i++)
        add_option(options, &n, more[i].name, more[i].value);
    o.options = options;
    int r = pinfold_policy_load(&o, ret, error);
    free(options);
    return r;
}

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

int learn_pass(struct learn *l, struct pinfold_policy *policy, struct pinfold_result **ret, struct pinfold_error *error)
{
    /* It reads nothing: what one pass took would be missing in the next. */
    const struct pinfold_run_options o = {.size = sizeof o,
                                          .argv = l->argv,
                                          .stdin_fd = -1,
                                          .stdout_fd = 1,
                                          .stderr_fd = 2,
                                          .use_fds = 1,
                                          .capture = 1,
                                          .say = l->say,
                                          .say_ctx = l->ctx,
                                          .foreground = 1,
                                          .output = l->output,
                                          .output_ctx = l->ctx,
                                          .guess_all = 1};
    return pinfold_run(policy, &o, ret, error);
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
