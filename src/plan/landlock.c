/*
 * The Landlock tier: rules can only allow. Something is hidden if no rule reaches it, so every directory above a hidden
 * place gets no rule, and each of its other entries gets one (the survey has listed them). The price, which explain
 * names: such a directory can be passed through but not listed.
 *
 * Devices: only those that every program needs, and the command's own terminal. /dev/pts and /dev/shm stay closed,
 * because here they are the host's, with other terminals and other programs' memory.
 */
#include "plan/make.h"

struct granting {
    struct making *m;
    const struct plan_place **hidden;
    size_t n_hidden;
    bool unlisted;
};

/* linux/landlock.h: file rights by ABI. 1: the first thirteen; 2: REFER; 3: TRUNCATE; 5: IOCTL_DEV. */
static uint32_t handled_file_rights(int abi)
{
    uint32_t rights = 0x1fff;
    if (abi >= 2)
        rights |= 1u << 13;
    if (abi >= 3)
        rights |= 1u << 14;
    if (abi >= 5)
        rights |= 1u << 15;
    return rights;
}

static int add_rule(struct making *m, const char *path, enum rule_rights rights, uint32_t origin, bool optional)
{
    struct step *s = image_path(&m->image, STEP_RULE, path, origin);
    if (!s)
        return no_memory(m);
    s->mode = (uint16_t)rights;
    s->flags = optional ? STEP_OPTIONAL : 0;
    return 0;
}

static const struct dir_fact *listing_of(const struct facts *f, const char *path)
{
    size_t low = 0, high = f->n_dirs;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = path_order(f->dirs[mid].path, path);
        if (c == 0)
            return &f->dirs[mid];
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

bool landlock_is_third(const struct making *m)
{
    const struct dir_fact *d = listing_of(m->facts, "/");
    return m->facts->around && (!d || !d->n_entries);
}

/* Makes `path` readable except hidden[low .. high), all of which are at or below it. */
static int grant(struct granting *g, const char *path, bool directory, size_t low, size_t high)
{
    if (low == high)
        return add_rule(g->m, path, directory ? RULE_READ : RULE_READ_FILE_ONLY, 0, true);
    if (strcmp(g->hidden[low]->dst, path) == 0)
        return 0;
    const struct dir_fact *d = listing_of(g->m->facts, path);
    if (strcmp(path, "/") == 0 && landlock_is_third(g->m))
        return err_say(g->m->e, ERR_CANNOT,
                       "'/' cannot be listed here, so Landlock could show nothing of it: this runs in a box in a "
                       "box already, and there is no third; run the command directly");
    g->unlisted = true;
    for (size_t i = 0; d && i < d->n_entries; i++) {
        const char *child = path_join(g->m->mem, path, d->entries[i].name);
        if (!child)
            return no_memory(g->m);
        while (low < high && path_order(g->hidden[low]->dst, child) < 0)
            low++;
        size_t end = low;
        while (end < high && path_at_or_below(g->hidden[end]->dst, child))
            end++;
        int r = grant(g, child, d->entries[i].directory, low, end);
        if (r < 0)
            return r;
        low = end;
    }
    return 0;
}

static int grant_reads(struct making *m)
{
    struct granting g = {.m = m};
    g.hidden = arena_zero(m->mem, (m->n_places + 2) * sizeof *g.hidden);
    if (!g.hidden)
        return no_memory(m);
    static const struct plan_place devices = {.dst = "/dev"};
    bool said = false; /* whether the rule of /dev was emitted */
    for (size_t i = 0; i < m->n_places; i++) {
        const struct plan_place *p = &m->places[i];
        if (!said && path_order(devices.dst, p->dst) <= 0) {
            g.hidden[g.n_hidden++] = &devices;
            said = true;
        }
        if (p->kind == PLACE_HIDE && p->act == ACT_LANDLOCK && !path_at_or_below(p->dst, devices.dst))
            g.hidden[g.n_hidden++] = p;
    }
    if (!said)
        g.hidden[g.n_hidden++] = &devices;
    int r = grant(&g, "/", true, 0, g.n_hidden);
    if (r == 0 && g.unlisted)
        r = note(m,
                 "directories above hidden places can be entered but not listed: Landlock can only allow whole trees");
    return r;
}

static int grant_places(struct making *m)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < m->n_places; i++) {
        const struct plan_place *p = &m->places[i];
        const struct plan_place *around = p->up < 0 ? NULL : &m->places[p->up];
        if (p->act != ACT_LANDLOCK || !p->entered || p->kind == PLACE_HIDE)
            continue;
        if (p->region == REGION_WRITABLE)
            r = add_rule(m, p->src, p->type == PATH_OTHER ? RULE_DEVICE : RULE_READ | RULE_WRITE, p->origin, false);
        else if (around && around->region == REGION_HIDDEN)
            r = add_rule(m, p->src, p->type == PATH_DIR ? RULE_READ : RULE_READ_FILE_ONLY, p->origin, false);
    }
    return r;
}

