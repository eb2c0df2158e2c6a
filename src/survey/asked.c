/*
 * Collects the paths that a plan will look up, and examines each once. What is found here may change before the box is
 * built: the builder opens each real path without following links and fails if something has changed.
 */
#include "survey/path.h"
#include "survey/walk.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "match/path.h"
#include "sys/file.h"

int survey_ask(struct surveyor *s, struct asked_list *a, const char *path, bool host)
{
    if (!path || path[0] != '/')
        return 0;
    struct survey_asked *slot = arena_push(s->mem, &a->at, &a->n, sizeof *slot);
    if (!slot)
        return -ENOMEM;
    *slot = (struct survey_asked){path, host};
    return 0;
}

static int by_asked(const void *a, const void *b)
{
    return strcmp(((const struct survey_asked *)a)->path, ((const struct survey_asked *)b)->path);
}

/* Collects everything that plan/ will look up with facts_path(). */
static int ask_all(struct surveyor *s, const struct policy *p, const struct facts *f, struct asked_list *a)
{
    int r = survey_ask(s, a, p->workspace, true);
    for (const char *const *c = facts_places; r == 0 && *c; c++)
        r = survey_ask(s, a, *c, true);
    const char *own[] = {f->home, f->program, f->runtime, path_join(s->mem, f->state_home, "pinfold"),
                         path_join(s->mem, f->config_home, "pinfold")};
    for (size_t i = 0; r == 0 && i < sizeof own / sizeof own[0]; i++)
        r = survey_ask(s, a, own[i], true);
    for (size_t i = 0; r == 0 && i < N_HELPERS; i++)
        r = survey_ask(s, a, f->helpers[i], true);
    for (size_t i = 0; r == 0 && i < p->n_paths; i++) {
        const struct path_rule *rule = &p->paths[i];
        r = survey_ask(s, a,
                       rule->any_depth ? rule->below
                       : rule->pattern ? path_dir(s->mem, rule->path)
                                       : rule->path,
                       false);
    }
    for (size_t i = 0; r == 0 && i < p->n_mounts; i++) {
        r = survey_ask(s, a, p->mounts[i].from, true);
        if (r == 0)
            r = survey_ask(s, a, p->mounts[i].to, false);
    }
    for (size_t i = 0; r == 0 && i < p->n_storages; i++)
        r = survey_ask(s, a, p->storages[i].path, false);
    for (size_t i = 0; r == 0 && i < p->n_unix_sockets; i++)
        r = survey_ask(s, a, p->unix_sockets[i], false);
    return r;
}

static const char *target_of(const void *mounts, size_t i)
{
    return ((const struct mount_rule *const *)mounts)[i]->to;
}

static int order_mounts(struct surveyor *s, const struct policy *p)
{
    s->mounts = arena_zero(s->mem, (p->n_mounts + 1) * sizeof *s->mounts);
    if (!s->mounts)
        return -ENOMEM;
    for (size_t i = 0; i < p->n_mounts; i++)
        s->mounts[i] = &p->mounts[i];
    qsort(s->mounts, p->n_mounts, sizeof *s->mounts, mount_target_order);
    s->n_mounts = p->n_mounts;
    return 0;
}

const char *survey_through_mounts(struct surveyor *s, const char *path)
{
    size_t i = s->n_mounts ? path_find_above(path, s->n_mounts, target_of, s->mounts) : SIZE_MAX;
    return i == SIZE_MAX ? path : path_join(s->mem, s->mounts[i]->from, path_rest(path, s->mounts[i]->to));
}

/*
 * The kernel knows groups and access lists; it is asked only where it could refuse, and need not. Where the group's rights have no
 * right to read, no entry of an access list gives it: they are its mask (acl(5)). Root may read all the same.
 */
bool survey_is_refused(struct surveyor *s, const struct facts *f, const char *real, uint64_t dev, uint32_t uid,
                       uint32_t mode)
{
    if (uid == f->uid || mode & 0004)
        return false;
    return (f->uid != 0 && !(mode & 0040) && survey_is_local(s, dev, real)) || sys_may_read(real) < 0;
}

int survey_paths(struct surveyor *s, const struct policy *p, struct facts *f)
{
    struct asked_list a = {0};
    int r = ask_all(s, p, f, &a);
    if (r == 0)
        r = order_mounts(s, p);
    if (r < 0)
        return r;
    qsort(a.at, a.n, sizeof *a.at, by_asked);
    s->asked = a;
    struct path_fact *facts = arena_zero(s->mem, (a.n + 1) * sizeof *facts);
    if (!facts)
        return -ENOMEM;
    size_t n = 0;
    for (size_t i = 0, next; i < a.n; i = next) {
        bool host = a.at[i].host;
        for (next = i + 1; next < a.n && by_asked(&a.at[next], &a.at[i]) == 0; next++)
            host |= a.at[next].host;
        struct path_fact *fact = &facts[n++];
        fact->asked = a.at[i].path;
        const char *where = host ? fact->asked : survey_through_mounts(s, fact->asked);
        r = where ? survey_path(s, where, fact) : -ENOMEM;
        if (r < 0)
            return r;
        if (fact->type == PATH_FILE || fact->type == PATH_DIR)
            fact->refused = survey_is_refused(s, f, fact->real, fact->dev, fact->uid, fact->mode);
    }
    f->paths = facts;
    f->n_paths = n;
    return 0;
}
