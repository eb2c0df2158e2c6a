/*
 * Decides which changes of a layer an apply takes, and says why it does not take the others. A guarded name lands
 * only if a person has named it.
 */
#include <errno.h>
#include <string.h>

#include "layer/change.h"
#include "layer/repo/repo.h"
#include "match/path.h"

int outcome_refuse(struct arena *mem, struct apply_outcome *ret, const char *path, const char *why)
{
    struct apply_refusal *slot = arena_push(mem, &ret->refused, &ret->n_refused, sizeof *slot);
    if (slot)
        *slot = (struct apply_refusal){.path = path, .why = why};
    return slot ? 0 : -ENOMEM;
}

/* What is below .git is git's own, and a person names it path by path, but for what lands with the whole repository. */
static const char *git_why_not(const struct change *c, bool exact)
{
    const bool inside = repo_inside(c->path) > 0;
    switch (repo_part_of(c->path)) {
    case REPO_UNIT:
        return repo_is_top(c->path) ? "it lands with the whole repository: pinfold apply .git"
               : inside             ? "it lands with the whole repository that it is part of: apply the .git above it"
                        : "it lands with the whole repository of the submodule: apply the directory that is "
                          "(.git/modules/NAME)";
    case REPO_PASSING:
        return "it is not applied; git writes it anew";
    case REPO_OTHER:
        return c->born  ? "it belongs to a repository that the box has made: apply the .git above it"
               : inside ? "git obeys it in a repository inside of the workspace, where such files are not applied"
               : exact  ? NULL
                        : "git obeys it; to apply it, name this path itself";
    default:
        return "it is below a .git that is not a repository as git makes them, which is not applied";
    }
}

/* Whether it lands with its repository, or not at all: of one that the box has made everything. */
static bool in_wanted_unit(const struct change *c, const char *const *paths)
{
    char git[LAYER_PATH_MAX];
    const size_t n = repo_dir(c->path);
    const enum repo_part part = repo_part_of(c->path);
    if (part == REPO_NOT || (part == REPO_OTHER && !c->born) || n >= sizeof git || c->alarms & ALARM_SPELLING)
        return false;
    if (c->born && repo_is_way(c->path) && path_wanted(c->path, paths, NULL))
        return true;
    memcpy(git, c->path, n);
    git[n] = 0;
    return path_wanted(git, paths, NULL);
}

/* New directories above `path`. */
static void mark_above(const struct changes *all, const char *path, bool *take)
{
    char above[LAYER_PATH_MAX];
    size_t n = strlen(path);
    memcpy(above, path, n);
    while (n && n-- > 0) {
        const bool slash = above[n] == '/';
        above[n] = 0;
        const struct change *c = slash ? changes_find(all, above) : NULL;
        if (c && c->kind == CHANGE_ADDED && !layer_why_not(c, false))
            take[c - all->all] = true;
    }
}

bool change_waits(const struct change *c)
{
    return (c->alarms & ALARMS_WAIT) && !(c->alarms & ALARM_SPELLING) &&
           !(c->alarms & ALARM_GIT && git_why_not(c, true));
}

const char *layer_why_not(const struct change *c, bool exact)
{
    const char *why = c->alarms & ALARM_SPELLING
                          ? "some file systems take its name, or one above it, for one that is guarded; to apply it, "
                            "rename it in a box with the layer"
                      : c->alarms & ALARM_GIT && !lfs_is_object(c) ? git_why_not(c, exact)
                                                                   : NULL;
    if (why || c->conflict)
        return why ? why : c->conflict;
    if (object_is(&c->new, S_IFCHR) || object_is(&c->new, S_IFBLK))
        return "it is a device";
    if (exact || !(c->alarms & ALARMS_WAIT))
        return NULL;
    return c->alarms & ALARM_GUARDED ? "it has a guarded name; to apply it, name this path itself"
           : c->alarms & ALARM_LINK_PLACE
               ? "it is a link in place of a directory, into .git or into a process; to apply it, name this path itself"
           : c->alarms & ALARM_HOOKS  ? "it changes what git's hooks run; to apply it, name this path itself"
           : c->alarms & ALARM_SETUID ? "it is setuid or setgid; to apply it, name this path itself"
                                      : "it is neither file, directory nor link; to apply it, name this path itself";
}

/* Marks in `take` what is wanted and may be done; the rest of what is wanted is refused. */
static int choose(const struct changes *all, const char *const *paths, bool repository, bool *take, struct arena *mem,
                  struct apply_outcome *ret)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct change *c = &all->all[i];
        bool exact;
        if (!path_wanted(c->path, paths, &exact))
            continue;
        if (repository && in_wanted_unit(c, paths)) {
            if (c->kind == CHANGE_ADDED && same(path_name(c->path), REPO_DIR))
                mark_above(all, c->path, take);
            continue;
        }
        const char *why = layer_why_not(c, exact);
        if (why && outcome_refuse(mem, ret, c->path, why) < 0)
            return -ENOMEM;
        take[i] = !why;
    }
    if (paths)
        choose_above(all, take);
    return 0;
}

void choose_above(const struct changes *all, bool *take)
{
    for (size_t i = 0; i < all->n; i++)
        if (take[i])
            mark_above(all, all->all[i].path, take);
}

/* A path that names no change is a mistake of whoever wrote it. */
static int refuse_unknown(const struct changes *all, const char *const *paths, struct arena *mem,
                          struct apply_outcome *ret)
{
    for (size_t k = 0; paths && paths[k]; k++) {
        const char *const one[] = {paths[k], NULL};
        bool found = false;
        for (size_t i = 0; i < all->n && !found; i++)
            found = path_wanted(all->all[i].path, one, NULL);
        for (size_t i = 0; i < all->n_covered && !found; i++)
            found = path_wanted(all->covered[i], one, NULL);
        if (!found && outcome_refuse(mem, ret, paths[k], "the layer changes nothing there") < 0)
            return -ENOMEM;
    }
    return 0;
}

/* Of a stacked layer: what will be a change of the workspace only when a layer below has landed. */
static int refuse_covered(const struct changes *all, const char *const *paths, struct arena *mem,
                          struct apply_outcome *ret)
{
    for (size_t i = 0; i < all->n_covered; i++) {
        if (path_wanted(all->covered[i], paths, NULL) &&
            outcome_refuse(mem, ret, all->covered[i], all->covered_why) < 0)
            return -ENOMEM;
    }
    return 0;
}

int layer_choose(const struct layer_trees *t, const struct changes *all, const char *const *paths, bool repository,
                 struct arena *mem, bool **ret_take, struct apply_outcome *ret, struct err *e)
{
    *ret_take = arena_zero(mem, (all->n + 1) * sizeof **ret_take);
    if (!*ret_take || choose(all, paths, repository, *ret_take, mem, ret) < 0 ||
        refuse_unknown(all, paths, mem, ret) < 0 || refuse_covered(all, paths, mem, ret) < 0)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "layer %s: cannot apply it", t->id);
    return 0;
}
