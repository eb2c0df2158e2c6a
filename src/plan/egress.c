/*
 * net allow: what the box sees of a network. Every connection and every name arrives at the egress (docs/INTERNALS.md), so
 * the host's resolver, its hosts file and its name services mean nothing inside: the box has its own view of them, as
 * names in the veil of /etc, which stays whatever the host does with its files.
 */
#include <stdlib.h>
#include "plan/make.h"
#include "wire/egress.h"

#define TEXT(x)  #x
#define PLAIN(x) TEXT(x)
#define PROXY    "http://127.0.0.1:" PLAIN(EGRESS_PROXY_PORT)

static const struct {
    const char *path, *text;
} files[] = {
    {"/etc/hosts", NULL},
    {"/etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n"
                           "protocols: files\nservices: files\nethers: files\nrpc: files\n"},
    {"/etc/resolv.conf", "nameserver " EGRESS_DNS_ADDRESS "\noptions timeout:2 attempts:2\n"},
};

/* The box's own name as well: servers look it up, and that is no question about the network. */
static const char *hosts_text(struct making *m)
{
    const char *own = m->policy->hostname;
    return arena_printf(m->mem, "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n%s%s%s",
                        own ? "127.0.1.1 " : "", own ? own : "", own ? "\n" : "");
}

int egress_stubs(struct making *m)
{
    if (m->policy->net != NET_ALLOW)
        return 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct stub_ask *s = arena_push(m->mem, &m->stubs, &m->n_stubs, sizeof *s);
        const char *text = files[i].text ? files[i].text : hosts_text(m);
        if (!s || !text)
            return no_memory(m);
        *s = (struct stub_ask){.path = files[i].path, .dir = "/etc", .kind = STUB_TEXT_FILE, .text = text};
        s->origin = m->policy->net_origin;
    }
    return 0;
}

/* Programs that know proxies are told of ours: their requests are then judged, and refused, in words. */
int egress_env(struct making *m)
{
    static const char *const names[] = {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"};
    if (m->policy->net != NET_ALLOW)
        return 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof names / sizeof *names; i++)
        r = add_env(m, names[i], PROXY);
    if (r == 0)
        r = add_env(m, "no_proxy", "localhost,127.0.0.1,::1");
    return r < 0 ? r : add_env(m, "NO_PROXY", "localhost,127.0.0.1,::1");
}

/* The service at "127.0.0.1:PORT", "localhost:PORT" or "[::1]:PORT"; false for anything else. */
static bool loopback_service(const char *text, uint32_t *ret_v6, uint32_t *ret_port)
{
    static const char *const hosts[] = {"127.0.0.1:", "localhost:", "[::1]:"};
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(hosts[i]);
        if (strncmp(text, hosts[i], n) != 0)
            continue;
        *ret_v6 = i == 2;
        *ret_port = (uint32_t)strtoul(text + n, NULL, 10);
        return *ret_port > 0 && *ret_port < 65536;
    }
    return false;
}

static int reach_steps(struct making *m, uint32_t *ret_n)
{
    const struct policy *p = m->policy;
    for (size_t i = 0; i < p->n_net_rules; i++) {
        const struct net_rule *rule = &p->net_rules[i];
        uint32_t v6, port;
        if (rule->verb != NET_RULE_REACH)
            continue;
        if (!loopback_service(rule->text, &v6, &port))
            return err_say(m->e, ERR_CANNOT,
                           "reach %s (%s): reach is for services on this machine's 127.0.0.1 or [::1]; allow other "
                           "addresses with --allow",
                           rule->text, origin_of(m, rule->origin));
        if (*ret_n == EGRESS_MAX_REACH)
            return err_say(m->e, ERR_CANNOT, "reach %s (%s): more than %d services", rule->text,
                           origin_of(m, rule->origin), EGRESS_MAX_REACH);
        struct step *s = image_step(&m->image, STEP_REACH, rule->origin);
        if (!s)
            return no_memory(m);
        s->a = v6;
        s->b = port;
        ++*ret_n;
    }
    return 0;
}

int egress_steps(struct making *m)
{
    struct step *s = image_step(&m->image, STEP_CATCH, m->policy->net_origin);
    size_t at = m->image.n_steps;
    uint32_t n = 0;
    int r = s ? reach_steps(m, &n) : no_memory(m);
    if (r == 0)
        m->image.steps[at - 1].b = n;
    return r;
}
