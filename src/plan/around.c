/*
 * A box inside a box. The kernel allows one supervisor of system calls, the guard of the box around this one, and it
 * judges what happens in here, too, by the rules it has told (protocol/guard_table.h). So what this plan would ask of a
 * guard holds if those rules say it already; otherwise the plan lacks it, and the reason names the first rule that
 * nobody would enforce. Paths are the same in both: only a caller with the outer box's own root is told its rules.
 *
 * Without user namespaces the inner box is one of the Landlock tier, and that guard performs its calls, too, without that
 * Landlock: whatever the outer box can write, this one can. So its files hold if it may write all of that.
 *
 * What is compared can only refuse too much. Rules that restrict are found by their bytes, rules that permit in any case
 * of letters. Pins need no comparison: what they keep in place is either protected or hidden by the outer rules, which
 * have their own, or a mount of this box's, which moves with its directory.
 */
#include "plan/make.h"

#include <sched.h>

struct around {
    const struct making *m;
    const struct plan_image *image;
    const struct guard_table *table;
    const char *guard, *hides, *any_depth, *sockets, *files; /* why not; NULL: held */
};

static const char *outer_text(const struct around *a, const struct guard_rule *r)
{
    return plan_string(a->image, r->text);
}

static const char *outer_below(const struct around *a, const struct guard_rule *r)
{
    return r->below ? plan_string(a->image, r->below) : "/";
}

static bool in_any_case(const char *path, const char *tree)
{
    return path_in(str_of(path), str_of(tree));
}

static bool permits(const struct guard_rule *r)
{
    return r->kind == GUARD_RULE_ROOT || r->kind == GUARD_RULE_PRIVATE;
}

static const char *or_words(const char *said)
{
    return said ? said : "the box around this one does not hold a rule"; /* no memory */
}
#define WHY(a, ...) or_words(arena_printf((a)->m->mem, __VA_ARGS__))

/* Whether this plan has such a tree of its own there: then it asks for no more than the outer rules. */
static bool permitted_here(const struct around *a, const char *path)
{
    for (size_t i = 0; i < a->m->n_guards; i++) {
        const struct guard_line *g = &a->m->guards[i];
        if ((g->kind == GUARD_RULE_ROOT || g->kind == GUARD_RULE_PRIVATE) && strcmp(g->text, path) == 0)
            return true;
    }
    return false;
}

/* A rule of `kinds` (bits) at or above `path`, and nothing nearer or below that permits more. */
static bool restricted(const struct around *a, const char *path, unsigned kinds)
{
    size_t longest = 0;
    bool found = false;
    for (uint32_t i = 0; i < a->table->n_rules; i++) {
        const struct guard_rule *r = &a->table->rules[i];
        const char *text = outer_text(a, r);
        if (!(kinds >> r->kind & 1) || !path_at_or_below(path, text))
            continue;
        found = true;
        longest = strlen(text) > longest ? strlen(text) : longest;
    }
    for (uint32_t i = 0; i < a->table->n_rules; i++) {
        const struct guard_rule *r = &a->table->rules[i];
        const char *text = outer_text(a, r);
        const bool shows =
            r->kind == GUARD_RULE_PROTECT && !(kinds & 1u << GUARD_RULE_PROTECT); /* read-only, in a hidden place */
        if (!permits(r) && !shows)
            continue;
        if (in_any_case(path, text) && (!found || strlen(text) >= longest))
            return false;
        if (in_any_case(text, path) && strlen(text) > strlen(path) && (shows || !permitted_here(a, text)))
            return false;
    }
    return found || kinds & 1u << GUARD_RULE_PROTECT; /* where nothing permits it, nothing can be changed */
}

/* A name for tops of writable trees, in the directory where the guard applies them because this plan asked. */
static bool is_name_at_top(const struct around *a, const char *path)
{
    const char *top = a->m->facts->around_top;
    if (!top || !path_below(path, top))
        return false;
    for (uint32_t i = 0; i < a->table->n_rules; i++) {
        const struct guard_rule *r = &a->table->rules[i];
        if (r->kind == GUARD_RULE_NAME && r->place == GUARD_ROOT && r->judge == GUARD_REFUSE &&
            r->flags & GUARD_RULE_DIRECTORY && !(r->flags & GUARD_RULE_PATTERN) &&
            path_at_or_below(path_rest(path, top), outer_text(a, r)))
            return a->table->mode == GUARD_STRICT;
    }
    return false;
}

/* Whether this plan has memory of its own there. */
static bool is_private_here(const struct around *a, const char *path)
{
    for (size_t i = 0; i < a->m->n_guards; i++) {
        const struct guard_line *g = &a->m->guards[i];
        if (g->kind == GUARD_RULE_PRIVATE && path_at_or_below(path, g->text))
            return true;
    }
    return false;
}

