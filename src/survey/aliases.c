/*
 * Other paths of pinfold's own files: a bind mount of the host shows a directory at two paths, and what a rule makes
 * accessible at one of them must not be pinfold's own.
 */
#include "survey/walk.h"

#include <errno.h>
#include <string.h>

#include "match/path.h"

/* pinfold's own (its ancestors up to the root), or what a rule makes accessible. */
struct chain {
    const char *asked;
    struct survey_node *end; /* the nearest that exists */
    const char *rest;        /* what is missing below it */
    bool part;               /* a directory inside pinfold's own */
};

static int alias_chain(struct surveyor *s, const char *path, struct chain *ret)
{
    *ret = (struct chain){.asked = NULL};
    struct place_found found = {.at = s->root, .rest = ""};
    s->links_left = MAX_LINKS;
    int r = path ? survey_walk(s, s->root, path, &found) : 0;
    *ret = (struct chain){.asked = r == 0 ? path : NULL, .end = found.at, .rest = found.rest};
    return r == -ELOOP ? 0 : r;
}

static bool same_directory(const struct survey_node *a, const struct survey_node *b)
{
    return a != b && a->type == PATH_DIR && b->type == PATH_DIR && a->ino == b->ino && a->dev == b->dev;
}

static int add_alias(struct surveyor *s, struct facts *f, const char *asked, const char *path)
{
    for (size_t i = 0; path && i < f->n_aliases; i++) {
        if (strcmp(f->aliases[i].asked, asked) == 0 && strcmp(f->aliases[i].real, path) == 0)
            return 0;
    }
    struct path_fact *slot = path ? arena_push(s->mem, &f->aliases, &f->n_aliases, sizeof *slot) : NULL;
    int r = slot ? survey_path(s, path, slot) : -ENOMEM;
    if (r == 0)
        slot->asked = asked;
    return r;
}

/*
 * A bind mount of the host shows a directory at two paths. So what a rule makes accessible is compared with pinfold's
 * own by device and inode: a directory above pinfold's own at another path leads there, and so does its content.
 */
static int find_alias(struct surveyor *s, struct facts *f, const struct chain *own, const struct chain *opened)
{
    if (!own->asked || !opened->asked)
        return 0;
    for (const struct survey_node *up = own->end; !own->part; up = up->parent) {
        if (!opened->rest[0] && same_directory(up, opened->end)) {
            const char *real = own->end->real + (up->parent == up ? 0 : strlen(up->real));
            const char *at = arena_printf(s->mem, "%s%s", opened->end->real, real);
            return add_alias(s, f, own->asked, own->rest[0] && at ? path_join(s->mem, at, own->rest) : at);
        }
        if (up->parent == up)
            break;
    }
    for (const struct survey_node *up = opened->end; !own->rest[0] && up->parent != up; up = up->parent) {
        if (same_directory(up, own->end))
            return add_alias(s, f, own->asked, up->real);
    }
    return 0;
}

int survey_aliases(struct surveyor *s, const struct policy *p, struct facts *f)
{
    /* Directories in the state directory may be mounted elsewhere separately. */
    static const char parts[][20] = {"pinfold/trust", "pinfold/audit", "pinfold/caches", "pinfold/sessions"};
    const char *const paths[] = {path_join(s->mem, f->state_home, "pinfold"),
                                 path_join(s->mem, f->config_home, "pinfold"), f->program, "/etc/pinfold", f->runtime};
    enum {
        FIRST = sizeof paths / sizeof paths[0],
        WHOLE = FIRST + N_HELPERS,
        OWN = WHOLE + sizeof parts / sizeof parts[0]
    };
    struct chain own[OWN];
    int r = 0;
    for (size_t i = 0; r == 0 && i < OWN; i++) {
        r = alias_chain(s,
                        i < FIRST   ? paths[i]
                        : i < WHOLE ? f->helpers[i - FIRST]
                                    : path_join(s->mem, f->state_home, parts[i - WHOLE]),
                        &own[i]);
        own[i].part = i >= WHOLE;
        if (own[i].part && own[i].asked)
            own[i].asked = paths[0];
    }
    for (size_t i = 0; r == 0 && i <= p->n_paths + p->n_mounts; i++) {
        const struct path_rule *rule = i < p->n_paths ? &p->paths[i] : NULL;
        const char *path = i == p->n_paths + p->n_mounts ? p->workspace
                           : !rule                       ? p->mounts[i - p->n_paths].from
                           : rule->access == PATH_RW     ? rule->path
                                                         : NULL;
        struct chain opened;
        if (!path)
            continue;
        r = alias_chain(s, rule ? survey_through_mounts(s, path) : path, &opened);
        for (size_t k = 0; r == 0 && k < OWN; k++)
            r = find_alias(s, f, &own[k], &opened);
    }
    return r;
}
