/*
 * What was probably refused to a command in a session, found from its own error text as for a run: the policy is made again from
 * what the session was started with, and counts only if it is the one that its box has.
 */
#include <string.h>

#include "run/asked/guess.h"
#include "session/session.h"
#include "session/storage.h"
#include "supervisor/run.h"

extern char **environ;

/* The options as they were, without values of variables, which were not written down; NULL without memory. */
static const struct pinfold_option *options_again(const struct record *r, struct pinfold_policy_options *po,
                                                  struct arena *mem)
{
    static const char *const own[] = {"cow", "cow-from", "cwd"};
    struct pinfold_option *list = arena_zero(mem, (r->n_asked + 1) * sizeof *list);
    size_t n = 0;
    for (size_t i = 0; list && i < r->n_asked; i++) {
        const struct asked_option *a = &r->asked[i];
        bool skip = !a->name;
        if (a->unkept) {
            list[n++] = (struct pinfold_option){"env", arena_printf(mem, "%s=", a->value)};
            continue;
        }
        for (size_t k = 0; !skip && k < sizeof own / sizeof *own; k++)
            skip = same(a->name, own[k]);
        if (skip)
            continue;
        if (same(a->name, "from"))
            po->settings_format = a->value;
        else if (same(a->name, "no-layers"))
            po->no_layers = 1;
        else
            list[n++] = (struct pinfold_option){a->name, a->value};
    }
    return arena_failed(mem) ? NULL : list;
}

static bool is_the_same(const struct pinfold_policy *p, const struct record *r)
{
    const char *asked = p->policy->engine;
    char digest[65];
    struct err ignored = {0};
    return policy_digest(p->policy, asked && !same(asked, "auto") ? asked : r->engine, NULL, digest, &ignored) == 0 &&
           same(digest, r->policy_digest);
}

void session_guess(const struct pinfold_session *s, const struct pinfold_exec_options *o, struct pinfold_result *result)
{
    const struct record *r = &s->record;
    struct pinfold_policy_options po = {.size = sizeof po, .cwd = r->asked_in};
    const struct pinfold_run_options ro = {
        .size = sizeof ro, .argv = o->argv, .capture = 1, .foreground = o->foreground};
    struct plan_ask ask = {.session = r->name, .environ = (const char *const *)environ, .instance = "0"};
    struct err ignored = {0};
    /* Files of an image or a layer are not the host's, by which a plan answers. */
    if (!r->asked_in || !r->asked_in[0] || (r->image && r->image[0]) || (r->layer && r->layer[0]) ||
        same(r->engine, "vm") || !guess_is_worth_it(&result->box))
        return;
    auto_arena struct arena *mem = arena_new(MAX_SESSION_ARENA);
    struct pinfold_policy *policy = NULL;
    if (!mem || !(po.options = options_again(r, &po, mem)) || pinfold_policy_load(&po, &policy, NULL) < 0)
        return;
    struct pinfold_result planned = {
        .policy = policy, .session = result->session, .box = result->box, .terms = result->terms};
    ask.cwd = o->cwd ? o->cwd : r->cwd;
    ask.cwd_said = true;
    if (is_the_same(policy, r) && storage_plan(&s->place, &ask, mem, &ignored) == 0 &&
        prepare(policy, &ask, false, &planned.prepared, &ignored) == 0) {
        if (same(planned.prepared.facts.engine, r->engine))
            guess_denials(&planned, &ask, &ro);
        prepared_free(&planned.prepared);
    }
    result->box = planned.box;
    pinfold_policy_free(policy);
}
