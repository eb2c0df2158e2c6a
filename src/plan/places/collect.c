/*
 * Collects places: what every box has of its own, what the rules name, and pinfold's own. A rule is about an object of
 * the host, by its real path; the object is wherever the box can see it, so a rule that restricts is repeated below
 * each mount that shows the object elsewhere, and at the other paths that the host has for it. At the end the places are sorted by path, one for each path, the
 * strictest if there were several.
 */
#include "plan/make.h"

#include "policy/build.h"

static struct plan_place *place_of_fact(struct making *m, enum place_kind kind, const struct path_fact *f,
                                        uint32_t origin)
{
    struct plan_place *p = place_add(m, kind, f->real, origin);
    if (p) {
        p->src = f->real;
        p->parent = f->parent;
        p->type = p->dst_type = (uint8_t)f->type;
        p->refused = f->refused;
        p->foreign = f->foreign;
        p->said = true;
    }
    return p;
}

static bool exists(const struct path_fact *f)
{
    return f->type == PATH_DIR || f->type == PATH_FILE || f->type == PATH_OTHER;
}

/* The error message for a rule about something that does not exist, or may not be examined. */
static int say_missing(struct making *m, const char *what, const char *path, const struct path_fact *f, uint32_t origin)
{
    const char *where = origin_of(m, origin);
    if (f->type == PATH_UNREADABLE)
        return err_sys(m->e, ERR_POLICY, f->no ? f->no : EACCES, "%s %s (%s)", what, path, where);
    int r = err_sys(m->e, ERR_POLICY, f->no ? f->no : ENOENT, "%s %s (%s)", what, path, where);
    return err_hint(m->e, r,
                    strchr(path, ':')
                        ? "create it first, or remove the rule; to show SRC at another path: --mount SRC:DST"
                        : "create it first, or remove the rule");
}

/*
 * A path through a symbolic link in a private tree would lead nowhere inside, so the link is created again. The common
 * end of both paths belongs to neither link.
 */
static int repeat_link(struct making *m, const char *asked, const char *real, uint32_t origin)
{
    size_t a = strlen(asked), b = strlen(real), cut = 0;
    if (strcmp(asked, real) == 0)
        return 0;
    for (size_t i = 1; i < a && i < b && asked[a - i] == real[b - i]; i++) {
        if (asked[a - i] == '/')
            cut = i;
    }
    const char *link = arena_str(m->mem, (struct str){asked, a - cut});
    struct plan_place *p = link ? place_add(m, PLACE_LINK, link, origin) : NULL;
    if (!p)
        return no_memory(m);
    p->target = arena_str(m->mem, (struct str){real, b - cut});
    return p->target ? 0 : no_memory(m);
}

static const char *asked_to(const void *mounts, size_t i)
{
    return ((const struct mount_place *)mounts)[i].asked_to;
}

/* The deepest mount whose target is strictly above `asked`; NULL if none. */
static const struct mount_place *mount_above(const struct making *m, const char *asked)
{
    size_t i = m->n_mounts ? path_find_above(asked, m->n_mounts, asked_to, m->mounts) : SIZE_MAX;
    return i == SIZE_MAX ? NULL : &m->mounts[i];
}

static const char *seen_inside(struct making *m, const struct mount_place *at, const char *real)
{
    return at && path_at_or_below(real, at->src) ? path_moved(m->mem, real, at->src, at->dst) : real;
}

/*
 * In an image nothing of the host is at its own path except what is mounted: a workspace that a mount shows elsewhere
 * is only there. Of several mounts, the deepest one that shows it.
 */
const char *path_inside(struct making *m, const char *real)
{
    const struct mount_place *best = NULL;
    for (size_t i = 0; m->facts->image && i < m->n_mounts; i++) {
        const struct mount_place *at = &m->mounts[i];
        if (path_at_or_below(real, at->src) && (!best || strlen(at->src) > strlen(best->src)))
            best = at;
    }
    return best ? path_moved(m->mem, real, best->src, best->dst) : real;
}

static int move_inside(struct making *m, struct plan_place *p)
{
    const char *dst = path_inside(m, p->src);
    if (dst == p->src)
        return 0;
    p->dst = dst;
    p->parent = dst ? path_dir(m->mem, dst) : NULL;
    return p->parent ? 0 : no_memory(m);
}

