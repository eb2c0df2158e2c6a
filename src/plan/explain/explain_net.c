/*
 * Describes the network of a plan: each rule with its origin, a set with its members, and for an allow rule what deny
 * rules take from it, because deny wins.
 */
#include <stdio.h>
#include "base/json.h"
#include "plan/explain/words.h"
#include "policy/domain.h"
#include "policy/proxy.h"
#include "policy/set.h"

enum { DENIERS = 4 }; /* deny rules named beside an allow rule */
#define MAX_DENIED (64u << 20)

/* What is denied of an allow rule. */
struct taken {
    const struct net_rule *by[DENIERS];
    size_t n;
    bool whole; /* by[0] covers the rule, which then never applies */
};

/* Parses the rules that a text of the policy stands for. 0 if it is no valid rule. */
static size_t read_rule(const struct net_rule *said, size_t member, struct host_rule *ret)
{
    const struct host_set *set = host_set_of(str_of(said->text));
    char text[HOST_RULE_TEXT];
    snprintf(text, sizeof text, "%s%s", said->verb == NET_RULE_DENY_PORT ? "*:" : "",
             set ? set->hosts[member] : said->text);
    size_t n = set ? set->n : 1;
    return member < n && host_rule_parse(str_of(text), RULE_ALLOW, ret, NULL) == 0 ? n : 0;
}

/* A host that is denied, parsed once for all allow rules that are held against it. */
struct denied_host {
    const struct net_rule *said;
    struct host_rule rule;
};

/* Of the policy, in its order: an array of struct denied_host. */
static void read_denied(const struct policy *p, struct buf *ret)
{
    for (size_t i = 0; i < p->n_net_rules; i++) {
        struct denied_host d = {.said = &p->net_rules[i]};
        if (d.said->verb != NET_RULE_DENY && d.said->verb != NET_RULE_DENY_PORT)
            continue;
        for (size_t k = 0, n = read_rule(d.said, 0, &d.rule); k < n && read_rule(d.said, k, &d.rule); k++)
            buf_put(ret, &d, sizeof d);
    }
}

static struct taken taken_from(const struct buf *denied, const struct host_rule *allow)
{
    const struct denied_host *all = (const void *)denied->p;
    struct taken t = {.n = 0};
    for (size_t i = 0; i < denied->n / sizeof *all; i++) {
        if (host_rule_covers(&all[i].rule, allow))
            return (struct taken){.by = {all[i].said}, .n = 1, .whole = true};
        if (t.n < DENIERS && (t.n == 0 || t.by[t.n - 1] != all[i].said) && host_rule_meets(&all[i].rule, allow))
            t.by[t.n++] = all[i].said;
    }
    return t;
}

static const char *verb_word(const struct net_rule *r)
{
    static const char words[][12] = {[NET_RULE_ALLOW] = "allow",
                                     [NET_RULE_DENY] = "deny",
                                     [NET_RULE_DENY_PORT] = "deny port",
                                     [NET_RULE_PUBLISH] = "publish",
                                     [NET_RULE_REACH] = "reach"};
    return words[r->verb];
}

static const char *verb_key(const struct net_rule *r)
{
    return r->verb == NET_RULE_DENY_PORT ? "deny-port" : verb_word(r);
}

/* Writes "denied: deny * wins (--deny)", "but not x.corp, :22" into `text`. */
static const char *taken_words(const struct policy *p, const struct buf *denied, const struct net_rule *said,
                               size_t member, char *text, size_t n)
{
    struct host_rule allow;
    char origin[256];
    text[0] = 0;
    if (said->verb != NET_RULE_ALLOW || !read_rule(said, member, &allow))
        return text;
    struct taken t = taken_from(denied, &allow);
    if (t.whole) {
        policy_origin(p, t.by[0]->origin, origin, sizeof origin);
        snprintf(text, n, "denied: %s %s wins (%s)", verb_word(t.by[0]), t.by[0]->text, origin);
        return text;
    }
    for (size_t i = 0, at = 0; i < t.n && at < n; i++) {
        const char *port = t.by[i]->verb == NET_RULE_DENY_PORT ? ":" : "";
        int k = snprintf(text + at, n - at, "%s%s%s", i ? ", " : "but not ", port, t.by[i]->text);
        at += k > 0 ? (size_t)k : 0;
    }
    return text;
}

/* What to print beside a rule: both ends of a port, a set, or what is denied of it. */
static const char *beside(const struct policy *p, const struct buf *denied, const struct net_rule *r, char *text,
                          size_t n)
{
    struct publish port;
    if (r->verb == NET_RULE_PUBLISH && publish_parse(str_of(r->text), &port, NULL) == 0) {
        struct host_addr a = {.v6 = port.v6};
        char address[46];
        memcpy(a.b, port.addr, sizeof a.b);
        addr_print(&a, address);
        snprintf(text, n, "%s%s%s:%u here, port %u inside", port.v6 ? "[" : "", address, port.v6 ? "]" : "", port.host,
                 port.box);
        return text;
    }
    return host_set_of(str_of(r->text)) ? "a set of hosts" : taken_words(p, denied, r, 0, text, n);
}

