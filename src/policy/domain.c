#include "policy/domain.h"
#include "policy/host.h"
#include "policy/set.h"

#include <errno.h>
#include <stdio.h>

enum { NAME_MAX_BYTES = 253, LABEL_MAX = 63, HOSTNAME_MAX = 64, SHOWN = 120 };

/* "%.*s" of at most so much of what was said that the sentence around it survives. */
#define SAID(s) (int)((s).n < SHOWN ? (s).n : SHOWN), (s).p

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

int parse_port(struct str s, uint16_t *ret)
{
    unsigned v = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (!is_digit(s.p[i]) || (v = v * 10 + (unsigned)(s.p[i] - '0')) > 65535)
            return -EINVAL;
    }
    if (v == 0 || s.p[0] == '0')
        return -EINVAL;
    *ret = (uint16_t)v;
    return 0;
}

int parse_ipv4(struct str s, uint8_t ret[4])
{
    uint8_t a[4];
    for (int i = 0; i < 4; i++) {
        unsigned v = 0;
        size_t n = 0;
        while (n < s.n && n < 3 && is_digit(s.p[n]))
            v = v * 10 + (unsigned)(s.p[n++] - '0');
        if (n == 0 || v > 255 || (n > 1 && s.p[0] == '0'))
            return -EINVAL;
        a[i] = (uint8_t)v;
        s = str_skip(s, n);
        if (i < 3) {
            if (!s.n || s.p[0] != '.')
                return -EINVAL;
            s = str_skip(s, 1);
        }
    }
    if (s.n)
        return -EINVAL;
    memcpy(ret, a, sizeof a);
    return 0;
}