/* A private tree of the outer box around or in `tree` that this box sees: no hidden name applies there. */
static bool sees_private(const struct around *a, const char *tree)
{
    for (uint32_t i = 0; i < a->table->n_rules; i++) {
        const struct guard_rule *r = &a->table->rules[i];
        const char *text = outer_text(a, r);
        const struct path_fact *f = facts_path(a->m->facts, text); /* a cache may be a link into such memory */
        if (r->kind == GUARD_RULE_PRIVATE && (in_any_case(text, tree) || in_any_case(tree, text)) &&
            !is_private_here(a, text) && !(f && f->real && is_private_here(a, f->real)))
            return true;
    }
    return false;
}

/* A hidden file that this box mounts something over: the kernel refuses to move or change a mount point. */
static bool is_mounted_over(const struct making *m, const char *path)
{
    for (size_t i = 0; i < m->n_places; i++) {
        const struct plan_place *p = &m->places[i];
        if (p->act == ACT_DENY && m->facts->tier == TIER_NAMESPACES && strcmp(p->dst, path) == 0)
            return true;
    }
    return false;
}

static bool names_at_top(const struct making *m)
{
    for (size_t i = 0; i < m->n_guards; i++)
        if (m->guards[i].kind == GUARD_RULE_NAME && m->guards[i].place == GUARD_ROOT)
            return true;
    return false;
}

static bool has_names(const struct making *m)
{
    for (size_t i = 0; i < m->n_guards; i++)
        if (m->guards[i].kind == GUARD_RULE_NAME)
            return true;
    return false;
}

/* A writable tree of this plan: the outer guard must apply the names there, and at its top. */
static const char *judge_root(const struct around *a, const struct guard_line *g)
{
    const struct guard_rule *nearest = NULL;
    const bool names = has_names(a->m);
    for (uint32_t i = 0; i < a->table->n_rules; i++) {
        const struct guard_rule *r = &a->table->rules[i];
        const char *text = outer_text(a, r);
        const bool bound = permits(r) || r->kind == GUARD_RULE_PROTECT || r->kind == GUARD_RULE_HIDE;
        if (bound && in_any_case(g->text, text) &&
            (!nearest || strlen(text) > strlen(outer_text(a, nearest)) ||
             (permits(r) && strlen(text) == strlen(outer_text(a, nearest)))))
            nearest = r;
        const bool free =
            r->kind == GUARD_RULE_PRIVATE || (r->kind == GUARD_RULE_ROOT && r->flags & GUARD_RULE_LAYERED);
        if (names && free && in_any_case(text, g->text) && strlen(text) > strlen(g->text) && !permitted_here(a, text))
            return WHY(a, "%s is a private tree of the box around this one, where its supervisor guards no names",
                       text);
    }
    if (!nearest || !permits(nearest))
        return NULL;
    const char *text = outer_text(a, nearest);
    if (g->flags & GUARD_RULE_NO_LINKS && !(nearest->kind == GUARD_RULE_ROOT && nearest->flags & GUARD_RULE_NO_LINKS))
        return WHY(a, "in %s the box around this one allows symbolic links", g->text);
    if (!names)
        return NULL;
    if (nearest->kind == GUARD_RULE_PRIVATE)
        return WHY(a, "%s is in a private tree of the box around this one, where its supervisor guards no names",
                   g->text);
    if (nearest->flags & GUARD_RULE_LAYERED)
        return WHY(a, "%s is behind a copy-on-write layer of the box around this one, whose supervisor guards no names",
                   g->text);
    const char *top = a->m->facts->around_top;
    if (strcmp(text, g->text) != 0 && !(top && strcmp(top, g->text) == 0) && names_at_top(a->m))
        return WHY(a,
                   "the box around this one guards names such as .envrc at the top of its own workspace only; use it: "
                   "--workspace %s",
                   text);
    return NULL;
}

/* The same rule of names, for at least as much of the tree. */
static bool has_name(const struct around *a, const struct guard_line *g)
{
    for (uint32_t i = 0; i < a->table->n_rules; i++) {
        const struct guard_rule *r = &a->table->rules[i];
        const char *below = g->below ? g->below : "/";
        if (r->kind == g->kind && r->place == g->place && r->judge == g->judge &&
            (r->flags == g->flags || r->flags == (g->flags | GUARD_RULE_DEEP)) &&
            strcmp(outer_text(a, r), g->text) == 0 &&
            (r->flags & GUARD_RULE_DIRECT ? strcmp(below, outer_below(a, r)) == 0
                                          : path_at_or_below(below, outer_below(a, r))))
            return true;
    }
    return false;
}

