/*
 * A name is copied label by label into its canonical form while it is checked. Everything that ends in a number is left
 * to the parsers of addresses, so nothing can be a name here and an address to a resolver.
 */
#include "match/host.h"

#include <errno.h>
#include <stdio.h>

/* A "%.*s" that quotes no more than fits into the message. */

/* ---- names ---- */

static const char *label_wrong(struct str label)
{
    if (label.n == 0)
        return "is not a domain: one of its labels is empty";
    if (label.n > 63)
        return "is not a domain: one of its labels is longer than 63 bytes";
    if (label.p[0] == '-' || label.p[label.n - 1] == '-')
        return "is not a domain: one of its labels begins or ends with '-'";
    for (size_t i = 0; i < label.n; i++) {
        char c = addr_lower(label.p[i]);
        if ((unsigned char)c >= 0x80)
            return "is not ASCII; write the name in its xn-- form";
        if (!addr_is_digit(c) && !(c >= 'a' && c <= 'z') && c != '-' && c != '_')
            return "is not DOMAIN[:PORT], *.DOMAIN, an address or a CIDR range such as 10.0.0.0/8";
    }
    return NULL;
}

/* Parses a name into canonical form. NULL, or what is wrong: the rest of the message, to follow the quoted text. */
static const char *name_parse(struct str s, char out[HOST_NAME_MAX_TEXT + 1])
{
    if (s.n > 1 && s.p[s.n - 1] == '.')
        s.n--;
    if (s.n > HOST_NAME_MAX_TEXT)
        return "is longer than 253 bytes";
    for (size_t at = 0, end; at <= s.n; at = end + 1) {
        const char *dot = memchr(s.p + at, '.', s.n - at);
        end = dot ? (size_t)(dot - s.p) : s.n;
        const char *wrong = label_wrong((struct str){s.p + at, end - at});
        if (wrong)
            return wrong;
    }
    if (addr_ends_in_number(s))
        return addr_wrong(s);
    for (size_t i = 0; i < s.n; i++)
        out[i] = addr_lower(s.p[i]);
    out[s.n] = 0;
    return NULL;
}

int host_parse(struct str text, struct host *ret)
{
    struct host h = {0};
    bool brackets = text.n >= 2 && text.p[0] == '[' && text.p[text.n - 1] == ']';
    struct str inner = brackets ? (struct str){text.p + 1, text.n - 2} : text;

    if (inner.n == 0 || (brackets && !memchr(inner.p, ':', inner.n)))
        return -EINVAL;
    if (addr_parse(inner, &h.addr) == 0)
        h.kind = HOST_ADDR;
    else if (brackets || name_parse(inner, h.name))
        return -EINVAL;
    *ret = h;
    return 0;
}

int host_port_parse(struct str text, uint16_t fallback_port, struct host *ret, uint16_t *ret_port)
{
    struct str host = text, port = {0};
    if (text.n && text.p[0] == '[') {
        const char *end = memchr(text.p, ']', text.n);
        if (!end)
            return -EINVAL;
        host.n = (size_t)(end - text.p) + 1;
        port = str_skip(text, host.n);
        if (port.n && port.p[0] != ':')
            return -EINVAL;
    } else {
        const char *colon = memchr(text.p, ':', text.n);
        if (colon) {
            host.n = (size_t)(colon - text.p);
            port = str_skip(text, host.n);
        }
    }
    uint16_t number = fallback_port;
    if (port.n ? port_parse(str_skip(port, 1), &number) < 0 : !fallback_port)
        return -EINVAL;
    struct host h;
    int r = host_parse(host, &h);
    if (r < 0)
        return r;
    *ret = h;
    *ret_port = number;
    return 0;
}

/* ---- rules ---- */

