/*
 * The caller's own proxy: if this machine reaches the network only through it, so does the box; header, explain and
 * result say so. The address behind a name is then seen by that proxy and not here, which is a named loss.
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
