/*
 * A set of texts, each with a salt (what kind of text it is) and a number: open addressing in an arena, at most half full.
 * For finding what was said before. Slots are small and apart from the keys: a start touches few pages.
 */
#pragma once
#include <stdint.h>
#include "base/arena.h"

struct table {
    struct arena *mem;
    struct table_slot {
        uint32_t hash, at; /* hash 0: free */
    } * slots;
    struct table_key {
        const char *p;
        uint32_t n, salt, value;
    } * keys;
    size_t room, keys_room, n; /* room: of slots, a power of two or 0; keys_room: at most half of it */
};

/* The value of (salt, key), or NULL. The pointer holds until the next table_put(). */
uint32_t *table_find(const struct table *t, uint32_t salt, struct str key);
/*
 * Puts (salt, key, value) unless the key is there. Returns the value's place (of what was there, or the new one) and
 * whether it is new; NULL without memory. `key` is borrowed.
 */
uint32_t *table_put(struct table *t, uint32_t salt, struct str key, uint32_t value, bool *ret_new);
/* Room for `n` keys without growing; false without memory. */
bool table_reserve(struct table *t, size_t n);