/* Cuts "/tcp" off the end of a rule. -EINVAL: it is in the wrong place, or another word is there. */
static int cut_suffix(struct str *text, bool *ret_any_bytes, struct err *e)
{
    struct str behind = *text; /* from the colon in front of the ports */
    const char *close = text->n && text->p[0] == '[' ? memchr(text->p, ']', text->n) : NULL;
    if (close)
        behind = str_skip(*text, (size_t)(close - text->p) + 1);
    const char *colon = behind.n ? memchr(behind.p, ':', behind.n) : NULL;
    behind = colon ? str_skip(behind, (size_t)(colon - behind.p) + 1) : (struct str){0};
    bool has_port = colon && behind.n && addr_is_digit(behind.p[0]) && !memchr(behind.p, ':', behind.n);
    const char *slash = has_port ? memchr(behind.p, '/', behind.n) : NULL;
    struct str suffix = slash ? str_skip(behind, (size_t)(slash - behind.p)) : (struct str){0};

    *ret_any_bytes = false;
    if (!slash && (str_ends(*text, STR("/tcp")) || str_ends(*text, STR("/udp"))))
        return err_say(e, ERR_POLICY, "'%.*s': /tcp must follow a port, as in example.com:443/tcp", STR_SAID(*text));
    if (slash && !str_is(suffix, "/tcp"))
        return err_say(e, ERR_POLICY, "'%.*s': only /tcp (any protocol on that port) can follow a port",
                       STR_SAID(*text));
    *ret_any_bytes = slash != NULL;
    text->n -= suffix.n;
    return 0;
}

/* Separates the host of a rule from its ports, which begin with their colon. NULL, or what is wrong. */
static const char *cut_ports(struct str text, struct str *host, struct str *ports, bool *brackets)
{
    const char *colon = memchr(text.p, ':', text.n), *last = colon;
    struct host_addr a;
    uint16_t low, high;

    *host = text;
    *ports = (struct str){0};
    *brackets = text.p[0] == '[';
    if (*brackets) {
        const char *end = memchr(text.p, ']', text.n);
        if (!end)
            return "has no ']' after the address";
        *host = (struct str){text.p + 1, (size_t)(end - text.p) - 1};
        *ports = str_skip(text, host->n + 2);
        if (ports->n && ports->p[0] != ':')
            return "has something other than :PORT after ']'";
        return memchr(host->p, ':', host->n) ? NULL : "has something other than an IPv6 address in its brackets";
    }
    for (const char *c = colon; c && c < text.p + text.n; c++)
        last = *c == ':' ? c : last;
    struct str head = {text.p, colon ? (size_t)(last - text.p) : text.n}, tail = str_skip(text, head.n);
    if (colon == last) {
        *host = head;
        *ports = tail;
        return NULL;
    }
    return ports_parse(str_skip(tail, 1), &low, &high) == 0 && addr_parse(head, &a) == 0
               ? "is ambiguous: the last part may be a port or part of the address; write [ADDRESS]:PORT or [ADDRESS]"
               : NULL;
}

static const char *read_host(struct str host, bool brackets, struct host_rule *r)
{
    struct str name = host, addr = host;
    addr = str_until(&addr, '/');

    if (str_is(host, "*")) {
        r->match = MATCH_ANY;
        return NULL;
    }
    if (brackets || memchr(host.p, ':', host.n) || addr_ends_in_number(addr)) {
        const char *wrong;
        r->match = MATCH_NET;
        return addr_range_parse(host, &r->net, &r->prefix, &wrong) < 0 ? wrong : NULL;
    }
    r->match = MATCH_NAME;
    if (str_starts(host, STR("*."))) {
        r->match = MATCH_BELOW;
        name = str_skip(host, 2);
    } else if (host.n > 1 && host.p[0] == '.') {
        r->match = MATCH_BELOW_OR_APEX;
        name = str_skip(host, 1);
    }
    return name.n && memchr(name.p, '*', name.n) ? "has a misplaced '*'; use '*' alone or '*.' before a name"
                                                 : name_parse(name, r->name);
}

