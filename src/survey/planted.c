/*
 * Links that a box may have created. A path that a person gave and that leads over one is refused, unless it led there
 * before any box of this policy (pins); the record of what boxes could write is written.h's.
 */
#include "survey/walk.h"
#include "survey/written.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "match/path.h"

static struct path_pin *find_pin(const struct path_pins *pins, const char *asked)
{
    for (size_t i = 0; pins && i < pins->n; i++) {
        if (strcmp(pins->at[i].asked, asked) == 0)
            return &pins->at[i];
    }
    return NULL;
}

static int add_pin(struct path_pins *pins, const char *asked, const char *real)
{
    struct path_pin *pin = pins ? arena_push(pins->mem, &pins->at, &pins->n, sizeof *pin) : NULL;
    if (!pin)
        return pins ? -ENOMEM : 0;
    *pin = (struct path_pin){arena_text(pins->mem, asked), arena_text(pins->mem, real)};
    return pin->asked && pin->real ? 0 : -ENOMEM;
}

/*
 * Walks again, over known nodes, a path that crosses links. `*ret` is a link that a box may have created, or NULL:
 * there is none, or the path leads where it led before any box of this policy.
 */
static int find_planted(struct surveyor *s, struct facts *f, const char *asked, bool host,
                        const struct survey_node **ret)
{
    *ret = NULL;
    const char *where = host ? asked : survey_through_mounts(s, asked);
    struct path_fact *fact = (struct path_fact *)(uintptr_t)facts_path(f, asked);
    if (!where || !fact || strcmp(fact->real, where) == 0)
        return where ? 0 : -ENOMEM;
    struct place_found found = {.at = s->root, .rest = ""};
    s->links_left = MAX_LINKS;
    s->judging = true;
    s->planted = NULL;
    int r = survey_walk(s, s->root, where, &found);
    s->judging = false;
    if (r == -ENOMEM)
        return r;
    const struct path_pin *pin = find_pin(f->pins, asked);
    if (!s->planted)
        return pin ? 0 : add_pin(f->pins, asked, fact->real);
    if (pin && strcmp(pin->real, fact->real) == 0)
        return 0;
    fact->planted = true;
    *ret = s->planted;
    return 0;
}

static bool is_persons_rule(const struct policy *p, uint32_t origin)
{
    return origin < p->n_origins && p->origins[origin].layer != LAYER_BUILTIN;
}

static int refuse_planted(const struct policy *p, const struct facts *f, const char *what, uint32_t origin,
                          const char *asked, const struct survey_node *link, struct err *e)
{
    char said[300], place[256];
    if (is_persons_rule(p, origin) && p->origins[origin].layer == LAYER_FLAGS && !p->origins[origin].line)
        return written_refuse(p->origins[origin].file, asked, link->real, facts_path(f, asked)->real, e);
    snprintf(said, sizeof said, "%s (%s)", what, policy_origin(p, origin, place, sizeof place));
    return written_refuse(said, asked, link->real, facts_path(f, asked)->real, e);
}

/* Judges a path that a person has given. */
static int judge_said(struct surveyor *s, const struct policy *p, struct facts *f, const char *what, uint32_t origin,
                      const char *asked, bool host, struct err *e)
{
    const struct survey_node *link;
    int r = find_planted(s, f, asked, host, &link);
    return r == 0 && link ? refuse_planted(p, f, what, origin, asked, link, e) : r;
}

static int judge_rule(struct surveyor *s, const struct policy *p, struct facts *f, const struct path_rule *rule,
                      struct err *e)
{
    static const char *const names[] = {
        [PATH_HIDE] = "hide", [PATH_RO] = "ro", [PATH_RW] = "rw", [PATH_PROTECT] = "protect", [PATH_CACHE] = "cache"};
    const struct survey_node *link;
    bool hides = rule->access == PATH_HIDE || rule->access == PATH_PROTECT, said = is_persons_rule(p, rule->origin);
    /* What a profile hides stays hidden under all its names; what it makes accessible is left out
       (plan/places/collect.c). */
    if ((rule->any_depth && !rule->below) || (hides && !said))
        return 0;
    const char *path = rule->any_depth ? rule->below : rule->pattern ? path_dir(s->mem, rule->path) : rule->path;
    if (!path)
        return -ENOMEM;
    return said ? judge_said(s, p, f, names[rule->access], rule->origin, path, false, e)
                : find_planted(s, f, path, false, &link);
}

int survey_judge_links(struct surveyor *s, const struct policy *p, struct facts *f, struct err *e)
{
    int r = judge_said(s, p, f, "workspace", p->workspace_origin, p->workspace, true, e);
    for (size_t i = 0; r == 0 && i < p->n_paths; i++)
        r = judge_rule(s, p, f, &p->paths[i], e);
    for (size_t i = 0; r == 0 && i < p->n_mounts; i++) {
        r = judge_said(s, p, f, "mount", p->mounts[i].origin, p->mounts[i].from, true, e);
        if (r == 0)
            r = judge_said(s, p, f, "mount on", p->mounts[i].origin, p->mounts[i].to, false, e);
    }
    for (size_t i = 0; r == 0 && i < p->n_storages; i++)
        r = judge_said(s, p, f, "storage", p->storages[i].origin, p->storages[i].path, false, e);
    for (size_t i = 0; r == 0 && i < p->n_unix_sockets; i++) {
        const struct survey_node *link;
        const char *path = p->unix_sockets[i];
        r = find_planted(s, f, path, false, &link);
        if (r == 0 && link)
            r = written_refuse("--unix-socket", path, link->real, facts_path(f, path)->real, e);
    }
    return r;
}
