/*
 * Connections, Unix sockets and signals: by the rules that the egress proxy, the guard and the namespaces apply. It
 * asks the functions that they ask, and opens nothing.
 */
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "match/host.h"
#include "policy/set.h"
#include "why/parts.h"

/* The policy's host rules in order, sets expanded, as the egress proxy gets them. */
static int policy_host_rules(struct why_question *q, struct host_rule **ret, size_t *ret_n)
{
    const struct policy *p = q->plan->policy;
    size_t n = 0, at = 0;
    for (size_t i = 0; i < p->n_net_rules; i++)
        n += host_rule_count(str_of(p->net_rules[i].text)) + 1;
    struct host_rule *list = arena_zero(q->mem, (n + 1) * sizeof *list);
    if (!list)
        return why_memory(q);
    for (size_t i = 0; i < p->n_net_rules; i++) {
        const struct net_rule *said = &p->net_rules[i];
        const char *text = said->verb == NET_RULE_DENY_PORT ? arena_printf(q->mem, "*:%s", said->text) : said->text;
        if (said->verb != NET_RULE_ALLOW && said->verb != NET_RULE_DENY && said->verb != NET_RULE_DENY_PORT)
            continue;
        size_t more = host_rule_count(str_of(text));
        int r = host_rules_parse(str_of(text), said->verb == NET_RULE_ALLOW ? RULE_ALLOW : RULE_DENY, said->origin,
                                 list + at, q->e);
        if (r < 0)
            return r;
        for (size_t k = 0; k < more; k++)
            list[at + k].origin = (uint32_t)i; /* the rule, which has its origin */
        at += more;
    }
    *ret = list;
    *ret_n = at;
    return 0;
}

static void by_net_rule(struct why_question *q, size_t i)
{
    static const char verbs[][12] = {[NET_RULE_ALLOW] = "allow",
                                     [NET_RULE_DENY] = "deny",
                                     [NET_RULE_DENY_PORT] = "deny port",
                                     [NET_RULE_PUBLISH] = "publish",
                                     [NET_RULE_REACH] = "reach"};
    const struct net_rule *rule = &q->plan->policy->net_rules[i];
    why_rule(q, arena_printf(q->mem, "%s %s", verbs[rule->verb], rule->text), rule->origin);
}

/* Loopback is the box's own; single services of the host's are reached by a rule. */
static int on_loopback(struct why_question *q, const struct host *h, uint16_t port)
{
    const struct policy *p = q->plan->policy;
    for (size_t i = 0; i < p->n_net_rules; i++) {
        struct host to;
        uint16_t at;
        if (p->net_rules[i].verb != NET_RULE_REACH || host_port_parse(str_of(p->net_rules[i].text), 0, &to, &at) < 0 ||
            at != port || !host_same(&to, h))
            continue;
        by_net_rule(q, i);
        return why_say(q, WHY_ALLOWED, WHY_CAUSE_NONE, 0, NULL, "a rule lets the box reach this service of the host");
    }
    why_rule(q, arena_printf(q->mem, "net %s", p->net == NET_ALLOW ? "allow" : "none"), p->net_origin);
    return why_say(q, WHY_REFUSED, WHY_CAUSE_LOOPBACK, ECONNREFUSED, "network namespace of the box",
                   "in a box this is the box's own loopback; the host's services are not there");
}

/* An address that a socket can be bound to is this machine's own. */
static bool is_own_address(const struct host_addr *a)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    memcpy(&v6.sin6_addr, a->b, 16);
    memcpy(&v4.sin_addr, a->b, 4);
    auto_fd int fd = socket(a->v6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const struct sockaddr *at = a->v6 ? (const void *)&v6 : (const void *)&v4;
    struct host_addr inner;
    return (fd >= 0 && bind(fd, at, a->v6 ? sizeof v6 : sizeof v4) == 0) ||
           (addr_embedded(a, &inner) && is_own_address(&inner));
}

