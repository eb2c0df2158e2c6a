#include "policy/host.h"

#include <stdio.h>

/* "%.*s" of at most so much of what was said that the sentence around it survives. */
#define SAID(s) (int)((s).n < 120 ? (s).n : 120), (s).p

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* ---- addresses ---- */

static int quad_parse(struct str s, uint8_t out[4])
{
    for (int i = 0; i < 4; i++) {
        unsigned v = 0, digits = 0;
        while (s.n && is_digit(s.p[0]) && digits < 4) {
            v = v * 10 + (unsigned)(s.p[0] - '0');
            digits++;
            s = str_skip(s, 1);
        }
        if (digits == 0 || digits > 3 || v > 255)
            return -EINVAL;
        out[i] = (uint8_t)v;
        if (i < 3) {
            if (!s.n || s.p[0] != '.')
                return -EINVAL;
            s = str_skip(s, 1);
        }
    }
    return s.n ? -EINVAL : 0;
}

static int hex_digit(char c)
{
    c = lower(c);
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* RFC 4291 section 2.2, all three forms; no zone. */
static int v6_parse(struct str s, uint8_t out[16])
{
    uint16_t group[8] = {0};
    int n = 0, gap = -1;

    if (str_starts(s, STR("::"))) {
        gap = 0;
        s = str_skip(s, 2);
    }
    while (s.n) {
        if (n == 8)
            return -EINVAL;
        const char *dot = memchr(s.p, '.', s.n), *colon = memchr(s.p, ':', s.n);
        if (dot && (!colon || dot < colon)) {
            uint8_t quad[4];
            if (n > 6 || quad_parse(s, quad) < 0)
                return -EINVAL;
            group[n++] = (uint16_t)(quad[0] << 8 | quad[1]);
            group[n++] = (uint16_t)(quad[2] << 8 | quad[3]);
            s.n = 0;
            break;
        }
        unsigned v = 0, digits = 0;
        while (s.n && hex_digit(s.p[0]) >= 0) {
            if (++digits > 4)
                return -EINVAL;
            v = v << 4 | (unsigned)hex_digit(s.p[0]);
            s = str_skip(s, 1);
        }
        if (!digits)
            return -EINVAL;
        group[n++] = (uint16_t)v;
        if (!s.n)
            break;
        if (s.p[0] != ':')
            return -EINVAL;
        s = str_skip(s, 1);
        if (s.n && s.p[0] == ':') {
            if (gap >= 0)
                return -EINVAL;
            gap = n;
            s = str_skip(s, 1);
        } else if (!s.n) {
            return -EINVAL;
        }
    }
    if (gap < 0 ? n != 8 : n > 7)
        return -EINVAL;
    int at = 0;
    for (int i = 0; i < 8; i++) {
        uint16_t v = 0;
        if (gap < 0 || i < gap)
            v = group[at++];
        else if (i >= 8 - (n - gap))
            v = group[at++];
        out[2 * i] = (uint8_t)(v >> 8);
        out[2 * i + 1] = (uint8_t)v;
    }
    return 0;
}

static void fold_mapped(struct host_addr *a)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (a->v6 && memcmp(a->b, mapped, 12) == 0) {
        memmove(a->b, a->b + 12, 4);
        memset(a->b + 4, 0, 12);
        a->v6 = false;
    }
}

int addr_parse(struct str text, struct host_addr *ret)
{
    struct host_addr a = {0};
    if (quad_parse(text, a.b) == 0) {
        *ret = a;
        return 0;
    }
    if (v6_parse(text, a.b) < 0)
        return -EINVAL;
    a.v6 = true;
    fold_mapped(&a);
    *ret = a;
    return 0;
}

void addr_print(const struct host_addr *a, char text[46])
{
    if (!a->v6) {
        snprintf(text, 46, "%u.%u.%u.%u", a->b[0], a->b[1], a->b[2], a->b[3]);
        return;
    }
    /* RFC 5952: the longest run of two or more zero groups is shortened, the first of equals. */
    uint16_t g[8];
    int best = -1, best_n = 1;
    for (int i = 0; i < 8; i++)
        g[i] = (uint16_t)(a->b[2 * i] << 8 | a->b[2 * i + 1]);
    for (int i = 0; i < 8; i++) {
        int n = 0;
        while (i + n < 8 && g[i + n] == 0)
            n++;
        if (n > best_n) {
            best = i;
            best_n = n;
        }
    }
    size_t at = 0;
    for (int i = 0; i < 8; i++) {
        if (i == best) {
            at += (size_t)snprintf(text + at, 46 - at, "::");
            i += best_n - 1;
            continue;
        }
        at += (size_t)snprintf(text + at, 46 - at, "%s%x", i && at && text[at - 1] != ':' ? ":" : "", g[i]);
    }
}

