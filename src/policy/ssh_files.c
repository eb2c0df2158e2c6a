/*
 * What ssh's system-wide configuration includes. OpenSSH ends when such a file belongs to neither root nor the caller
 * ("Bad owner or permissions"), and in the box of an ordinary user root's files belong to nobody: with a single file there no git over
 * ssh would work. So these directories are hidden, unless a rule names them; an Include that finds nothing is no error.
 */
#include "policy/merge.h"

#include <errno.h>

int ssh_rules(struct merge *m)
{
    struct policy *p = m->p;
    const char *const *dir = m->world->ssh_files;
    if (!dir || !*dir)
        return 0;
    const uint32_t origin = (uint32_t)p->n_origins++;
    p->origins[origin] = (struct origin){.layer = LAYER_BUILTIN, .file = SSH_ORIGIN};
    for (; *dir; dir++) {
        bool fresh;
        uint32_t *at = table_put(&m->paths, 0, str_of(*dir), (uint32_t)p->n_paths, &fresh);
        if (!at)
            return err_sys(m->e, ERR_SYSTEM, ENOMEM, "cannot build the policy");
        if (fresh)
            p->paths[p->n_paths++] =
                (struct path_rule){.access = PATH_HIDE, .path = *dir, .optional = true, .origin = origin};
    }
    return 0;
}
