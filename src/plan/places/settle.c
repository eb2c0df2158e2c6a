/*
 * Decides how each place is implemented. Places come in path order, so one pass with a stack knows the place around
 * each; the decision depends on both:
 *
 *   around \ asked   rw                ro, protect             hide                         cache
 *   read-only        attach            nothing to do           stub in a mask               overlay, or private directory
 *   writable         nothing to do     ro: attach ro + guard   guard, on every open         nothing to do
 *                                      protect: the same for
 *                                      a directory, else guard
 *   private          attach            attach (protect: not    not there                    private directory
 *                                      there)
 *   hidden           attach; the hiding becomes hollow         nothing to do                the same
 *   cache            attach            attach; guard           deny                         nothing to do
 *
 * With an image as root nothing of the host is there except what is attached, hides of the built-in profiles have
 * nothing to hide, and the guard judges all other hides on every open: there are no masks.
 *
 * If the box can write above a place, a rename could move a mount or mask away, so there the guard judges as well, and
 * the directories in between are pinned.
 */
#include "base/json.h"
#include "plan/make.h"

struct settling {
    struct making *m;
    size_t *stack; /* indices of places, the innermost region last */
    size_t depth;
    bool landlock;
    /* the root is an image: nothing of the host is there except what is attached, and masks are not possible */
    bool image;
    bool unmade; /* one of the two: what the engine itself cannot mount is left to the guard */
};

static void enter(struct settling *s, struct plan_place *p, enum region region)
{
    p->region = (uint8_t)region;
    p->entered = true;
    s->stack[s->depth++] = (size_t)(p - s->m->places);
}

/* Whether the surrounding place shows this object at this path without further steps. */
static bool shows(const struct plan_place *around, const struct plan_place *p)
{
    if (!around->src || !p->src)
        return false;
    if (strcmp(around->src, around->dst) == 0)
        return strcmp(p->src, p->dst) == 0;
    return path_at_or_below(p->src, around->src) &&
           strcmp(path_rest(p->src, around->src), path_rest(p->dst, around->dst)) == 0;
}

static bool dev_has(const char *dst)
{
    static const char *const names[] = {"null", "zero",  "full",   "random", "urandom", "tty", "ptmx",
                                        "pts",  "stdin", "stdout", "stderr", "fd",      "shm"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(path_rest(dst, "/dev"), names[i]) == 0)
            return true;
    }
    return false;
}

/* A container's engine cannot mount where the host's read-only directory has nothing; it says so only once it starts. */
static int no_point(struct settling *s, const struct plan_place *p, const struct plan_place *around)
{
    struct making *m = s->m;
    int r =
        err_say(m->e, ERR_CANNOT, "%s %s (%s): it does not exist, and %s cannot create it in %s, which is read-only",
                p->kind == PLACE_STORAGE ? "storage"
                : p->kind == PLACE_CACHE ? "cache"
                                         : "mount on",
                p->dst, origin_of(m, p->origin), m->facts->engine, around->dst);
    return err_hint(m->e, r, "create it first, or use native");
}

/* A mount point must have the type of what is mounted, and in writable places it must exist: nothing is created on
   the host. */
static int check_point(struct settling *s, struct plan_place *p, const struct plan_place *around)
{
    struct making *m = s->m;
    bool directory = p->type == PATH_DIR;
    if (s->image && around == &m->places[0])
        return 0;
    if (around->region == REGION_PRIVATE || around->region == REGION_HIDDEN)
        return 0;
    if (p->dst_type == PATH_MISSING) {
        if (around->region == REGION_READ_ONLY && !p->under_writable && s->image)
            return no_point(s, p, around);
        if (around->region == REGION_READ_ONLY && !p->under_writable) {
            p->stub = directory ? STUB_POINT_DIR : STUB_POINT_FILE;
            return 0;
        }
        int r = err_say(m->e, ERR_POLICY,
                        "%s on %s (%s): it does not exist, and %s is writable, so it would be created on the host",
                        p->kind == PLACE_STORAGE ? "storage" : "mount", p->dst, origin_of(m, p->origin), around->dst);
        return err_hint(m->e, r, "create it first, or mount outside writable directories");
    }
    if ((p->dst_type == PATH_DIR) == directory)
        return 0;
    return err_say(m->e, ERR_POLICY, "mount %s on %s (%s): %s is a directory, the other is not", p->src, p->dst,
                   origin_of(m, p->origin), directory ? p->src : p->dst);
}

/*
 * STATE/pinfold-agents/NAME/PROJECT/boxN: what boxes of an agent have in place of its directory (run/agent/agent_start.c), and
 * INSTANCE/SESSION/STATE, which those of a server have (mcp/agents.c). Nothing on the host runs what is in them, so they are kept
 * private, as a cache is; what is shared with the host is mounted in them.
 */
