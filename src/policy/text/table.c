/*
 * A hash table from text to number, with salts for several tables in one. It holds what a merge has already, so that
 * a thousand rules are not each compared with all others.
 */
#include "policy/text/table.h"

#include "base/hash.h"

/* Texts come from the user's own files, and MAX_POLICY_RULES bounds what a hostile one can do. */
static uint32_t text_hash(uint32_t salt, struct str s)
{
    uint32_t h = hash32(HASH32 ^ salt, s.p, s.n);
    h ^= h >> 15;
    return h ? h : 1;
}

static struct table_slot *find_slot(const struct table *t, uint32_t hash, uint32_t salt, struct str key)
{
    size_t i = hash & (t->room - 1);
    for (;; i = (i + 1) & (t->room - 1)) {
        struct table_slot *s = &t->slots[i];
        if (!s->hash)
            return s;
        const struct table_key *k = &t->keys[s->at];
        if (s->hash == hash && k->salt == salt && k->n == key.n && memcmp(k->p, key.p, key.n) == 0)
            return s;
    }
}

uint32_t *table_find(const struct table *t, uint32_t salt, struct str key)
{
    if (!t->room)
        return NULL;
    const struct table_slot *s = find_slot(t, text_hash(salt, key), salt, key);
    return s->hash ? &t->keys[s->at].value : NULL;
}

static bool resize(struct table *t, size_t room, size_t keys_room)
{
    struct table now = {.mem = t->mem, .room = room, .keys_room = keys_room, .n = t->n};

    now.slots = arena_zero(t->mem, room * sizeof *now.slots);
    now.keys = arena_zero(t->mem, keys_room * sizeof *now.keys);
    if (!now.slots || !now.keys)
        return false;
    if (t->n)
        memcpy(now.keys, t->keys, t->n * sizeof *now.keys);
    for (size_t i = 0; i < t->room; i++) {
        size_t k = t->slots[i].hash & (room - 1);
        if (!t->slots[i].hash)
            continue;
        while (now.slots[k].hash)
            k = (k + 1) & (room - 1);
        now.slots[k] = t->slots[i];
    }
    *t = now;
    return true;
}

bool table_reserve(struct table *t, size_t n)
{
    size_t room = 16;
    while (room / 2 < n)
        room *= 2;
    return n <= t->keys_room || resize(t, room, n);
}

uint32_t *table_put(struct table *t, uint32_t salt, struct str key, uint32_t value, bool *ret_new)
{
    uint32_t hash = text_hash(salt, key);

    if (t->n >= t->keys_room && !resize(t, t->room ? t->room * 4 : 16, t->room ? t->room * 2 : 8))
        return NULL;
    struct table_slot *s = find_slot(t, hash, salt, key);
    *ret_new = !s->hash;
    if (!s->hash) {
        *s = (struct table_slot){hash, (uint32_t)t->n};
        t->keys[t->n++] = (struct table_key){key.p, (uint32_t)key.n, salt, value};
    }
    return &t->keys[s->at].value;
}
