/*
 * A hash table from (salt, text) to a number, to find earlier statements; the salt is the kind of text. Open addressing
 * in an arena, at most half full. Slots are small and separate from the keys, so that a start touches few pages.
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

/* The value of (salt, key), or NULL. The pointer is valid until the next table_put(). */
uint32_t *table_find(const struct table *t, uint32_t salt, struct str key);
/*
 * Adds (salt, key, value) unless the key exists. Returns a pointer to the value, old or new, and whether it is new;
 * NULL without memory. `key` is borrowed.
 */
uint32_t *table_put(struct table *t, uint32_t salt, struct str key, uint32_t value, bool *ret_new);
/* Room for `n` keys without growing; false without memory. */
bool table_reserve(struct table *t, size_t n);