static bool is_below_agents(const char *at, const char *state)
{
    enum { HASH = 32 };
    static const char below[] = "/pinfold-agents/";
    size_t n = state ? strlen(state) : 0;
    if (!n || strncmp(at, state, n) != 0 || strncmp(at + n, below, sizeof below - 1) != 0)
        return false;
    const char *of = strchr(at + n + sizeof below - 1, '/'), *last = of ? strchr(of + 1, '/') : NULL;
    if (!last || !last[1] || strchr(last + 1, '/'))
        return false;
    bool session = last - of == HASH + 1 && strspn(of + 1, "0123456789abcdef") == HASH;
    return session || strncmp(last, "/box", 4) == 0;
}

static bool is_agent_layer(const struct making *m, const struct plan_place *p)
{
    if (!p->mount || !p->src)
        return false;
    const char *usual = m->facts->home ? path_join(m->mem, m->facts->home, ".local/state") : NULL;
    return is_below_agents(p->src, usual) || is_below_agents(p->src, m->facts->state_home);
}

/* Attaches a clone of the host's tree at p->src. */
static int attach(struct settling *s, struct plan_place *p, struct plan_place *around, bool writable)
{
    struct making *m = s->m;
    int r = p->mount ? check_point(s, p, around) : 0;
    p->act = ACT_ATTACH;
    p->slot = m->n_slots++;
    if (around->region == REGION_HIDDEN)
        around->opened = true;
    if (r == 0 && writable)
        r = is_agent_layer(m, p) ? add_private(m, p->dst, true, p->origin)
                                 : add_guard(m, GUARD_RULE_ROOT, p->dst, p->origin);
    /* In a private tree everything is free, including sockets; a tree of the host's there is not. */
    else if (r == 0 && (p->under_writable || around->region == REGION_PRIVATE || around->region == REGION_HIDDEN))
        r = add_guard(m, GUARD_RULE_PROTECT, p->dst, p->origin);
    if (r == 0 && writable && p->no_links && m->guards[m->n_guards - 1].kind == GUARD_RULE_ROOT)
        m->guards[m->n_guards - 1].flags |= GUARD_RULE_NO_LINKS;
    if (r == 0 && p->under_writable && around->src)
        r = add_pins(m, around, p->dst, p->origin);
    enter(s, p, writable ? REGION_WRITABLE : REGION_READ_ONLY);
    return r;
}

/* ---- copy-on-write (plan_ask.layer) ---- */

static const char no_uppers[] = "the file system of the state directory (XDG_STATE_HOME) cannot hold layers";
static const char no_namespaces[] = "without user namespaces nothing can be mounted";

static int cannot_layer(struct making *m, const char *why)
{
    /* Why there are none, and what would give them, is known where they were looked for. */
    const char *lack = why == no_namespaces ? m->facts->why_not[FEATURE_REMAP] : NULL;
    const char *remedy = lack ? m->facts->remedy[FEATURE_REMAP] : NULL;
    int r = err_say(m->e, ERR_CANNOT, "--cow: the workspace %s cannot get a copy-on-write layer: %s%s%s", m->workspace,
                    why, lack ? ": " : "", lack ? lack : "");
    if (remedy)
        return err_hint(m->e, r, "%s; or run without --cow to let the box change it", remedy);
    if (why == no_uppers)
        return err_hint(m->e, r,
                        "set XDG_STATE_HOME to a directory on a disk of this machine (ext4, xfs, btrfs), or run "
                        "without --cow to let the box change it");
    return err_hint(m->e, r,
                    m->policy->workspace_read_only
                        ? "leave out --cow; or, to let the box change it, what makes it read-only"
                        : "run without --cow to let the box change it");
}

static const char *why_no_layer(const struct settling *s, const struct plan_place *p)
{
    const struct facts *f = s->m->facts;
    if (f->unsandboxed || s->landlock)
        return no_namespaces;
    if (s->image || f->tool || strcmp(f->engine, "native") != 0)
        return "only the engine native supports that";
    if (!f->overlay)
        return "overlayfs does not work in a user namespace here";
    if (!f->uppers)
        return f->nested ? "this is a box itself" : no_uppers;
    if (p->type != PATH_DIR)
        return "it is not a directory";
    if (p->kind != PLACE_RW)
        return "it is read-only in this box";
    if (path_at_or_below(s->m->ask->layer, p->src))
        return "it contains pinfold's own state directory (XDG_STATE_HOME)";
    if (strchr(p->src, '\n') || strchr(s->m->ask->layer, '\n'))
        return "a line break in its path, or in that of the state directory (XDG_STATE_HOME), cannot be kept";
    if (!utf8_valid(str_of(p->src)))
        return "its path is not UTF-8 text, and the layer could not name it; rename the directory";
    return NULL;
}

/* An overlay over the workspace: to the guard a writable tree in which the policy's own rules hold. What only guards the
   host against programs that run by themselves waits for apply. */
