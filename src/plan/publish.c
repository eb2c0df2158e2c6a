/*
 * Published ports: checks their requirements. They need a network of the box's own; the ports on the host are bound
 * when the box starts (supervisor/network/publish.c).
 */
#include <string.h>
#include "plan/make.h"
#include "policy/domain.h"
#include "protocol/egress.h"

static bool same_port(const struct publish *a, const struct publish *b)
{
    return a->host == b->host && a->v6 == b->v6 && memcmp(a->addr, b->addr, sizeof a->addr) == 0;
}

static int check_one(struct making *m, const struct net_rule *rule, const struct publish *p)
{
    const char *origin = origin_of(m, rule->origin);
    if (m->policy->net == NET_HOST && m->facts->machine)
        return err_say(m->e, ERR_POLICY,
                       "publish %s (%s): with net host a virtual machine's ports cannot be reached from outside; use "
                       "--net none or --allow HOST",
                       rule->text, origin);
    if (m->policy->net == NET_HOST)
        return err_say(m->e, ERR_POLICY,
                       "publish %s (%s): with net host the box's ports already are this machine's; remove --publish",
                       rule->text, origin);
    if (m->facts->host_loopback && p->host != p->box)
        return err_say(
            m->e, ERR_CANNOT,
            "publish %s (%s): here the box listens on this machine's ports directly: both ports must be the same",
            rule->text, origin);
    if (m->facts->tier == TIER_LANDLOCK && !m->facts->host_loopback)
        return err_say(m->e, ERR_CANNOT,
                       "publish %s (%s): publish needs a network namespace, which is not available here (Landlock "
                       "tier: the box has no inet sockets); remove it, or use --net host for the host's network",
                       rule->text, origin);
    const struct container_fact *c = m->facts->container;
    if (c && !c->rootless && m->facts->uid != 0)
        return err_say(
            m->e, ERR_CANNOT,
            "publish %s (%s): only root can enter the network of a container created by root's %s; use rootless podman",
            rule->text, origin, m->facts->engine);
    for (const struct net_rule *other = m->policy->net_rules; other < rule; other++) {
        struct publish q;
        if (other->verb == NET_RULE_PUBLISH && publish_parse(str_of(other->text), &q, NULL) == 0 && same_port(p, &q))
            return err_say(m->e, ERR_POLICY, "publish %s (%s) and %s (%s) use the same port of this machine",
                           other->text, origin_of(m, other->origin), rule->text, origin);
    }
    return 0;
}

int publish_check(struct making *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->policy->n_net_rules; i++) {
        const struct net_rule *rule = &m->policy->net_rules[i];
        struct publish p;
        if (rule->verb != NET_RULE_PUBLISH)
            continue;
        int r = publish_parse(str_of(rule->text), &p, m->e);
        if (r == 0)
            r = check_one(m, rule, &p);
        if (r == 0 && ++n > EGRESS_MAX_REACH)
            r = err_say(m->e, ERR_POLICY, "publish %s (%s): more than %d ports", rule->text, origin_of(m, rule->origin),
                        EGRESS_MAX_REACH);
        if (r < 0)
            return r;
    }
    return 0;
}