/* An empty file over a name that is not there is how bubblewrap's callers keep it from being made: that is a hidden name. */
static int collect_absent(struct making *m, const struct mount_rule *rule, const struct path_fact *to)
{
    struct plan_place *p = place_of_fact(m, PLACE_HIDE, to, rule->origin);
    if (!p)
        return no_memory(m);
    p->inside = m->n_mounts && mount_above(m, rule->to);
    return 0;
}

/* Without mounts nothing appears at another path. Where the policy lets that go, what would be there is left out. */
static bool may_leave_out(const struct making *m)
{
    return m->facts->tier == TIER_LANDLOCK && !m->facts->unsandboxed && !(m->facts->can & F(REMAP)) &&
           m->policy->may_lose & F(REMAP);
}

static bool leaves_out(const struct making *m, const struct path_fact *to)
{
    return may_leave_out(m) && to->type == PATH_MISSING;
}

/* Whether what is at `path` in the box is the image's, so that the host's links mean nothing there (/lib64 is one on many hosts). */
static bool is_in_image(const struct making *m, const char *path)
{
    const struct policy *p = m->policy;
    bool hosts = !m->facts->image || path_at_or_below(path, p->workspace);
    for (size_t i = 0; !hosts && i < p->n_paths; i++) {
        const enum path_access access = p->paths[i].access;
        hosts = (access == PATH_RW || access == PATH_RO || access == PATH_CACHE) && !p->paths[i].any_depth &&
                !p->paths[i].pattern && path_at_or_below(path, p->paths[i].path);
    }
    for (size_t i = 0; !hosts && i < p->n_storages; i++)
        hosts = path_at_or_below(path, p->storages[i].path);
    return !hosts;
}

static int collect_mount(struct making *m, const struct mount_rule *rule)
{
    const struct path_fact *from = fact_of(m, rule->from), *to = fact_of(m, rule->to);
    if (!from || !to)
        return -EINVAL;
    if (rule->read_only && to->type == PATH_MISSING && strcmp(rule->from, "/dev/null") == 0)
        return collect_absent(m, rule, to);
    if (!exists(from))
        return say_missing(m, "mount: source", rule->from, from, rule->origin);
    if (!to->real[1])
        return err_say(m->e, ERR_POLICY, "mount %s:/ (%s): nothing can be mounted over the root", rule->from,
                       origin_of(m, rule->origin));
    if (leaves_out(m, to))
        return 0;
    if (may_leave_out(m) && strcmp(from->real, to->real) != 0)
        return err_say(
            m->e, ERR_CANNOT,
            "mount %s:%s (%s): the box has no mounts, and would see in its place what this machine has there",
            rule->from, rule->to, origin_of(m, rule->origin));
    const struct mount_place *around = mount_above(m, rule->to);
    const bool images = !around && is_in_image(m, rule->to);
    struct plan_place *p = place_of_fact(m, rule->read_only ? PLACE_RO : PLACE_RW, from, rule->origin);
    struct mount_place *mount = arena_push(m->mem, &m->mounts, &m->n_mounts, sizeof *mount);
    if (!p || !mount)
        return no_memory(m);
    p->mount = true;
    p->no_links = rule->no_links;
    p->dst = images ? rule->to : seen_inside(m, around, to->real);
    p->parent = images ? path_dir(m->mem, rule->to) : seen_inside(m, around, to->parent);
    p->dst_type = (uint8_t)to->type;
    if (!p->dst || !p->parent)
        return no_memory(m);
    *mount = (struct mount_place){.src = p->src, .dst = p->dst, .asked_to = rule->to};
    return images ? 0 : repeat_link(m, rule->to, to->real, rule->origin);
}

/* A target inside another comes after it. */
static int collect_mounts(struct making *m)
{
    const struct mount_rule **order = arena_zero(m->mem, (m->policy->n_mounts + 1) * sizeof *order);
    if (!order)
        return no_memory(m);
    for (size_t i = 0; i < m->policy->n_mounts; i++)
        order[i] = &m->policy->mounts[i];
    if (sort_pointers(m->mem, (const void **)order, m->policy->n_mounts, mount_target_order) < 0)
        return no_memory(m);
    int r = 0;
    for (size_t i = 0; r == 0 && i < m->policy->n_mounts; i++)
        r = collect_mount(m, order[i]);
    return r;
}