/* ---- names ---- */

/*
 * What inet_aton(3) would take for an address: one to four parts, each decimal, octal (leading 0) or hexadecimal. A
 * name whose last label is numeric in that sense cannot be a host name (WHATWG URL, "ends in a number"; RFC 3696 2).
 */
static bool ends_in_number(struct str s)
{
    size_t at = s.n;
    while (at && s.p[at - 1] != '.')
        at--;
    struct str last = str_skip(s, at);
    if (last.n == 0)
        return false;
    if (last.n >= 2 && last.p[0] == '0' && lower(last.p[1]) == 'x') {
        for (size_t i = 2; i < last.n; i++) {
            if (hex_digit(last.p[i]) < 0)
                return false;
        }
        return true;
    }
    for (size_t i = 0; i < last.n; i++) {
        if (!is_digit(last.p[i]))
            return false;
    }
    return true;
}

/* inet_aton(3)'s reading; -EINVAL when a part is out of range or malformed. */
static int aton_parse(struct str s, uint8_t out[4])
{
    uint64_t part[4];
    int n = 0;
    while (n < 4) {
        unsigned base = 10;
        uint64_t v = 0;
        size_t digits = 0;
        if (s.n >= 2 && s.p[0] == '0' && lower(s.p[1]) == 'x') {
            base = 16;
            s = str_skip(s, 2);
            digits = s.n && hex_digit(s.p[0]) >= 0 ? 0 : 1; /* "0x" alone is 0 for inet_aton */
        } else if (s.n >= 1 && s.p[0] == '0') {
            base = 8;
        }
        while (s.n && s.p[0] != '.') {
            int d = hex_digit(s.p[0]);
            if (d < 0 || (unsigned)d >= base || v > UINT32_MAX)
                return -EINVAL;
            v = v * base + (unsigned)d;
            digits++;
            s = str_skip(s, 1);
        }
        if (!digits)
            return -EINVAL;
        part[n++] = v;
        if (!s.n)
            break;
        s = str_skip(s, 1);
        if (!s.n)
            return -EINVAL;
    }
    if (s.n)
        return -EINVAL;
    uint64_t whole = 0;
    for (int i = 0; i < n - 1; i++) {
        if (part[i] > 255)
            return -EINVAL;
        whole |= part[i] << (24 - 8 * i);
    }
    if (part[n - 1] >= (uint64_t)1 << (8 * (5 - n)))
        return -EINVAL;
    whole |= part[n - 1];
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(whole >> (24 - 8 * i));
    return 0;
}

/* One code point of valid UTF-8 at the start of `s`; 0 when it is not. */
static uint32_t code_point(struct str s, size_t *ret_n)
{
    const unsigned char *p = (const unsigned char *)s.p;
    size_t n = p[0] < 0x80                   ? 1
               : p[0] >= 0xC2 && p[0] < 0xE0 ? 2
               : p[0] >= 0xE0 && p[0] < 0xF0 ? 3
               : p[0] >= 0xF0 && p[0] < 0xF5 ? 4
                                             : 0;
    if (!n || s.n < n)
        return 0;
    uint32_t c = n == 1 ? p[0] : (uint32_t)(p[0] & (0x7F >> n));
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3F);
    }
    if ((n == 3 && (c < 0x800 || (c >= 0xD800 && c < 0xE000))) || (n == 4 && (c < 0x10000 || c > 0x10FFFF)))
        return 0;
    *ret_n = n;
    return c;
}