static int settle_layered(struct settling *s, struct plan_place *p, struct plan_place *around)
{
    struct making *m = s->m;
    const char *why = why_no_layer(s, p);
    if (why)
        return cannot_layer(m, why);
    p->upper = path_join(m->mem, m->ask->layer, "upper");
    p->act = ACT_OVERLAY;
    m->layered = true;
    if (around->region == REGION_HIDDEN)
        around->opened = true;
    int r = p->upper ? add_guard(m, GUARD_RULE_ROOT, p->dst, p->origin) : no_memory(m);
    if (r == 0)
        m->guards[m->n_guards - 1].flags |= GUARD_RULE_LAYERED;
    if (r == 0 && p->under_writable && around->src)
        r = add_pins(m, around, p->dst, p->origin);
    enter(s, p, REGION_WRITABLE);
    return r;
}

/* Nothing else of the box's may write to the directory behind the layer, or to a part of it. */
static int check_layer(struct making *m)
{
    const struct plan_place *workspace = NULL;
    for (size_t i = 0; i < m->n_places; i++) {
        if (m->places[i].act == ACT_OVERLAY && m->places[i].workspace)
            workspace = &m->places[i];
    }
    if (!m->layered || !workspace)
        return cannot_layer(m, "no writable workspace is in this box");
    for (size_t i = 0; i < m->n_places; i++) {
        const struct plan_place *p = &m->places[i];
        bool writes = p->region == REGION_WRITABLE && p->entered && p != workspace;
        if (!writes || !p->src ||
            (!path_at_or_below(p->src, workspace->src) && !path_at_or_below(workspace->src, p->src)))
            continue;
        int r =
            err_say(m->e, ERR_POLICY, "--cow: rw %s (%s) would let the box write to the workspace %s past its layer",
                    p->dst, origin_of(m, p->origin), workspace->src);
        return err_hint(m->e, r, "remove that rule, or run without --cow");
    }
    return 0;
}

/* In a place closed only by the guard nothing needs mounting: the more specific rule makes it accessible. */
static int open_hole(struct settling *s, struct plan_place *p, struct plan_place *around, bool writable)
{
    int r = add_guard(s->m, writable ? GUARD_RULE_ROOT : GUARD_RULE_PROTECT, p->dst, p->origin);
    if (r == 0 && writable && p->no_links)
        s->m->guards[s->m->n_guards - 1].flags |= GUARD_RULE_NO_LINKS;
    if (r == 0 && p->type == PATH_DIR) /* as a mount point, which cannot be renamed */
        r = add_guard(s->m, GUARD_RULE_PIN, p->dst, p->origin);
    if (r == 0)
        r = add_pins(s->m, around, p->dst, p->origin);
    around->opened = true;
    p->act = ACT_GUARD;
    enter(s, p, writable ? REGION_WRITABLE : REGION_READ_ONLY);
    return r;
}

/* Read-only without a mount: the guard judges it, including what a more specific rule makes accessible below. */
static int close_by_guard(struct settling *s, struct plan_place *p, const struct plan_place *around)
{
    p->act = ACT_GUARD;
    int r = add_guard(s->m, GUARD_RULE_PROTECT, p->dst, p->origin);
    if (r == 0)
        r = add_pins(s->m, around, p->dst, p->origin);
    if (p->type == PATH_DIR)
        enter(s, p, REGION_READ_ONLY);
    return r;
}

/*
 * Whether a directory that can be read anyway gets a mount of its own, so that a mask cannot lie over it: overlayfs goes on showing
 * the names that it has looked up, whatever the host changes below ("Changes to underlying filesystems" in overlayfs.rst), and who names
 * a directory expects to see in it what is there now. Not if the home directory is in it, whose names are all in one mask.
 */
static bool needs_own_mount(const struct settling *s, const struct plan_place *p)
{
    return s->m->facts->overlay && !s->unmade && p->type == PATH_DIR && !p->builtin && (p->said || p->workspace) &&
           !(s->m->home && path_at_or_below(s->m->home, p->dst));
}

/* A writable tree in one, of the same mount: guarded names hold at its top, too. Otherwise it is as the one around it. */
static int inner_tree(struct making *m, const struct plan_place *p, const struct plan_place *around)
{
    int r = add_guard(m, GUARD_RULE_ROOT, p->dst, p->origin);
    if (r == 0 && (p->no_links || around->no_links))
        m->guards[m->n_guards - 1].flags |= GUARD_RULE_NO_LINKS;
    if (r == 0 && around->act == ACT_OVERLAY)
        m->guards[m->n_guards - 1].flags |= GUARD_RULE_LAYERED;
    return r;
}

static int settle_open(struct settling *s, struct plan_place *p, struct plan_place *around, bool writable)
{
    bool same_object = shows(around, p);
    if (around->kind == PLACE_DEVICES && !p->mount && dev_has(p->dst) &&
        strcmp(path_rest(p->dst, "/dev"), "shm") != 0) {
        p->act = ACT_NONE;
        return 0;
    }
    if (around->kind == PLACE_DEVICES && strcmp(path_rest(p->dst, "/dev"), "mqueue") == 0) {
        p->act = ACT_MQUEUE;
        return add_private(s->m, p->dst, false, p->origin);
    }
    if (around->kind == PLACE_DEVICES) {
        p->device = true;
        if (strcmp(path_rest(p->dst, "/dev"), "shm") == 0)
            s->m->shm_of_host = true;
        else
            around->opened = true;
    }
    if (same_object && around->region == (writable ? REGION_WRITABLE : REGION_READ_ONLY) &&
        (writable || !needs_own_mount(s, p))) {
        p->act = ACT_NONE;
        return writable && p->type == PATH_DIR && !is_agent_layer(s->m, around) ? inner_tree(s->m, p, around) : 0;
    }
    if (around->act == ACT_GUARD && same_object && (around->region == REGION_HIDDEN || s->unmade))
        return open_hole(s, p, around, writable);
    if (same_object && around->region == REGION_WRITABLE && (p->type != PATH_DIR || s->landlock)) {
        s->m->any_protect = true;
        return close_by_guard(s, p, around);
    }
    return attach(s, p, around, writable);
}