/* What needs a rule for that very address, whatever allows it by other means. 1: nothing. */
static int judge_class(struct why_question *q, const struct host_addr *a, bool named, bool exact)
{
    switch (addr_classify(a)) {
    case ADDR_PUBLIC:
        break;
    case ADDR_PRIVATE:
    case ADDR_RESERVED:
    case ADDR_LINK_LOCAL:
        if (!named)
            return why_say(q, WHY_REFUSED, WHY_CAUSE_ADDRESS, EACCES, "egress proxy",
                           "it is not a public address; only a rule for the address or its network allows it");
        break;
    case ADDR_METADATA:
        if (!exact)
            return why_say(q, WHY_REFUSED, WHY_CAUSE_METADATA, EACCES, "egress proxy",
                           "at this address a cloud hands out the machine's credentials");
        break;
    default:
        return why_say(q, WHY_REFUSED, WHY_CAUSE_HOST, EACCES, "egress proxy",
                       "it is an address that cannot be a destination");
    }
    if (!exact && is_own_address(a))
        return why_say(q, WHY_REFUSED, WHY_CAUSE_ADDRESS, EACCES, "egress proxy",
                       "it is an address of this machine; only a rule for that very address allows it");
    return 1;
}

static int by_rules(struct why_question *q, const struct host *h, uint16_t port)
{
    const struct policy *p = q->plan->policy;
    struct host_rule *rules = NULL;
    size_t n = 0, rule = SIZE_MAX;
    int r = policy_host_rules(q, &rules, &n);
    if (r < 0)
        return r;
    enum host_decision d = host_judge(rules, n, h, port, &rule);
    if (rule != SIZE_MAX)
        by_net_rule(q, rules[rule].origin);
    else
        why_rule(q, "net allow", p->net_origin);
    if (d == HOST_DENIED)
        return why_say(q, WHY_REFUSED, WHY_CAUSE_DENY_RULE, EACCES, "egress proxy",
                       "a deny rule names it, which overrides every rule that allows");
    if (d != HOST_ALLOWED && p->net_ask)
        return why_say(q, WHY_UNKNOWN, WHY_CAUSE_NO_RULE, 0, "egress proxy",
                       "no rule decides, so that the person is asked (net.ask)");
    bool named = false, exact = false;
    for (size_t i = 0; h->kind == HOST_ADDR && i < n; i++) {
        bool is = rules[i].verb == RULE_ALLOW && rules[i].match == MATCH_NET && host_rule_matches(&rules[i], h, port);
        named |= is;
        exact |= is && rules[i].prefix == (rules[i].net.v6 ? 128 : 32);
    }
    r = h->kind == HOST_ADDR ? judge_class(q, &h->addr, named, exact) : 1;
    if (r != 1)
        return r;
    if (d != HOST_ALLOWED)
        return why_say(q, WHY_REFUSED, WHY_CAUSE_NO_RULE, EACCES, "egress proxy", "no rule allows this host and port");
    return why_say(q, WHY_ALLOWED, WHY_CAUSE_NONE, 0, NULL,
                   h->kind == HOST_NAME ? "a rule allows it, if the name leads to a public address"
                                        : "a rule allows it");
}

/* ---- Unix sockets ---- */

static int socket_at(struct why_question *q)
{
    struct why_question read = *q;
    struct why looked = {0};
    read.ret = &looked;
    read.act = WHY_WRITE; /* connecting asks for permission to write */
    struct why_walk w;
    const char *path = q->target[0] == '/' ? q->target : arena_printf(q->mem, "%s/%s", q->plan->cwd, q->target);
    int r = path ? why_walk(&read, path, &w) : why_memory(q);
    if (r < 0)
        return r;
    q->ret->target = w.last.path;
    q->ret->host = w.last.at;
    if (w.stop != WALK_ARRIVED || !w.last.exists || w.last.seen.kind == SEEN_DENIED) {
        read.act = WHY_READ;
        r = why_file(&read);
        *q->ret = looked;
        return r;
    }
    const struct plan_place *at = w.last.seen.place;
    if (!S_ISSOCK(w.last.st.st_mode))
        return why_say(q, WHY_REFUSED, WHY_CAUSE_HOST, ECONNREFUSED, "the host itself, not the sandbox",
                       "it is not a socket");
    if (!why_permits(q, &w.last, W_OK))
        return why_say(q, WHY_REFUSED, WHY_CAUSE_HOST, EACCES, "the host itself, not the sandbox",
                       "ordinary permissions do not let this user connect");
    const struct rule *rule = q->guarded ? rules_socket(&q->rules, str_of(w.last.path)) : NULL;
    if (rule || !q->guarded) {
        why_place(q, at);
        if (rule)
            why_rule(q, arena_printf(q->mem, "unix socket %s", w.last.path), rule->said->origin);
        return why_say(q, q->guarded ? WHY_ALLOWED : WHY_UNKNOWN, WHY_CAUSE_NONE, 0, NULL,
                       q->guarded ? "a rule names this socket" : "sockets cannot be checked on this machine");
    }
    why_place(q, at);
    return why_say(q, WHY_REFUSED, WHY_CAUSE_SOCKET, EACCES, "guard", "it is a socket of the host that no rule names");
}

