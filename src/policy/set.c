/*
 * The built-in sets of hosts (@npm ...) and what they contain. Compiled in (src/tools/set_compile.c); a rule that
 * names one is all of its rules.
 */
#include "policy/set.h"

#include <stdio.h>

#include "policy/text/keys.h"

const struct host_set *host_set_of(struct str text)
{
    for (const struct host_set *s = host_set_table; text.n && text.p[0] == '@' && s->name; s++) {
        if (str_is(str_skip(text, 1), s->name))
            return s;
    }
    return NULL;
}

const struct host_set *host_set_bare(struct str text)
{
    for (const struct host_set *s = host_set_table; s->name; s++) {
        if (str_is_nocase(text, s->name))
            return s;
    }
    return NULL;
}

int host_set_meant(const struct host_set *s, struct err *e)
{
    return err_say(e, ERR_POLICY,
                   "'%s' would be a host of that name; write '@%s' for the set of hosts, or '%s.' for the host",
                   s->name, s->name, s->name);
}

int host_set_unknown(struct str text, struct err *e)
{
    struct str name = str_skip(text, 1);
    const char *near = NULL;
    char list[256] = "";
    unsigned nearest = 99;
    size_t n = 0;
    int shown = (int)(text.n < 120 ? text.n : 120);

    for (const struct host_set *s = host_set_table; s->name; s++) {
        unsigned d = str_distance(name, str_of(s->name));
        if (d < nearest) {
            nearest = d;
            near = s->name;
        }
        int k = snprintf(list + n, sizeof list - n, "%s@%s", n ? ", " : "", s->name);
        n += k > 0 && n + (size_t)k < sizeof list ? (size_t)k : 0;
    }
    if (memchr(name.p, ':', name.n) || memchr(name.p, '/', name.n))
        return err_say(e, ERR_POLICY, "'%.*s': a set of hosts cannot have a port; name the host to choose its port",
                       shown, text.p);
    if (near && is_near(nearest, name))
        return err_say(e, ERR_POLICY, "unknown set of hosts '%.*s' (did you mean '@%s'?)", shown, text.p, near);
    return err_say(e, ERR_POLICY, "unknown set of hosts '%.*s' (known: %s)", shown, text.p, list);
}

size_t host_rule_count(struct str text)
{
    const struct host_set *s = host_set_of(text);
    return s ? s->n : 1;
}

int host_rules_parse(struct str text, enum rule_verb verb, uint32_t origin, struct host_rule *ret, struct err *e)
{
    const struct host_set *s = host_set_of(text);
    size_t n = s ? s->n : 1;

    if (!s && text.n && text.p[0] == '@')
        return host_set_unknown(text, e);
    for (size_t i = 0; i < n; i++) {
        int r = host_rule_parse(s ? str_of(s->hosts[i]) : text, verb, &ret[i], e);
        if (r < 0)
            return r;
        ret[i].origin = origin;
    }
    return 0;
}