/* The project's own .pinfold where there is none: one that a box makes in its layer waits for apply, as a guarded name. */
static bool waits_in_layer(const struct plan_place *p, const struct plan_place *around)
{
    return p->closed && p->type == PATH_MISSING && around->act == ACT_OVERLAY && around->workspace &&
           strcmp(path_rest(p->dst, around->dst), ".pinfold") == 0;
}

static int settle_protect(struct settling *s, struct plan_place *p, struct plan_place *around)
{
    struct making *m = s->m;
    switch ((enum region)around->region) {
    case REGION_READ_ONLY:
    case REGION_HIDDEN:
        p->act = ACT_NONE;
        return 0;
    case REGION_PRIVATE:
        p->act = ACT_NOT_THERE;
        return 0;
    case REGION_WRITABLE:
    case REGION_CACHE:
        break;
    }
    m->any_protect |= p->said;
    if (waits_in_layer(p, around)) {
        p->act = ACT_NONE;
        return 0;
    }
    if (p->type == PATH_DIR && around->region == REGION_WRITABLE && !s->landlock)
        return attach(s, p, around, false);
    return close_by_guard(s, p, around);
}

/* Hidden where the box, or the same user on the host, can rename: every open is judged. */
static int hide_by_guard(struct settling *s, struct plan_place *p, struct plan_place *around)
{
    struct making *m = s->m;
    p->act = ACT_GUARD;
    int r = 0;
    if (p->match && m->policy->expand != EXPAND_START) {
        enter(s, p, REGION_HIDDEN); /* its pattern has its own rule */
        return 0;
    }
    /* pinfold's own gets a mount, so that not every box has to judge every open: the host does not replace it. */
    const bool own = p->own && p->type != PATH_MISSING;
    if ((p->match || own || (p->once && p->type == PATH_FILE)) && !s->unmade) {
        p->act = ACT_DENY;
        r = add_guard(m, GUARD_RULE_PROTECT, p->dst, p->origin);
    } else {
        r = add_guard(m, GUARD_RULE_HIDE, p->dst, p->origin);
        if (r == 0)
            r = add_read(m, p->dst);
    }
    if (r == 0)
        r = add_pins(m, around, p->dst, p->origin);
    enter(s, p, REGION_HIDDEN);
    return r;
}

/*
 * A missing name gets a whiteout in the cache's private layer. Creating something over a whiteout and removing it would
 * remove the whiteout, because overlayfs then looks at the host's directory; so the guard forbids it. If the directory
 * is missing, too, that becomes an opaque one, in which the box may do anything but which it may not remove.
 */
static int absent_in_cache(struct settling *s, struct plan_place *p, const struct plan_place *around)
{
    struct making *m = s->m;
    const char *name = first_missing(m, p);
    p->act = ACT_WHITEOUT;
    if (!name || add_make_dir(m, path_moved(m->mem, name, around->dst, around->upper), false) < 0)
        return no_memory(m);
    struct plan_dir *d = &m->dirs[m->n_dirs - 1];
    d->whiteout = strcmp(name, p->dst) == 0;
    d->opaque = !d->whiteout;
    m->any_protect |= !m->facts->notify; /* a loss if there is no guard */
    int r = d->whiteout ? add_guard(m, GUARD_RULE_PROTECT, p->dst, p->origin) : 0;
    return r < 0 ? r : add_pins(m, around, p->dst, p->origin);
}

/* A cache's overlay has its own directory entries: the host cannot move them, and the box cannot move a mount point. */
static int hide_in_cache(struct settling *s, struct plan_place *p, const struct plan_place *around)
{
    if (around->act == ACT_PRIVATE_DIR) {
        p->act = ACT_NOT_THERE;
        return 0;
    }
    enter(s, p, REGION_HIDDEN);
    if (p->type != PATH_MISSING) {
        p->act = ACT_DENY;
        return 0;
    }
    return absent_in_cache(s, p, around);
}

static int settle_private(struct settling *s, struct plan_place *p, struct plan_place *around);

