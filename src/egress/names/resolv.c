/* Reads resolv.conf and hosts files.
   Their texts come from the host, by descriptor: this process sees no files. */
#include "egress/egress.h"

static struct str word(struct str *s)
{
    size_t i = 0;
    while (i < s->n && (s->p[i] == ' ' || s->p[i] == '\t'))
        i++;
    *s = str_skip(*s, i);
    for (i = 0; i < s->n && s->p[i] != ' ' && s->p[i] != '\t'; i++)
        ;
    struct str w = {s->p, i};
    *s = str_skip(*s, i);
    return w;
}

static struct str line(struct str *s)
{
    const char *end = s->n ? memchr(s->p, '\n', s->n) : NULL;
    struct str l = {s->p, end ? (size_t)(end - s->p) : s->n};
    *s = str_skip(*s, l.n + (end ? 1 : 0));
    if (l.n && l.p[l.n - 1] == '\r')
        l.n--;
    return l;
}

static unsigned resolv_number(struct str s, unsigned most)
{
    unsigned v = 0;
    for (size_t i = 0; i < s.n && s.p[i] >= '0' && s.p[i] <= '9' && v <= most; i++)
        v = v * 10 + (unsigned)(s.p[i] - '0');
    return v > most ? most : v;
}

static void option(struct str o, struct egress_resolver *r)
{
    if (str_starts(o, STR("ndots:")))
        r->ndots = resolv_number(str_skip(o, 6), 15);
    else if (str_starts(o, STR("timeout:")))
        r->timeout_s = resolv_number(str_skip(o, 8), 30);
    else if (str_starts(o, STR("attempts:")))
        r->attempts = resolv_number(str_skip(o, 9), 5);
}

void resolv_parse(struct str text, struct egress_resolver *ret)
{
    struct egress_resolver r = {.ndots = 1, .timeout_s = 2, .attempts = 2, .hosts = ret->hosts};
    while (text.n) {
        struct str l = line(&text), key = word(&l);
        if (str_is(key, "nameserver") && r.n_servers < EGRESS_SERVERS) {
            struct str a = word(&l);
            const char *zone = a.n ? memchr(a.p, '%', a.n) : NULL;
            const struct str all = a;
            if (zone)
                a.n = (size_t)(zone - a.p);
            r.zones[r.n_servers] = zone ? resolv_number(str_skip(all, a.n + 1), 99999999) : 0;
            if (addr_parse(a, &r.servers[r.n_servers]) == 0)
                r.ports[r.n_servers++] = 53;
        } else if (str_is(key, "search") || str_is(key, "domain")) {
            r.n_search = 0;
            for (struct str d = word(&l); d.n && r.n_search < EGRESS_SEARCH; d = word(&l)) {
                struct host h;
                if (host_parse(d, &h) == 0 && h.kind == HOST_NAME)
                    memcpy(r.search[r.n_search++], h.name, sizeof h.name);
            }
        } else if (str_is(key, "options")) {
            for (struct str o = word(&l); o.n; o = word(&l))
                option(o, &r);
        }
    }
    if (r.n_servers == 0) { /* resolv.conf(5): without a nameserver, the local one */
        r.servers[0] = (struct host_addr){.b = {127, 0, 0, 1}};
        r.ports[0] = 53;
        r.n_servers = 1;
    }
    if (r.timeout_s == 0)
        r.timeout_s = 1;
    if (r.attempts == 0)
        r.attempts = 1;
    *ret = r;
}

size_t hosts_find(struct str text, const char *name, struct host_addr *out, size_t room)
{
    size_t n = 0;
    while (text.n && n < room) {
        struct str l = line(&text);
        const char *hash = l.n ? memchr(l.p, '#', l.n) : NULL;
        if (hash)
            l.n = (size_t)(hash - l.p);
        struct str a = word(&l);
        struct host_addr addr;
        if (addr_parse(a, &addr) < 0)
            continue;
        for (struct str w = word(&l); w.n; w = word(&l)) {
            struct host h;
            if (host_parse(w, &h) == 0 && h.kind == HOST_NAME && strcmp(h.name, name) == 0) {
                out[n++] = addr;
                break;
            }
        }
    }
    return n;
}