/* Whether the guard around has these branches judged, too: all, or by the same pattern. */
static bool has_branch(const struct around *a, const struct guard_line *g)
{
    for (uint32_t i = 0; i < a->table->n_rules; i++) {
        const struct guard_rule *r = &a->table->rules[i];
        if (r->kind == GUARD_RULE_BRANCH && strcmp(outer_below(a, r), g->below) == 0 &&
            (strcmp(outer_text(a, r), g->text) == 0 || strcmp(outer_text(a, r), "*") == 0))
            return true;
    }
    return false;
}

static void judge_line(struct around *a, const struct guard_line *g)
{
    const char *none = NULL;
    switch ((enum guard_rule_kind)g->kind) {
    case GUARD_RULE_ROOT:
        none = g->flags & GUARD_RULE_LAYERED ? NULL : judge_root(a, g);
        break;
    case GUARD_RULE_NAME:
        if (!has_name(a, g))
            none = WHY(a, "the box around this one does not guard the name %s", g->text);
        break;
    case GUARD_RULE_PROTECT:
        if (!restricted(a, g->text, 1u << GUARD_RULE_PROTECT | 1u << GUARD_RULE_HIDE) && !is_name_at_top(a, g->text) &&
            !is_mounted_over(a->m, g->text))
            none = WHY(a, "the box around this one does not protect %s", g->text);
        break;
    case GUARD_RULE_HIDE:
        if (!a->hides && !(a->image->filter & FILTER_READS && restricted(a, g->text, 1u << GUARD_RULE_HIDE)))
            a->hides = WHY(a, "%s is in a writable place, and the box around this one does not hide it", g->text);
        break;
    case GUARD_RULE_HIDE_NAME:
        if (!a->any_depth &&
            !(a->image->filter & FILTER_READS && has_name(a, g) && !sees_private(a, g->below ? g->below : "/")))
            a->any_depth = WHY(a, "the box around this one does not hide the name %s", g->text);
        break;
    case GUARD_RULE_BRANCH:
        if (!has_branch(a, g))
            none = WHY(a, "the box around this one does not have hooks judge commits for %s", g->text);
        break;
    case GUARD_RULE_PIN:
    case GUARD_RULE_SOCKET:
    case GUARD_RULE_PRIVATE:
        break;
    }
    a->guard = a->guard ? a->guard : none;
}

/* Whether this plan hides `path` in memory of its own, or allows the socket, too. */
static bool is_out_of_reach(const struct making *m, const char *path)
{
    const struct guard_line *nearest = NULL;
    for (size_t i = 0; i < m->n_guards; i++) {
        const struct guard_line *g = &m->guards[i];
        if (g->kind == GUARD_RULE_SOCKET && strcmp(g->text, path) == 0)
            return true;
        const bool bound = g->kind == GUARD_RULE_ROOT || g->kind == GUARD_RULE_PROTECT || g->kind == GUARD_RULE_PRIVATE;
        if (bound && path_at_or_below(path, g->text) && (!nearest || strlen(g->text) > strlen(nearest->text)))
            nearest = g;
    }
    return m->facts->tier == TIER_NAMESPACES && nearest && nearest->kind == GUARD_RULE_PRIVATE &&
           !(nearest->flags & GUARD_RULE_KEPT);
}

static void judge_sockets(struct around *a)
{
    for (uint32_t i = 0; !a->sockets && i < a->table->n_rules; i++) {
        const struct guard_rule *r = &a->table->rules[i];
        if (r->kind == GUARD_RULE_SOCKET && !is_out_of_reach(a->m, outer_text(a, r)))
            a->sockets = WHY(a, "the box around this one may connect to %s; allow it here as well (--unix-socket)",
                             outer_text(a, r));
    }
}

/* The rules of both are about paths: a tree that is shown elsewhere has others. */
static const char *shown_elsewhere(const struct around *a)
{
    for (size_t i = 0; i < a->m->n_places; i++) {
        const struct plan_place *p = &a->m->places[i];
        if (p->act == ACT_ATTACH && p->region == REGION_WRITABLE && p->src && strcmp(p->src, p->dst) != 0)
            return WHY(a, "a mount shows a writable tree at %s, where the box around this one has other rules", p->dst);
    }
    return NULL;
}

/* Whether this plan has a cache there: its writes go to the outer box's own layer, never to the host's. Where the host has
   none, it is a link into memory that only caches are in. */
