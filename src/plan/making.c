/*
 * Shared by all stages: errors for lack of memory, notes, and additions to the lists in struct making. A stage adds
 * to these lists and reads what earlier ones added; plan.c has their order.
 */
#include "plan/make.h"

#include <stdio.h>
#include "base/sha256.h"

int no_memory(struct making *m)
{
    return err_sys(m->e, ERR_SYSTEM, ENOMEM, "cannot make the plan");
}

int note(struct making *m, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char **slot = arena_push(m->mem, &m->notes, &m->n_notes, sizeof *slot);
    const char *own = slot ? arena_text(m->mem, text) : NULL;
    if (!own)
        return no_memory(m);
    *slot = own;
    return 0;
}

const char *origin_of(struct making *m, uint32_t origin)
{
    char text[512];
    const char *s = arena_text(m->mem, policy_origin(m->policy, origin, text, sizeof text));
    return s ? s : "?";
}

const char *place_origin(const struct plan *p, const struct plan_place *at, char *text, size_t n)
{
    if (!at->why)
        return policy_origin(p->policy, at->origin, text, n);
    snprintf(text, n, "%s", at->why);
    return text;
}

struct plan_place *place_add(struct making *m, enum place_kind kind, const char *dst, uint32_t origin)
{
    struct plan_place *p = arena_push(m->mem, &m->places, &m->n_places, sizeof *p);
    if (p) {
        p->kind = (uint8_t)kind;
        p->dst = dst;
        p->origin = origin;
        p->order = (uint32_t)m->n_places;
    }
    return p;
}

int add_guard(struct making *m, enum guard_rule_kind kind, const char *text, uint32_t origin)
{
    struct guard_line *g = text ? arena_push(m->mem, &m->guards, &m->n_guards, sizeof *g) : NULL;
    if (!g)
        return no_memory(m);
    *g = (struct guard_line){.kind = (uint8_t)kind, .flags = GUARD_RULE_DIRECTORY, .text = text, .origin = origin};
    return 0;
}

int add_private(struct making *m, const char *text, bool kept, uint32_t origin)
{
    int r = add_guard(m, GUARD_RULE_PRIVATE, text, origin);
    if (r == 0 && kept)
        m->guards[m->n_guards - 1].flags |= GUARD_RULE_KEPT;
    return r;
}

int add_read(struct making *m, const char *rule)
{
    const char **slot = arena_push(m->mem, &m->reads, &m->n_reads, sizeof *slot);
    if (!slot)
        return no_memory(m);
    *slot = rule;
    return 0;
}

int add_make_dir(struct making *m, const char *path, bool temporary)
{
    struct plan_dir *d = path ? arena_push(m->mem, &m->dirs, &m->n_dirs, sizeof *d) : NULL;
    if (!d)
        return no_memory(m);
    *d = (struct plan_dir){.path = path, .temporary = temporary};
    return 0;
}

bool in_home(const struct making *m, const struct plan_place *p)
{
    return m->home && m->home[1] && path_at_or_below(p->dst, m->home);
}

/*
 * Pins the directories between the surrounding place and `dst` (both exclusive). Places come in path order, so
 * directories shared with the last pinned place are pinned already.
 */
int add_pins(struct making *m, const struct plan_place *around, const char *dst, uint32_t origin)
{
    const char *rest = path_rest(dst, around->dst);
    const char *last = m->last_pin && path_below(m->last_pin, around->dst) ? m->last_pin : NULL;
    for (const char *p = strchr(rest, '/'); p; p = strchr(p + 1, '/')) {
        size_t n = (size_t)(p - dst);
        if (last && strncmp(last, dst, n) == 0 && last[n] == '/')
            continue;
        if (add_guard(m, GUARD_RULE_PIN, arena_str(m->mem, (struct str){dst, n}), origin) < 0)
            return -ENOMEM;
    }
    m->last_pin = dst;
    return 0;
}