static const char *read_ports(struct str ports, struct host_rule *r)
{
    int no = ports.n ? ports_parse(str_skip(ports, 1), &r->low, &r->high) : 0;
    return no == -ERANGE ? "has a port range whose end is below its start"
           : no < 0      ? "has a port that is not a number from 1 to 65535"
                         : NULL;
}

int host_rule_parse(struct str text, enum rule_verb verb, struct host_rule *ret, struct err *e)
{
    struct host_rule r = {.verb = (uint8_t)verb, .low = 1, .high = 65535};
    struct str said = text, host, ports;
    bool brackets;

    if (text.n == 0)
        return err_say(e, ERR_POLICY, "'' is not a host; write DOMAIN, *.DOMAIN, an address or a CIDR range");
    if (memmem(text.p, text.n, "://", 3))
        return err_say(e, ERR_POLICY, "'%.*s' is a URL; write the name of its host", STR_SAID(said));
    int no = cut_suffix(&text, &r.any_bytes, e);
    if (no < 0)
        return no;
    const char *wrong = cut_ports(text, &host, &ports, &brackets);
    if (!wrong)
        wrong = read_ports(ports, &r);
    if (!wrong)
        wrong = host.n ? read_host(host, brackets, &r) : label_wrong(host);
    if (wrong)
        return err_say(e, ERR_POLICY, "'%.*s' %s", STR_SAID(said), wrong);
    *ret = r;
    return 0;
}

void host_rule_print(const struct host_rule *r, char text[HOST_RULE_TEXT])
{
    static const char before[][4] = {
        [MATCH_ANY] = "*", [MATCH_NAME] = "", [MATCH_BELOW] = "*.", [MATCH_BELOW_OR_APEX] = "."};
    char addr[46];
    size_t n;
    if (r->match == MATCH_NET) {
        addr_print(&r->net, addr);
        n = (size_t)snprintf(text, HOST_RULE_TEXT, "%s%s", r->net.v6 ? "[" : "", addr);
        if (r->prefix != (r->net.v6 ? 128 : 32))
            n += (size_t)snprintf(text + n, HOST_RULE_TEXT - n, "/%u", r->prefix);
        n += (size_t)snprintf(text + n, HOST_RULE_TEXT - n, "%s", r->net.v6 ? "]" : "");
    } else {
        n = (size_t)snprintf(text, HOST_RULE_TEXT, "%s%s", before[r->match], r->name);
    }
    if (r->low == r->high)
        n += (size_t)snprintf(text + n, HOST_RULE_TEXT - n, ":%u", r->low);
    else if (r->low != 1 || r->high != 65535 || r->any_bytes)
        n += (size_t)snprintf(text + n, HOST_RULE_TEXT - n, ":%u-%u", r->low, r->high);
    if (r->any_bytes)
        snprintf(text + n, HOST_RULE_TEXT - n, "/tcp");
}

static bool net_contains(const struct host_rule *r, const struct host_addr *a)
{
    return addr_within(a, &r->net, r->prefix);
}

/* A rule that denies an IPv4 address denies every way to it; one that allows it is about this address alone. */
static bool net_matches(const struct host_rule *r, const struct host_addr *a)
{
    struct host_addr inner;
    return net_contains(r, a) || (r->verb == RULE_DENY && addr_embedded(a, &inner) && net_contains(r, &inner));
}

static bool is_subdomain(struct str name, struct str above)
{
    return name.n > above.n + 1 && str_ends(name, above) && name.p[name.n - above.n - 1] == '.';
}

static bool matches_host(const struct host_rule *r, const struct host *h)
{
    if (r->match == MATCH_ANY)
        return true;
    if (r->match == MATCH_NET)
        return h->kind == HOST_ADDR && net_matches(r, &h->addr);
    if (h->kind != HOST_NAME)
        return false;
    struct str name = str_of(h->name), rule = str_of(r->name);
    if (r->match != MATCH_BELOW && str_eq(name, rule))
        return true;
    return r->match != MATCH_NAME && is_subdomain(name, rule);
}