static int settle_hide(struct settling *s, struct plan_place *p, struct plan_place *around)
{
    struct making *m = s->m;
    m->any_hide |= p->said;
    p->act = ACT_NONE;
    if (around->region == REGION_HIDDEN)
        return 0;
    if (s->image && around == &m->places[0] && (p->builtin || p->own)) {
        bool home = p->builtin && m->home && strcmp(p->dst, m->home) == 0;
        if (home) {
            p->kind = PLACE_TMPFS;
            p->mode = 0700;
            p->src = NULL;
            return settle_private(s, p, around);
        }
        p->act = ACT_NOT_THERE; /* the host's */
        return 0;
    }
    if (p->refused && p->builtin) {
        p->act = ACT_REFUSED;
        return 0;
    }
    if (around->region == REGION_PRIVATE) {
        p->act = ACT_NOT_THERE;
        return 0;
    }
    if (around->region == REGION_CACHE)
        return hide_in_cache(s, p, around);
    if (s->image && around == &m->places[0])
        p->src = NULL; /* the image's object is there: a rule that makes something below accessible brings the host's */
    if (p->under_writable || s->image)
        return hide_by_guard(s, p, around);
    /* Names created by the kernel cannot be replaced, and an overlay over them would be of little use. */
    if (path_below(p->dst, "/sys") || path_below(p->dst, "/proc")) {
        /* A link is no place for a mount. It stays, and what it leads to is hidden. */
        p->act = p->link ? ACT_NONE : p->type == PATH_MISSING ? ACT_NOT_THERE : ACT_DENY;
        if (p->act == ACT_DENY)
            enter(s, p, REGION_HIDDEN);
        return 0;
    }
    /*
     * What a profile hides outside of homes belongs to the administrator: directories there do not get replaced
     * unexpectedly, so a mount over one suffices, and names that only others can create are theirs to protect.
     */
    bool outside = p->builtin && !p->of_home && !in_home(m, p);
    if (outside && p->type == PATH_MISSING && p->foreign && m->facts->uid != 0) {
        p->act = ACT_REFUSED;
        return 0;
    }
    p->act = outside && p->type == PATH_DIR ? ACT_DENY : ACT_STUB;
    if (p->act == ACT_STUB)
        p->stub = (uint8_t)stub_of_hidden(p);
    p->administrators = outside && p->type == PATH_MISSING;
    enter(s, p, REGION_HIDDEN);
    return 0;
}

/* In a box in a box nothing can be kept, nor an overlay be mounted: an empty place in memory. */
static int cache_in_memory(struct settling *s, struct plan_place *p, struct plan_place *around)
{
    p->act = ACT_PRIVATE;
    p->mode = 0700;
    if (p->type == PATH_MISSING) {
        p->dst_type = PATH_MISSING;
        p->stub = STUB_POINT_DIR;
    }
    if (around->region == REGION_HIDDEN)
        around->opened = true;
    enter(s, p, REGION_PRIVATE);
    return add_private(s->m, p->dst, false, p->origin);
}

static int settle_cache(struct settling *s, struct plan_place *p, struct plan_place *around)
{
    struct making *m = s->m;
    p->act = ACT_NONE;
    if ((around->region == REGION_WRITABLE && shows(around, p)) || around->region == REGION_CACHE)
        return 0;
    if (s->image && around != &m->places[0] && around->region == REGION_READ_ONLY &&
        (p->type == PATH_MISSING || p->dst_type == PATH_MISSING)) {
        /* A profile's cache is a guess about the machine: programs find its place read-only. */
        return p->builtin ? 0 : no_point(s, p, around);
    }
    m->any_cache = true;
    m->needs_cache |= !p->builtin;
    if (s->landlock) {
        p->act = ACT_REDIRECT;
        return redirect_cache(m, p);
    }
    if (m->facts->around && !m->facts->overlay)
        return cache_in_memory(s, p, around);
    p->upper = cache_dir(m, p->dst);
    if (!p->upper)
        return m->facts->state_home
                   ? no_memory(m)
                   : err_say(m->e, ERR_CANNOT,
                             "cache %s (%s): no directory for its private layer: set HOME or XDG_STATE_HOME", p->dst,
                             origin_of(m, p->origin));
    bool under = p->type == PATH_DIR && m->facts->overlay && m->facts->uppers && !s->image &&
                 around->region != REGION_PRIVATE && !strchr(p->src, '\n') && !strchr(p->upper, '\n');
    int r = add_make_dir(m, path_join(m->mem, p->upper, "upper"), false);
    if (r == 0 && under)
        r = add_make_dir(m, path_join(m->mem, p->upper, "work"), false);
    p->act = under ? ACT_OVERLAY : ACT_PRIVATE_DIR;
    if (!under)
        p->slot = m->n_slots++;
    if (p->type == PATH_MISSING) {
        p->dst_type = PATH_MISSING;
        p->stub = STUB_POINT_DIR;
    }
    if (around->region == REGION_HIDDEN)
        around->opened = true;
    if (r == 0)
        r = add_private(m, p->dst, true, p->origin);
    p->upper = path_join(m->mem, p->upper, "upper");
    enter(s, p, REGION_CACHE);
    return p->upper ? r : no_memory(m);
}

