/*
 * Answers from the image alone: see plan_shape.h. Builder, guard and backends ask the same functions, so that they
 * agree about a plan.
 */
#include "protocol/plan_shape.h"

#include <string.h>
#include "protocol/paths.h"

enum phase step_phase(const struct plan_image *p, unsigned kind)
{
    if (kind == STEP_STUB || kind == STEP_REACH || kind == STEP_LISTEN || kind == STEP_RULE || kind == STEP_NONE)
        return PHASE_NONE;
    if (kind == STEP_RLIMIT || kind == STEP_CWD)
        return PHASE_COMMAND;
    if (kind >= STEP_RULESET) /* without namespaces the file rules must apply to the guard, too */
        return kind == STEP_RULESET && p->tier ? PHASE_BUILD : PHASE_LOCK;
    return kind >= STEP_PROC ? PHASE_INSIDE : PHASE_BUILD;
}

const struct step *plan_nth(const struct plan_image *p, enum step_kind kind, uint32_t n)
{
    const struct step *s = plan_steps(p);
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (s[i].kind == kind && n-- == 0)
            return s + i;
    return NULL;
}

bool plan_has(const struct plan_image *p, enum step_kind kind)
{
    return plan_nth(p, kind, 0) != NULL;
}

const struct step *plan_cover_of_root(const struct plan_image *p)
{
    const struct step *s;
    for (uint32_t n = 0; (s = plan_nth(p, STEP_COVER, n)); n++)
        if (plan_string(p, s->a)[1] == 0)
            return s;
    return NULL;
}

uint32_t plan_slots(const struct plan_image *p)
{
    const struct step *s = plan_steps(p);
    uint32_t slots = 0, overlays = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (s[i].kind == STEP_SOURCE && s[i].b < p->n_steps && s[i].b >= slots)
            slots = s[i].b + 1;
        overlays += s[i].kind == STEP_OVERLAY;
    }
    return slots + overlays;
}

uint32_t plan_overlays(const struct plan_image *p)
{
    const struct step *s = plan_steps(p);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_steps; i++)
        n += s[i].kind == STEP_OVERLAY || s[i].kind == STEP_VEIL || s[i].kind == STEP_LAYER || s[i].kind == STEP_PART;
    return n;
}

uint32_t plan_split_at(const struct plan_image *p)
{
    const struct step *s = plan_steps(p);
    uint32_t at = 0, entered = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (s[i].kind == STEP_ENTER)
            entered = i;
        if (s[i].kind == STEP_DEVICES)
            at = i + 1;
    }
    if (!entered || at <= entered || !plan_has(p, STEP_PROC) || plan_cover_of_root(p))
        return 0;
    for (uint32_t i = at; i < p->n_steps; i++) {
        const bool placed = s[i].kind >= STEP_ATTACH && s[i].kind <= STEP_SYMLINK && s[i].kind != STEP_STUB;
        const struct str path = str_of(plan_string(p, s[i].a));
        if (placed && (path_lies_in(path, STR("/dev")) || path_lies_in(path, STR("/proc"))))
            return 0;
    }
    return at;
}

enum cover_says step_cover_says(const struct plan_image *p, const struct step *s, struct str prefix, struct str name)
{
    enum cover_says says = COVER_BINDS;
    for (uint32_t i = 1; i <= s->b; i++) {
        struct str path = str_of(plan_string(p, s[i].a));
        if (!str_starts(path, prefix))
            continue;
        path = str_skip(path, prefix.n);
        if (!str_starts(path, name))
            continue;
        path = str_skip(path, name.n);
        if (path.n == 0)
            return COVER_STUBS;
        if (path.p[0] == '/')
            says = COVER_ON_THE_WAY;
    }
    return says;
}
