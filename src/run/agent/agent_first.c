/*
 * What an agent's box in a project may do, in five lines at its first start there: by the policy that the box gets, with what the
 * person's options, policy files and the project's own add.
 */
#include <errno.h>
#include <string.h>

#include "match/path.h"
#include "run/agent/starting.h"
#include "run/layer/elsewhere.h"
#include "run/load.h"

enum { NAMED = 6 };

static size_t count_of(const struct pinfold_option *o)
{
    size_t n = 0;
    while (o && o[n].name)
        n++;
    return n;
}

/* `first`: the agent's own options, or NULL. Free the policy with policy_free(). */
static int load_first(struct starting *s, const struct pinfold_option *first, const struct agent_begin *ask,
                      struct policy **ret, struct err *e)
{
    struct pinfold_policy_options o = {.size = sizeof o};
    struct layers layers;
    const size_t a = count_of(first), b = count_of(ask->options);
    struct pinfold_option *all = arena_zero(s->mem, (a + b + 1) * sizeof *all);
    if (!all)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "agent");
    if (ask->policy)
        o = *ask->policy;
    if (first)
        memcpy(all, first, a * sizeof *all);
    if (ask->options)
        memcpy(all + a, ask->options, b * sizeof *all);
    o.options = all;
    return layers_load(&o, s->mem, &layers, ret, e);
}

int first_check(struct starting *s, const struct agent_begin *ask, struct err *e)
{
    struct policy *p = NULL;
    int r = load_first(s, NULL, ask, &p, e);
    policy_free(p);
    return r;
}

/* The agent's layer, and what it shares with the agent outside, which is told by itself. */
static bool is_agents(const struct starting *s, const char *path)
{
    for (size_t i = 0; i < s->agent.start.n_layers; i++) {
        if (s->host[i] && path_at_or_below(path, s->host[i]))
            return true;
    }
    return path_at_or_below(path, s->layer);
}

static void put_writes(const struct starting *s, const struct policy *p, struct buf *b)
{
    unsigned n = 0;
    buf_printf(b, "may write: %s%s", p->workspace_read_only ? "nothing of " : "", s->workspace);
    if (s->layered && !p->workspace_read_only)
        buf_text(b, ", in a copy-on-write layer that you apply (pinfold diff)");
    for (size_t i = 0; i < p->n_paths; i++) {
        if (p->paths[i].access == PATH_RW && !p->paths[i].any_depth && n++ < NAMED)
            buf_printf(b, ", %s", p->paths[i].path);
    }
    for (size_t i = 0; i < p->n_mounts; i++) {
        if (!p->mounts[i].read_only && !is_agents(s, p->mounts[i].from) && n++ < NAMED)
            buf_printf(b, ", %s", p->mounts[i].from);
    }
    if (n > NAMED)
        buf_printf(b, " and %u more", n - NAMED);
    buf_printf(b, "%s%s\n", s->shared.n ? "; shared with this machine: " : "", buf_cstr(&s->shared));
}

static void put_reaches(const struct policy *p, struct buf *b)
{
    unsigned n = 0;
    buf_text(b, "reaches:");
    for (size_t i = 0; p->net == NET_ALLOW && i < p->n_net_rules; i++) {
        const struct net_rule *r = &p->net_rules[i];
        if ((r->verb == NET_RULE_ALLOW || r->verb == NET_RULE_REACH) && n++ < 2 * NAMED)
            buf_printf(b, "%s %s", n > 1 ? "," : "", r->text);
    }
    if (n > 2 * NAMED)
        buf_printf(b, " and %u more", n - 2 * NAMED);
    buf_text(b, p->net == NET_HOST ? " every host, by this machine's own network\n"
                : p->net_ask       ? (n ? "; others when you are asked\n" : " hosts that you allow when asked\n")
                : n                ? "; no other host\n"
                                   : " no host\n");
}

static bool may_write(const struct policy *p, const char *path)
{
    for (size_t i = 0; i < p->n_paths; i++) {
        if (p->paths[i].access == PATH_RW && !p->paths[i].any_depth && path_at_or_below(path, p->paths[i].path))
            return true;
    }
    return false;
}

/* A repository that git in the box can only look at: the agent would learn it from its first commit. */
static void put_repository(const struct starting *s, const struct policy *p, struct buf *b)
{
    if (s->layered || p->workspace_read_only)
        return;
    const char *git = elsewhere_git(s->mem, s->workspace);
    const char *whole = git ? elsewhere_main(s->mem, s->workspace, git) : NULL;
    const char *above = git ? NULL : elsewhere_above(s->mem, s->workspace);
    if (above && path_at_or_below(s->world.home, above)) /* a home in git is no project to start in */
        return;
    const char *at = whole ? whole : above ? arena_printf(s->mem, "%s/.git", above) : git;
    if (!at || may_write(p, at))
        return;
    buf_printf(b, "git: can read, but neither stage nor commit, because the repository is outside: %s; ", at);
    if (above)
        buf_printf(b, "to let the agent commit, start it in %s, or with --rw %s\n", above, at);
    else if (whole)
        buf_printf(b, "to let the agent commit, start it with --rw %s\n", at);
    else
        buf_text(b, "to let the agent commit in a submodule, start it at the top of the outer repository\n");
}

int first_lines(struct starting *s, const struct agent_begin *ask, const char **ret, struct err *e)
{
    auto_buf struct buf b = BUF(16384);
    struct policy *p = NULL;
    int r = load_first(s, s->options, ask, &p, e);
    if (r < 0)
        return r;
    put_writes(s, p, &b);
    put_repository(s, p, &b);
    buf_text(&b, "may read: this machine's files, and copies of the agent's settings; what it changes of them stays in "
                 "a layer of this project\n");
    put_reaches(p, &b);
    starting_secrets(s, &b, "gets as they are, since the agent has no lesser keys: ", ", ", "\n");
    buf_text(
        &b, "hidden: other credentials and keys, the login's refresh token, sessions of other projects where the agent "
            "separates them, other processes\n");
    buf_printf(&b,
               "to change that: pinfold %s --rw PATH, --hide PATH, --allow HOST; to see all: --explain; its settings: "
               "pinfold agent merge %s\n",
               s->agent.name, s->agent.name);
    policy_free(p);
    *ret = buf_ok(&b) ? arena_str(s->mem, buf_view(&b)) : NULL;
    return *ret ? 0 : err_sys(e, ERR_SYSTEM, ENOMEM, "agent");
}
