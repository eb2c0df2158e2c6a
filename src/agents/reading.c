/*
 * What the parts of reading a definition share: texts, lists, and where something is wrong. define.c reads the whole,
 * renew.c the part about logins; an error has file, line and column.
 */
#include "agents/reading.h"

#include <errno.h>
#include <string.h>

#include "match/glob.h"

int agent_wrong(const struct definition_reading *r, const struct node *at, const char *what)
{
    return place_say(r->e, ERR_POLICY, r->file, at->line, at->column, "%s", what);
}

int agent_unknown(const struct definition_reading *r, const struct node *key, const char *of, const char *keys)
{
    char name[64];
    size_t n = 0;
    for (; n < key->text.n && n + 1 < sizeof name; n++)
        name[n] = key->text.p[n] > ' ' && key->text.p[n] <= '~' ? key->text.p[n] : '?';
    name[n] = 0;
    return place_say(r->e, ERR_POLICY, r->file, key->line, key->column, "unknown key '%s' in %s (known: %s)", name, of,
                     keys);
}

static int reading_no_memory(const struct definition_reading *r)
{
    return err_sys(r->e, ERR_SYSTEM, ENOMEM, "cannot read %s", r->file);
}

int agent_take_text(const struct definition_reading *r, const struct node *n, const char **ret)
{
    if (n->kind != NODE_SCALAR || n->text.n == 0 || memchr(n->text.p, 0, n->text.n))
        return agent_wrong(r, n, "a text is expected here");
    *ret = arena_str(r->mem, n->text);
    return *ret ? 0 : reading_no_memory(r);
}

int agent_take_list(const struct definition_reading *r, const struct node *n, const char ***ret)
{
    if (n->kind != NODE_LIST)
        return agent_wrong(r, n, "a list of strings is expected here");
    const char **list = arena_zero(r->mem, (n->n + 1) * sizeof *list);
    if (!list)
        return reading_no_memory(r);
    for (size_t i = 0; i < n->n; i++) {
        int no = agent_take_text(r, &n->items[i], &list[i]);
        if (no < 0)
            return no;
    }
    *ret = list;
    return 0;
}

int agent_take_patterns(const struct definition_reading *r, const struct node *n, const char **list)
{
    for (size_t i = 0; i < n->n; i++) {
        struct str rest = str_of(list[i]);
        while (rest.n) {
            const char *wrong = glob_wrong(str_until(&rest, '/'));
            if (wrong)
                return place_say(r->e, ERR_POLICY, r->file, n->items[i].line, n->items[i].column, "'%s' %s", list[i],
                                 wrong);
        }
    }
    return 0;
}

int agent_take_flag(const struct definition_reading *r, const struct node *n, bool *ret)
{
    *ret = n->kind == NODE_SCALAR && str_is(n->text, "true");
    return *ret ? 0 : agent_wrong(r, n, "\"true\" is expected here");
}