static void put_rule(const struct policy *p, const struct buf *denied, const struct net_rule *r, struct buf *out)
{
    const struct host_set *set = host_set_of(str_of(r->text));
    char how[512], member[HOST_RULE_TEXT], origin[512];
    policy_origin(p, r->origin, origin, sizeof origin);
    put_row(out, verb_word(r), r->text, beside(p, denied, r, how, sizeof how), origin);
    for (size_t i = 0; set && i < set->n; i++) {
        snprintf(member, sizeof member, "  %s", set->hosts[i]);
        put_row(out, "", member, taken_words(p, denied, r, i, how, sizeof how), "");
    }
}

static void put_proxy(const struct proxy *x, const char *what, struct buf *out)
{
    char url[PROXY_TEXT], how[128];
    snprintf(how, sizeof how, "%s, by name%s", what, x->user.p ? ", with credentials" : "");
    put_row(out, "proxy", proxy_print(x, url), how, x->variable);
}

static bool same_proxy(const struct proxy *a, const struct proxy *b)
{
    return same(a->variable, b->variable);
}

static void put_proxies(const struct proxies *all, struct buf *out)
{
    if (all->plain.variable)
        put_proxy(&all->plain, same_proxy(&all->plain, &all->other) ? "all hosts" : "http:// and port 80", out);
    if (all->other.variable && !same_proxy(&all->plain, &all->other))
        put_proxy(&all->other, "https:// and other ports", out);
    for (size_t i = 0; i < all->n_direct; i++)
        put_row(out, "direct", all->direct_text[i], "not by the proxy; addresses are checked", "NO_PROXY");
}

static void put_ask(const struct policy *p, struct buf *out)
{
    char origin[512], how[64];
    snprintf(how, sizeof how, "asked, %u s for an answer", p->net_ask_ms / 1000);
    put_row(out, "ask", "other hosts", how, policy_origin(p, p->net_ask_origin, origin, sizeof origin));
}

void explain_network(const struct plan *p, struct buf *out)
{
    if (p->policy->n_net_rules || p->proxies || p->policy->net_ask)
        buf_printf(out, "\nNetwork (%s)\n", word_net(p->policy));
    auto_buf struct buf denied = BUF(MAX_DENIED);
    read_denied(p->policy, &denied);
    for (size_t i = 0; i < p->policy->n_net_rules; i++)
        put_rule(p->policy, &denied, &p->policy->net_rules[i], out);
    out->broken |= !buf_ok(&denied);
    if (p->policy->net_ask)
        put_ask(p->policy, out);
    if (p->proxies)
        put_proxies(p->proxies, out);
}

static void put_proxy_json(struct json *j, const char *name, const struct proxy *x)
{
    char url[PROXY_TEXT];
    if (!x->variable) {
        json_null(j, name);
        return;
    }
    json_object(j, name);
    json_text(j, "url", proxy_print(x, url));
    json_text(j, "variable", x->variable);
    json_bool(j, "credentials", x->user.p != NULL);
    json_object_end(j);
}

static void put_proxies_json(struct json *j, const struct proxies *all)
{
    if (!all) {
        json_null(j, "parent_proxy");
        return;
    }
    json_object(j, "parent_proxy");
    put_proxy_json(j, "http", &all->plain);
    put_proxy_json(j, "other", &all->other);
    json_array(j, "direct");
    for (size_t i = 0; i < all->n_direct; i++)
        json_text(j, NULL, all->direct_text[i]);
    json_array_end(j);
    json_object_end(j);
}

/* One host with what is denied of it: members "denied_by" (never applies) or "but_not". */
static void put_taken_json(struct json *j, const struct buf *denied, const struct net_rule *r, size_t member)
{
    struct host_rule allow;
    if (r->verb != NET_RULE_ALLOW || !read_rule(r, member, &allow))
        return;
    struct taken t = taken_from(denied, &allow);
    if (t.n == 0)
        return;
    json_array(j, t.whole ? "denied_by" : "but_not");
    for (size_t i = 0; i < t.n; i++)
        json_text(j, NULL, t.by[i]->text);
    json_array_end(j);
}

void explain_network_json(const struct plan *p, struct json *j)
{
    char origin[512];
    auto_buf struct buf denied = BUF(MAX_DENIED);
    read_denied(p->policy, &denied);
    json_array(j, "network_rules");
    for (size_t i = 0; i < p->policy->n_net_rules; i++) {
        const struct net_rule *r = &p->policy->net_rules[i];
        const struct host_set *set = host_set_of(str_of(r->text));
        json_object(j, NULL);
        json_text(j, "verb", verb_key(r));
        json_text(j, "rule", r->text);
        json_text(j, "origin", policy_origin(p->policy, r->origin, origin, sizeof origin));
        if (!set)
            put_taken_json(j, &denied, r, 0);
        else
            json_array(j, "members");
        for (size_t k = 0; set && k < set->n; k++) {
            json_object(j, NULL);
            json_text(j, "host", set->hosts[k]);
            put_taken_json(j, &denied, r, k);
            json_object_end(j);
        }
        if (set)
            json_array_end(j);
        json_object_end(j);
    }
    (j->out ? j->out : &j->tree->b)->broken |= !buf_ok(&denied);
    json_array_end(j);
    if (p->policy->net_ask) {
        json_object(j, "network_ask");
        json_uint(j, "time_ms", p->policy->net_ask_ms);
        json_text(j, "origin", policy_origin(p->policy, p->policy->net_ask_origin, origin, sizeof origin));
        json_object_end(j);
    }
    put_proxies_json(j, p->proxies);
}
