/*
 * Sorts the arrays of a merged policy. Equal policies are equal arrays then, and a rule is found by bisection;
 * origins tell which statement came first.
 */
#include "policy/merge.h"

/*
 * Sorts by place, so that equal policies are equal arrays and rules are found by bisection (policy_access). A merge
 * sort of existing runs: the built-in profiles are already sorted (profile_compile), and libc's qsort has no bound on
 * hostile input.
 */
typedef int order_fn(const void *a, const void *b);

static int by_path(const void *a, const void *b)
{
    const struct path_rule *x = a, *y = b;
    if (x->any_depth != y->any_depth)
        return x->any_depth ? 1 : -1;
    if (x->pattern != y->pattern)
        return x->pattern ? 1 : -1;
    int r = x->any_depth ? strcmp(x->below, y->below) : 0;
    return r ? r : strcmp(x->path, y->path);
}
static int by_mount(const void *a, const void *b)
{
    return strcmp(((const struct mount_rule *)a)->to, ((const struct mount_rule *)b)->to);
}
static int by_storage(const void *a, const void *b)
{
    return strcmp(((const struct storage_rule *)a)->path, ((const struct storage_rule *)b)->path);
}
static int by_guard(const void *a, const void *b)
{
    const struct guard_name *x = a, *y = b;
    int r = strcmp(x->name, y->name);
    if (r == 0)
        r = (int)x->place - (int)y->place;
    if (r == 0)
        r = (int)x->judge - (int)y->judge;
    if (r == 0)
        r = (int)x->everyday - (int)y->everyday;
    return r ? r : (int)x->directory - (int)y->directory;
}
static int by_net(const void *a, const void *b)
{
    const struct net_rule *x = a, *y = b;
    return x->verb != y->verb ? (int)x->verb - (int)y->verb : strcmp(x->text, y->text);
}
static int by_env(const void *a, const void *b)
{
    return strcmp(((const struct env_rule *)a)->name, ((const struct env_rule *)b)->name);
}
static int by_ssh_key(const void *a, const void *b)
{
    const struct ssh_key_rule *x = a, *y = b;
    int r = strcmp(x->key, y->key);
    return r ? r : strcmp(x->host ? x->host : "", y->host ? y->host : "");
}
static int by_gpg_key(const void *a, const void *b)
{
    return strcmp(((const struct gpg_key_rule *)a)->key, ((const struct gpg_key_rule *)b)->key);
}
static int by_branch(const void *a, const void *b)
{
    return strcmp(((const struct branch_rule *)a)->pattern, ((const struct branch_rule *)b)->pattern);
}
/* Merges the runs [a, mid) and [mid, end) of `from` into `to`; all are indices of items. */
static void merge_runs(const char *items, size_t size, order_fn *order, const uint32_t *from, uint32_t *to, size_t a,
                       size_t mid, size_t end)
{
    size_t b = mid;
    for (size_t k = a; k < end; k++) {
        bool left = a < mid && (b >= end || order(items + from[a] * size, items + from[b] * size) <= 0);
        to[k] = from[left ? a++ : b++];
    }
}

/* The sorted items in a new array of the policy's; `items` itself out of memory (see the arenas). */
static void *sort(struct merge *m, const void *items, size_t n, size_t size, order_fn *order)
{
    const char *p = items;
    size_t n_runs = 0, i = 1;
    char *sorted = arena_zero(m->p->mem, n * size);

    while (i < n && order(p + (i - 1) * size, p + i * size) <= 0)
        i++;
    if (sorted && i >= n)
        return n ? memcpy(sorted, p, n * size) : sorted;
    uint32_t *from = arena_zero(m->scratch, n * sizeof *from), *to = arena_zero(m->scratch, n * sizeof *to);
    uint32_t *runs = arena_zero(m->scratch, (n + 1) * sizeof *runs); /* start of each run, and the end of the last */
    if (!from || !to || !runs || !sorted)
        return (void *)(uintptr_t)items;
    for (size_t k = 0; k < n; k++) {
        from[k] = (uint32_t)k;
        if (k == 0 || (k >= i && order(p + (k - 1) * size, p + k * size) > 0))
            runs[n_runs++] = (uint32_t)k;
    }
    runs[n_runs] = (uint32_t)n;
    while (n_runs > 1) {
        size_t kept = 0;
        for (size_t k = 0; k < n_runs; k += 2) {
            size_t mid = runs[k + 1], end = k + 1 < n_runs ? runs[k + 2] : mid;
            merge_runs(p, size, order, from, to, runs[k], mid, end);
            runs[kept++] = runs[k];
        }
        runs[kept] = (uint32_t)n;
        n_runs = kept;
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    for (size_t k = 0; k < n; k++)
        memcpy(sorted + k * size, p + from[k] * size, size);
    return sorted;
}

/* As they are, but in the policy's memory. */
static int as_they_came(const void *a, const void *b)
{
    (void)a;
    (void)b;
    return 0;
}

void merge_order(struct merge *m)
{
    struct policy *p = m->p;
    p->origins = sort(m, p->origins, p->n_origins, sizeof *p->origins, as_they_came);
    p->paths = sort(m, p->paths, p->n_paths, sizeof *p->paths, by_path);
    p->mounts = sort(m, p->mounts, p->n_mounts, sizeof *p->mounts, by_mount);
    p->storages = sort(m, p->storages, p->n_storages, sizeof *p->storages, by_storage);
    p->guards = sort(m, p->guards, p->n_guards, sizeof *p->guards, by_guard);
    p->net_rules = sort(m, p->net_rules, p->n_net_rules, sizeof *p->net_rules, by_net);
    p->env = sort(m, p->env, p->n_env, sizeof *p->env, by_env);
    p->git.branches = sort(m, p->git.branches, p->git.n_branches, sizeof *p->git.branches, by_branch);
    p->gpg_keys = sort(m, p->gpg_keys, p->n_gpg_keys, sizeof *p->gpg_keys, by_gpg_key);
    p->ssh_keys = sort(m, p->ssh_keys, p->n_ssh_keys, sizeof *p->ssh_keys, by_ssh_key);
    p->unix_sockets = sort(m, p->unix_sockets, p->n_unix_sockets, sizeof *p->unix_sockets, text_order);
}
