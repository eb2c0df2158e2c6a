/*
 * Parses, prints, classifies and compares addresses, ranges and ports. Strict: a form that some program reads
 * otherwise (192.0.2.010, 0x7f.1) is an error, and never a name.
 */
#include "match/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- ports ---- */

/* A decimal number without leading zeroes, at most `most`, which is below 100,000. */
static bool number_parse(struct str s, unsigned most, unsigned *ret)
{
    unsigned v = 0;
    if (s.n == 0 || s.n > 5 || (s.n > 1 && s.p[0] == '0'))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (!addr_is_digit(s.p[i]))
            return false;
        v = v * 10 + (unsigned)(s.p[i] - '0');
    }
    *ret = v;
    return v <= most;
}

int port_parse(struct str text, uint16_t *ret)
{
    unsigned v;
    if (!number_parse(text, 65535, &v) || v == 0)
        return -EINVAL;
    *ret = (uint16_t)v;
    return 0;
}

int ports_parse(struct str text, uint16_t *low, uint16_t *high)
{
    struct str last = text, first = str_until(&last, '-');
    uint16_t from, to;
    if (first.n == text.n)
        last = first;
    if (port_parse(first, &from) < 0 || port_parse(last, &to) < 0)
        return -EINVAL;
    if (from > to)
        return -ERANGE;
    *low = from;
    *high = to;
    return 0;
}

/* ---- addresses ---- */

static int quad_parse(struct str s, uint8_t out[4])
{
    for (int i = 0; i < 4; i++) {
        const char *dot = i < 3 ? memchr(s.p, '.', s.n) : NULL;
        struct str one = {s.p, dot ? (size_t)(dot - s.p) : s.n};
        unsigned v;
        if ((i < 3 && !dot) || !number_parse(one, 255, &v))
            return -EINVAL;
        out[i] = (uint8_t)v;
        s = str_skip(s, one.n + 1);
    }
    return 0;
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
    if (!text.n)
        return -EINVAL;
    if (quad_parse(text, a.b) < 0) {
        memset(a.b, 0, sizeof a.b);
        if (v6_parse(text, a.b) < 0)
            return -EINVAL;
        a.v6 = true;
        fold_mapped(&a);
    }
    *ret = a;
    return 0;
}

bool addr_ends_in_number(struct str s)
{
    if (s.n && s.p[s.n - 1] == '.')
        s.n--;
    size_t at = s.n;
    while (at && s.p[at - 1] != '.')
        at--;
    struct str last = str_skip(s, at);
    const bool hex = last.n >= 2 && last.p[0] == '0' && addr_lower(last.p[1]) == 'x';
    for (size_t i = hex ? 2 : 0; i < last.n; i++)
        if (hex ? hex_digit(last.p[i]) < 0 : !addr_is_digit(last.p[i]))
            return false;
    return last.n > 0;
}

const char *addr_wrong(struct str text)
{
    if (memchr(text.p, '%', text.n))
        return "has a zone, which rules do not support; remove the '%' and what follows it";
    if (memchr(text.p, ':', text.n))
        return "is not an IPv6 address, such as 2001:db8::1";
    if (text.n && text.p[text.n - 1] == '.')
        return "is an address that ends in a dot; remove the dot";
    for (struct str rest = text; rest.n;) {
        struct str one = str_until(&rest, '.');
        if (one.n > 1 && one.p[0] == '0' && addr_is_digit(one.p[1]))
            return "has a number with a leading zero, which some programs read as octal; write decimal numbers without "
                   "it, such as 192.0.2.10";
    }
    return "ends in a number but is not a complete address; write all four decimal numbers, such as 192.0.2.10";
}

