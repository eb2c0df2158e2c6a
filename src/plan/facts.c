/* Reading facts: by binary search for whoever asks once, by hash for the plan, which asks for every rule. */
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

static size_t hash_of(const char *s)
{
    uint32_t h = 2166136261u;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 16777619u;
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
        size_t at = hash_of(m->facts->paths[i].asked) & (size - 1);
        while (m->fact_index[at])
            at = (at + 1) & (size - 1);
        m->fact_index[at] = &m->facts->paths[i];
    }
    return 0;
}

const struct path_fact *fact_of(struct making *m, const char *asked)
{
    size_t at = hash_of(asked) & (m->fact_index_size - 1);
    for (; m->fact_index[at]; at = (at + 1) & (m->fact_index_size - 1)) {
        if (strcmp(m->fact_index[at]->asked, asked) == 0)
            return m->fact_index[at];
    }
    err_say(m->e, ERR_BUG, "the survey did not look at %s", asked);
    return NULL;
}
