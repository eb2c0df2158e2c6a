/*
 * One run of the command under the policy and what was allowed so far. The policy is loaded anew each time, as the
 * command line says it, with the rules added as options.
 */
#include <stdlib.h>

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
                                          .ask = l->asking ? learn_asked : NULL,
                                          .ask_ctx = l,
                                          .ask_writes = 1,
                                          .guess_all = 1};
    l->policy_now = policy;
    l->asked = 0;
    return pinfold_run(policy, &o, ret, error);
}
