/*
 * Reads the proxy variables of the caller's environment and chooses the proxy for a host. What curl, Go and Python
 * agree on: lower-case names first; a password in a value stays out of messages.
 */
#include "policy/proxy.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

enum { MAX_CREDENTIAL = 255 }; /* RFC 1929 */

static int proxy_no_memory(struct err *e)
{
    return err_sys(e, ERR_SYSTEM, ENOMEM, "cannot read the proxy variables");
}

/* The value of NAME, lower case first, and its spelling; an empty value counts as unset. */
static const char *proxy_variable(const char *const *environ, const char *upper, const char **ret_name)
{
    for (int small = 1; small >= 0; small--) {
        char name[16];
        size_t n = strlen(upper);
        for (size_t i = 0; i <= n; i++)
            name[i] = (char)(small && upper[i] >= 'A' && upper[i] <= 'Z' ? upper[i] + 32 : upper[i]);
        for (const char *const *e = environ; e && *e; e++) {
            if (strncmp(*e, name, n) == 0 && (*e)[n] == '=' && (*e)[n + 1]) {
                static const char small_names[][12] = {"https_proxy", "http_proxy", "all_proxy", "no_proxy"};
                *ret_name = upper;
                for (size_t k = 0; small && k < 4; k++)
                    *ret_name = same(name, small_names[k]) ? small_names[k] : *ret_name;
                return *e + n + 1;
            }
        }
    }
    return NULL;
}

/* Percent-decodes (RFC 3986 2.1) into the arena; false if it cannot be sent as a user name or password. */
static bool decode_percent(struct str s, struct arena *mem, struct str *ret)
{
    char *out = arena_zero(mem, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; out && i < s.n; i++) {
        int high = s.p[i] == '%' && i + 2 < s.n ? hex_digit(s.p[i + 1]) : -1,
            low = high >= 0 ? hex_digit(s.p[i + 2]) : -1;
        unsigned char c = (unsigned char)(low >= 0 ? high << 4 | low : s.p[i]);
        if (c < 0x20 || c == 0x7f)
            return false;
        out[n++] = (char)c;
        i += low >= 0 ? 2 : 0;
    }
    *ret = (struct str){out, n};
    return out && n <= MAX_CREDENTIAL;
}

static const char *put_base64(struct str s, struct arena *mem)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = arena_zero(mem, (s.n + 2) / 3 * 4 + 1), *at = out;
    for (size_t i = 0; out && i < s.n; i += 3) {
        size_t n = s.n - i < 3 ? s.n - i : 3;
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (k < n ? (unsigned char)s.p[i + k] : 0u);
        for (size_t k = 0; k < 4; k++)
            *at++ = k <= n ? digits[v >> (18 - 6 * k) & 63] : '=';
    }
    return out;
}

/* Cuts [user[:password]@] off `s`. */
static int read_credentials(struct str *s, struct arena *mem, struct proxy *p, struct err *e)
{
    size_t at = s->n;
    while (at && s->p[at - 1] != '@')
        at--;
    if (!at)
        return 0;
    struct str said = {s->p, at - 1};
    const char *colon = said.n ? memchr(said.p, ':', said.n) : NULL;
    struct str user = {said.p, colon ? (size_t)(colon - said.p) : said.n};
    struct str password = colon ? str_skip(said, user.n + 1) : STR("");
    if (!decode_percent(user, mem, &p->user) || !decode_percent(password, mem, &p->password))
        return arena_failed(mem)
                   ? proxy_no_memory(e)
                   : err_say(e, ERR_POLICY,
                             "%s: its user or password is longer than %d bytes or contains control characters",
                             p->variable, MAX_CREDENTIAL);
    *s = str_skip(*s, at);
    const char *pair = arena_printf(mem, "%.*s:%.*s", (int)p->user.n, p->user.p, (int)p->password.n, p->password.p);
    p->basic = pair ? put_base64(str_of(pair), mem) : NULL;
    return p->basic ? 0 : proxy_no_memory(e);
}