/* Punycode (RFC 3492 section 6.3) of one label of at most 63 code points, with its "xn--"; bytes written, or -EINVAL. */
static int to_a_label(struct str label, char *out, size_t room)
{
    uint32_t points[63];
    size_t n = 0, basic = 0, at = 0;

    while (label.n) {
        size_t width = 0;
        uint32_t c = n < 63 ? code_point(label, &width) : 0;
        if (!c)
            return -EINVAL;
        points[n++] = c;
        label = str_skip(label, width);
    }
    if (room < 5)
        return -EINVAL;
    memcpy(out, "xn--", 4);
    at = 4;
    for (size_t i = 0; i < n; i++) {
        if (points[i] < 0x80) {
            if (at + 1 >= room)
                return -EINVAL;
            out[at++] = lower((char)points[i]);
            basic++;
        }
    }
    if (basic) {
        if (at + 1 >= room)
            return -EINVAL;
        out[at++] = '-';
    }
    uint32_t next = 0x80, delta = 0, bias = 72;
    for (size_t handled = basic; handled < n; delta++, next++) {
        uint32_t smallest = UINT32_MAX;
        for (size_t i = 0; i < n; i++) {
            if (points[i] >= next && points[i] < smallest)
                smallest = points[i];
        }
        delta += (smallest - next) * (uint32_t)(handled + 1);
        next = smallest;
        for (size_t i = 0; i < n; i++) {
            if (points[i] < next)
                delta++;
            if (points[i] != next)
                continue;
            uint32_t q = delta;
            for (uint32_t k = 36;; k += 36) {
                uint32_t t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
                if (at + 1 >= room)
                    return -EINVAL;
                uint32_t digit = q < t ? q : t + (q - t) % (36 - t);
                out[at++] = (char)(digit < 26 ? 'a' + digit : '0' + digit - 26);
                if (q < t)
                    break;
                q = (q - t) / (36 - t);
            }
            uint32_t d = handled == basic ? delta / 700 : delta / 2;
            d += d / (uint32_t)(handled + 1);
            uint32_t k = 0;
            for (; d > 455; k += 36)
                d /= 35;
            bias = k + 36 * d / (d + 38);
            delta = 0;
            handled++;
        }
    }
    return (int)at;
}

/* The canonical name; IDN in Unicode only where `unicode` (policies: clients send A-labels). */
static int name_parse(struct str s, bool unicode, char out[HOST_NAME_MAX_TEXT + 1])
{
    char text[HOST_NAME_MAX_TEXT + 1];
    size_t at = 0;

    if (s.n && s.p[s.n - 1] == '.')
        s.n--;
    if (s.n == 0)
        return -EINVAL;
    while (true) {
        const char *dot = memchr(s.p, '.', s.n);
        struct str label = {s.p, dot ? (size_t)(dot - s.p) : s.n};
        bool ascii = true;
        if (label.n == 0)
            return -EINVAL;
        for (size_t i = 0; i < label.n; i++) {
            char c = lower(label.p[i]);
            if ((unsigned char)c >= 0x80)
                ascii = false;
            else if (!is_digit(c) && !(c >= 'a' && c <= 'z') && c != '-' && c != '_')
                return -EINVAL;
        }
        size_t start = at;
        if (ascii) {
            if (at + label.n >= sizeof text)
                return -EINVAL;
            for (size_t i = 0; i < label.n; i++)
                text[at++] = lower(label.p[i]);
        } else {
            int n = unicode ? to_a_label(label, text + at, sizeof text - at) : -EINVAL;
            if (n < 0)
                return n;
            at += (size_t)n;
        }
        if (at - start > 63 || text[start] == '-' || text[at - 1] == '-')
            return -EINVAL;
        if (!dot)
            break;
        if (at + 1 >= sizeof text)
            return -EINVAL;
        text[at++] = '.';
        s = str_skip(s, label.n + 1);
        if (s.n == 0)
            return -EINVAL;
    }
    text[at] = 0;
    memcpy(out, text, at + 1);
    return 0;
}

int host_parse(struct str text, struct host *ret)
{
    struct host h = {0};
    bool brackets = text.n >= 2 && text.p[0] == '[' && text.p[text.n - 1] == ']';
    struct str inner = brackets ? (struct str){text.p + 1, text.n - 2} : text;

    if (brackets || memchr(inner.p, ':', inner.n)) {
        struct host_addr a = {.v6 = true};
        if (v6_parse(inner, a.b) < 0)
            return -EINVAL;
        fold_mapped(&a);
        h.kind = HOST_ADDR;
        h.addr = a;
        *ret = h;
        return 0;
    }
    struct str bare = inner;
    if (bare.n && bare.p[bare.n - 1] == '.')
        bare.n--;
    if (ends_in_number(bare)) {
        if (aton_parse(bare, h.addr.b) < 0)
            return -EINVAL;
        h.kind = HOST_ADDR;
        *ret = h;
        return 0;
    }
    if (name_parse(inner, false, h.name) < 0)
        return -EINVAL;
    h.kind = HOST_NAME;
    *ret = h;
    return 0;
}