static int collect_storages(struct making *m)
{
    for (size_t i = 0; i < m->policy->n_storages; i++) {
        const struct storage_rule *rule = &m->policy->storages[i];
        const struct path_fact *f = fact_of(m, rule->path);
        if (!f)
            return -EINVAL;
        if (may_leave_out(m)) /* nothing is stored, which the loss says */
            continue;
        const struct mount_place *around = mount_above(m, rule->path);
        struct plan_place *p = place_add(m, PLACE_STORAGE, seen_inside(m, around, f->real), rule->origin);
        if (!p)
            return no_memory(m);
        p->mount = p->said = true;
        p->parent = seen_inside(m, around, f->parent);
        p->type = PATH_DIR;
        p->dst_type = (uint8_t)f->type;
        p->mode = 0700;
        if (!p->dst || !p->parent)
            return no_memory(m);
        int r = repeat_link(m, rule->path, f->real, rule->origin);
        if (r < 0)
            return r;
    }
    return 0;
}

/*
 * The workspace. Somebody who runs a command in the home directory does not mean to share all of it, so that must be
 * said explicitly.
 */
static int collect_workspace(struct making *m)
{
    const struct policy *p = m->policy;
    const struct path_fact *f = fact_of(m, p->workspace);
    if (!f)
        return -EINVAL;
    if (!exists(f))
        return say_missing(m, "workspace", p->workspace, f, p->workspace_origin);
    if (f->type != PATH_DIR)
        return err_sys(m->e, ERR_POLICY, ENOTDIR, "workspace %s (%s)", p->workspace, origin_of(m, p->workspace_origin));
    m->workspace = f->real;
    bool explicit = p->workspace_origin < p->n_origins && p->origins[p->workspace_origin].layer >= LAYER_USER;
    if (!p->workspace_read_only && !f->real[1]) {
        int r = err_say(m->e, ERR_POLICY, "the whole file system cannot be the workspace");
        return err_hint(m->e, r, "change to a project's directory, or use --workspace DIR");
    }
    if (!p->workspace_read_only && !explicit && m->home && path_at_or_below(m->home, f->real)) {
        int r = err_say(m->e, ERR_POLICY, "%s contains your home directory and would be writable as the workspace",
                        f->real);
        return err_hint(m->e, r, "change to a project's directory, or use --workspace DIR");
    }
    const bool shared = (f->mode & 01002) == 01002; /* everybody may create names, as in /tmp */
    if (!p->workspace_read_only && !explicit && shared) {
        int r = err_say(m->e, ERR_POLICY, WORKSPACE_TOO_WIDE "'%s', where all users keep files", f->real);
        return err_hint(m->e, r, "change to a directory of your own in it, or use --workspace %s", f->real);
    }
    const bool by_rule = p->workspace_read_only && p->read_only_origin; /* which is what a refusal must name */
    struct plan_place *at = place_of_fact(m, p->workspace_read_only ? PLACE_RO : PLACE_RW, f,
                                          by_rule ? p->read_only_origin : p->workspace_origin);
    if (!at)
        return no_memory(m);
    at->workspace = true;
    at->said = false;
    at->why = explicit || p->workspace_named || by_rule ? NULL : "workspace";
    if (move_inside(m, at) < 0)
        return -ENOMEM;
    return repeat_link(m, p->workspace, f->real, p->workspace_origin);
}

static enum place_kind kind_of(enum path_access access)
{
    switch (access) {
    case PATH_HIDE:
        return PLACE_HIDE;
    case PATH_RO:
        return PLACE_RO;
    case PATH_RW:
        return PLACE_RW;
    case PATH_CACHE:
        return PLACE_CACHE;
    case PATH_PROTECT:
        return PLACE_PROTECT;
    }
    return PLACE_HIDE;
}

static const char access_names[][8] = {
    [PATH_HIDE] = "hide", [PATH_RO] = "ro", [PATH_RW] = "rw", [PATH_PROTECT] = "protect", [PATH_CACHE] = "cache"};