/* Where the session stores it, for this engine. */
static int keep_stored(struct settling *s, struct plan_place *p)
{
    struct making *m = s->m;
    struct stored *kept = arena_push(m->mem, &m->stored, &m->n_stored, sizeof *kept);
    const char *name = short_name(m, p->dst);
    p->upper = !name      ? NULL
               : s->image ? arena_printf(m->mem, "%s-%s", m->ask->volume, name)
                          : path_join(m->mem, m->ask->storage, name);
    if (!kept || !p->upper)
        return no_memory(m);
    *kept = (struct stored){.path = p->dst, .at = p->upper, .volume = s->image};
    p->act = s->image ? ACT_VOLUME : ACT_PRIVATE_DIR;
    return s->image ? 0 : add_make_dir(m, p->upper, false);
}

/* In a session it is stored; a box without a session has a private place instead. */
static int settle_storage(struct settling *s, struct plan_place *p, struct plan_place *around)
{
    struct making *m = s->m;
    if (m->facts->unsandboxed)
        return 0;
    if (s->landlock)
        return err_say(m->e, ERR_CANNOT, "storage %s (%s): storage needs a mount namespace", p->dst,
                       origin_of(m, p->origin));
    bool kernels =
        path_at_or_below(p->dst, "/proc") || path_at_or_below(p->dst, "/sys") || path_at_or_below(p->dst, "/dev");
    if (kernels || around->closed)
        return err_say(m->e, ERR_POLICY, "storage %s (%s): storage cannot be in %s", p->dst, origin_of(m, p->origin),
                       kernels ? "the kernel's own trees" : OWN_ORIGIN);
    if (p->dst_type != PATH_DIR && p->dst_type != PATH_MISSING)
        return err_sys(m->e, ERR_POLICY, ENOTDIR, "storage %s (%s)", p->dst, origin_of(m, p->origin));
    int r = check_point(s, p, around);
    p->act = ACT_PRIVATE;
    if (r == 0 && m->ask->storage)
        r = keep_stored(s, p);
    if (r == 0 && p->act != ACT_PRIVATE)
        p->slot = m->n_slots++;
    if (around->region == REGION_HIDDEN)
        around->opened = true;
    if (r == 0)
        r = add_private(m, p->dst, p->act != ACT_PRIVATE, p->origin);
    if (r == 0 && p->under_writable && around->src)
        r = add_pins(m, around, p->dst, p->origin);
    enter(s, p, REGION_PRIVATE);
    return r;
}

/*
 * Nothing is mounted inside a storage: the previous box could have put a link at the mount point. Rules of profiles
 * there are about the host's files, which are not there.
 */
static int settle_in_storage(struct settling *s, struct plan_place *p, struct plan_place *around)
{
    p->act = ACT_NOT_THERE;
    bool opens = p->kind == PLACE_STORAGE || p->kind == PLACE_RW || p->kind == PLACE_RO || p->kind == PLACE_SOCKET;
    if (opens && !p->builtin && (p->said || p->workspace)) {
        int r = err_say(s->m->e, ERR_POLICY, "%s (%s) is inside the storage %s (%s), which cannot contain host files",
                        p->dst, origin_of(s->m, p->origin), around->dst, origin_of(s->m, around->origin));
        return err_hint(s->m->e, r, "use another path for the storage");
    }
    return p->kind == PLACE_PROTECT && p->said && !p->builtin ? close_by_guard(s, p, around) : 0;
}

static int settle_pattern(struct settling *s, struct plan_place *p, struct plan_place *around)
{
    struct making *m = s->m;
    p->act = ACT_NONE;
    if (p->hides)
        m->any_hide = true;
    else
        m->any_protect = true;
    if (around->region == REGION_HIDDEN || (around->region == REGION_READ_ONLY && !p->hides))
        return 0;
    if (around->region == REGION_PRIVATE) {
        p->act = ACT_NOT_THERE;
        return 0;
    }
    const char *dir = path_dir(m->mem, p->dst);
    if (!dir)
        return no_memory(m);
    bool start = m->policy->expand == EXPAND_START;
    if (p->hides && p->refused && p->builtin && !p->under_writable) {
        p->act = ACT_REFUSED;
        return 0;
    }
    if (p->hides && start)
        m->asked_losses |= F(EXPAND_START);
    if (s->image && p->builtin && around == &m->places[0]) {
        p->act = ACT_NOT_THERE;
        return 0;
    }
    if (p->hides && !s->image && (start || (around->region == REGION_READ_ONLY && !p->under_writable))) {
        const char **slot = start ? NULL : arena_push(m->mem, &m->cover_dirs, &m->n_cover_dirs, sizeof *slot);
        if (slot)
            *slot = dir;
        p->act = ACT_STUB;
        return slot || start ? 0 : no_memory(m);
    }
    p->act = ACT_GUARD;
    int r = add_guard(m, p->hides ? GUARD_RULE_HIDE_NAME : GUARD_RULE_NAME, path_name(p->dst), p->origin);
    if (r < 0)
        return r;
    struct guard_line *g = &m->guards[m->n_guards - 1];
    g->below = dir[1] ? dir : NULL;
    g->place = GUARD_ANY_DEPTH;
    g->flags |= GUARD_RULE_PATTERN | GUARD_RULE_DIRECT | (p->hides ? 0 : GUARD_RULE_ALWAYS);
    if (p->hides)
        r = add_read(m, p->dst);
    return r < 0 ? r : add_pins(m, around, p->dst, p->origin);
}