bool host_same(const struct host *a, const struct host *b)
{
    if (a->kind != b->kind)
        return false;
    return a->kind == HOST_NAME ? strcmp(a->name, b->name) == 0
                                : a->addr.v6 == b->addr.v6 && memcmp(a->addr.b, b->addr.b, 16) == 0;
}

bool host_rule_matches(const struct host_rule *r, const struct host *h, uint16_t port)
{
    return port >= r->low && port <= r->high && matches_host(r, h);
}

/* Whether the hosts of `a` include those of `b`. Two sets of hosts are nested or disjoint, so this also tells
   whether they overlap. */
static bool holds_hosts(const struct host_rule *a, const struct host_rule *b)
{
    struct str x = str_of(a->name), y = str_of(b->name);
    switch (a->match) {
    case MATCH_ANY:
        return true;
    case MATCH_NET:
        return b->match == MATCH_NET && a->prefix <= b->prefix && net_contains(a, &b->net);
    default:
        break;
    }
    if (b->match == MATCH_ANY || b->match == MATCH_NET)
        return false;
    if (a->match == MATCH_NAME)
        return b->match == MATCH_NAME && str_eq(x, y);
    return is_subdomain(y, x) || (str_eq(x, y) && (a->match == MATCH_BELOW_OR_APEX || b->match == MATCH_BELOW));
}

bool host_rule_covers(const struct host_rule *a, const struct host_rule *b)
{
    return holds_hosts(a, b) && a->low <= b->low && a->high >= b->high;
}

bool host_rule_meets(const struct host_rule *a, const struct host_rule *b)
{
    return (holds_hosts(a, b) || holds_hosts(b, a)) && a->low <= b->high && b->low <= a->high;
}

static bool denies_a_name(const struct host_rule *rules, size_t n, uint16_t port)
{
    for (size_t i = 0; i < n; i++) {
        const struct host_rule *r = &rules[i];
        if (r->verb == RULE_DENY && r->match != MATCH_ANY && r->match != MATCH_NET && port >= r->low && port <= r->high)
            return true;
    }
    return false;
}

enum host_decision host_judge(const struct host_rule *rules, size_t n, const struct host *h, uint16_t port,
                              size_t *ret_rule)
{
    enum host_decision decision = HOST_DENIED_BY_DEFAULT;
    size_t which = SIZE_MAX;
    int names_only = -1; /* not determined yet */
    for (size_t i = 0; i < n; i++) {
        if (!host_rule_matches(&rules[i], h, port))
            continue;
        if (rules[i].verb == RULE_ALLOW && rules[i].match == MATCH_ANY && h->kind == HOST_ADDR) {
            if (names_only < 0)
                names_only = denies_a_name(rules, n, port);
            if (names_only)
                continue;
        }
        if (rules[i].verb == RULE_DENY) {
            decision = HOST_DENIED;
            which = i;
            break;
        }
        if (decision == HOST_DENIED_BY_DEFAULT) {
            decision = HOST_ALLOWED;
            which = i;
        }
    }
    if (ret_rule)
        *ret_rule = which;
    return decision;
}

bool host_any_bytes(const struct host_rule *rules, size_t n, const struct host *h, uint16_t port)
{
    for (size_t i = 0; i < n; i++) {
        if (rules[i].verb == RULE_ALLOW && rules[i].any_bytes && host_rule_matches(&rules[i], h, port))
            return true;
    }
    return false;
}

bool host_may_resolve(const struct host_rule *rules, size_t n, const struct host *h)
{
    bool allowed = false;
    for (size_t i = 0; i < n; i++) {
        if (!matches_host(&rules[i], h))
            continue;
        if (rules[i].verb == RULE_DENY && rules[i].low == 1 && rules[i].high == 65535)
            return false;
        allowed = allowed || rules[i].verb == RULE_ALLOW;
    }
    return allowed;
}