/* A name that is a link is hidden or protected as a name, in addition to its target. */
static int collect_link_name(struct making *m, enum place_kind kind, const struct path_fact *f, uint32_t origin,
                             bool absent)
{
    struct plan_place *p = place_add(m, kind, f->link, origin);
    if (!p)
        return no_memory(m);
    p->src = f->link;
    p->parent = path_dir(m->mem, f->link);
    p->type = p->dst_type = PATH_FILE;
    p->link = p->said = true;
    p->builtin = origin_is_builtin(m->policy, origin);
    p->absent = absent;
    return p->parent ? 0 : no_memory(m);
}

static int collect_fixed(struct making *m, const struct path_rule *rule)
{
    const struct path_fact *f = fact_of(m, rule->path);
    if (!f)
        return -EINVAL;
    bool named = rule->access == PATH_HIDE || rule->access == PATH_PROTECT;
    /* Profiles hide homes of others; whether a rule means this home depends on its owner. */
    if (rule->access == PATH_HIDE && origin_is_builtin(m->policy, rule->origin) && m->home &&
        path_at_or_below(m->home, f->real))
        return 0;
    /* A profile's rule is a guess about the machine; it makes nothing accessible where a box may have put a link. */
    const bool of_outer_box = m->facts->around && rule->access == PATH_CACHE && path_below(f->real, LINKED_AT);
    if (!named && f->planted && origin_is_builtin(m->policy, rule->origin) && !of_outer_box)
        return 0;
    /* A private directory and its variable replace the usual place there, and this one with it (redirect_cache). */
    if (rule->moved && m->facts->tier == TIER_LANDLOCK)
        return 0;
    bool missing_cache = rule->access == PATH_CACHE && f->type == PATH_MISSING;
    if (!named && !exists(f) && !missing_cache)
        return rule->optional ? 0 : say_missing(m, access_names[rule->access], rule->path, f, rule->origin);
    if (rule->access == PATH_CACHE && f->type == PATH_FILE)
        return rule->optional
                   ? 0
                   : err_sys(m->e, ERR_POLICY, ENOTDIR, "cache %s (%s)", rule->path, origin_of(m, rule->origin));
    struct plan_place *p = place_of_fact(m, kind_of(rule->access), f, rule->origin);
    if (!p)
        return no_memory(m);
    p->builtin = origin_is_builtin(m->policy, rule->origin);
    p->closed = p->builtin && strcmp(m->policy->origins[rule->origin].file, OWN_ORIGIN) == 0;
    p->parts = rule->parts;
    p->once = rule->once;
    p->absent = rule->absent;
    p->inside = m->n_mounts && mount_above(m, rule->path);
    if (f->type == PATH_UNREADABLE && rule->access == PATH_HIDE && (f->no == EACCES || f->no == EPERM)) {
        /* Below a directory that this caller may not search: that directory stays closed. */
        p->src = p->dst = f->parent;
        p->parent = path_dir(m->mem, f->parent);
        p->type = p->dst_type = PATH_DIR;
        if (!p->parent)
            return no_memory(m);
    } else if (f->type == PATH_UNREADABLE) {
        p->type = p->dst_type = PATH_DIR; /* a dead network mount: it exists, but cannot be examined */
    }
    if (named && f->link)
        return collect_link_name(m, p->kind, f, rule->origin, rule->absent);
    return named ? 0 : repeat_link(m, rule->path, f->real, rule->origin);
}

/* "/etc/ssh/ssh_host_*_key": present matches, and the pattern for later ones. */
static int collect_pattern(struct making *m, const struct path_rule *rule)
{
    const char *dir = path_dir(m->mem, rule->path);
    const struct path_fact *f = dir ? fact_of(m, dir) : NULL;
    if (!f)
        return dir ? -EINVAL : no_memory(m);
    if (rule->access == PATH_RW || rule->access == PATH_CACHE)
        return err_say(m->e, ERR_POLICY, "%s %s (%s): writable paths cannot be patterns", access_names[rule->access],
                       rule->path, origin_of(m, rule->origin));
    if (f->type != PATH_DIR) {
        struct plan_place *p =
            rule->access == PATH_RO ? NULL : place_of_fact(m, kind_of(rule->access), f, rule->origin);
        return p || rule->access == PATH_RO ? 0 : no_memory(m);
    }
    struct plan_place *p = place_of_fact(m, PLACE_PATTERN, f, rule->origin);
    if (!p)
        return no_memory(m);
    p->src = p->dst = path_join(m->mem, f->real, path_name(rule->path));
    p->parent = f->real;
    p->hides = rule->access == PATH_HIDE;
    p->refused =
        m->facts->uid != 0 && f->uid != m->facts->uid && (f->mode & 022) == 0; /* only others create names there */
    p->builtin = origin_is_builtin(m->policy, rule->origin);
    return p->dst ? 0 : no_memory(m);
}