int why_connect(struct why_question *q)
{
    const struct policy *p = q->plan->policy;
    struct host h;
    uint16_t port;
    const char *url = strstr(q->target, "://");
    if (url && url > q->target && !memchr(q->target, '/', (size_t)(url - q->target)))
        return err_say(q->e, ERR_POLICY, "connect: '%s' is a URL; write its host and port, as in github.com:443",
                       q->target);
    if (strchr(q->target, '/'))
        return socket_at(q);
    if (host_port_parse(str_of(q->target), 0, &h, &port) < 0) {
        int r = err_say(q->e, ERR_POLICY, "connect: '%s' is neither a host with a port nor the path of a socket",
                        q->target);
        return err_hint(q->e, r, "write HOST:PORT, [ADDRESS]:PORT or a path with a slash");
    }
    if (p->net == NET_HOST || q->plan->facts->unsandboxed) {
        why_rule(q, "net host", p->net_origin);
        return why_say(q, WHY_ALLOWED, WHY_CAUSE_NONE, 0, NULL, "the box uses the host's network");
    }
    bool loopback = (h.kind == HOST_ADDR && addr_classify(&h.addr) == ADDR_LOOPBACK) ||
                    (h.kind == HOST_NAME && (same(h.name, "localhost") || str_ends(str_of(h.name), STR(".localhost"))));
    if (loopback && q->plan->image->tier == TIER_NAMESPACES) {
        if (h.kind == HOST_NAME)
            h = (struct host){.kind = HOST_ADDR, .addr = {.b = {127, 0, 0, 1}}};
        return on_loopback(q, &h, port);
    }
    if (p->net == NET_ALLOW)
        return by_rules(q, &h, port);
    why_rule(q, "net none", p->net_origin);
    bool metadata = h.kind == HOST_ADDR && addr_classify(&h.addr) == ADDR_METADATA;
    return why_say(q, WHY_REFUSED, metadata ? WHY_CAUSE_METADATA : WHY_CAUSE_NO_NETWORK,
                   q->plan->image->tier == TIER_NAMESPACES ? ENETUNREACH : EACCES,
                   q->plan->image->tier == TIER_NAMESPACES ? "network namespace without routes"
                                                           : "seccomp and Landlock",
                   "the box has no network");
}

int why_signal(struct why_question *q)
{
    char *end;
    long pid = strtol(q->target, &end, 10);
    if (*end || end == q->target || pid <= 0 || pid > INT32_MAX)
        return err_say(q->e, ERR_POLICY, "signal: '%s' is not a process id", q->target);
    if (kill((pid_t)pid, 0) < 0)
        return why_say(q, WHY_REFUSED, WHY_CAUSE_HOST, errno, "the host itself, not the sandbox",
                       errno == ESRCH ? "the host has no such process" : "it belongs to another user");
    if (q->plan->facts->unsandboxed)
        return why_say(q, WHY_ALLOWED, WHY_CAUSE_NONE, 0, NULL, "the command runs without a box");
    if (q->plan->image->tier == TIER_NAMESPACES)
        return why_say(q, WHY_REFUSED, WHY_CAUSE_PROCESS, ESRCH, "PID namespace",
                       "the box sees its own processes only, whatever their numbers");
    if (q->plan->facts->landlock_abi >= ABI_SCOPES)
        return why_say(q, WHY_REFUSED, WHY_CAUSE_PROCESS, EPERM, "Landlock",
                       "the box may signal its own processes only");
    return why_say(q, WHY_ALLOWED, WHY_CAUSE_NONE, 0, NULL,
                   "nothing keeps signals in this box: neither a PID namespace nor Landlock's scopes are there");
}
