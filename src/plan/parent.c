/*
 * The proxy that the caller himself goes through: where his machine reaches the network only by it, so does the box, which
 * the header, explain and the result say. What the address behind a name is, is then seen by that proxy and not here: a
 * loss with a name.
 */
#include "plan/make.h"
#include "policy/proxy.h"

int parent_make(struct making *m)
{
    if (m->policy->net != NET_ALLOW)
        return 0;
    int r = proxies_read(m->ask->environ, m->mem, &m->plan->proxies, m->e);
    const struct proxies *all = m->plan->proxies;
    if (r < 0 || !all)
        return r;
    m->asked_losses |= F(PROXY_ADDRESS);
    for (size_t i = 0; r == 0 && all->skipped && all->skipped[i]; i++)
        r = note(m, "NO_PROXY: '%s' is not a host, address or range and is ignored", all->skipped[i]);
    return r;
}
