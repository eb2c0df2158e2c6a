/*
 * Hidden files under another name. A hide is about a name; if the host moves the object elsewhere, the box must still
 * not read it. So the guard remembers what was at each hidden name of fixed place when the box began, and what it has
 * seen there since (when a call was refused): a file by its identity, a directory by a descriptor, whose path the
 * kernel keeps current. Neither affects the host. An object that the host put there and moved away without any call in
 * between is unknown to the guard: docs/SECURITY.md says so.
 */
#include "base/fd.h"
#include "guard/rules/rules.h"

void hidden_begin(struct guard *g, const struct guard_table *table, size_t bytes)
{
    if (bytes < sizeof *table || table->n_rules > (bytes - sizeof *table) / sizeof(struct guard_rule))
        return;
    /* A container's engine makes no namespace that the plan knows of. Links of its image lead to what is hidden by a name behind them. */
    const bool image = !g->plan->namespaces && !g->plan->tier;
    const uint64_t links = image ? RESOLVE_NO_MAGICLINKS : RESOLVE_NO_SYMLINKS;
    unsigned directories = 0;
    for (uint32_t i = 0; i < table->n_rules && g->n_hidden < HIDDEN_MAX; i++) {
        struct sys_stat st;
        const struct guard_rule *said = &table->rules[i];
        if (said->kind != GUARD_RULE_HIDE || said->text >= g->plan->strings_bytes)
            continue;
        auto_fd int fd =
            sys_openat2(AT_FDCWD, plan_string(g->plan, said->text), O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, links);
        if (fd < 0 || sys_stat_fd(fd, SYS_STAT_BASIC | SYS_STAT_BORN, &st) < 0)
            continue;
        const bool follow = S_ISDIR(st.mode) && directories++ < HIDDEN_DIRS;
        g->hidden[g->n_hidden++] = (struct hidden){.is = born_of(&st), .rule = i, .fd = follow ? take_fd(&fd) : -1};
    }
}

/* Without a creation time the number alone decides: a handle (born_stat()) changes when a server has forgotten the object (FUSE). */
static bool hidden_is(const struct hidden *h, const struct sys_stat *st)
{
    const struct born is = born_of(st);
    return st->mask & SYS_STAT_BORN ? born_same(&h->is, &is) : h->is.inode == is.inode && h->is.device == is.device;
}

static const struct rule *rule_of(struct guard *g, uint32_t index)
{
    for (size_t i = 0; i < g->rules.n_hidden; i++)
        if (g->rules.hidden[i].index == index)
            return &g->rules.hidden[i];
    return NULL;
}

void hidden_seen(struct guard *g, const struct rule *rule, const struct object *o)
{
    struct shared *s = g->shared;
    if (!S_ISREG(o->st.mode) && !S_ISLNK(o->st.mode))
        return;
    table_lock(s);
    bool known = false;
    for (uint32_t i = 0; !known && i < SEEN_MAX && i < s->seen_at; i++)
        known = hidden_is(&s->seen[i], &o->st);
    if (!known)
        s->seen[s->seen_at++ % SEEN_MAX] = (struct hidden){.is = born_of(&o->st), .rule = rule->index, .fd = -1};
    table_unlock(s);
}

const struct rule *hidden_around(struct guard *g, struct str path)
{
    char now[PLACE_PATH];
    size_t n = 0;
    for (unsigned i = 0; i < g->n_hidden; i++) {
        if (g->hidden[i].fd < 0 || path_of(g, g->hidden[i].fd, now, &n) < 0 || !n ||
            !path_in(path, (struct str){now, n}))
            continue;
        /* At its original place the rules decide: a longer one may make something in it visible. */
        const struct rule *rule = rule_of(g, g->hidden[i].rule);
        if (rule && !str_eq(rule->path, (struct str){now, n}))
            return rule;
    }
    return NULL;
}

const struct rule *hidden_moved(struct guard *g, const struct object *o)
{
    struct shared *s = g->shared;
    if (!g->n_hidden && !s->seen_at)
        return NULL;
    for (unsigned i = 0; i < g->n_hidden; i++)
        if (hidden_is(&g->hidden[i], &o->st))
            return rule_of(g, g->hidden[i].rule);
    uint32_t seen = UINT32_MAX;
    table_lock(s);
    for (uint32_t i = 0; i < SEEN_MAX && i < s->seen_at; i++)
        if (hidden_is(&s->seen[i], &o->st))
            seen = s->seen[i].rule;
    table_unlock(s);
    return seen != UINT32_MAX ? rule_of(g, seen) : o->n ? hidden_around(g, object_path(o)) : NULL;
}

/* ---- programs ---- */

/*
 * Remembers files found where nothing is hidden. A process may leave the mount namespace in which its program was found
 * (unshare(2)); then the kernel tells no path for the program, and what is remembered of the file decides. Only on file
 * systems with creation times, because inodes are reused.
 */
static bool free_has(const struct shared *s, const struct born *is)
{
    for (uint32_t i = 0; i < FREE_MAX && i < s->free_at; i++)
        if (born_same(&s->free[i], is))
            return true;
    return false;
}

void hidden_not(struct guard *g, const struct sys_stat *st)
{
    struct shared *s = g->shared;
    const struct born is = born_of(st);
    if (!(st->mask & SYS_STAT_BORN))
        return;
    table_lock(s);
    if (!free_has(s, &is))
        s->free[s->free_at++ % FREE_MAX] = is;
    table_unlock(s);
}

bool hidden_was_not(struct guard *g, const struct sys_stat *st)
{
    const struct born is = born_of(st);
    table_lock(g->shared);
    const bool yes = st->mask & SYS_STAT_BORN && free_has(g->shared, &is);
    table_unlock(g->shared);
    return yes;
}