static bool is_cache_here(const struct making *m, const char *path)
{
    if (path_at_or_below(path, LINKED_AT))
        return true;
    for (size_t i = 0; i < m->policy->n_paths; i++) {
        const struct path_rule *r = &m->policy->paths[i];
        if (r->access == PATH_CACHE && !r->any_depth && !r->pattern && path_at_or_below(path, r->path))
            return true;
    }
    for (size_t i = 0; i < m->n_places; i++) {
        if (m->places[i].kind == PLACE_CACHE && path_at_or_below(path, m->places[i].dst))
            return true;
    }
    return false;
}

/* The outer box's memory (/tmp) is shared, a loss of its own; what it can change of the host's, this one may change, too. */
static void judge_files(struct around *a)
{
    const char *workspace = a->m->workspace ? a->m->workspace : "";
    for (uint32_t i = 0; !a->files && i < a->table->n_rules; i++) {
        const struct guard_rule *r = &a->table->rules[i];
        const char *text = outer_text(a, r);
        bool held = r->kind != GUARD_RULE_ROOT && !(r->kind == GUARD_RULE_PRIVATE && r->flags & GUARD_RULE_KEPT);
        for (size_t k = 0; !held && k < a->m->n_guards; k++)
            held = a->m->guards[k].kind == GUARD_RULE_ROOT && path_at_or_below(text, a->m->guards[k].text);
        if (held || is_cache_here(a->m, text))
            continue;
        const bool wider = path_below(workspace, text) && !a->m->policy->workspace_read_only;
        a->files = WHY(a, "the box around this one can write %s, and inside it nothing takes that away; %s %s", text,
                       wider ? "use all of it: --workspace" : "allow it here as well: --rw", text);
    }
}

/* Whether the outer box shows nothing there: its own masks have no permissions, and whoever follows a name stays outside of what may not be
   searched. */
static bool is_masked(const struct making *m, const char *path)
{
    for (size_t i = 0; i < m->facts->n_paths; i++) {
        const struct path_fact *f = &m->facts->paths[i];
        if (strcmp(f->real, path) == 0)
            return f->type == PATH_MISSING || f->type == PATH_UNREADABLE || (f->mode & 0777) == 0;
    }
    return false;
}

/*
 * The outer guard opens some files itself, and Landlock has no part in that: all of them where its rules hide names at any depth, else
 * those that may be created (O_CREAT), which can be open for reading alone. So what is hidden must be hidden by the outer box.
 */
static void judge_hidden(struct around *a)
{
    const bool all = a->image->filter & FILTER_READS;
    if (landlock_is_third(a->m))
        return; /* refused anyway, with that reason */
    for (size_t i = 0; !a->hides && i < a->m->n_places; i++) {
        const struct plan_place *p = &a->m->places[i];
        if (p->kind == PLACE_HIDE && p->act == ACT_LANDLOCK && !restricted(a, p->dst, 1u << GUARD_RULE_HIDE) &&
            (all || !is_masked(a->m, p->dst)))
            a->hides =
                WHY(a, "the supervisor of the box around this one opens files itself, and does not hide %s", p->dst);
    }
}

features around_holds(const struct making *m, const char **ret_why)
{
    const struct plan_image *image = m->facts->around;
    if (!image)
        return 0;
    struct around a = {.m = m, .image = image, .table = (const void *)((const char *)image + image->guard_at)};
    const char *elsewhere = shown_elsewhere(&a);
    a.guard = a.hides = a.any_depth = elsewhere;
    if (m->policy->guard != GUARD_OFF && a.table->mode > m->policy->guard)
        a.guard = a.table->mode == GUARD_OFF ? "the box around this one has --guard off"
                                             : "the box around this one has --guard existing";
    for (size_t i = 0; i < m->n_guards; i++)
        judge_line(&a, &m->guards[i]);
    judge_sockets(&a);
    judge_files(&a);
    if (m->facts->tier == TIER_LANDLOCK)
        judge_hidden(&a);
    const char *const no_processes =
        image->namespaces & CLONE_NEWPID ? NULL : "the box around this one has no pid namespace";
    const char *const no_network =
        image->namespaces & CLONE_NEWNET ? NULL : "the box around this one has no network namespace";
    const struct {
        features bit;
        const char *why;
    } all[] = {{F(GUARD), a.guard},
               {F(HIDES), a.hides ? a.hides : a.any_depth},
               {F(HIDES_ANY_DEPTH), a.any_depth},
               {F(UNIX_SOCKETS), a.sockets},
               {F(FILES), a.files},
               {F(SIGNALS), no_processes},
               {F(ABSTRACT_SOCKETS), no_network}};
    features held = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const int at = __builtin_ctzll(all[i].bit);
        ret_why[at] = all[i].why;
        held |= all[i].why ? 0 : all[i].bit;
    }
    return held;
}