static int read_proxy(const char *name, const char *value, struct arena *mem, struct proxy *ret, struct err *e)
{
    static const struct {
        const char *scheme;
        enum proxy_kind kind;
        uint16_t port;
    } schemes[] = {{"http", PROXY_HTTP, 80}, {"socks5h", PROXY_SOCKS, 1080}, {"socks5", PROXY_SOCKS, 1080}};
    struct proxy p = {.variable = name, .kind = PROXY_HTTP, .port = 80};
    struct str s = str_of(value);
    const char *colon = strstr(value, "://");
    size_t known = colon ? 3 : 0;

    for (size_t i = 0; colon && i < 3; i++) {
        size_t n = (size_t)(colon - value);
        if (n == strlen(schemes[i].scheme) && strncasecmp(value, schemes[i].scheme, n) == 0) {
            known = i;
            p.kind = schemes[i].kind;
            p.port = schemes[i].port;
        }
    }
    if (colon && known == 3)
        return err_say(e, ERR_CANNOT,
                       "%s: unsupported proxy type; use an http:// or socks5h:// proxy, or unset the variable", name);
    if (colon)
        s = str_skip(s, (size_t)(colon - value) + 3);
    size_t n = 0;
    while (n < s.n && s.p[n] != '/' && s.p[n] != '?' && s.p[n] != '#')
        n++;
    s.n = n;
    int r = read_credentials(&s, mem, &p, e);
    if (r < 0)
        return r;
    if (s.n && s.p[s.n - 1] == ':')
        s.n--;
    if (s.n == 0 || host_port_parse(s, p.port, &p.host, &p.port) < 0)
        return err_say(e, ERR_POLICY, "%s: missing host and port of the proxy, as in http://proxy.example:3128", name);
    *ret = p;
    return 0;
}

static void mask(struct host_addr *a, unsigned prefix)
{
    for (unsigned bit = prefix; bit < (a->v6 ? 128u : 32u); bit++)
        a->b[bit / 8] &= (uint8_t) ~(0x80u >> bit % 8);
}

static int read_net(struct str s, struct host_rule *r)
{
    const char *slash = s.n ? memchr(s.p, '/', s.n) : NULL;
    struct str addr = {s.p, slash ? (size_t)(slash - s.p) : s.n}, bits = slash ? str_skip(s, addr.n + 1) : STR("");
    if (addr_parse(addr, &r->net) < 0)
        return -EINVAL;
    unsigned most = r->net.v6 ? 128 : 32, v = slash ? 0 : most;
    for (size_t i = 0; i < bits.n; i++)
        v = bits.p[i] >= '0' && bits.p[i] <= '9' && v <= most ? v * 10 + (unsigned)(bits.p[i] - '0') : 999;
    if (v > most || (slash && bits.n == 0))
        return -EINVAL;
    mask(&r->net, v);
    r->match = MATCH_NET;
    r->prefix = (uint8_t)v;
    return 0;
}

/* Parses one entry of NO_PROXY. */
static int read_direct(struct str s, struct host_rule *ret)
{
    struct host_rule r = {.verb = RULE_ALLOW, .low = 1, .high = 65535};
    struct host h;
    uint16_t port = 0;
    struct str host = s;
    bool brackets = s.p[0] == '[';
    const char *close = brackets ? memchr(s.p, ']', s.n) : NULL;
    const char *colon = close ? (close[1] == ':' && close + 1 < s.p + s.n ? close + 1 : NULL) : memchr(s.p, ':', s.n);

    if (brackets && !close)
        return -EINVAL;
    if (!brackets && colon && memchr(colon + 1, ':', s.n - (size_t)(colon + 1 - s.p)))
        colon = NULL; /* a bare IPv6 address */
    if (colon) {
        if (port_parse(str_skip(s, (size_t)(colon + 1 - s.p)), &port) < 0)
            return -EINVAL;
        host.n = (size_t)(colon - s.p);
    }
    if (brackets)
        host = (struct str){s.p + 1, (size_t)(close - s.p) - 1};
    if (port)
        r.low = r.high = port;
    if (str_is(host, "*")) {
        r.match = MATCH_ANY;
    } else if (read_net(host, &r) < 0) {
        if (str_starts(host, STR("*.")))
            host = str_skip(host, 2);
        else if (str_starts(host, STR(".")))
            host = str_skip(host, 1);
        if (brackets || host_parse(host, &h) < 0 || h.kind != HOST_NAME)
            return -EINVAL;
        r.match = MATCH_BELOW_OR_APEX;
        memcpy(r.name, h.name, sizeof r.name);
    }
    *ret = r;
    return 0;
}

