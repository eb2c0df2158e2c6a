/*
 * Finds facts: by binary search for a single query, by hash for planning, which looks up every rule. A path that was
 * not asked about before planning has no facts; that is a mistake of the survey's.
 */
#include "base/hash.h"
#include "plan/make.h"

const char *const facts_places[] = {"/",
                                    "/tmp",
                                    "/var/tmp",
                                    "/run",
                                    "/var/run",
                                    "/dev",
                                    "/proc",
                                    "/sys",
                                    "/etc/pinfold",
                                    "/etc/resolv.conf",
                                    "/run/current-system",
                                    "/run/opengl-driver",
                                    NULL};

const struct path_fact *facts_path(const struct facts *f, const char *asked)
{
    size_t low = 0, high = f->n_paths;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = strcmp(f->paths[mid].asked, asked);
        if (c == 0)
            return &f->paths[mid];
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* A copy of a list that ends with NULL; NULL for no list, and without memory. */
static const char *const *words_of(const char *const *from, struct arena *to)
{
    size_t n = 0;
    while (from && from[n])
        n++;
    const char **ret = from ? arena_zero(to, (n + 1) * sizeof *ret) : NULL;
    for (size_t i = 0; ret && i < n; i++)
        ret[i] = arena_text(to, from[i]);
    return ret;
}

/* What is reported about the engine at the end: the image, and why no other engine was chosen. */
static void move_engine(const struct facts *f, struct facts *kept, struct arena *to)
{
    struct image_fact *image = f->image ? arena_zero(to, sizeof *image) : NULL;
    struct container_fact *container = f->container ? arena_zero(to, sizeof *container) : NULL;
    struct engine_reason *others = f->n_others ? arena_zero(to, f->n_others * sizeof *others) : NULL;
    if (image)
        *image = (struct image_fact){.name = arena_text_or_null(to, f->image->name),
                                     .id = arena_text_or_null(to, f->image->id),
                                     .entrypoint = words_of(f->image->entrypoint, to),
                                     .user = arena_text_or_null(to, f->image->user),
                                     .cmd = words_of(f->image->cmd, to),
                                     .workdir = arena_text_or_null(to, f->image->workdir)};
    if (container)
        *container = (struct container_fact){.podman = f->container->podman, .rootless = f->container->rootless};
    for (size_t i = 0; others && i < f->n_others; i++)
        others[i] = (struct engine_reason){arena_text_or_null(to, f->others[i].engine),
                                           arena_text_or_null(to, f->others[i].why)};
    kept->image = image;
    kept->container = container;
    kept->others = others;
}

bool facts_move(struct facts *f, struct arena *to)
{
    struct facts kept = *f;
    move_engine(f, &kept, to);
    kept.engine = arena_text_or_null(to, f->engine);
    for (int i = 0; i < FEATURE_COUNT; i++) {
        kept.why_not[i] = arena_text_or_null(to, f->why_not[i]);
        kept.remedy[i] = arena_text_or_null(to, f->remedy[i]);
    }
    kept.home = arena_text_or_null(to, f->home);
    kept.user_name = arena_text_or_null(to, f->user_name);
    kept.catch_why = arena_text_or_null(to, f->catch_why);
    kept.program = arena_text_or_null(to, f->program);
    for (int i = 0; i < N_HELPERS; i++)
        kept.helpers[i] = arena_text_or_null(to, f->helpers[i]);
    kept.tool = arena_text_or_null(to, f->tool);
    struct engine_reason *others = f->n_others ? arena_zero(to, f->n_others * sizeof *others) : NULL;
    for (size_t i = 0; others && i < f->n_others; i++)
        others[i] = (struct engine_reason){arena_text_or_null(to, f->others[i].engine),
                                           arena_text_or_null(to, f->others[i].why)};
    kept.others = others;
    kept.n_others = others ? f->n_others : 0;
    kept.repository_note = arena_text_or_null(to, f->repository_note);
    kept.bounds_note = arena_text_or_null(to, f->bounds_note);
    kept.runtime = arena_text_or_null(to, f->runtime);
    kept.state_home = arena_text_or_null(to, f->state_home);
    kept.config_home = arena_text_or_null(to, f->config_home);
    kept.paths = kept.aliases = NULL;
    kept.clone = NULL;
    kept.n_clone = 0;
    kept.matches = NULL;
    kept.dirs = NULL;
    kept.repository = NULL;
    kept.n_paths = kept.n_aliases = kept.n_matches = kept.n_dirs = 0;
    if (arena_failed(to))
        return false;
    *f = kept;
    return true;
}

static size_t fact_hash(const char *s)
{
    uint32_t h = hash32(HASH32, s, strlen(s));
    return h ^ h >> 15;
}

int facts_begin(struct making *m)
{
    size_t size = 16;
    while (size < m->facts->n_paths * 2)
        size *= 2;
    m->fact_index = arena_zero(m->mem, size * sizeof *m->fact_index);
    if (!m->fact_index)
        return no_memory(m);
    m->fact_index_size = size;
    for (size_t i = 0; i < m->facts->n_paths; i++) {
        size_t at = fact_hash(m->facts->paths[i].asked) & (size - 1);
        while (m->fact_index[at])
            at = (at + 1) & (size - 1);
        m->fact_index[at] = &m->facts->paths[i];
    }
    return 0;
}

const struct path_fact *fact_of(struct making *m, const char *asked)
{
    size_t at = fact_hash(asked) & (m->fact_index_size - 1);
    for (; m->fact_index[at]; at = (at + 1) & (m->fact_index_size - 1)) {
        if (strcmp(m->fact_index[at]->asked, asked) == 0)
            return m->fact_index[at];
    }
    err_say(m->e, ERR_BUG, "the survey did not examine %s", asked);
    return NULL;
}
