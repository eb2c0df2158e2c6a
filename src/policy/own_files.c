/*
 * pinfold's own files. Its configuration, trust store and state decide about every later box: a command that could
 * write them would choose its own policy, one that could read them would know what is watched, and its runtime
 * directory contains the sockets that control running boxes. In every box they are hidden, or, if public, read-only.
 * These rules are more specific than any rule above them, and a rule at or below them is an error. What agents keep
 * (pinfold-agents: settings, logins) and what branches of projects share (pinfold-shelves) lie beside the state, since boxes get
 * a part of it as mounts; all else of it is hidden in the same way.
 */
#include "policy/merge.h"

#include <errno.h>

enum { FIXED = 8, MAX_PARTS = 6 };

struct own {
    const char *hidden[FIXED];
    size_t n_hidden;
    const char *parts[MAX_PARTS]; /* of each agent and project; a directory below may be mounted */
    const char *project;          /* WORKSPACE/.pinfold */
};

static int own_no_memory(struct merge *m)
{
    return err_sys(m->e, ERR_SYSTEM, ENOMEM, "cannot build the policy");
}

static const char *variable(const struct merge *m, const char *name)
{
    const struct policy_world *w = m->world;
    const char *v = w->variable ? w->variable(w->ctx, name) : NULL;
    return v && v[0] == '/' ? v : NULL; /* a relative one is ignored: XDG Base Directory Specification */
}

/* `name` in the directory `below` of both homes, and in the one that a variable names: what differs, at most three. */
static size_t own_places(const struct merge *m, const char *below, const char *moved, struct str name, const char **ret)
{
    struct arena *mem = m->p->mem;
    const char *const homes[] = {m->world->home, variable(m, VARIABLE_OTHER_HOME)};
    const char *at[3] = {NULL, NULL, moved ? path_clean_at(mem, moved, name) : NULL};
    size_t n = 0;
    for (size_t i = 0; below && i < sizeof homes / sizeof *homes; i++) {
        const char *base = homes[i] && homes[i][0] == '/' ? path_clean_at(mem, homes[i], str_of(below)) : NULL;
        at[i] = base ? path_clean_at(mem, base, name) : NULL;
    }
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        if (at[i] && !(i > 0 && same(at[0], at[i])) && !(i > 1 && same(at[1], at[i])))
            ret[n++] = at[i];
    return n;
}

/* Both the default place and the one set by a variable: a box started elsewhere may use either. */
static int find_own(struct merge *m, struct own *o)
{
    static const struct {
        const char *variable, *below_home;
    } places[] = {{"XDG_CONFIG_HOME", ".config"}, {"XDG_STATE_HOME", ".local/state"}, {"XDG_RUNTIME_DIR", NULL}};
    struct arena *mem = m->p->mem;

    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        o->n_hidden += own_places(m, places[i].below_home, variable(m, places[i].variable), STR("pinfold"),
                                  o->hidden + o->n_hidden);
    /* Agents by name use the home's, agents of MCP sessions and projects the one that the variable names. */
    const char *moved = variable(m, "XDG_STATE_HOME");
    size_t n = own_places(m, ".local/state", moved, STR("pinfold-agents"), o->parts);
    own_places(m, ".local/state", moved, STR("pinfold-shelves"), o->parts + n);
    o->project = path_clean_at(mem, m->p->workspace, STR(".pinfold"));
    return arena_failed(mem) || !o->project ? own_no_memory(m) : 0;
}

static int refuse_own(struct merge *m, uint32_t origin, const char *what, const char *path, const char *stays)
{
    const struct origin *at = &m->p->origins[origin];
    return place_say(m->e, ERR_REFUSED, at->file, at->line, at->column,
                     "%s '%s' belongs to pinfold and stays %s in every box", what, path, stays);
}

