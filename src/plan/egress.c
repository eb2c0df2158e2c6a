/*
 * net allow: the network as the box sees it. Every connection and DNS query goes to the egress proxy
 * (docs/INTERNALS.md), so the host's resolver configuration, hosts file and name services do not apply inside. The box
 * has its own, as stubs in the mask of /etc, whatever the host does with its files. Of these a box without a network has the
 * hosts file: its own name leads to itself there, too (Java, MPI and sudo look it up, and would wait for a name server).
 */
#include <stdlib.h>
#include "plan/make.h"
#include "match/host.h"
#include "policy/set.h"
#include "protocol/egress.h"

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

/* Includes the box's own host name: servers look it up, and that should not be a DNS query. */
static const char *hosts_text(struct making *m)
{
    const char *own = m->policy->hostname;
    return arena_printf(m->mem, "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n%s%s%s",
                        own ? "127.0.1.1 " : "", own ? own : "", own ? "\n" : "");
}

enum { HOSTS_ALONE = 1 }; /* the first of `files` */

/*
 * How many of `files` this box has. Without a network not where /etc is hidden, as in a root that a policy puts together itself,
 * nor where a mask over /etc would be an overlay over an overlay: in a box, and in one in which others may start. Nor where /etc may
 * be written: nobody writes through a mask.
 */
static size_t own_files(const struct policy *p, const struct facts *f, const struct plan_place *places, size_t n)
{
    if (p->net == NET_ALLOW)
        return sizeof files / sizeof *files;
    if (p->net != NET_NONE || !p->hostname || p->allow_nested_userns || f->nested)
        return 0;
    for (size_t i = 0; i < n; i++) {
        const bool over =
            places[i].kind == PLACE_HIDE || (places[i].kind == PLACE_RW && !same(files[0].path, places[i].dst));
        if (over && path_at_or_below(files[0].path, places[i].dst))
            return 0;
    }
    return HOSTS_ALONE;
}

/* With these files over it /etc is a mask, in which nobody can write: of /etc as a writable place nothing would be left. */
int egress_check_places(struct making *m)
{
    static const char dir[] = "/etc";
    if (m->policy->net != NET_ALLOW || m->facts->tier != TIER_NAMESPACES || m->facts->image)
        return 0;
    for (size_t i = 0; i < m->n_places; i++) {
        const struct plan_place *p = &m->places[i];
        if (p->kind != PLACE_RW || p->dropped || !same(p->dst, dir))
            continue;
        int r = err_say(
            m->e, ERR_CANNOT,
            "%s (%s): with --allow a box has its own names and resolver in /etc, so nothing there can be written", dir,
            p->workspace ? "the workspace" : origin_of(m, p->origin));
        return err_hint(m->e, r, "name what is to be written, as --rw /etc/NAME, or run with --net none or --net host");
    }
    return 0;
}

bool plan_own_file(const struct plan *p, const char *path)
{
    const size_t n = p->facts->tier == TIER_NAMESPACES ? own_files(p->policy, p->facts, p->places, p->n_places) : 0;
    for (size_t i = 0; i < n; i++) {
        if (same(path, files[i].path))
            return true;
    }
    return false;
}

int egress_stubs(struct making *m)
{
    const size_t n = own_files(m->policy, m->facts, m->places, m->n_places);
    for (size_t i = 0; i < n; i++) {
        struct stub_ask *s = arena_push(m->mem, &m->stubs, &m->n_stubs, sizeof *s);
        const char *text = files[i].text ? files[i].text : hosts_text(m);
        if (!s || !text)
            return no_memory(m);
        *s = (struct stub_ask){.path = files[i].path, .dir = "/etc", .kind = STUB_TEXT_FILE, .text = text};
        s->origin = m->policy->net_origin;
    }
    return 0;
}

/* ---- ways with one listener for each port ---- */

struct ports {
    uint16_t at[EGRESS_MAX_PORTS];
    size_t n;
    bool all;       /* rules allow more ports than there can be listeners */
    bool addresses; /* rules allow addresses without a name */
};

static void add_port(struct ports *p, uint16_t port)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->at[i] == port)
            return;
    }
    if (p->n == EGRESS_MAX_PORTS)
        p->all = true;
    else
        p->at[p->n++] = port;
}

static void add_ports(struct ports *p, const char *text)
{
    struct host_rule r;
    struct err ignored = {0};
    if (host_rule_parse(str_of(text), RULE_ALLOW, &r, &ignored) < 0) {
        p->all = p->addresses = true; /* invalid: assume the widest meaning */
        return;
    }
    p->addresses |= r.match == MATCH_NET || r.match == MATCH_ANY;
    if (r.high - r.low >= EGRESS_MAX_PORTS)
        p->all = true;
    else
        for (unsigned port = r.low; port <= r.high; port++)
            add_port(p, (uint16_t)port);
}

static void ports_of(const struct policy *policy, struct ports *ret)
{
    static const uint16_t usual[] = {22, 80, 443};
    struct ports p = {0};
    for (size_t i = 0; i < policy->n_net_rules; i++) {
        const struct net_rule *rule = &policy->net_rules[i];
        const struct host_set *set = host_set_of(str_of(rule->text));
        if (rule->verb != NET_RULE_ALLOW)
            continue;
        for (size_t k = 0; set && k < set->n; k++)
            add_ports(&p, set->hosts[k]);
        if (!set)
            add_ports(&p, rule->text);
    }
    for (size_t i = 0; p.all && i < sizeof usual / sizeof *usual; i++)
        add_port(&p, usual[i]);
    *ret = p;
}