int addr_range_parse(struct str text, struct host_addr *ret, uint8_t *prefix, const char **wrong)
{
    struct str bits = text, addr = str_until(&bits, '/');
    const bool range = addr.n < text.n, six = memchr(addr.p, ':', addr.n) != NULL;
    struct host_addr a;
    unsigned v = six ? 128 : 32;

    *wrong = NULL;
    if (addr_parse(addr, &a) < 0) {
        *wrong = addr_wrong(addr);
        return -EINVAL;
    }
    if (!a.v6 && six && range)
        *wrong = "is an IPv4 range written as IPv6; write it as 10.0.0.0/8";
    else if (range && !number_parse(bits, v, &v))
        *wrong = six ? "has a prefix length that is not a number from 0 to 128"
                     : "has a prefix length that is not a number from 0 to 32";
    else if (!a.v6)
        v = six ? 32 : v;
    struct host_addr net = {.v6 = a.v6};
    for (unsigned bit = 0; !*wrong && bit < v; bit++)
        net.b[bit / 8] |= (uint8_t)(a.b[bit / 8] & 0x80u >> bit % 8);
    if (!*wrong && memcmp(net.b, a.b, 16) != 0)
        *wrong = "has bits set after its prefix; write the range's first address";
    if (*wrong)
        return -EINVAL;
    *ret = a;
    *prefix = (uint8_t)v;
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

static bool has_prefix(const uint8_t *a, const uint8_t *net, unsigned prefix)
{
    unsigned whole = prefix / 8, rest = prefix % 8;
    return memcmp(a, net, whole) == 0 && (rest == 0 || ((a[whole] ^ net[whole]) & (0xFF00 >> rest & 0xFF)) == 0);
}

bool addr_within(const struct host_addr *a, const struct host_addr *net, unsigned prefix)
{
    return a->v6 == net->v6 && has_prefix(a->b, net->b, prefix);
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

static enum addr_class classify_v4(const uint8_t b[4])
{
    for (size_t i = 0; i < sizeof v4_classes / sizeof *v4_classes; i++) {
        if (has_prefix(b, v4_classes[i].net, v4_classes[i].prefix))
            return v4_classes[i].class;
    }
    return ADDR_PUBLIC;
}

bool addr_embedded(const struct host_addr *a, struct host_addr *ret)
{
    static const uint8_t compatible[12] = {0}, nat64[12] = {0x00, 0x64, 0xff, 0x9b};
    const uint8_t *b = a->b;
    if (!a->v6)
        return false;
    const bool low = memcmp(b, compatible, 12) == 0 || memcmp(b, nat64, 12) == 0;
    if (!low && !(b[0] == 0x20 && b[1] == 0x02))
        return false;
    *ret = (struct host_addr){.v6 = false};
    memcpy(ret->b, low ? b + 12 : b + 2, 4);
    return true;
}

enum addr_class addr_classify(const struct host_addr *a)
{
    static const uint8_t zero[16] = {0}, loopback[16] = {[15] = 1};
    static const uint8_t metadata[][16] = {
        {0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}, /* AWS: machines */
        {0xfd, 0x00, 0x0e, 0xc2, [15] = 0x23},              /* AWS: containers */
        {0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54}  /* Google */
    };
    const uint8_t *b = a->b;
    struct host_addr inner;

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
    if (addr_embedded(a, &inner))
        return classify_v4(inner.b);
    if (b[0] == 0xfe && (b[1] & 0xC0) == 0x80)
        return ADDR_LINK_LOCAL;
    if (b[0] == 0xfe && (b[1] & 0xC0) == 0xC0)
        return ADDR_PRIVATE; /* site-local, RFC 3879 */
    if ((b[0] & 0xFE) == 0xfc)
        return ADDR_PRIVATE;
    if (b[0] == 0xff)
        return ADDR_MULTICAST;
    /* Only 2000::/3 is global unicast; documentation and Teredo ranges in it are no destinations. */
    if ((b[0] & 0xE0) != 0x20 ||
        (b[0] == 0x20 && b[1] == 0x01 && ((b[2] == 0x0d && b[3] == 0xb8) || (b[2] == 0 && b[3] == 0))))
        return ADDR_RESERVED;
    return ADDR_PUBLIC;
}

const char *addr_class_text(enum addr_class c)
{
    static const char text[][28] = {"public",    "unspecified", "loopback", "link-local", "a cloud metadata endpoint",
                                    "multicast", "broadcast",   "private",  "reserved"};
    return text[c];
}

size_t addr_shown(const void *address, size_t n, char *to, size_t room, bool *ret_local)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
        struct sockaddr_un local;
        char bytes[sizeof(struct sockaddr_storage)];
    } a = {.bytes = {0}};
    char host[INET6_ADDRSTRLEN];
    int k = 0;
    *ret_local = false;
    if (n < sizeof a.any.sa_family || n > sizeof a.bytes)
        return 0;
    memcpy(a.bytes, address, n);
    *ret_local = a.any.sa_family == AF_UNIX;
    const size_t name = offsetof(struct sockaddr_un, sun_path);
    if (*ret_local && n > name && a.local.sun_path[0] == 0)
        k = snprintf(to, room, "@%.*s", (int)(n - name - 1), a.local.sun_path + 1);
    else if (*ret_local && n > name)
        k = snprintf(to, room, "%.*s", (int)(n - name), a.local.sun_path);
    else if (a.any.sa_family == AF_INET && inet_ntop(AF_INET, &a.four.sin_addr, host, sizeof host))
        k = snprintf(to, room, "%s:%u", host, ntohs(a.four.sin_port));
    else if (a.any.sa_family == AF_INET6 && inet_ntop(AF_INET6, &a.six.sin6_addr, host, sizeof host))
        k = snprintf(to, room, "[%s]:%u", host, ntohs(a.six.sin6_port));
    return k > 0 && (size_t)k < room ? (size_t)k : 0;
}