int add_env(struct making *m, const char *name, const char *value)
{
    const char **slot = arena_push(m->mem, &m->set_env, &m->n_set_env, sizeof *slot);
    const char *entry = slot && value ? arena_printf(m->mem, "%s=%s", name, value) : NULL;
    if (!entry)
        return no_memory(m);
    *slot = entry;
    return 0;
}

/* Writes %XX for every character that a file name cannot contain, or that would make two caches share a name. */
static const char *encode(struct making *m, const char *path)
{
    enum { LONGEST = 200 };
    size_t n = 0;
    char *out = arena_zero(m->mem, 3 * strlen(path) + 1);
    if (!out)
        return NULL;
    for (const char *p = path; *p; p++) {
        if (*p == '/' || *p == '%' || *p == '\n')
            n += (size_t)snprintf(out + n, 4, "%%%02X", (unsigned char)*p);
        else
            out[n++] = *p;
    }
    if (n > LONGEST) {
        char sum[65];
        sha256_hex(str_of(path), sum);
        return arena_text(m->mem, sum);
    }
    return out;
}

const char *short_name(struct making *m, const char *path)
{
    char sum[65];
    sha256_hex(str_of(path), sum);
    sum[12] = 0;
    return arena_text(m->mem, sum);
}

const char *secret_caches(const struct making *m)
{
    return m->facts->layers ? m->ask->secret : NULL;
}

const char *cache_dir(struct making *m, const char *dst)
{
    if (!m->facts->state_home)
        return NULL;
    if (!m->caches) {
        char sum[65];
        sha256_hex(str_of(m->workspace), sum);
        m->caches =
            arena_printf(m->mem, "%s/pinfold/caches/%.32s/%u%s%s", m->facts->state_home, sum, m->ask->cache_slot,
                         secret_caches(m) ? "/" : "", secret_caches(m) ? secret_caches(m) : "");
    }
    const char *rest = m->home && path_below(dst, m->home) ? path_rest(dst, m->home) : dst;
    const char *name = encode(m, rest);
    if (name && m->facts->image) /* not what another engine stores there as an overlay's upper layer */
        name = arena_printf(m->mem, "image@%s", name);
    return name ? path_join(m->mem, m->caches, name) : NULL;
}

const char *first_missing(struct making *m, const struct plan_place *p)
{
    const char *rest = path_rest(p->dst, p->parent);
    size_t n = (size_t)(rest - p->dst) + strcspn(rest, "/");
    return p->dst[n] ? arena_str(m->mem, (struct str){p->dst, n}) : p->dst;
}

enum stub stub_of_hidden(const struct plan_place *p)
{
    if (p->type == PATH_DIR)
        return STUB_DENIED_DIR;
    return p->type == PATH_MISSING || (p->absent && p->type == PATH_FILE) ? STUB_ABSENT : STUB_DENIED_FILE;
}

/* Whether a rule shows a device of the host. Nodes of the box's own /dev only need the ioctls of terminals. */
static bool shows_device(const struct making *m)
{
    for (size_t i = 0; i < m->n_places; i++) {
        const struct plan_place *p = &m->places[i];
        const bool shown = p->kind == PLACE_RW || p->kind == PLACE_RO || p->mount;
        if (shown && p->src && path_at_or_below(p->src, "/dev"))
            return true;
    }
    return false;
}

/*
 * Whether Landlock can keep the box from writing to the host's FIFOs, which no mount does: it allows trees (fifos_hold()), so none of the
 * host's may lie in one that the box can write to. A nested user namespace could mount nothing under it, and a container may refuse it.
 */
static bool can_hold_fifos(const struct making *m)
{
    if (m->facts->landlock_abi < 1 || m->facts->image || m->policy->allow_nested_userns)
        return false;
    for (size_t i = 0; i < m->n_places; i++) {
        const struct plan_place *p = &m->places[i];
        const bool tree = p->act == ACT_ATTACH && p->src && (p->type == PATH_DIR || p->type == PATH_OTHER);
        /* a protected directory of the workspace: its FIFOs belong to the project, as those that the box may write beside it */
        const bool same = !p->mount && tree && strcmp(p->src, p->dst) == 0;
        const enum region around = p->up < 0 ? REGION_READ_ONLY : (enum region)m->places[p->up].region;
        if (tree && ((around == REGION_WRITABLE && !same) || around == REGION_PRIVATE || around == REGION_CACHE))
            return false;
    }
    return true;
}