/* Names at any depth below a directory, wherever the box sees that directory. */
static int add_any_depth(struct making *m, const struct path_rule *rule, const char *below)
{
    bool hides = rule->access == PATH_HIDE;
    if (add_guard(m, hides ? GUARD_RULE_HIDE_NAME : GUARD_RULE_NAME, rule->path, rule->origin) < 0)
        return -ENOMEM;
    struct guard_line *g = &m->guards[m->n_guards - 1];
    g->below = below[1] ? below : NULL;
    g->place = GUARD_ANY_DEPTH;
    g->judge = GUARD_REFUSE;
    g->flags = GUARD_RULE_DIRECTORY | (rule->pattern ? GUARD_RULE_PATTERN : 0) | (hides ? 0 : GUARD_RULE_ALWAYS);
    return 0;
}

static int collect_any_depth(struct making *m, const struct path_rule *rule)
{
    const struct path_fact *f = fact_of(m, rule->below ? rule->below : "/");
    if (!f)
        return -EINVAL;
    if (rule->access == PATH_RW || rule->access == PATH_CACHE)
        return err_say(m->e, ERR_POLICY, "%s **/%s (%s): writable paths cannot be names at any depth",
                       access_names[rule->access], rule->path, origin_of(m, rule->origin));
    if (rule->access == PATH_HIDE) {
        m->any_hide = true;
        if (m->policy->expand == EXPAND_START) {
            m->asked_losses |= F(EXPAND_START);
            return 0;
        }
        m->any_depth_hide = true;
        const char *text =
            arena_printf(m->mem, "%s%s**/%s", f->real[1] ? rule->below : "", f->real[1] ? "/" : "", rule->path);
        if (!text || add_read(m, text) < 0)
            return no_memory(m);
    } else {
        m->any_protect = true;
    }
    int r = add_any_depth(m, rule, f->real);
    for (size_t i = 0; r == 0 && i < m->facts->n_aliases; i++) {
        if (strcmp(m->facts->aliases[i].asked, f->real) == 0)
            r = add_any_depth(m, rule, m->facts->aliases[i].real);
    }
    for (size_t i = 0; r == 0 && i < m->n_mounts; i++) {
        const struct mount_place *at = &m->mounts[i];
        if (f->real[1] && path_at_or_below(at->src, f->real))
            r = add_any_depth(m, rule, at->dst);
        else if (f->real[1] && path_below(f->real, at->src))
            r = add_any_depth(m, rule, path_moved(m->mem, f->real, at->src, at->dst));
    }
    return r < 0 ? no_memory(m) : 0;
}

static int collect_rules(struct making *m)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < m->policy->n_paths; i++) {
        const struct path_rule *rule = &m->policy->paths[i];
        if (rule->any_depth)
            r = collect_any_depth(m, rule);
        else if (rule->pattern)
            r = collect_pattern(m, rule);
        else
            r = collect_fixed(m, rule);
    }
    for (size_t i = 0; r == 0 && i < m->facts->n_matches; i++) {
        const struct match_fact *f = &m->facts->matches[i];
        const struct path_rule *rule = f->rule < m->policy->n_paths ? &m->policy->paths[f->rule] : NULL;
        if (!rule)
            return err_say(m->e, ERR_BUG, "the survey matched a rule that does not exist");
        struct plan_place *p = place_add(m, PLACE_HIDE, f->real, rule->origin);
        if (!p)
            return no_memory(m);
        p->src = f->real;
        p->parent = path_dir(m->mem, f->real);
        p->type = p->dst_type = (uint8_t)f->type;
        p->match = p->said = true;
        p->builtin = origin_is_builtin(m->policy, rule->origin);
        p->refused = f->refused;
        if (!p->parent)
            return no_memory(m);
    }
    return r;
}

/* Whether what would be there is in a mount that is left out. */
static bool is_left_out(struct making *m, const char *path)
{
    for (size_t i = 0; i < m->policy->n_mounts; i++) {
        const struct path_fact *to = fact_of(m, m->policy->mounts[i].to);
        if (to && path_at_or_below(path, m->policy->mounts[i].to) && leaves_out(m, to))
            return true;
    }
    return false;
}

