/*
 * Decides about a destination once host and port are known: by the rules, or by a question where none decides. Then the
 * name is resolved, each of its addresses is judged, and the permitted ones are connected to. If the caller's own proxy
 * is responsible for the host, the proxy's name is resolved instead.
 */
#include <string.h>
#include "egress/parts.h"

/* Replaces a fake IP by its name, however the client sent it; false if the host is none. */
static bool call_by_name(struct conn *c)
{
    struct host_addr addr = c->host->addr;
    c->literal = false;
    if (c->host->kind == HOST_NAME)
        return true;
    const char *name = stand_name(&addr);
    c->literal = !name;
    if (!name)
        return !stand_range(&addr);
    c->host->kind = HOST_NAME;
    strcpy(c->host->name, name);
    return true;
}

/* Judges each address of the host. */
static void admit_resolved(struct conn *c, const struct host_addr *addrs, unsigned n)
{
    const char *why = "does not resolve";
    const struct host_addr *bad = NULL;

    c->n_addrs = 0;
    c->at_addr = 0;
    for (unsigned i = 0; i < n && i < MAX_ADDRESSES; i++) {
        const char *no = judge_address(c, &addrs[i]);
        if (no) {
            why = no;
            bad = &addrs[i];
        } else {
            c->addrs[c->n_addrs++] = addrs[i];
        }
    }
    if (c->n_addrs == 0) {
        refuse_as(c, bad ? EGRESS_DENIED : EGRESS_FAILED, bad ? REFUSED_BY_RULE : REFUSED_NO_ADDRESS, c->host, bad, why,
                  why);
        return;
    }
    dial_next(c);
}

/* The addresses of the parent proxy are not judged: the caller chose it. */
static void parent_resolved(struct conn *c, const struct host_addr *addrs, unsigned n)
{
    c->at_addr = 0;
    c->n_addrs = (uint8_t)(n < MAX_ADDRESSES ? n : MAX_ADDRESSES);
    memcpy(c->addrs, addrs, c->n_addrs * sizeof *addrs);
    if (c->n_addrs)
        dial_next(c);
    else
        refuse_failed(c, NULL, "the parent proxy's name does not resolve");
}

/* The parent proxy for that host; NULL: none. */
static const struct proxy *parent_for(const struct conn *c)
{
    return proxy_for(world.ask->proxies, c->host, c->port, c->how == HOW_HTTP || c->port == 80);
}

/* If the hosts file has an address that no answer could permit: the reason. Names that only a DNS server knows are
   looked up after a yes, because the query itself would reveal something. */
static const char *never_asked(struct conn *c, struct host_addr *ret)
{
    struct host_addr at[MAX_ADDRESSES];
    const char *why = NULL;
    size_t n = c->host->kind == HOST_NAME && !parent_for(c)
                   ? hosts_find(world.ask->resolver.hosts, c->host->name, at, MAX_ADDRESSES)
                   : 0;
    for (size_t i = 0; i < n; i++) {
        why = judge_address(c, &at[i]);
        if (!why)
            return NULL;
        *ret = at[i];
    }
    return why;
}

static void ask(struct conn *c)
{
    struct told_room ends;
    c->ticket = question_of(c->how, c->host, c->port, told_ends(c, &ends));
    if (!c->ticket) {
        refuse_denied(c, NULL, "too many open questions", "is not allowed");
        return;
    }
    if (c->ticket == QUESTION_REFUSED) {
        refuse_answered(c, ANSWER_NO);
        return;
    }
    c->stage = STAGE_ASK;
    conn_deadline(c, world.now + world.ask->ask_ms + ASK_SLACK_MS);
    relay_settle(c);
}

/* Why a name is not sent to the parent proxy: addresses and local names would mean something else there. NULL: it
   may be sent. */
static const char *not_for_parent(const struct conn *c)
{
    struct host_addr at[MAX_ADDRESSES];
    if (c->host->kind == HOST_ADDR)
        return "is an address, which is not sent to the parent proxy; add it to NO_PROXY";
    size_t n = hosts_find(world.ask->resolver.hosts, c->host->name, at, MAX_ADDRESSES);
    bool local = name_is_local(c->host->name);
    for (size_t i = 0; i < n; i++)
        local = local || addr_classify(&at[i]) != ADDR_PUBLIC;
    return local ? "is a local name, which is not sent to the parent proxy; add it to NO_PROXY" : NULL;
}

void admit(struct conn *c)
{
    if (!call_by_name(c)) {
        refuse_denied(c, NULL, "a fake IP without a name", "is a fake IP without a name");
        return;
    }
    enum host_decision d = judge_host(c, c->host);
    if (d == HOST_DENIED_BY_DEFAULT && judge_may_ask(c)) {
        struct host_addr at;
        const char *never = never_asked(c, &at);
        if (never)
            refuse_denied(c, &at, never, never);
        else
            ask(c);
        return;
    }
    if (d != HOST_ALLOWED) {
        refuse_denied(c, NULL, d == HOST_DENIED ? "denied by a rule" : "not allowed",
                      d == HOST_DENIED ? "is denied by a rule" : "is not allowed");
        return;
    }
    if (c->how == HOW_HTTP && c->port == 443 && !judge_any_bytes(c)) { /* what we would send is not TLS */
        refuse_denied(c, NULL, EGRESS_ONLY_TLS, "carries TLS only; allow other protocols with /tcp after the port");
        return;
    }
    c->parent = parent_for(c);
    const char *no = c->parent ? not_for_parent(c) : NULL;
    if (no) {
        refuse_denied(c, NULL, no, no);
        return;
    }
    c->stage = STAGE_RESOLVE;
    conn_deadline(c, world.now + HANDSHAKE_MS);
    if (c->parent && c->parent->host.kind == HOST_ADDR)
        parent_resolved(c, &c->parent->host.addr, 1);
    else if (c->parent)
        lookup_start(c, c->parent->host.name, parent_resolved);
    else if (c->host->kind == HOST_ADDR)
        admit_resolved(c, &c->host->addr, 1);
    else
        lookup_start(c, c->host->name, admit_resolved);
    relay_settle(c);
}