/*
 * Whether all that the box can change is its own or waits in its layer, and mounts enforce the rest: then only FILTER_LAYERED's calls need
 * the guard. Without a layer that is asked only of a box with `guard: off`, such as one that only reads; in others the guard also tells of
 * refusals. In a mount namespace of its own a process can take a mount away and remove what it covered, so where it may make one, protected
 * names need the guard. A protected file, names that a rule protects wherever they are, a writable tree or a private place of the host's,
 * where a program of the host could be led, and a tree without links keep the whole guard.
 */
static bool is_all_layered(const struct making *m)
{
    if (!(m->layered || m->policy->guard == GUARD_OFF) || m->n_reads || m->facts->tier == TIER_LANDLOCK ||
        !can_hold_fifos(m))
        return false;
    for (size_t i = 0; i < m->n_guards; i++) {
        const struct guard_line *g = &m->guards[i];
        if ((g->kind == GUARD_RULE_ROOT && (!(g->flags & GUARD_RULE_LAYERED) || g->flags & GUARD_RULE_NO_LINKS)) ||
            (g->kind == GUARD_RULE_PRIVATE && g->flags & GUARD_RULE_KEPT) || g->kind == GUARD_RULE_HIDE ||
            g->kind == GUARD_RULE_HIDE_NAME || (g->kind == GUARD_RULE_PROTECT && m->policy->allow_nested_userns) ||
            (g->kind == GUARD_RULE_NAME && g->flags & GUARD_RULE_ALWAYS))
            return false;
    }
    for (size_t i = 0; i < m->n_places; i++) {
        const struct plan_place *p = &m->places[i];
        const bool by_guard = p->act == ACT_GUARD && p->kind != PLACE_SOCKET;
        const bool writes = p->region == REGION_WRITABLE && p->entered && !p->dropped && p->act != ACT_OVERLAY;
        if (by_guard || writes || p->act == ACT_WHITEOUT)
            return false;
    }
    return true;
}

/* A monitor sees more than the calls of FILTER_LAYERED; questions about writes and a caller's pipe need all opens. */
uint32_t filter_of(const struct making *m)
{
    if (m->facts->unsandboxed)
        return 0;
    uint32_t bits = m->facts->notify ? FILTER_GUARD : 0;
    if (m->facts->notify && m->n_reads)
        bits |= FILTER_READS;
    if (m->facts->notify && m->policy->monitor)
        bits |= FILTER_MONITOR;
    else if (m->facts->notify && is_all_layered(m) && !m->ask->grants && !m->ask->piped)
        bits |= FILTER_LAYERED;
    if (m->facts->tier == TIER_LANDLOCK && m->policy->net != NET_HOST)
        bits |= FILTER_NO_INET;
    if (m->policy->allow_nested_userns)
        bits |= FILTER_USERNS;
    if (m->facts->tier == TIER_LANDLOCK)
        bits |= FILTER_PEERS;
    if (shows_device(m))
        bits |= FILTER_DEVICES;
    return bits;
}

/* Shares of the disk limit: together the private trees hold exactly that much. /tmp gets most of it. */
uint32_t private_kib(const struct making *m, const char *dst)
{
    const struct limit *disk = &m->policy->limits.disk;
    if (disk->value == LIMIT_NONE)
        return 0;
    uint64_t kib = disk->value / 1024, small = kib / 16, share;
    share = strcmp(dst, "/tmp") == 0 ? kib - 3 * small : small;
    return share == 0 ? 1 : share > UINT32_MAX ? 0 : (uint32_t)share;
}