static int collect_sockets(struct making *m)
{
    for (size_t i = 0; i < m->policy->n_unix_sockets; i++) {
        if (is_left_out(m, m->policy->unix_sockets[i]))
            continue;
        const struct path_fact *f = fact_of(m, m->policy->unix_sockets[i]);
        struct plan_place *p = f ? place_of_fact(m, PLACE_SOCKET, f, 0) : NULL;
        if (!p)
            return f ? no_memory(m) : -EINVAL;
        p->inside = m->n_mounts && mount_above(m, m->policy->unix_sockets[i]);
        p->why = "unix_sockets";
    }
    return 0;
}

static const char clone_why[] = "what this pinfold is built from";

static int add_own(struct making *m, const struct path_fact *f, enum place_kind kind, const char *why)
{
    if (f->type == PATH_UNREADABLE)
        return 0; /* the box cannot reach what this caller cannot */
    struct plan_place *p = place_of_fact(m, kind, f, 0);
    if (!p)
        return no_memory(m);
    p->said = false;
    p->own = p->closed = true;
    p->why = why;
    return 0;
}

/* No rule makes closed places accessible, under any name or link. */
static int check_closed(struct making *m)
{
    size_t n = m->n_places;
    for (size_t i = 0; i < n; i++) {
        const struct plan_place *own = &m->places[i];
        for (size_t at = 0; own->closed && at < n; at++) {
            const struct plan_place *p = &m->places[at];
            bool writes = p->kind == PLACE_RW || p->kind == PLACE_CACHE;
            bool opens = writes || p->kind == PLACE_RO || p->kind == PLACE_SOCKET;
            if (!(own->kind == PLACE_HIDE ? opens : writes) || !(p->said || p->workspace) || (p->builtin && !writes) ||
                !path_at_or_below(p->src, own->src))
                continue;
            /* A part that a mount shows elsewhere, and a socket named in it, which stays closed at the host's path. */
            bool shown = p->mount ? !path_at_or_below(p->dst, own->src) : p->kind == PLACE_SOCKET && p->inside;
            if (own->parts && shown && path_below(p->src, own->src))
                continue;
            return err_say(m->e, ERR_REFUSED, "%s (%s): %s stays closed to every box%s", p->src,
                           origin_of(m, p->origin), own->why ? own->why : OWN_ORIGIN,
                           own->why == clone_why ? "; to work on it in one, install pinfold (scripts/install.sh) and "
                                                   "start that one"
                                                 : "");
        }
    }
    return 0;
}

/* What everybody may read needs care only if something writable or mounted is around it. */
static bool all_read_only(const struct making *m, const struct path_fact *f)
{
    for (size_t i = 0; i < m->n_places; i++) {
        const struct plan_place *p = &m->places[i];
        if ((p->kind == PLACE_RW || p->kind == PLACE_CACHE || p->mount) && p->src && path_overlap(f->real, p->src))
            return false;
    }
    return true;
}

/*
 * pinfold's own configuration, trust and state are hidden, also where the box writes around them, and its program
 * is read-only, whatever a policy says: a box that could change them would decide what the next one may do.
 */
static int collect_own(struct making *m)
{
    const char *const first[] = {path_join(m->mem, m->facts->state_home, "pinfold"),
                                 path_join(m->mem, m->facts->config_home, "pinfold"), m->facts->program, "/etc/pinfold",
                                 m->facts->runtime};
    static const char why[][32] = {"pinfold's own state", "pinfold's own configuration", "pinfold itself",
                                   "pinfold's own configuration", "pinfold's own runtime directory"};
    enum { FIRST = sizeof first / sizeof *first };
    int r = 0;
    for (size_t i = 0; r == 0 && i < FIRST + N_HELPERS + m->facts->n_clone; i++) {
        size_t helper = i - FIRST;
        const char *path = i < FIRST            ? first[i]
                           : helper < N_HELPERS ? m->facts->helpers[helper]
                                                : m->facts->clone[helper - N_HELPERS];
        const char *is = i < FIRST ? why[i] : helper < N_HELPERS ? "pinfold itself" : clone_why;
        const struct path_fact *f = path ? fact_of(m, path) : NULL;
        enum place_kind kind = i < 2 ? PLACE_HIDE : PLACE_PROTECT;
        if (!f && path)
            return -EINVAL;
        if (f && (i < 3 || !all_read_only(m, f)))
            r = add_own(m, f, kind, is);
        for (size_t k = 0; r == 0 && f && k < m->facts->n_aliases; k++) {
            const struct path_fact *alias = &m->facts->aliases[k];
            if (strcmp(alias->asked, f->real) == 0 && (i < 3 || !all_read_only(m, alias)))
                r = add_own(m, alias, kind, is);
        }
    }
    return r < 0 ? r : check_closed(m);
}

