/*
 * A pinfold that runs from the clone in which ./pinfold built it. Before the next box ./pinfold builds what changed there, and runs it
 * outside of any box: where a box could write around that clone, what the build reads and makes is pinfold's own, as its program is.
 */
#include "survey/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "match/path.h"
#include "survey/helper.h"

enum { N_PARTS = 11 };

/* What ./pinfold runs, what its build reads, and where it builds; build/ itself is among the helpers. */
static const char clone_parts[N_PARTS][20] = {"pinfold",       "scripts",       "src",         "include",
                                              "profiles",      "docs",          "meson.build", "meson_options.txt",
                                              "build-library", "meson.options", "subprojects"};

bool helper_is_in_clone(struct arena *mem, const char *own)
{
    const char *build = path_dir(mem, own), *top = build ? path_dir(mem, build) : NULL;
    const char *script = top && strcmp(path_name(build), "build") == 0 ? path_join(mem, top, "scripts/build.sh") : NULL;
    return script && access(script, F_OK) == 0;
}

static bool is_written(const struct facts *f, const char *asked, const char *top)
{
    const struct path_fact *fact = asked ? facts_path(f, asked) : NULL;
    return fact && fact->real && path_overlap(fact->real, top);
}

static bool is_around(const struct policy *p, const struct facts *f, const char *top)
{
    bool around = is_written(f, p->workspace, top);
    for (size_t i = 0; !around && i < p->n_paths; i++)
        around = p->paths[i].access == PATH_RW && is_written(f, p->paths[i].path, top);
    for (size_t i = 0; !around && i < p->n_mounts; i++)
        around = is_written(f, p->mounts[i].from, top);
    return around;
}

static int by_asked_path(const void *a, const void *b)
{
    return strcmp(((const struct path_fact *)a)->asked, ((const struct path_fact *)b)->asked);
}

static int add_parts(struct surveyor *s, struct facts *f, const char *top)
{
    size_t n = f->n_paths;
    struct path_fact *all = arena_zero(s->mem, (n + N_PARTS) * sizeof *all);
    if (!all)
        return -ENOMEM;
    memcpy(all, f->paths, n * sizeof *all);
    for (size_t i = 0; i < N_PARTS; i++) {
        const char *path = path_join(s->mem, top, clone_parts[i]);
        const char **own = path ? arena_push(s->mem, &f->clone, &f->n_clone, sizeof *own) : NULL;
        if (!own)
            return -ENOMEM;
        *own = path;
        if (facts_path(f, path))
            continue;
        all[n].asked = path;
        int r = survey_path(s, path, &all[n++]);
        if (r < 0)
            return r;
    }
    qsort(all, n, sizeof *all, by_asked_path);
    f->paths = all;
    f->n_paths = n;
    return 0;
}

int survey_clone(struct surveyor *s, const struct policy *p, struct facts *f)
{
    if (!f->is_clone)
        return 0;
    const char *top = path_dir(s->mem, f->helpers[0]); /* build */
    if (!top)
        return -ENOMEM;
    int r = is_around(p, f, top) ? 1 : survey_is_twice(s, top);
    return r > 0 ? add_parts(s, f, top) : r;
}