static int settle_socket(struct settling *s, struct plan_place *p, struct plan_place *around)
{
    struct making *m = s->m;
    int r = add_guard(m, GUARD_RULE_SOCKET, p->dst, p->origin);
    p->act = ACT_GUARD;
    bool shown = around->region != REGION_PRIVATE && around->region != REGION_HIDDEN;
    if (r < 0 || (shown && !(s->image && around == &m->places[0])))
        return r;
    if (p->type == PATH_MISSING || p->type == PATH_UNREADABLE) {
        r = err_say(m->e, ERR_POLICY,
                    "unix socket %s does not exist, and %s is private to the box, so it could not appear later", p->dst,
                    around->dst);
        return err_hint(m->e, r, "start its server first");
    }
    return attach(s, p, around, false);
}

static int settle_private(struct settling *s, struct plan_place *p, struct plan_place *around)
{
    if (s->image && around->src) {
        p->act = ACT_NOT_THERE; /* the home directory, if a directory above it was made visible by a rule */
        return 0;
    }
    p->act = ACT_PRIVATE;
    if (p->dst_type == PATH_MISSING)
        p->stub = STUB_POINT_DIR;
    if (around->region == REGION_HIDDEN)
        around->opened = true;
    enter(s, p, REGION_PRIVATE);
    if (p->under_writable && around->src && add_pins(s->m, around, p->dst, p->origin) < 0)
        return -ENOMEM;
    return p->kind == PLACE_TMPFS ? add_private(s->m, p->dst, false, p->origin) : 0;
}

/* What a mount covers is not visible. */
static int settle_covered(struct settling *s, struct plan_place *p, const struct plan_place *around)
{
    p->act = ACT_NOT_THERE;
    if (p->kind != PLACE_RW && p->kind != PLACE_CACHE)
        return 0;
    return err_say(s->m->e, ERR_POLICY, "rw %s (%s): the mount on %s covers it", p->dst, origin_of(s->m, p->origin),
                   around->dst);
}

static int settle_workspace(struct settling *s, const struct plan_place *p, const struct plan_place *around)
{
    if (around->region != REGION_HIDDEN || p->said || !p->why)
        return 0;
    int r = err_say(s->m->e, ERR_POLICY, "hide %s (%s) hides the workspace %s", around->dst,
                    origin_of(s->m, around->origin), p->dst);
    /* sudo, a container's number of a user without a home, or a HOME that is none: `/home` is others' then. */
    if (s->m->policy->origins[around->origin].layer == LAYER_BUILTIN &&
        (same(around->dst, "/home") || same(around->dst, "/root")))
        return err_hint(s->m->e, r,
                        "homes of others than %s, which is yours by HOME, are hidden: run pinfold as the user of that "
                        "home, with its HOME; or if this is meant, name it: --workspace %s",
                        s->m->home ? s->m->home : "nobody", p->dst);
    return err_hint(s->m->e, r, "if this is meant, name it: --workspace %s; or add a rule (rw or ro) for it", p->dst);
}

/*
 * The kernel's own trees. The host's /proc inside a box would be a way out: /proc/PID/root of any process of the same
 * user. /sys is never writable; /dev as a whole is neither made accessible nor moved, single devices are. "/" contains
 * all of them.
 */
static int settle_kernel_tree(struct settling *s, const struct plan_place *p)
{
    bool opens = p->kind == PLACE_RW || p->kind == PLACE_RO || p->kind == PLACE_CACHE;
    if (!opens || !p->said || !p->src || p->builtin)
        return 0;
    bool moved = strcmp(p->src, p->dst) != 0;
    const char *tree = NULL;
    if (path_at_or_below(p->src, "/proc"))
        tree = "/proc";
    else if (path_at_or_below(p->src, "/sys") && (moved || p->kind != PLACE_RO))
        tree = "/sys";
    else if (strcmp(p->src, "/dev") == 0 || path_at_or_below(p->src, "/dev/pts"))
        tree = "/dev";
    else if (moved && !p->src[1])
        tree = "/proc, which is below it,";
    if (!tree)
        return 0;
    return err_say(s->m->e, ERR_POLICY, "%s (%s): the host's %s is never shown in a box; remove the rule", p->src,
                   origin_of(s->m, p->origin), tree);
}

