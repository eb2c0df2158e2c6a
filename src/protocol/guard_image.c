/*
 * Copies a guard's rules with their texts: see guard_image.h. A pinfold in the box gets such a copy, and plans its
 * inner box by it.
 */
#include "protocol/guard_image.h"

#include <string.h>

static const struct guard_table *table_of(const struct plan_image *p)
{
    return (const void *)((const char *)p + p->guard_at);
}

static uint32_t table_bytes(const struct guard_table *table)
{
    return (uint32_t)(sizeof *table + table->n_rules * sizeof *table->rules);
}

size_t guard_image_bytes(const struct plan_image *p)
{
    const struct guard_table *table = table_of(p);
    size_t room = sizeof *p + table_bytes(table) + 1;
    for (uint32_t i = 0; i < table->n_rules; i++)
        room += strlen(plan_string(p, table->rules[i].text)) + strlen(plan_string(p, table->rules[i].below)) + 2;
    return room;
}

/* Appends a text of the plan; returns its new offset. */
static uint32_t append_text(const struct plan_image *p, uint32_t text, char *to, uint32_t *n)
{
    const uint32_t at = *n;
    if (!text)
        return 0;
    const size_t bytes = strlen(plan_string(p, text)) + 1;
    memcpy(to + at, plan_string(p, text), bytes);
    *n += (uint32_t)bytes;
    return at;
}

void guard_image_put(const struct plan_image *p, void *memory)
{
    const struct guard_table *table = table_of(p);
    const uint32_t guard = table_bytes(table);
    const size_t room = guard_image_bytes(p);
    struct plan_image *to = memory;
    *to = (struct plan_image){.magic = PLAN_MAGIC,
                              .steps_at = sizeof *p,
                              .guard_at = sizeof *p,
                              .guard_bytes = guard,
                              .strings_at = (uint32_t)sizeof *p + guard,
                              .filter = p->filter,
                              .namespaces = p->namespaces,
                              .tier = p->tier,
                              .bytes = (uint32_t)room,
                              .strings_bytes = (uint32_t)(room - sizeof *p - guard)};
    struct guard_table *copy = (void *)(to + 1);
    char *strings = (char *)to + to->strings_at;
    uint32_t n = 1; /* offset 0 is "" */
    *copy = (struct guard_table){.n_rules = table->n_rules, .mode = table->mode};
    for (uint32_t i = 0; i < table->n_rules; i++) {
        copy->rules[i] = table->rules[i];
        copy->rules[i].text = append_text(p, table->rules[i].text, strings, &n);
        copy->rules[i].below = append_text(p, table->rules[i].below, strings, &n);
        copy->rules[i].origin = 0; /* a number of this plan's */
    }
}