static int read_no_proxy(const char *value, struct arena *mem, struct proxies *all, struct err *e)
{
    static const char separators[] = ", \t";
    const char **texts = NULL, **skipped = NULL;
    size_t n_texts = 0, n_skipped = 0;

    while (value && *(value += strspn(value, separators))) {
        struct str s = {value, strcspn(value, separators)};
        struct host_rule r;
        bool good = read_direct(s, &r) == 0;
        const char **text = good ? arena_push(mem, &texts, &n_texts, sizeof *text)
                                 : arena_push(mem, &skipped, &n_skipped, sizeof *text);
        struct host_rule *slot = good ? arena_push(mem, &all->direct, &all->n_direct, sizeof *slot) : NULL;
        if (!text || (good && !slot))
            return proxy_no_memory(e);
        *text = arena_str(mem, s);
        if (good)
            *slot = r;
        value += s.n;
    }
    if (n_skipped && !arena_push(mem, &skipped, &n_skipped, sizeof *skipped))
        return proxy_no_memory(e);
    all->direct_text = texts;
    all->skipped = skipped;
    return arena_failed(mem) ? proxy_no_memory(e) : 0;
}

int proxies_read(const char *const *environ, struct arena *mem, const struct proxies **ret, struct err *e)
{
    const char *name, *value = proxy_variable(environ, "ALL_PROXY", &name);
    struct proxies *all = arena_zero(mem, sizeof *all);
    int r = all ? 0 : proxy_no_memory(e);

    *ret = NULL;
    if (r == 0 && value)
        r = read_proxy(name, value, mem, &all->other, e);
    if (r == 0)
        all->plain = all->other;
    if (r == 0 && (value = proxy_variable(environ, "HTTPS_PROXY", &name)))
        r = read_proxy(name, value, mem, &all->other, e);
    if (r == 0 && (value = proxy_variable(environ, "HTTP_PROXY", &name)))
        r = read_proxy(name, value, mem, &all->plain, e);
    if (r < 0 || (!all->plain.variable && !all->other.variable))
        return r;
    r = read_no_proxy(proxy_variable(environ, "NO_PROXY", &name), mem, all, e);
    for (size_t i = 0; r == 0 && i < all->n_direct; i++) {
        if (all->direct[i].match == MATCH_ANY && all->direct[i].low == 1)
            return 0; /* no proxy is set */
    }
    if (r == 0)
        *ret = all;
    return r;
}

const struct proxy *proxy_for(const struct proxies *all, const struct host *h, uint16_t port, bool plain)
{
    const struct proxy *p = !all ? NULL : plain ? &all->plain : &all->other;
    if (!p || !p->variable)
        return NULL;
    for (size_t i = 0; i < all->n_direct; i++) {
        if (host_rule_matches(&all->direct[i], h, port))
            return NULL;
    }
    return p;
}

bool name_is_local(const char *name)
{
    /* RFC 6761, RFC 6762, RFC 8375, and .internal, which ICANN reserved for private use (clouds have metadata names
       there). */
    static const char ends[][12] = {".localhost", ".local", ".internal", ".home.arpa"};
    struct str s = str_of(name);
    if (!strchr(name, '.'))
        return true;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (str_ends(s, str_of(ends[i])))
            return true;
    }
    return false;
}

const char *proxy_print(const struct proxy *p, char text[PROXY_TEXT])
{
    char addr[46];
    bool name = p->host.kind == HOST_NAME, v6 = !name && p->host.addr.v6;
    if (!name)
        addr_print(&p->host.addr, addr);
    snprintf(text, PROXY_TEXT, "%s://%s%s%s:%u", p->kind == PROXY_SOCKS ? "socks5h" : "http", v6 ? "[" : "",
             name ? p->host.name : addr, v6 ? "]" : "", p->port);
    return text;
}