static int settle_one(struct settling *s, struct plan_place *p, struct plan_place *around)
{
    int refused = settle_kernel_tree(s, p);
    if (refused < 0)
        return refused;
    p->up = (int)(around - s->m->places);
    p->under_writable =
        around->region == REGION_WRITABLE || (around->under_writable && around->region != REGION_PRIVATE);
    p->stub = UINT8_MAX;
    if (around->kind == PLACE_STORAGE)
        return settle_in_storage(s, p, around);
    if (p->said && path_below(p->dst, "/proc") && s->m->facts->can & F(FRESH_PROC)) {
        p->act = ACT_NOT_THERE;
        if (p->builtin)
            return 0;
        return err_say(s->m->e, ERR_POLICY, "%s (%s): every box has its own /proc; remove the rule", p->dst,
                       origin_of(s->m, p->origin));
    }
    if (!p->mount && p->src && around->src && !shows(around, p) && around->region != REGION_PRIVATE &&
        around->region != REGION_HIDDEN)
        return settle_covered(s, p, around);
    if (!p->src && !p->said && around->src && strcmp(around->src, around->dst) != 0) {
        p->act = ACT_NOT_THERE; /* /tmp below a tree mounted in place of the host's */
        return 0;
    }
    switch ((enum place_kind)p->kind) {
    case PLACE_ROOT:
        return 0;
    case PLACE_TMPFS:
    case PLACE_DEVICES:
    case PLACE_PROC:
        return settle_private(s, p, around);
    case PLACE_DIR:
    case PLACE_FILE:
    case PLACE_LINK:
        p->act = around->region == REGION_PRIVATE && !s->image ? ACT_MAKE : ACT_NOT_THERE;
        return 0;
    case PLACE_STORAGE:
        return settle_storage(s, p, around);
    case PLACE_SOCKET:
        return settle_socket(s, p, around);
    case PLACE_PATTERN:
        return settle_pattern(s, p, around);
    case PLACE_RW:
    case PLACE_RO: {
        int r = p->workspace ? settle_workspace(s, p, around) : 0;
        if (r == 0 && p->workspace && s->m->ask->layer)
            return settle_layered(s, p, around);
        return r < 0 ? r : settle_open(s, p, around, p->kind == PLACE_RW);
    }
    case PLACE_CACHE:
        return settle_cache(s, p, around);
    case PLACE_PROTECT:
        return settle_protect(s, p, around);
    case PLACE_HIDE:
        return settle_hide(s, p, around);
    }
    return 0;
}

/* The root's place is the first; a rule for "/" is merged into it. */
static int settle_root(struct settling *s, size_t *ret_next)
{
    struct making *m = s->m;
    struct plan_place *root = &m->places[0];
    if (root->kind == PLACE_HIDE)
        return err_say(m->e, ERR_POLICY, "hide / (%s): nothing could be run", origin_of(m, root->origin));
    bool writable = root->kind == PLACE_RW;
    if (s->image && writable) {
        int r = err_say(m->e, ERR_CANNOT, "rw / (%s): an image's root stays read-only", origin_of(m, root->origin));
        return err_hint(m->e, r, "name the directories to make writable");
    }
    if (s->image)
        root->src = NULL;
    root->up = -1;
    root->stub = UINT8_MAX;
    root->act = ACT_ROOT;
    enter(s, root, writable ? REGION_WRITABLE : REGION_READ_ONLY);
    *ret_next = 1;
    return writable ? add_guard(m, GUARD_RULE_ROOT, "/", root->origin) : 0;
}

/* The Landlock tier mounts nothing: acts become rules that allow. */
static void landlock_acts(struct making *m)
{
    for (size_t i = 0; i < m->n_places; i++) {
        struct plan_place *p = &m->places[i];
        if (p->act == ACT_ATTACH || p->act == ACT_STUB || p->act == ACT_DENY || p->act == ACT_ROOT ||
            p->act == ACT_HOLLOW)
            p->act = ACT_LANDLOCK;
    }
}

int settle(struct making *m)
{
    struct settling s = {.m = m, .landlock = m->facts->tier == TIER_LANDLOCK, .image = m->facts->image != NULL};
    s.unmade = s.landlock || s.image;
    s.stack = arena_zero(m->mem, (m->n_places + 1) * sizeof *s.stack);
    if (!s.stack)
        return no_memory(m);
    size_t next = 0;
    int r = settle_root(&s, &next);
    for (size_t i = next; r == 0 && i < m->n_places; i++) {
        struct plan_place *p = &m->places[i];
        while (s.depth > 1 && !path_below(p->dst, m->places[s.stack[s.depth - 1]].dst))
            s.depth--;
        r = settle_one(&s, p, &m->places[s.stack[s.depth - 1]]);
    }
    if (r < 0)
        return r;
    for (size_t i = 0; i < m->n_places; i++) {
        struct plan_place *p = &m->places[i];
        if (p->opened && (p->act == ACT_STUB || p->act == ACT_DENY)) {
            p->stub = p->act == ACT_STUB ? STUB_POINT_DIR : UINT8_MAX;
            p->act = ACT_HOLLOW;
        }
        if (p->kind == PLACE_DEVICES && p->act == ACT_PRIVATE && !m->shm_of_host)
            r = add_private(m, path_join(m->mem, p->dst, "shm"), false, p->origin);
    }
    if (r < 0)
        return r;
    if (m->ask->layer)
        r = check_layer(m);
    if (r == 0 && s.landlock)
        landlock_acts(m);
    return r;
}