features egress_needs(const struct policy *p)
{
    struct ports ports;
    if (p->net != NET_ALLOW)
        return 0;
    ports_of(p, &ports);
    return (ports.n ? F(NETWORK_TRANSPARENT) : 0) | (ports.all ? F(NETWORK_PORTS) : 0) |
           (ports.addresses ? F(NETWORK_ADDRESSES) : 0);
}

enum catch_way catch_of(const struct making *m)
{
    static const enum catch_way said[] = {
        [NET_CATCH_TPROXY] = CATCH_TPROXY, [NET_CATCH_ROUTES] = CATCH_ROUTES, [NET_CATCH_LOOPBACK] = CATCH_LOOPBACK};
    if (m->facts->tier == TIER_LANDLOCK)
        return CATCH_SOCKET;
    return m->policy->net_catch == NET_CATCH_AUTO ? m->facts->catch : said[m->policy->net_catch];
}

static int listen_steps(struct making *m, uint32_t *ret_n)
{
    struct ports p;
    ports_of(m->policy, &p);
    for (size_t i = 0; i < p.n; i++) {
        struct step *s = image_step(&m->image, STEP_LISTEN, m->policy->net_origin);
        if (!s)
            return no_memory(m);
        s->b = p.at[i];
        ++*ret_n;
    }
    return p.n ? note(m, "the box cannot listen on ports it may connect to: the egress proxy listens on them") : 0;
}

/* ---- proxy variables ---- */

/* Without inet sockets the proxy is a SOCKS 5 one at a Unix socket, in libcurl's notation. */
static int socket_env(struct making *m)
{
    const char *path = m->plan->proxy_socket, *proxy = path ? arena_printf(m->mem, "socks5h://localhost%s", path) : "";
    if (!path || !proxy)
        return path ? no_memory(m) : 0;
    int r = add_env(m, "ALL_PROXY", proxy);
    if (r == 0)
        r = add_env(m, "all_proxy", proxy);
    return r < 0 ? r : add_env(m, "PINFOLD_PROXY_SOCKET", path);
}

int egress_socket(struct making *m, const char *dir)
{
    /* unix(7): 108 bytes with the NUL, for every client. */
    enum { MAX_SOCKET_PATH = 107 };
    if (m->policy->net != NET_ALLOW || m->plan->catch != CATCH_SOCKET)
        return 0;
    const char *path = path_join(m->mem, dir, "proxy");
    if (!path)
        return no_memory(m);
    if (strlen(path) > MAX_SOCKET_PATH)
        return err_say(m->e, ERR_CANNOT,
                       "net allow (%s): without a network namespace the proxy is a Unix socket, and the path '%s' is "
                       "too long for one; set XDG_STATE_HOME to a shorter directory",
                       origin_of(m, m->policy->net_origin), path);
    m->plan->proxy_socket = path;
    return 0;
}

const char *egress_names_denied(const struct policy *p)
{
    bool all = false, denied = false;
    for (size_t i = 0; p->net == NET_ALLOW && i < p->n_net_rules; i++) {
        const struct net_rule *said = &p->net_rules[i];
        const struct host_set *set = host_set_of(str_of(said->text));
        struct host_rule r = {.match = MATCH_ANY};
        if (!set && (said->verb > NET_RULE_DENY || host_rule_parse(str_of(said->text), RULE_ALLOW, &r, NULL) < 0))
            continue;
        all = all || (said->verb == NET_RULE_ALLOW && !set && r.match == MATCH_ANY);
        denied = denied || (said->verb == NET_RULE_DENY && (set || (r.match != MATCH_ANY && r.match != MATCH_NET)));
    }
    return all && denied ? "a denied name beside '*' does not deny its machine, which may have other names; addresses "
                           "without a name need their own rule"
                         : NULL;
}

/* Programs that support proxies are told of ours, so that their requests can be refused with a message. */
int egress_env(struct making *m)
{
    static const char names[][12] = {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"};
    if (m->policy->net != NET_ALLOW)
        return 0;
    m->plan->names_denied = egress_names_denied(m->policy);
    int r = m->plan->names_denied ? note(m, "%s", m->plan->names_denied) : 0;
    if (r == 0 && m->plan->catch == CATCH_SOCKET)
        return socket_env(m);
    for (size_t i = 0; r == 0 && i < sizeof names / sizeof *names; i++)
        r = add_env(m, names[i], machine_proxy(m) ? machine_proxy(m) : PROXY);
    if (r == 0)
        r = add_env(m, "no_proxy", "localhost,127.0.0.1,::1");
    return r < 0 ? r : add_env(m, "NO_PROXY", "localhost,127.0.0.1,::1");
}

/* Parses "127.0.0.1:PORT", "localhost:PORT" or "[::1]:PORT"; false for anything else. */
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
            return err_say(m->e, ERR_POLICY,
                           "reach %s (%s): reach is for services on this machine's 127.0.0.1 or [::1]; allow other "
                           "addresses with --allow",
                           rule->text, origin_of(m, rule->origin));
        if (*ret_n == EGRESS_MAX_REACH)
            return err_say(m->e, ERR_POLICY, "reach %s (%s): more than %d services", rule->text,
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
    if (r == 0 && m->plan->catch != CATCH_TPROXY)
        r = listen_steps(m, &n);
    if (r == 0) {
        m->image.steps[at - 1].a = m->plan->catch;
        m->image.steps[at - 1].b = n;
    }
    return r;
}