/* What the host shows at a second path: a restriction is about the object. */
static int repeat_at_aliases(struct making *m)
{
    const size_t n = m->n_places;
    for (size_t k = 0; k < m->facts->n_aliases; k++) {
        const struct path_fact *alias = &m->facts->aliases[k];
        for (size_t i = 0; i < n; i++) {
            struct plan_place copy = m->places[i];
            const bool is_pattern = copy.kind == PLACE_PATTERN;
            if (copy.own || copy.mount || copy.link || !copy.src || (!is_pattern && copy.kind < PLACE_PROTECT) ||
                strcmp(is_pattern ? copy.parent : copy.src, alias->asked) != 0)
                continue;
            struct plan_place *p = place_add(m, copy.kind, NULL, copy.origin);
            if (!p)
                return no_memory(m);
            copy.order = p->order;
            copy.src = copy.dst = is_pattern ? path_join(m->mem, alias->real, path_name(copy.src)) : alias->real;
            copy.parent = is_pattern ? alias->real : alias->parent;
            if (!copy.src)
                return no_memory(m);
            if (!is_pattern) {
                copy.type = copy.dst_type = (uint8_t)alias->type;
                copy.foreign = alias->foreign;
            }
            copy.inside = false;
            copy.of_home = m->home && path_at_or_below(alias->asked, m->home);
            *p = copy;
        }
    }
    return 0;
}

static int by_src(const void *a, const void *b)
{
    const struct plan_place *const *x = a, *const *y = b;
    return path_order((*x)->src, (*y)->src);
}

/* A restriction applies wherever a mount shows the same object. */
static bool follows_object(const struct plan_place *p, const struct mount_place *at)
{
    if (p->mount || !p->src || p->kind < PLACE_SOCKET)
        return false;
    if (!path_below(p->src, at->src))
        return false;
    if (p->kind == PLACE_RW || p->kind == PLACE_CACHE)
        return p->inside;
    return true;
}

static int repeat_below_mounts(struct making *m)
{
    size_t n = m->n_places;
    const struct plan_place **by = m->n_mounts ? arena_zero(m->mem, (n + 1) * sizeof *by) : NULL;
    if (!m->n_mounts)
        return 0;
    if (!by)
        return no_memory(m);
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (m->places[i].src)
            by[k++] = &m->places[i];
    }
    /* The copies go to a new array while `by` points into the old one, which stays valid in the arena. */
    if (sort_pointers(m->mem, (const void **)by, k, by_src) < 0)
        return no_memory(m);
    for (size_t i = 0; i < m->n_mounts; i++) {
        const struct mount_place *at = &m->mounts[i];
        size_t low = 0, high = k;
        while (low < high) {
            size_t mid = low + (high - low) / 2;
            if (path_order(by[mid]->src, at->src) < 0)
                low = mid + 1;
            else
                high = mid;
        }
        for (; low < k && path_at_or_below(by[low]->src, at->src); low++) {
            if (!follows_object(by[low], at))
                continue;
            struct plan_place copy = *by[low], *p = place_add(m, copy.kind, NULL, copy.origin);
            if (!p)
                return no_memory(m);
            if (copy.inside && (copy.kind == PLACE_RW || copy.kind == PLACE_CACHE || copy.kind == PLACE_SOCKET))
                m->places[copy.order - 1].dropped = true; /* set there, not at the host's path */
            copy.inside = false;
            copy.order = p->order;
            copy.dst = path_moved(m->mem, copy.src, at->src, at->dst);
            copy.parent = path_at_or_below(copy.parent, at->src) ? path_moved(m->mem, copy.parent, at->src, at->dst)
                                                                 : copy.parent;
            if (!copy.dst || !copy.parent)
                return no_memory(m);
            *p = copy;
        }
    }
    return 0;
}