static int hex_digit(char c)
{
    c = lower(c);
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int parse_ipv6(struct str s, uint8_t ret[16])
{
    uint8_t a[16] = {0};
    size_t at = 0, gap = 17; /* bytes before "::"; 17: none seen */

    if (str_starts(s, STR("::"))) {
        gap = 0;
        s = str_skip(s, 2);
    }
    while (s.n) {
        unsigned v = 0;
        size_t n = 0;
        if (at <= 12 && memchr(s.p, '.', s.n) && !memchr(s.p, ':', s.n)) { /* the last 32 bits as IPv4 */
            if (parse_ipv4(s, a + at) < 0)
                return -EINVAL;
            at += 4;
            s = str_skip(s, s.n);
            break;
        }
        while (n < s.n && n < 5 && hex_digit(s.p[n]) >= 0)
            v = v << 4 | (unsigned)hex_digit(s.p[n++]);
        if (n == 0 || n > 4 || at >= 16)
            return -EINVAL;
        a[at++] = (uint8_t)(v >> 8);
        a[at++] = (uint8_t)v;
        s = str_skip(s, n);
        if (!s.n)
            break;
        if (s.p[0] != ':' || s.n == 1)
            return -EINVAL;
        s = str_skip(s, 1);
        if (s.p[0] == ':') {
            if (gap <= 16)
                return -EINVAL;
            gap = at;
            s = str_skip(s, 1);
        }
    }
    if (gap <= 16) {
        if (at > 14)
            return -EINVAL; /* "::" stands for at least one group (RFC 5952 4.2.2) */
        memmove(a + 16 - (at - gap), a + gap, at - gap);
        memset(a + gap, 0, 16 - at);
    } else if (at != 16) {
        return -EINVAL;
    }
    memcpy(ret, a, sizeof a);
    return 0;
}

/* Whether a range has bits set behind its prefix. */
static bool host_bits(const uint8_t *a, unsigned bytes, unsigned prefix)
{
    for (unsigned bit = prefix; bit < bytes * 8; bit++) {
        if (a[bit / 8] & 0x80u >> bit % 8)
            return true;
    }
    return false;
}

static int parse_prefix(struct str s, unsigned most, unsigned *ret)
{
    unsigned v = 0;
    if (!s.n || s.n > 3 || (s.n > 1 && s.p[0] == '0'))
        return -EINVAL;
    for (size_t i = 0; i < s.n; i++) {
        if (!is_digit(s.p[i]))
            return -EINVAL;
        v = v * 10 + (unsigned)(s.p[i] - '0');
    }
    if (v > most)
        return -EINVAL;
    *ret = v;
    return 0;
}

/* RFC 5952 text would need the longest run of zeroes; any one spelling serves: lower case, as said. */
static const char *lowered(struct arena *mem, const char *before, struct str s, const char *after)
{
    char *p = arena_printf(mem, "%s%.*s%s", before, (int)s.n, s.p, after);
    for (char *c = p; c && *c; c++)
        *c = lower(*c);
    return p;
}

static int check_labels(struct str name, struct str said, struct err *e)
{
    bool numeric = false;

    if (name.n > NAME_MAX_BYTES)
        return err_say(e, ERR_POLICY, "'%.*s' is longer than the %d bytes of a name", SAID(said), NAME_MAX_BYTES);
    for (struct str rest = name; rest.n || name.n == 0;) {
        const char *dot = memchr(rest.p, '.', rest.n);
        struct str label = {rest.p, dot ? (size_t)(dot - rest.p) : rest.n};
        if (label.n == 0)
            return err_say(e, ERR_POLICY, "'%.*s' is not a domain: a part of it is empty", SAID(said));
        if (label.n > LABEL_MAX)
            return err_say(e, ERR_POLICY, "'%.*s' is not a domain: a part of it is longer than %d bytes", SAID(said),
                           LABEL_MAX);
        if (label.p[0] == '-' || label.p[label.n - 1] == '-')
            return err_say(e, ERR_POLICY, "'%.*s' is not a domain: a part of it begins or ends with '-'", SAID(said));
        numeric = true;
        for (size_t i = 0; i < label.n; i++) {
            char c = lower(label.p[i]);
            if (c == '*')
                return err_say(e, ERR_POLICY, "'%.*s': '*' stands alone, or as '*.' in front of a name", SAID(said));
            if ((unsigned char)c >= 0x80)
                return err_say(e, ERR_POLICY, "'%.*s' is not ASCII; write the name in its xn-- form", SAID(said));
            if (!is_digit(c) && !(c >= 'a' && c <= 'z') && c != '-' && c != '_')
                return err_say(e, ERR_POLICY,
                               "'%.*s' is not DOMAIN[:PORT], *.DOMAIN, an address or a CIDR range such as 10.0.0.0/8",
                               SAID(said));
            numeric = numeric && is_digit(c);
        }
        if (label.n > 2 && label.p[0] == '0' && lower(label.p[1]) == 'x')
            numeric = true; /* "0x7f000001" is an address to libc */
        if (!dot)
            break;
        rest = str_skip(rest, label.n + 1);
        if (!rest.n)
            return err_say(e, ERR_POLICY, "'%.*s' is not a domain: a part of it is empty", SAID(said));
    }
    if (numeric)
        return err_say(e, ERR_POLICY, "'%.*s' ends in a number and is no complete address", SAID(said));
    return 0;
}

/* Cuts ":PORT" off a host; with `port_text` empty when there is none. Brackets of IPv6 are taken off, too. */
static int split_port(struct str s, struct str *ret_host, struct str *ret_port, bool *ret_v6, struct err *e)
{
    struct str host = s, port = {"", 0};
    bool v6 = false;

    if (s.n && s.p[0] == '[') {
        const char *close = memchr(s.p, ']', s.n);
        if (!close)
            return err_say(e, ERR_POLICY, "'%.*s' has no ']' after the address", SAID(s));
        host = (struct str){s.p + 1, (size_t)(close - s.p - 1)};
        struct str rest = str_skip(s, host.n + 2);
        if (rest.n && rest.p[0] != ':')
            return err_say(e, ERR_POLICY, "'%.*s' has something other than :PORT after ']'", SAID(s));
        port = rest;
        v6 = true;
    } else {
        const char *colon = memchr(s.p, ':', s.n);
        if (colon && !memchr(colon + 1, ':', s.n - (size_t)(colon + 1 - s.p))) {
            host.n = (size_t)(colon - s.p);
            port = str_skip(s, host.n);
        } else if (colon) {
            v6 = true;
        }
    }
    if (port.n) {
        uint16_t ignored;
        port = str_skip(port, 1);
        const char *dash = memchr(port.p, '-', port.n);
        struct str low = {port.p, dash ? (size_t)(dash - port.p) : port.n};
        if (dash && parse_port(low, &ignored) == 0 && parse_port(str_skip(port, low.n + 1), &ignored) == 0)
            return err_say(e, ERR_POLICY, "'%.*s': the range of ports ends before it begins", SAID(s));
        if (parse_port(port, &ignored) < 0)
            return err_say(e, ERR_POLICY, "'%.*s': a port is a number from 1 to 65535", SAID(s));
    }
    *ret_host = host;
    *ret_port = port;
    *ret_v6 = v6;
    return 0;
}

/* An address, with a prefix length where `slash` is given. */
static int check_address(struct str host, struct str prefix, bool range, bool v6, struct str said, struct err *e)
{
    uint8_t a[16];
    unsigned bits;

    if ((v6 ? parse_ipv6(host, a) : parse_ipv4(host, a)) < 0)
        return err_say(e, ERR_POLICY, "'%.*s' is not an address", SAID(said));
    if (!range)
        return 0;
    if (parse_prefix(prefix, v6 ? 128 : 32, &bits) < 0)
        return err_say(e, ERR_POLICY, "'%.*s': the prefix length is a number from 0 to %d", SAID(said), v6 ? 128 : 32);
    if (host_bits(a, v6 ? 16 : 4, bits))
        return err_say(e, ERR_POLICY, "'%.*s' has bits set behind its /%u; write the range's first address", SAID(said),
                       bits);
    return 0;
}

static int no_memory(struct err *e)
{
    return err_sys(e, ERR_SYSTEM, ENOMEM, "read a network rule");
}

bool domain_is_loopback(struct str s)
{
    struct host_rule rule;
    char bracketed[80];
    const char *colon = memchr(s.p, ':', s.n);
    bool bare6 = colon && s.p[0] != '[' && s.n < 64 && memchr(colon + 1, ':', s.n - (size_t)(colon + 1 - s.p));
    snprintf(bracketed, sizeof bracketed, "[%.*s]", bare6 ? (int)s.n : 0, s.p);
    if (!s.n || s.p[0] == '@' || host_rule_parse(bare6 ? str_of(bracketed) : s, RULE_ALLOW, &rule, NULL) < 0)
        return false;
    if (rule.match == MATCH_NET)
        return addr_classify(&rule.net) == ADDR_LOOPBACK && rule.prefix >= 8;
    return rule.match != MATCH_ANY &&
           (strcmp(rule.name, "localhost") == 0 || str_ends(str_of(rule.name), STR(".localhost"))); /* RFC 6761 6.3 */
}

int domain_rule_form(struct str s, struct arena *mem, const char **ret, struct err *e)
{
    struct str host, port;
    bool v6;
    const char *slash = memchr(s.p, '/', s.n), *text;
    struct host_rule rule;
    char canonical[HOST_RULE_TEXT];
    int r;

    if (s.n && s.p[0] == '@') { /* a set keeps its name: it is opened where hosts are judged */
        text = host_set_of(s) ? arena_str(mem, s) : NULL;
        if (!host_set_of(s))
            return host_set_unknown(s, e);
        if (!text)
            return no_memory(e);
        *ret = text;
        return 0;
    }
    /* A bare IPv6 address gets its brackets. */
    const char *colon = memchr(s.p, ':', s.n);
    bool bare6 = colon && s.p[0] != '[' && s.n < 64 && memchr(colon + 1, ':', s.n - (size_t)(colon + 1 - s.p));
    snprintf(canonical, sizeof canonical, "[%.*s]", bare6 ? (int)s.n : 0, s.p);
    if (host_rule_parse(bare6 ? str_of(canonical) : s, RULE_ALLOW, &rule, NULL) == 0) {
        host_rule_print(&rule, canonical);
        text = arena_text(mem, canonical);
        if (!text)
            return no_memory(e);
        *ret = text;
        return 0;
    }
    /* What follows finds the words for what is wrong. */
    bool any_bytes;
    if (slash && slash > s.p && slash[-1] == ':' && s.n > (size_t)(slash + 1 - s.p) && slash[1] == '/')
        return err_say(e, ERR_POLICY, "'%.*s' is a URL; write the name of its host", SAID(s));
    if (host_rule_suffix(&s, &any_bytes, e) < 0)
        return -EINVAL;
    slash = memchr(s.p, '/', s.n);
    if (slash) {
        host = (struct str){s.p, (size_t)(slash - s.p)};
        r = check_address(host, str_skip(s, host.n + 1), true, memchr(host.p, ':', host.n) != NULL, s, e);
        if (r < 0)
            return r;
        text = lowered(mem, bare6 ? "[" : "", s, bare6 ? "]" : "");
        if (!text)
            return no_memory(e);
        *ret = text;
        return 0;
    }
    r = split_port(s, &host, &port, &v6, e);
    if (r < 0)
        return r;
    uint8_t a[16];
    bool wild = str_starts(host, STR("*."));
    struct str name = wild ? str_skip(host, 2) : host;
    if (v6 || parse_ipv4(host, a) == 0) {
        r = v6 ? check_address(host, STR(""), false, true, s, e) : 0;
    } else {
        if (name.n > 1 && name.p[name.n - 1] == '.') {
            name.n--;
            host.n--;
        }
        r = str_is(host, "*") ? 0 : check_labels(name, s, e);
    }
    if (r < 0)
        return r;
    const char *tail = port.n ? arena_printf(mem, "%s:%.*s", v6 ? "]" : "", (int)port.n, port.p) : "";
    text = tail ? lowered(mem, v6 ? "[" : "", host, v6 && !port.n ? "]" : tail) : NULL;
    if (!text)
        return no_memory(e);
    *ret = text;
    return 0;
}

int port_rule_form(struct str s, struct arena *mem, const char **ret, struct err *e)
{
    uint16_t from, to;
    const char *dash = memchr(s.p, '-', s.n);
    struct str first = {s.p, dash ? (size_t)(dash - s.p) : s.n};
    struct str last = dash ? str_skip(s, first.n + 1) : first;

    if (parse_port(first, &from) < 0 || parse_port(last, &to) < 0)
        return err_say(e, ERR_POLICY, "'%.*s' is not a port from 1 to 65535, nor a range such as 6000-6063", SAID(s));
    if (from > to)
        return err_say(e, ERR_POLICY, "'%.*s': the range ends before it begins", SAID(s));
    const char *text = arena_str(mem, from == to ? first : s);
    if (!text)
        return no_memory(e);
    *ret = text;
    return 0;
}

/* Cuts the address off, where one is said: "1.2.3.4:", "[::1]:". False for what is none of both. */
static bool publish_address(struct str *s, struct publish *p, struct str *ret_text)
{
    const char *end = s->n ? memchr(s->p, s->p[0] == '[' ? ']' : ':', s->n) : NULL;
    struct str first = {s->p, end ? (size_t)(end - s->p) : s->n};

    if (s->n && s->p[0] == '[') {
        struct str rest = str_skip(*s, first.n + 2);
        if (!end || parse_ipv6(str_skip(first, 1), p->addr) < 0 || !rest.n || rest.p[-1] != ':')
            return false;
        *ret_text = (struct str){s->p, first.n + 1};
        p->v6 = true;
        *s = rest;
    } else if (parse_ipv4(first, p->addr) == 0) {
        *ret_text = first;
        *s = str_skip(*s, first.n + 1);
    }
    return true;
}

static int publish_read(struct str s, struct publish *ret, struct str *ret_address, struct err *e)
{
    struct publish p = {.addr = {127, 0, 0, 1}};
    struct str rest = s, address = {"", 0};

    bool ok = publish_address(&rest, &p, &address);
    const char *colon = ok && rest.n ? memchr(rest.p, ':', rest.n) : NULL;
    struct str first = {rest.p, colon ? (size_t)(colon - rest.p) : rest.n};
    struct str second = colon ? str_skip(rest, first.n + 1) : first;
    if (!ok || !first.n || !second.n || parse_port(first, &p.host) < 0 || parse_port(second, &p.box) < 0)
        return err_say(
            e, ERR_POLICY,
            "'%.*s' is not [ADDR:][HOST:]BOX with ports from 1 to 65535, as 3000, 8080:3000 or [::1]:8080:3000",
            SAID(s));
    *ret = p;
    *ret_address = address;
    return 0;
}

int publish_parse(struct str s, struct publish *ret, struct err *e)
{
    struct str address;
    return publish_read(s, ret, &address, e);
}

int publish_form(struct str s, struct arena *mem, const char **ret, struct err *e)
{
    struct publish p;
    struct str address;
    int r = publish_read(s, &p, &address, e);
    if (r < 0)
        return r;
    const char *text = arena_printf(mem, "%.*s%s%u:%u", (int)address.n, address.p, address.n ? ":" : "", p.host, p.box);
    if (!text)
        return no_memory(e);
    *ret = text;
    return 0;
}

int reach_form(struct str s, struct arena *mem, const char **ret, struct err *e)
{
    struct str host, port;
    bool v6;
    int r = split_port(s, &host, &port, &v6, e);
    if (r < 0)
        return r;
    if (!port.n || memchr(s.p, '*', s.n) || memchr(s.p, '/', s.n))
        return err_say(e, ERR_POLICY, "'%.*s' is not HOST:PORT, one service, as 127.0.0.1:5432", SAID(s));
    return domain_rule_form(s, mem, ret, e);
}

int hostname_form(struct str s, struct arena *mem, const char **ret, struct err *e)
{
    int r = s.n > HOSTNAME_MAX
                ? err_say(e, ERR_POLICY, "'%.*s' is longer than the %d bytes of a host name", SAID(s), HOSTNAME_MAX)
                : 0;
    for (size_t i = 0; r == 0 && i < s.n; i++) {
        char c = lower(s.p[i]);
        if (!is_digit(c) && !(c >= 'a' && c <= 'z') && c != '-' && c != '.')
            r = err_say(e, ERR_POLICY, "'%.*s' is not a host name: letters, digits, '-' and '.' only", SAID(s));
    }
    if (r == 0 && (!s.n || s.p[0] == '-' || s.p[0] == '.'))
        r = err_say(e, ERR_POLICY, "'%.*s' is not a host name: it begins with a letter or digit", SAID(s));
    if (r < 0)
        return r;
    const char *text = arena_str(mem, s);
    if (!text)
        return no_memory(e);
    *ret = text;
    return 0;
}
