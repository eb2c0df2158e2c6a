/*
 * The .env files of a workspace: .env, .env.local and .env.*.local at its top, where frameworks look for a developer's own
 * passwords and tokens. Those that exist when a box starts are hidden in it, unless a rule names them or files.env_files
 * is true. One that the box creates is its own.
 */
#include "policy/merge.h"

#include <errno.h>

static int env_no_memory(struct merge *m)
{
    return err_sys(m->e, ERR_SYSTEM, ENOMEM, "cannot build the policy");
}

int env_rules(struct merge *m)
{
    struct policy *p = m->p;
    const struct policy_world *w = m->world;
    const char *names[MAX_ENV_FILES];
    if (p->env_files || !w->env_files)
        return 0;
    int n = w->env_files(w->ctx, p->workspace, p->mem, names, m->e);
    if (n <= 0)
        return n;
    const uint32_t origin = (uint32_t)p->n_origins++;
    p->origins[origin] = (struct origin){.layer = LAYER_BUILTIN, .file = ENV_ORIGIN};
    for (int i = 0; i < n; i++) {
        const char *path = path_clean_at(p->mem, p->workspace, str_of(names[i]));
        bool fresh;
        uint32_t *at = path ? table_put(&m->paths, 0, str_of(path), (uint32_t)p->n_paths, &fresh) : NULL;
        if (!at)
            return env_no_memory(m);
        if (fresh)
            p->paths[p->n_paths++] =
                (struct path_rule){.access = PATH_HIDE, .path = path, .optional = true, .once = true, .origin = origin};
    }
    return 0;
}

bool is_env_file(struct str name)
{
    return str_is(name, ".env") || str_is(name, ".env.local") ||
           (str_starts(name, STR(".env.")) && str_ends(name, STR(".local")) && name.n > strlen(".env..local"));
}