/* Precedence at one path: a mount, pinfold's own, the strictest rule; what every box has comes last. */
static int strength(const struct plan_place *p)
{
    if (p->kind == PLACE_PATTERN) /* a pattern, not a path: a name spelled like it is separate */
        return 200;
    if (p->own)
        return 100;
    if (p->mount)
        return 50;
    return p->said || p->workspace ? p->kind + 10 : p->kind;
}

static int by_place(const void *a, const void *b)
{
    const struct plan_place *const *x = a, *const *y = b;
    int c = path_order((*x)->dst, (*y)->dst);
    if (c == 0)
        c = strength(*y) - strength(*x);
    return c ? c : (*x)->order < (*y)->order ? -1 : 1;
}

static unsigned origin_layer(const struct making *m, const struct plan_place *p)
{
    return p->origin < m->policy->n_origins ? m->policy->origins[p->origin].layer : LAYER_BUILTIN;
}

/* A literal name is more specific than a matching pattern, unless the pattern comes from a later layer. */
static bool more_specific(const struct making *m, const struct plan_place *p, const struct plan_place *match)
{
    if (!match->match || p->match)
        return false;
    if (p->workspace && !p->said)
        return !p->why;
    return !p->said || origin_layer(m, p) >= origin_layer(m, match);
}

static int sort_places(struct making *m)
{
    size_t n = m->n_places, kept = 0;
    const struct plan_place **by = arena_zero(m->mem, (n + 1) * sizeof *by);
    struct plan_place *sorted = arena_zero(m->mem, (n + 1) * sizeof *sorted);
    if (!by || !sorted)
        return no_memory(m);
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (!m->places[i].dropped)
            by[k++] = &m->places[i];
    }
    n = k;
    if (sort_pointers(m->mem, (const void **)by, n, by_place) < 0)
        return no_memory(m);
    for (size_t i = 0; i < n; i++) {
        struct plan_place *last = kept ? &sorted[kept - 1] : NULL;
        if (last && strcmp(last->dst, by[i]->dst) == 0 &&
            (last->kind != PLACE_PATTERN || by[i]->kind == PLACE_PATTERN)) {
            if (more_specific(m, by[i], last)) {
                *last = *by[i];
                continue;
            }
            if (last->kind != by[i]->kind && (last->kind == PLACE_STORAGE || by[i]->kind == PLACE_STORAGE) &&
                (last->own || by[i]->workspace || (last->mount && by[i]->mount)))
                return err_say(m->e, ERR_POLICY, "storage %s (%s): this path is already used by %s", last->dst,
                               origin_of(m, last->kind == PLACE_STORAGE ? last->origin : by[i]->origin),
                               last->own          ? OWN_ORIGIN
                               : by[i]->workspace ? "the workspace"
                                                  : "a mount");
            /* A rule that names the workspace itself decides about its access. */
            if (by[i]->workspace) {
                last->workspace = true;
                if (last->kind == PLACE_HIDE)
                    return err_say(m->e, ERR_POLICY, "hide %s (%s) hides the workspace", last->dst,
                                   origin_of(m, last->origin));
            }
            last->said |= by[i]->said;
            continue;
        }
        sorted[kept++] = *by[i];
    }
    m->places = sorted;
    m->n_places = kept;
    return 0;
}

int collect(struct making *m)
{
    struct plan_place *root = place_add(m, PLACE_ROOT, "/", 0);
    if (!root)
        return no_memory(m);
    root->src = root->parent = "/";
    root->type = root->dst_type = PATH_DIR;
    root->why = "every box";
    int r = collect_mounts(m);
    if (r == 0)
        r = collect_storages(m);
    if (r == 0)
        r = collect_workspace(m);
    if (r == 0)
        r = collect_rules(m);
    if (r == 0)
        r = machine_begin(m);
    if (r == 0)
        r = collect_sockets(m);
    if (r == 0)
        r = collect_own(m);
    if (r == 0)
        r = repeat_at_aliases(m);
    if (r == 0)
        r = repeat_below_mounts(m);
    if (r == 0 && m->facts->tier == TIER_NAMESPACES)
        r = collect_private(m);
    if (r == 0)
        r = egress_check_places(m);
    return r < 0 ? r : sort_places(m);
}
