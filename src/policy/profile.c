/*
 * The built-in profiles, found by name or text. They are compiled in as statements (src/tools/profile_compile.c), so
 * that a start parses no YAML.
 */
#include "policy/profile.h"

#include <errno.h>

const struct profile *profile_by_name(const char *name)
{
    for (const struct profile *p = profile_table; p->name; p++) {
        if (same(p->name, name))
            return p;
    }
    return NULL;
}

const struct profile *profile_by_text(struct str text)
{
    for (const struct profile *p = profile_table; p->name; p++) {
        if (str_eq(p->text, text))
            return p;
    }
    return NULL;
}

const struct said *profile_statements(const struct profile *p, struct arena *mem)
{
    struct said *ret = arena_zero(mem, p->n * sizeof *ret);
    for (size_t i = 0; ret && i < p->n; i++) {
        const struct profile_said *s = &p->said[i];
        const char *a = p->words + s->at;
        ret[i] = (struct said){s->key, s->bits, s->line, s->column, {a, s->a_n}, {a + s->a_n + 1, s->b_n}};
    }
    return ret;
}

int profile_find(const char *name, struct str *ret_text)
{
    const struct profile *p = profile_by_name(name);
    if (!p)
        return -ENOENT;
    *ret_text = p->text;
    return 0;
}

const char *const *profile_names(void)
{
    static const char *const names[] = {"workspace", "readonly", "untrusted", "restrictive", "permissive", NULL};
    return names;
}
