/*
 * Writes the plan image: steps and strings grow separately in the arena and are joined at the end. Equal strings are
 * stored once, found by hash.
 */
#include "base/hash.h"
#include "plan/make.h"

enum { FIRST_INDEX = 1024, FIRST_STRINGS = 8192 };

int image_begin(struct image_writer *w, struct arena *mem)
{
    *w = (struct image_writer){.mem = mem, .index_size = FIRST_INDEX, .strings_room = FIRST_STRINGS, .n_strings = 1};
    w->index = arena_zero(mem, FIRST_INDEX * sizeof *w->index);
    w->strings = arena_zero(mem, FIRST_STRINGS);
    return w->index && w->strings ? 0 : -ENOMEM;
}

static bool grow_index(struct image_writer *w)
{
    size_t size = w->index_size * 2;
    uint32_t *index = arena_zero(w->mem, size * sizeof *index);
    if (!index)
        return false;
    for (size_t i = 0; i < w->index_size; i++) {
        if (!w->index[i])
            continue;
        const char *s = w->strings + w->index[i];
        size_t at = hash32(HASH32, s, strlen(s)) & (size - 1);
        while (index[at])
            at = (at + 1) & (size - 1);
        index[at] = w->index[i];
    }
    w->index = index;
    w->index_size = size;
    return true;
}

static bool grow_strings(struct image_writer *w, size_t n)
{
    size_t room = w->strings_room;
    while (room - w->n_strings < n)
        room *= 2;
    if (room == w->strings_room)
        return true;
    char *p = room > MAX_PLAN_BYTES ? NULL : arena_zero(w->mem, room);
    if (!p)
        return false;
    memcpy(p, w->strings, w->n_strings);
    w->strings = p;
    w->strings_room = room;
    return true;
}

uint32_t image_string(struct image_writer *w, const char *s)
{
    size_t n = s ? strlen(s) : 0;
    if (n == 0)
        return 0;
    size_t at = hash32(HASH32, s, n) & (w->index_size - 1);
    for (; w->index[at]; at = (at + 1) & (w->index_size - 1)) {
        if (strcmp(w->strings + w->index[at], s) == 0)
            return w->index[at];
    }
    if (!grow_strings(w, n + 1))
        return UINT32_MAX;
    uint32_t offset = (uint32_t)w->n_strings;
    memcpy(w->strings + offset, s, n + 1);
    w->n_strings += n + 1;
    w->index[at] = offset;
    if (++w->index_used * 2 > w->index_size && !grow_index(w))
        return UINT32_MAX;
    return offset;
}

struct step *image_step(struct image_writer *w, enum step_kind kind, uint32_t origin)
{
    struct step *s = w->n_steps < MAX_PLAN_STEPS ? arena_push(w->mem, &w->steps, &w->n_steps, sizeof *s) : NULL;
    if (s) {
        s->kind = (uint8_t)kind;
        s->origin = origin;
    }
    return s;
}

struct step *image_path(struct image_writer *w, enum step_kind kind, const char *path, uint32_t origin)
{
    uint32_t at = image_string(w, path);
    struct step *s = at == UINT32_MAX ? NULL : image_step(w, kind, origin);
    if (s)
        s->a = at;
    return s;
}

/* Puts the guard's rules after its head; their strings go to the common table. */
static int put_guard_table(struct making *m, struct guard_table *t)
{
    t->n_rules = (uint32_t)m->n_guards;
    t->mode = m->policy->guard;
    for (size_t i = 0; i < m->n_guards; i++) {
        const struct guard_line *g = &m->guards[i];
        struct guard_rule *r = &t->rules[i];
        *r = (struct guard_rule){.kind = g->kind, .place = g->place, .judge = g->judge, .flags = g->flags};
        r->text = image_string(&m->image, g->text);
        r->below = image_string(&m->image, g->below);
        r->origin = g->origin;
        if (r->text == UINT32_MAX || r->below == UINT32_MAX)
            return -ENOMEM;
    }
    return 0;
}

int image_end(struct making *m, struct plan_image **ret)
{
    struct image_writer *w = &m->image;
    bool guarded = filter_of(m) & FILTER_GUARD;
    size_t guard_bytes = guarded ? sizeof(struct guard_table) + m->n_guards * sizeof(struct guard_rule) : 0;
    struct guard_table *t = arena_zero(m->mem, sizeof *t + m->n_guards * sizeof(struct guard_rule));
    if (!t || (guarded && put_guard_table(m, t) < 0))
        return no_memory(m);

    size_t steps_bytes = w->n_steps * sizeof(struct step);
    size_t bytes = sizeof(struct plan_image) + steps_bytes + guard_bytes + w->n_strings;
    if (bytes > MAX_PLAN_BYTES)
        return err_say(m->e, ERR_POLICY, "the plan of this policy is larger than %u MiB", MAX_PLAN_BYTES >> 20);
    struct plan_image *p = arena_zero(m->mem, bytes);
    if (!p)
        return no_memory(m);
    *p = (struct plan_image){.magic = PLAN_MAGIC, .bytes = (uint32_t)bytes, .n_steps = (uint32_t)w->n_steps};
    p->steps_at = sizeof *p;
    p->guard_at = guard_bytes ? (uint32_t)(sizeof *p + steps_bytes) : 0;
    p->guard_bytes = (uint32_t)guard_bytes;
    p->strings_at = (uint32_t)(sizeof *p + steps_bytes + guard_bytes);
    p->strings_bytes = (uint32_t)w->n_strings;
    if (steps_bytes)
        memcpy((char *)p + p->steps_at, w->steps, steps_bytes);
    if (guard_bytes)
        memcpy((char *)p + p->guard_at, t, guard_bytes);
    memcpy((char *)p + p->strings_at, w->strings, w->n_strings);
    *ret = p;
    return 0;
}
