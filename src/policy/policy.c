/*
 * Queries to a finished policy: origins of rules, and the access that a path has. It is immutable by then; merge.c
 * has made it.
 */
#include "policy/policy.h"

#include <stdio.h>

#include "policy/merge.h"

struct policy *policy_free(struct policy *p)
{
    if (p)
        arena_free(p->mem); /* p lives in it */
    return NULL;
}

const char *policy_origin(const struct policy *p, uint32_t origin, char *text, size_t n)
{
    const struct origin *o = origin < p->n_origins ? &p->origins[origin] : &p->origins[0];

    bool ours = o->layer == LAYER_BUILTIN && (!o->line || strncmp(o->file, "profile ", 8) == 0);

    if (ours && o->line)
        snprintf(text, n, "built in (%s:%u)", o->file, o->line);
    else if (ours && o != p->origins)
        snprintf(text, n, "built in (%s)", o->file);
    else if (o->line)
        snprintf(text, n, "%s:%u:%u", o->file, o->line, o->column);
    else
        snprintf(text, n, "%s", o->file);
    return text;
}

bool policy_is_found(const struct policy *p, uint32_t origin)
{
    const char *file = p->origins[origin].file;
    return same(file, OWN_ORIGIN) || same(file, ENV_ORIGIN) || same(file, SSH_ORIGIN);
}

/* Number of rules for one fixed path each: they come first, sorted by path (merge_order.c). */
static size_t fixed_rules(const struct policy *p)
{
    size_t low = 0, high = p->n_paths;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (p->paths[mid].any_depth || p->paths[mid].pattern)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

static const struct path_rule *rule_with_path(const struct policy *p, size_t n, struct str path)
{
    size_t low = 0;
    while (low < n) {
        size_t mid = low + (n - low) / 2;
        const char *other = p->paths[mid].path;
        int r = strncmp(path.p, other, path.n);
        if (r == 0)
            r = other[path.n] ? -1 : 0;
        if (r == 0)
            return &p->paths[mid];
        if (r < 0)
            n = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

enum path_access policy_access(const struct policy *p, const char *path, const struct path_rule **ret_rule)
{
    size_t fixed = fixed_rules(p), n = strlen(path);

    for (;;) {
        struct str here = {path, n ? n : 1};
        const struct path_rule *r = rule_with_path(p, fixed, here);
        if (r || str_is(here, p->workspace)) {
            if (ret_rule)
                *ret_rule = r;
            return r ? r->access : p->workspace_read_only ? PATH_RO : PATH_RW;
        }
        if (n <= 1)
            break;
        while (n > 0 && path[--n] != '/')
            ;
    }
    if (ret_rule)
        *ret_rule = NULL;
    return PATH_RO;
}

int mount_target_order(const void *a, const void *b)
{
    const struct mount_rule *const *x = a, *const *y = b;
    return path_order((*x)->to, (*y)->to);
}
