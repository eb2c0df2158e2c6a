/*
 * git.verify: required in a box that can write the workspace's repository itself: at each path where it can, the guard gets the
 * protected branches (GUARD_RULE_BRANCH), and what is above them stays where it is. A push to the remote `host` needs none of that,
 * nor a linked worktree whose repository the box cannot write. What a layer has is judged when it is applied.
 */
#include "plan/make.h"

static int cannot(struct making *m, const char *git, const char *why, const char *remedy)
{
    int r =
        err_say(m->e, ERR_CANNOT,
                "git.verify: required (%s) cannot be enforced in a box that can write the repository '%s' itself: %s",
                origin_of(m, m->policy->git.verify_origin), git, why);
    return err_hint(m->e, r, "%s", remedy);
}

/* Why this guard would not hold, or not see it: NULL, or a clause. */
static const char *obstacle(const struct making *m, const char **ret_remedy)
{
    const struct facts *f = m->facts;
    *ret_remedy = "pinfold shell --branch NAME, whose box changes it by pushes alone, or --read-only";
    if (m->policy->guard != GUARD_STRICT) {
        *ret_remedy = "--guard strict";
        return "its guard is not strict";
    }
    if (f->around)
        return NULL; /* whose guard must have the same (around.c) */
    if (f->engine && strcmp(f->engine, "native") == 0 && f->tier == TIER_LANDLOCK) {
        *ret_remedy =
            "allow user namespaces (pinfold doctor says how), or use --read-only and commit outside of the box";
        return "without user namespaces there are no boxes for your hooks";
    }
    if (!f->engine || strcmp(f->engine, "native") != 0 || !f->notify || f->tier != TIER_NAMESPACES) {
        *ret_remedy = "--engine native, or pinfold shell --branch NAME, or --read-only";
        return "only the engine native, with namespaces, can";
    }
    return NULL;
}

static int add_branches(struct making *m, const char *inside)
{
    const struct git_rules *git = &m->policy->git;
    const char *heads = path_join(m->mem, inside, "refs/heads");
    for (size_t i = 0; heads && i < (git->n_branches ? git->n_branches : 1); i++) {
        const char *pattern = git->n_branches ? git->branches[i].pattern : "*";
        if (add_guard(m, GUARD_RULE_BRANCH, pattern, git->verify_origin) < 0)
            return -ENOMEM;
        m->guards[m->n_guards - 1].below = inside;
    }
    m->plan->verifies = !m->facts->around;
    return heads ? add_guard(m, GUARD_RULE_PIN, heads, git->verify_origin) : no_memory(m);
}

/* Whether a region in `at` that cannot be written has that path. */
static bool is_closed(const struct making *m, const struct plan_place *at, const char *inside)
{
    for (size_t i = 0; i < m->n_places; i++) {
        const struct plan_place *p = &m->places[i];
        if (p->entered && !p->dropped && p->region != REGION_WRITABLE && path_at_or_below(inside, p->dst) &&
            path_below(p->dst, at->dst))
            return true;
    }
    return false;
}

int branches_plan(struct making *m)
{
    const char *git = m->facts->repository ? m->facts->repository : path_join(m->mem, m->workspace, ".git"), *remedy;
    if (m->policy->git.verify != GIT_VERIFY_REQUIRED || m->facts->unsandboxed)
        return 0;
    if (!git)
        return no_memory(m);
    for (size_t i = 0; i < m->n_places; i++) {
        const struct plan_place *at = &m->places[i];
        if (!at->src || at->dropped || at->region != REGION_WRITABLE)
            continue;
        if (path_below(at->src, git))
            return cannot(m, git, "a part of it is writable by a rule of its own",
                          "write that rule for the whole workspace");
        if (!path_at_or_below(git, at->src))
            continue;
        const char *inside = path_join(m->mem, at->dst, path_rest(git, at->src));
        if (!inside)
            return no_memory(m);
        if (is_closed(m, at, inside))
            continue;
        if (at->act == ACT_OVERLAY && at->workspace) {
            m->plan->verifies = true; /* when the layer is applied (run/layer/verify.c) */
            continue;
        }
        const char *why = obstacle(m, &remedy);
        if (why)
            return cannot(m, git, why, remedy);
        int r = add_branches(m, inside);
        if (r < 0)
            return r;
    }
    return 0;
}
