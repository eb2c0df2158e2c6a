/*
 * Parses and checks the hosts, ports, publish and reach rules of a policy. The grammar is match/host.h's; what is
 * added here is which forms each key takes.
 */
#include "policy/domain.h"
#include "match/host.h"
#include "policy/set.h"

#include <errno.h>
#include <stdio.h>

enum { HOSTNAME_MAX = 64 };

/* A "%.*s" that quotes no more than fits into the message. */

/* Puts `text` into `mem` in the requested form. */
static int keep_domain(struct arena *mem, const char *text, const char **ret, struct err *e)
{
    const char *kept = arena_text(mem, text);
    if (!kept)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read a network rule");
    *ret = kept;
    return 0;
}

bool domain_is_loopback(struct str s)
{
    struct host_rule rule;
    if (!s.n || s.p[0] == '@' || host_rule_parse(s, RULE_ALLOW, &rule, NULL) < 0)
        return false;
    if (rule.match == MATCH_NET)
        return addr_classify(&rule.net) == ADDR_LOOPBACK && rule.prefix >= 8;
    return rule.match != MATCH_ANY &&
           (strcmp(rule.name, "localhost") == 0 || str_ends(str_of(rule.name), STR(".localhost"))); /* RFC 6761 6.3 */
}

int domain_rule_form(struct str s, struct arena *mem, const char **ret, struct err *e)
{
    struct host_rule rule;
    char canonical[HOST_RULE_TEXT];

    if (s.n && s.p[0] == '@') { /* a set keeps its name: it is expanded where hosts are judged */
        const struct host_set *set = host_set_of(s);
        if (!set)
            return host_set_unknown(s, e);
        snprintf(canonical, sizeof canonical, "@%s", set->name);
        return keep_domain(mem, canonical, ret, e);
    }
    if (host_set_bare(s))
        return host_set_meant(host_set_bare(s), e);
    int r = host_rule_parse(s, RULE_ALLOW, &rule, e);
    if (r < 0)
        return r;
    host_rule_print(&rule, canonical);
    if (host_set_bare(str_of(canonical))) /* it keeps its dot, since it is read again */
        strcat(canonical, ".");
    return keep_domain(mem, canonical, ret, e);
}

int port_rule_form(struct str s, struct arena *mem, const char **ret, struct err *e)
{
    uint16_t low, high;
    char canonical[16];
    int r = ports_parse(s, &low, &high);

    if (r == -ERANGE)
        return err_say(e, ERR_POLICY, "'%.*s': the end of the range is below its start", STR_SAID(s));
    if (r < 0)
        return err_say(e, ERR_POLICY, "'%.*s' is not a port from 1 to 65535 or a range such as 6000-6063", STR_SAID(s));
    snprintf(canonical, sizeof canonical, low == high ? "%u" : "%u-%u", low, high);
    return keep_domain(mem, canonical, ret, e);
}

/* Cuts off the address, if there is one: "1.2.3.4:", "[::1]:". False for anything else. */
static bool publish_address(struct str *s, struct host_addr *ret, bool *said)
{
    struct str first = *s;
    *said = true;
    if (s->n && s->p[0] == '[') {
        const char *end = memchr(s->p, ']', s->n);
        first = (struct str){s->p + 1, end ? (size_t)(end - s->p) - 1 : 0};
        struct str rest = str_skip(*s, first.n + 2);
        *s = str_skip(rest, 1);
        return end && memchr(first.p, ':', first.n) && addr_parse(first, ret) == 0 && rest.n && rest.p[0] == ':';
    }
    struct str rest = *s;
    first = str_until(&rest, ':');
    *said = addr_parse(first, ret) == 0;
    if (*said)
        *s = rest;
    return true;
}

static int publish_read(struct str s, struct publish *ret, bool *ret_said, struct err *e)
{
    struct publish p = {0};
    struct host_addr a = {.b = {127, 0, 0, 1}};
    struct str rest = s;

    bool ok = publish_address(&rest, &a, ret_said);
    struct str second = rest, first = str_until(&second, ':');
    if (first.n == rest.n)
        second = first;
    if (!ok || port_parse(first, &p.host) < 0 || port_parse(second, &p.box) < 0)
        return err_say(
            e, ERR_POLICY,
            "'%.*s' is not [ADDR:][HOST:]BOX with ports from 1 to 65535, such as 3000, 8080:3000 or [::1]:8080:3000",
            STR_SAID(s));
    p.v6 = a.v6;
    memcpy(p.addr, a.b, sizeof p.addr);
    *ret = p;
    return 0;
}

int publish_parse(struct str s, struct publish *ret, struct err *e)
{
    bool said;
    return publish_read(s, ret, &said, e);
}

int publish_form(struct str s, struct arena *mem, const char **ret, struct err *e)
{
    struct publish p = {0};
    bool said;
    char addr[46], canonical[64];
    int r = publish_read(s, &p, &said, e);
    if (r < 0)
        return r;
    struct host_addr a = {.v6 = p.v6};
    memcpy(a.b, p.addr, sizeof a.b);
    addr_print(&a, addr);
    size_t n = said ? (size_t)snprintf(canonical, sizeof canonical, p.v6 ? "[%s]:" : "%s:", addr) : 0;
    snprintf(canonical + n, sizeof canonical - n, "%u:%u", p.host, p.box);
    return keep_domain(mem, canonical, ret, e);
}

int reach_form(struct str s, struct arena *mem, const char **ret, struct err *e)
{
    struct host_rule rule;
    bool set = s.n && s.p[0] == '@';
    int r = set || !memchr(s.p, ':', s.n) ? 0 : host_rule_parse(s, RULE_ALLOW, &rule, e);
    if (r < 0)
        return r;
    const bool one = !set && memchr(s.p, ':', s.n) &&
                     (rule.match == MATCH_NAME || (rule.match == MATCH_NET && rule.prefix == (rule.net.v6 ? 128 : 32)));
    if (!one || rule.low != rule.high || rule.any_bytes)
        return err_say(e, ERR_POLICY, "'%.*s' is not HOST:PORT of one service, such as 127.0.0.1:5432", STR_SAID(s));
    return domain_rule_form(s, mem, ret, e);
}

int hostname_form(struct str s, struct arena *mem, const char **ret, struct err *e)
{
    int r = s.n > HOSTNAME_MAX ? err_say(e, ERR_POLICY, "'%.*s' is longer than %d bytes, the maximum for a host name",
                                         STR_SAID(s), HOSTNAME_MAX)
                               : 0;
    for (size_t i = 0; r == 0 && i < s.n; i++) {
        char c = s.p[i];
        if (!(c >= '0' && c <= '9') && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z') && c != '-' && c != '.')
            r = err_say(e, ERR_POLICY, "'%.*s' is not a host name: only letters, digits, '-' and '.' are allowed",
                        STR_SAID(s));
    }
    if (r == 0 && (!s.n || s.p[0] == '-' || s.p[0] == '.'))
        r = err_say(e, ERR_POLICY, "'%.*s' is not a host name: it must begin with a letter or digit", STR_SAID(s));
    if (r < 0)
        return r;
    char text[HOSTNAME_MAX + 1] = {0};
    memcpy(text, s.p, s.n);
    return keep_domain(mem, text, ret, e);
}