static int port_parse(struct str s, uint16_t *ret)
{
    unsigned v = 0;
    if (s.n == 0 || s.n > 5 || s.p[0] == '0')
        return -EINVAL;
    for (size_t i = 0; i < s.n; i++) {
        if (!is_digit(s.p[i]))
            return -EINVAL;
        v = v * 10 + (unsigned)(s.p[i] - '0');
    }
    if (v == 0 || v > 65535)
        return -ERANGE;
    *ret = (uint16_t)v;
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

static int ports_parse(struct str s, struct host_rule *r, struct err *e)
{
    const char *dash = memchr(s.p, '-', s.n);
    struct str low = {s.p, dash ? (size_t)(dash - s.p) : s.n}, high = dash ? str_skip(s, low.n + 1) : low;
    if (port_parse(low, &r->low) < 0 || port_parse(high, &r->high) < 0)
        return err_say(e, ERR_POLICY, "'%.*s' is not a port between 1 and 65535, nor a range LOW-HIGH", (int)s.n, s.p);
    if (r->low > r->high)
        return err_say(e, ERR_POLICY, "the port range '%.*s' ends before it begins", (int)s.n, s.p);
    return 0;
}

static int net_parse(struct str s, struct host_rule *r, struct err *e)
{
    const char *slash = memchr(s.p, '/', s.n);
    struct str addr = {s.p, slash ? (size_t)(slash - s.p) : s.n};
    if (addr_parse(addr, &r->net) < 0)
        return err_say(e, ERR_POLICY, "'%.*s' is not an address", (int)addr.n, addr.p);
    unsigned bits = r->net.v6 ? 128 : 32, prefix = bits;
    if (slash) {
        struct str text = str_skip(s, addr.n + 1);
        prefix = 0;
        for (size_t i = 0; i < text.n && prefix <= 128; i++)
            prefix = is_digit(text.p[i]) ? prefix * 10 + (unsigned)(text.p[i] - '0') : 999;
        if (text.n == 0 || prefix > bits || (text.n > 1 && text.p[0] == '0'))
            return err_say(e, ERR_POLICY, "'/%.*s' is not a prefix length between 0 and %u", (int)text.n, text.p, bits);
    }
    for (unsigned bit = prefix; bit < bits; bit++) {
        if (r->net.b[bit / 8] & (0x80 >> bit % 8))
            return err_say(e, ERR_POLICY, "'%.*s' has host bits set beyond its prefix", (int)s.n, s.p);
    }
    r->match = MATCH_NET;
    r->prefix = (uint8_t)prefix;
    return 0;
}

int host_rule_suffix(struct str *text, bool *ret_any_bytes, struct err *e)
{
    struct str behind = *text; /* from the colon in front of the ports */
    const char *close = text->n && text->p[0] == '[' ? memchr(text->p, ']', text->n) : NULL;
    if (close)
        behind = str_skip(*text, (size_t)(close - text->p) + 1);
    const char *colon = behind.n ? memchr(behind.p, ':', behind.n) : NULL;
    behind = colon ? str_skip(behind, (size_t)(colon - behind.p) + 1) : (struct str){0};
    bool has_port = colon && behind.n && is_digit(behind.p[0]) && !memchr(behind.p, ':', behind.n);
    const char *slash = has_port ? memchr(behind.p, '/', behind.n) : NULL;
    struct str suffix = slash ? str_skip(behind, (size_t)(slash - behind.p)) : (struct str){0};

    *ret_any_bytes = false;
    if (!slash && (str_ends(*text, STR("/tcp")) || str_ends(*text, STR("/udp"))))
        return err_say(e, ERR_POLICY, "'%.*s': /tcp stands behind a port, as in example.com:443/tcp", SAID(*text));
    if (slash && !str_is(suffix, "/tcp"))
        return err_say(e, ERR_POLICY, "'%.*s': behind a port only /tcp may stand, for any protocol on that port",
                       SAID(*text));
    *ret_any_bytes = slash != NULL;
    text->n -= suffix.n;
    return 0;
}

int host_rule_parse(struct str text, enum rule_verb verb, struct host_rule *ret, struct err *e)
{
    struct host_rule r = {.verb = (uint8_t)verb, .low = 1, .high = 65535};
    struct str host = text, ports = {0};
    int err = 0;

    for (size_t i = 0; i + 2 < text.n; i++) {
        if (memcmp(text.p + i, "://", 3) == 0)
            return err_say(e, ERR_POLICY, "'%.*s' is a URL: name the host alone", (int)text.n, text.p);
    }
    err = host_rule_suffix(&text, &r.any_bytes, e);
    if (err < 0)
        return err;
    host = text;
    if (text.n && text.p[0] == '[') {
        const char *end = memchr(text.p, ']', text.n);
        if (!end)
            return err_say(e, ERR_POLICY, "'[' without ']'");
        host = (struct str){text.p + 1, (size_t)(end - text.p) - 1};
        ports = str_skip(text, host.n + 2);
        if (ports.n && ports.p[0] != ':')
            return err_say(e, ERR_POLICY, "after ']' only ':PORT' may stand");
        err = net_parse(host, &r, e);
        if (err == 0 && !r.net.v6 && !memchr(host.p, ':', host.n))
            return err_say(e, ERR_POLICY, "brackets are for IPv6 addresses");
    } else {
        const char *colon = memchr(text.p, ':', text.n);
        if (colon && memchr(colon + 1, ':', text.n - (size_t)(colon + 1 - text.p)))
            return err_say(e, ERR_POLICY, "an IPv6 address stands in brackets, as in [2001:db8::1]:443");
        if (colon) {
            host.n = (size_t)(colon - text.p);
            ports = str_skip(text, host.n);
        }
        struct str name = host, bare = host;
        if (bare.n && bare.p[bare.n - 1] == '.')
            bare.n--;
        if (str_is(host, "*")) {
            r.match = MATCH_ANY;
        } else if (memchr(host.p, '/', host.n) || ends_in_number(bare)) {
            err = net_parse(host, &r, e);
        } else {
            r.match = MATCH_NAME;
            if (str_starts(host, STR("*."))) {
                r.match = MATCH_BELOW;
                name = str_skip(host, 2);
            } else if (str_starts(host, STR("."))) {
                r.match = MATCH_BELOW_OR_APEX;
                name = str_skip(host, 1);
            }
            if (memchr(name.p, '*', name.n))
                return err_say(e, ERR_POLICY, "'*' may only stand alone or as '*.' in front of a name");
            if (name_parse(name, true, r.name) < 0)
                return err_say(e, ERR_POLICY, "'%.*s' is not a host name", (int)name.n, name.p);
        }
    }
    if (err < 0)
        return err;
    if (ports.n && (err = ports_parse(str_skip(ports, 1), &r, e)) < 0)
        return err;
    *ret = r;
    return 0;
}

void host_rule_print(const struct host_rule *r, char text[HOST_RULE_TEXT])
{
    static const char *const before[] = {
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
    if (r->net.v6 != a->v6)
        return false;
    unsigned whole = r->prefix / 8, rest = r->prefix % 8;
    if (memcmp(r->net.b, a->b, whole) != 0)
        return false;
    return rest == 0 || ((r->net.b[whole] ^ a->b[whole]) & (0xFF00 >> rest & 0xFF)) == 0;
}

static bool below(struct str name, struct str above)
{
    return name.n > above.n + 1 && str_ends(name, above) && name.p[name.n - above.n - 1] == '.';
}

static bool matches_host(const struct host_rule *r, const struct host *h)
{
    if (r->match == MATCH_ANY)
        return true;
    if (r->match == MATCH_NET)
        return h->kind == HOST_ADDR && net_contains(r, &h->addr);
    if (h->kind != HOST_NAME)
        return false;
    struct str name = str_of(h->name), rule = str_of(r->name);
    if (r->match != MATCH_BELOW && str_eq(name, rule))
        return true;
    return r->match != MATCH_NAME && below(name, rule);
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

/* Whether the hosts of `a` hold those of `b`. Sets of hosts are nested or apart, so this tells whether two meet, too. */
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
    return below(y, x) || (str_eq(x, y) && (a->match == MATCH_BELOW_OR_APEX || b->match == MATCH_BELOW));
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
    int names_only = -1; /* not looked at yet */
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

/* ---- classes ---- */

static const struct {
    uint8_t net[4], prefix, class;
} v4_classes[] = {
    {{0, 0, 0, 0}, 8, ADDR_UNSPECIFIED},        {{127, 0, 0, 0}, 8, ADDR_LOOPBACK},
    {{169, 254, 169, 254}, 32, ADDR_METADATA},  {{169, 254, 170, 2}, 32, ADDR_METADATA},
    {{169, 254, 170, 23}, 32, ADDR_METADATA},   {{100, 100, 100, 200}, 32, ADDR_METADATA},
    {{168, 63, 129, 16}, 32, ADDR_METADATA},    {{169, 254, 0, 0}, 16, ADDR_LINK_LOCAL},
    {{10, 0, 0, 0}, 8, ADDR_PRIVATE},           {{172, 16, 0, 0}, 12, ADDR_PRIVATE},
    {{192, 168, 0, 0}, 16, ADDR_PRIVATE},       {{100, 64, 0, 0}, 10, ADDR_PRIVATE},
    {{255, 255, 255, 255}, 32, ADDR_BROADCAST}, {{224, 0, 0, 0}, 4, ADDR_MULTICAST},
    {{192, 0, 0, 0}, 24, ADDR_RESERVED},        {{192, 0, 2, 0}, 24, ADDR_RESERVED},
    {{198, 18, 0, 0}, 15, ADDR_RESERVED},       {{198, 51, 100, 0}, 24, ADDR_RESERVED},
    {{203, 0, 113, 0}, 24, ADDR_RESERVED},      {{240, 0, 0, 0}, 4, ADDR_RESERVED},
};

static bool has_prefix(const uint8_t *a, const uint8_t *net, unsigned prefix)
{
    unsigned whole = prefix / 8, rest = prefix % 8;
    return memcmp(a, net, whole) == 0 && (rest == 0 || ((a[whole] ^ net[whole]) & (0xFF00 >> rest & 0xFF)) == 0);
}

static enum addr_class classify_v4(const uint8_t b[4])
{
    for (size_t i = 0; i < sizeof v4_classes / sizeof *v4_classes; i++) {
        if (has_prefix(b, v4_classes[i].net, v4_classes[i].prefix))
            return v4_classes[i].class;
    }
    return ADDR_PUBLIC;
}

enum addr_class addr_classify(const struct host_addr *a)
{
    static const uint8_t zero[16] = {0}, nat64[12] = {0x00, 0x64, 0xff, 0x9b}, loopback[16] = {[15] = 1};
    static const uint8_t metadata[][16] = {
        {0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}, /* AWS: machines */
        {0xfd, 0x00, 0x0e, 0xc2, [15] = 0x23},              /* AWS: containers */
        {0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54}  /* Google */
    };
    const uint8_t *b = a->b;

    if (!a->v6)
        return classify_v4(b);
    if (memcmp(b, zero, 16) == 0)
        return ADDR_UNSPECIFIED;
    if (memcmp(b, loopback, 16) == 0)
        return ADDR_LOOPBACK;
    for (size_t i = 0; i < sizeof metadata / sizeof *metadata; i++) {
        if (memcmp(b, metadata[i], 16) == 0)
            return ADDR_METADATA;
    }
    if (memcmp(b, zero, 12) == 0 || memcmp(b, nat64, 12) == 0)
        return classify_v4(b + 12);
    if (b[0] == 0x20 && b[1] == 0x02)
        return classify_v4(b + 2);
    if (b[0] == 0xfe && (b[1] & 0xC0) == 0x80)
        return ADDR_LINK_LOCAL;
    if (b[0] == 0xfe && (b[1] & 0xC0) == 0xC0)
        return ADDR_PRIVATE; /* site-local, RFC 3879 */
    if ((b[0] & 0xFE) == 0xfc)
        return ADDR_PRIVATE;
    if (b[0] == 0xff)
        return ADDR_MULTICAST;
    /* Only 2000::/3 is handed out as global unicast; documentation and Teredo inside it are not destinations. */
    if ((b[0] & 0xE0) != 0x20 ||
        (b[0] == 0x20 && b[1] == 0x01 && ((b[2] == 0x0d && b[3] == 0xb8) || (b[2] == 0 && b[3] == 0))))
        return ADDR_RESERVED;
    return ADDR_PUBLIC;
}

const char *addr_class_text(enum addr_class c)
{
    static const char *const text[] = {
        "public",    "unspecified", "loopback", "link-local", "a cloud metadata endpoint",
        "multicast", "broadcast",   "private",  "reserved"};
    return text[c];
}