/* Checks every rule that affects `dir`. `hidden`: it may not be readable; `parts`: but what is below it may be mounted. */
static int check_own(struct merge *m, const char *dir, bool hidden, bool parts)
{
    const struct policy *p = m->p;
    const char *stays = hidden ? "hidden" : "as it is";

    if (path_at_or_below(p->workspace, dir)) {
        const struct origin *at = &p->origins[p->workspace_origin];
        return place_say(m->e, ERR_REFUSED, p->workspace_origin ? at->file : "workspace", at->line, at->column,
                         "'%s' belongs to pinfold and stays %s in every box; use another directory", p->workspace,
                         stays);
    }
    for (size_t i = 0; i < p->n_paths; i++) {
        const struct path_rule *r = &p->paths[i];
        bool opens = hidden ? r->access != PATH_HIDE : r->access == PATH_RW || r->access == PATH_CACHE;
        if (opens && !r->any_depth && !r->pattern && path_at_or_below(r->path, dir))
            return refuse_own(m, r->origin, "path", r->path, stays);
    }
    for (size_t i = 0; i < p->n_mounts; i++) {
        const struct mount_rule *r = &p->mounts[i];
        if (parts && path_below(r->from, dir) && !path_at_or_below(r->to, dir))
            continue;
        if (path_at_or_below(r->to, dir))
            return refuse_own(m, r->origin, "path", r->to, stays);
        /* A directory above it may be mounted: the plan closes it there, too. */
        if ((hidden || !r->read_only) && path_at_or_below(r->from, dir))
            return refuse_own(m, r->origin, "mount", r->from, stays);
    }
    for (size_t i = 0; i < p->n_unix_sockets; i++) {
        if (path_at_or_below(p->unix_sockets[i], dir))
            return refuse_own(m, m->socket_origin[i], "socket", p->unix_sockets[i], stays);
    }
    return 0;
}

/* Adds the rule, replacing any for exactly this path. */
static int add_own_path(struct merge *m, const char *path, enum path_access access, bool parts, uint32_t origin)
{
    struct policy *p = m->p;
    bool fresh;
    uint32_t *at = table_put(&m->paths, 0, str_of(path), (uint32_t)p->n_paths, &fresh);

    if (!at)
        return own_no_memory(m);
    if (fresh)
        p->n_paths++;
    else if (p->paths[*at].access == PATH_HIDE)
        access = PATH_HIDE;
    p->paths[*at] =
        (struct path_rule){.access = access, .path = path, .optional = true, .parts = parts, .origin = origin};
    return 0;
}

static int hide(struct merge *m, const char *dir, bool parts, uint32_t origin)
{
    int r = check_own(m, dir, true, parts);
    return r < 0 ? r : add_own_path(m, dir, PATH_HIDE, parts, origin);
}

/* If nothing around it is writable, the read-only root suffices. */
static int keep_path(struct merge *m, const char *path, uint32_t origin)
{
    int r = check_own(m, path, false, false);
    enum path_access now = r < 0 ? PATH_RO : merge_access(m, path);
    return r < 0 || (now != PATH_RW && now != PATH_CACHE) ? r : add_own_path(m, path, PATH_PROTECT, false, origin);
}

int own_rules(struct merge *m)
{
    struct policy *p = m->p;
    struct own o = {.n_hidden = 0};
    uint32_t origin = (uint32_t)p->n_origins;

    p->origins[p->n_origins++] = (struct origin){.layer = LAYER_BUILTIN, .file = OWN_ORIGIN};
    int r = find_own(m, &o);
    for (size_t i = 0; r == 0 && i < o.n_hidden; i++)
        r = hide(m, o.hidden[i], false, origin);
    for (size_t i = 0; r == 0 && i < MAX_PARTS && o.parts[i]; i++)
        r = hide(m, o.parts[i], true, origin);
    for (const char *const *w = m->world->own_hidden; r == 0 && w && *w; w++)
        r = hide(m, *w, false, origin);
    if (r == 0)
        r = keep_path(m, "/etc/pinfold", origin);
    for (const char *const *w = m->world->own_read_only; r == 0 && w && *w; w++)
        r = keep_path(m, *w, origin);
    return r < 0 ? r : keep_path(m, o.project, origin);
}
