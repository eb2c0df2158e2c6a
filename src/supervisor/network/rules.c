/*
 * The network rules of a running box. The policy's come first; the control connection can add, remove and replace
 * rules, and answers to questions may become rules. What the policy denies stays denied: deny always wins, and the
 * policy's deny rules are never removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "base/hash.h"
#include "supervisor/network/live.h"
#include "policy/set.h"
#include "sys/fd.h"
#include "sys/poll.h"

const char *network_how(unsigned how)
{
    static const char names[][12] = {[HOW_DNS] = "dns",         [HOW_TRANSPARENT] = "transparent",
                                     [HOW_CONNECT] = "connect", [HOW_HTTP] = "http",
                                     [HOW_SOCKS] = "socks",     [HOW_REACH] = "reach"};
    return how < sizeof names / sizeof *names ? names[how] : "network";
}

void network_target(const struct egress_event *v, char *ret, size_t n)
{
    const char *host = *v->name ? v->name : v->address;
    int k = snprintf(ret, n, strchr(host, ':') ? "[%s]" : "%s", *host ? host : "(nothing)");
    if (v->port && k > 0 && (size_t)k < n)
        snprintf(ret + k, n - (size_t)k, ":%u", v->port);
}

static uint32_t rule_hash(const struct host_rule *r)
{
    uint32_t h = hash32(HASH32 ^ (uint32_t)(r->verb | r->match << 8 | r->prefix << 16), r->net.b, sizeof r->net.b);
    h = hash32(h, r->name, strlen(r->name));
    return h ^ (uint32_t)(r->low << 16 | r->high);
}

static bool same_rule(const struct host_rule *a, const struct host_rule *b)
{
    return a->verb == b->verb && a->match == b->match && a->prefix == b->prefix && a->low == b->low &&
           a->high == b->high && a->net.v6 == b->net.v6 && memcmp(a->net.b, b->net.b, sizeof a->net.b) == 0 &&
           strcmp(a->name, b->name) == 0;
}

static int add_live_rule(struct live *l, struct str text, const struct host_rule *rule, enum rule_from from,
                         uint32_t origin, bool *ret_new, struct err *e)
{
    uint32_t hash = rule_hash(rule);
    for (size_t i = 0; from != FROM_POLICY && i < l->n_rules; i++) {
        struct live_rule *o = &l->rules[i];
        if (o->hash != hash || o->from != from || !same_rule(&o->rule, rule))
            continue;
        *ret_new = *ret_new || !o->holds;
        o->holds = true;
        return 0;
    }
    if (l->n_rules >= MAX_LIVE_RULES)
        return err_say(e, ERR_POLICY, "more than %d rules in the lifetime of one box", MAX_LIVE_RULES);
    if (l->n_rules == l->room) {
        size_t room = l->room ? l->room * 2 : 32;
        struct live_rule *grown = realloc(l->rules, room * sizeof *grown);
        if (!grown)
            return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read a network rule");
        l->rules = grown;
        l->room = room;
    }
    char *copy = strndup(text.p, text.n);
    if (!copy)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read a network rule");
    struct live_rule *r = &l->rules[l->n_rules];
    *r = (struct live_rule){.rule = *rule, .hash = hash, .origin = origin, .from = from, .holds = true, .text = copy};
    r->rule.origin = (uint32_t)l->n_rules++;
    *ret_new = true;
    return 0;
}

int rules_parse(struct str text, enum rule_verb verb, struct host_rule **ret, size_t *ret_n, struct err *e)
{
    *ret = NULL;
    if (host_set_bare(text))
        return host_set_meant(host_set_bare(text), e);
    *ret_n = host_rule_count(text);
    *ret = calloc(*ret_n + 1, sizeof **ret);
    return *ret ? host_rules_parse(text, verb, 0, *ret, e)
                : err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read a network rule");
}

int rules_add(struct live *l, struct str text, enum rule_verb verb, enum rule_from from, uint32_t origin, bool *ret_new,
              struct err *e)
{
    bool changed = false;
    size_t n;
    struct host_rule *list;
    int r = rules_parse(text, verb, &list, &n, e);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = add_live_rule(l, text, &list[i], from, origin, &changed, e);
    free(list);
    if (ret_new)
        *ret_new = *ret_new || changed;
    return r;
}

struct host_rule *rules_held(const struct live *l, size_t *ret_n)
{
    struct host_rule *list = calloc(l->n_rules + 1, sizeof *list);
    *ret_n = 0;
    for (size_t i = 0; list && i < l->n_rules; i++) {
        const struct live_rule *r = &l->rules[i];
        bool replaced = r->from == FROM_POLICY && r->rule.verb == RULE_ALLOW && !l->policy_allows;
        if (r->holds && !replaced)
            list[(*ret_n)++] = r->rule;
    }
    return list;
}

int order_send(struct box *b, const struct egress_order *o, int fd)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec io = {(void *)(uintptr_t)o, sizeof *o};
    struct msghdr m = {.msg_iov = &io, .msg_iovlen = 1};
    if (fd >= 0) {
        m.msg_control = &control;
        m.msg_controllen = sizeof control;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    if (b->egress.events < 0)
        return -EPIPE;
    for (int patience = 100;;) {
        const long r = sys_send_fds(b->egress.events, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (r == (long)sizeof *o)
            return 0;
        if (r == -EINTR)
            continue;
        if (r != -EAGAIN || o->kind == ORDER_SEEN || !patience--)
            return r < 0 ? (int)r : -EIO;
        struct pollfd p = {.fd = b->egress.events, .events = POLLOUT};
        struct timespec wait = {.tv_nsec = 100000000};
        (void)sys_poll(&p, 1, &wait);
    }
}

int order_send_bytes(struct box *b, struct egress_order o, const void *bytes, size_t n)
{
    auto_fd int fd = n > EGRESS_MAX_ORDER ? -EFBIG : bytes_in_memory((struct str){bytes, n});
    o.bytes = (uint32_t)n;
    return fd < 0 ? fd : order_send(b, &o, fd);
}

int rules_send(struct box *b, uint32_t *ret_ticket)
{
    struct live *l = b->live;
    size_t n;
    struct host_rule *list = rules_held(l, &n);
    if (!list)
        return -ENOMEM;
    *ret_ticket = ++l->tickets;
    int r =
        order_send_bytes(b, (struct egress_order){.kind = ORDER_RULES, .ticket = *ret_ticket}, list, n * sizeof *list);
    free(list);
    return r;
}

const char *rules_origin(const struct box *b, uint32_t id, char *room, size_t n)
{
    const struct live *l = b->live;
    const struct policy *p = b->spec->start.plan->policy;
    if (id == EGRESS_RULE_ASKED)
        return "asked";
    if (id >= l->n_rules)
        return policy_origin(p, p->net_origin, room, n);
    return l->rules[id].from == FROM_CONTROL ? "--control-fd"
           : l->rules[id].from == FROM_ASKED ? "asked"
                                             : policy_origin(p, l->rules[id].origin, room, n);
}