static int grant_devices(struct making *m)
{
    static const char nodes[][16] = {"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
                                     "/dev/urandom", "/dev/tty",  "/dev/ptmx", "/dev/pts/ptmx"};
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof nodes / sizeof nodes[0]; i++)
        r = add_rule(m, nodes[i], RULE_DEVICE, 0, true);
    return r;
}

static int grant_private(struct making *m, const char *dir)
{
    int r = add_rule(m, dir, RULE_READ | RULE_WRITE, 0, false);
    return r < 0 ? r : add_private(m, dir, true, 0);
}

int redirect_cache(struct making *m, struct plan_place *p)
{
    /* Programs that have a variable for the place of their cache. For others it is read-only, which they treat as
       empty. */
    static const struct {
        const char *dir, *variable;
    } known[] = {{".cache", "XDG_CACHE_HOME"},
                 {".npm", "npm_config_cache"},
                 {".cargo", "CARGO_HOME"},
                 {".cargo/registry", "CARGO_HOME"},
                 {"go", "GOPATH"},
                 {"go/pkg", "GOPATH"},
                 {".gradle", "GRADLE_USER_HOME"},
                 {".rustup", "RUSTUP_HOME"},
                 {".yarn", "YARN_GLOBAL_FOLDER"},
                 {".nuget", "NUGET_PACKAGES"},
                 {".bun", "BUN_INSTALL_CACHE_DIR"},
                 {".composer", "COMPOSER_HOME"},
                 {".ccache", "CCACHE_DIR"},
                 {".pub-cache", "PUB_CACHE"},
                 {".node-gyp", "npm_config_devdir"},
                 {".local/share/pnpm", "npm_config_store_dir"}};
    const char *dir = cache_dir(m, p->dst);
    const char *rest = m->home && path_below(p->dst, m->home) ? path_rest(p->dst, m->home) : "";
    if (!dir)
        return m->facts->state_home ? no_memory(m) : 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(rest, known[i].dir) != 0)
            continue;
        p->upper = path_join(m->mem, dir, "upper");
        int r = add_make_dir(m, p->upper, false);
        return r < 0 ? r : add_env(m, known[i].variable, p->upper);
    }
    return note(m, "cache %s stays read-only: no environment variable redirects its programs", p->dst);
}

/* /tmp is the host's here and not writable; TMPDIR names a directory of this run instead. */
static int temporary_dir(struct making *m)
{
    if (!m->facts->state_home)
        return note(m, "no directory for temporary files: set HOME or XDG_STATE_HOME");
    const char *dir =
        arena_printf(m->mem, "%s/pinfold/tmp/%s", m->facts->state_home, m->ask->instance ? m->ask->instance : "0");
    int r = add_make_dir(m, dir, true);
    if (r == 0)
        r = egress_socket(m, dir);
    if (r == 0)
        r = add_env(m, "TMPDIR", dir);
    return r < 0 ? r : grant_private(m, dir);
}

int landlock_make(struct making *m)
{
    /* linux/landlock.h: BIND_TCP and CONNECT_TCP since ABI 4. */
    enum { TCP = 3, ABI_TCP = 4, SCOPES = 3 };
    int abi = m->facts->landlock_abi;
    struct step *s = image_step(&m->image, STEP_RULESET, 0);
    if (!s)
        return no_memory(m);
    s->a = handled_file_rights(abi);
    s->b = m->policy->net != NET_HOST && abi >= ABI_TCP ? TCP : 0;
    s->mode = abi >= ABI_SCOPES ? SCOPES : 0;
    int r = grant_reads(m);
    if (r == 0)
        r = grant_places(m);
    if (r == 0)
        r = grant_devices(m);
    if (r == 0 && m->facts->memory_files)
        r = add_rule(m, "/proc", RULE_MEMORY, 0, false);
    if (r == 0)
        r = temporary_dir(m);
    for (size_t i = 0; r == 0 && i < m->n_places; i++) {
        if (m->places[i].act == ACT_REDIRECT && m->places[i].upper)
            r = grant_private(m, m->places[i].upper);
    }
    if (r == 0 && !m->facts->around && !image_step(&m->image, STEP_KEYRING, 0))
        r = no_memory(m);
    return r < 0 ? r : lock_make(m);
}
