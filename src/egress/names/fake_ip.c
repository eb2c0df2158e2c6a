/* Fake IPs: addresses in a private range that the resolver returns for names, and the lookup of their names.
   A connection to one is thus known by name, whatever its port and protocol. */
#include <stdlib.h>
#include "base/hash.h"
#include "egress/conn.h"

/* 198.18.0.0/16 of RFC 2544's benchmarking range, and a unique local prefix: never real destinations here. With
   CATCH_LOOPBACK, 127.64.0.0/16 of 127.64.0.0/10. */
static const uint8_t prefix6[12] = {0xfd, 0x5a, 0, 0, 0, 0, 0, 1};

static uint32_t hash_of(const char *s)
{
    return hash32(HASH32, s, strlen(s));
}

static bool grow(void)
{
    uint32_t room = world.room_names ? world.room_names * 2 : 64;
    char **names = realloc(world.names, room * sizeof *names);
    if (!names)
        return false;
    world.names = names;
    uint32_t *table = calloc(room * 2, sizeof *table);
    if (!table)
        return false;
    for (uint32_t i = 0; i < world.n_names; i++) {
        uint32_t at = hash_of(names[i]) % (room * 2);
        while (table[at])
            at = (at + 1) % (room * 2);
        table[at] = i + 1;
    }
    free(world.by_hash);
    world.by_hash = table;
    world.hash_room = room * 2;
    world.room_names = room;
    return true;
}

uint32_t stand_of(const char *name)
{
    if (world.hash_room) {
        for (uint32_t at = hash_of(name) % world.hash_room; world.by_hash[at]; at = (at + 1) % world.hash_room) {
            if (strcmp(world.names[world.by_hash[at] - 1], name) == 0)
                return world.by_hash[at];
        }
    }
    if (world.n_names >= MAX_NAMES || (world.n_names == world.room_names && !grow()))
        return 0;
    char *copy = strdup(name);
    if (!copy)
        return 0;
    world.names[world.n_names++] = copy;
    uint32_t at = hash_of(name) % world.hash_room;
    while (world.by_hash[at])
        at = (at + 1) % world.hash_room;
    world.by_hash[at] = world.n_names;
    return world.n_names;
}

static void stand_prefix(uint8_t two[2])
{
    bool loopback = world.ask->way == CATCH_LOOPBACK;
    two[0] = loopback ? 127 : 198;
    two[1] = loopback ? 64 : 18;
}

void stand_addr(uint32_t stand, bool v6, struct host_addr *ret)
{
    struct host_addr a = {.v6 = v6};
    if (v6) {
        memcpy(a.b, prefix6, sizeof prefix6);
        a.b[14] = (uint8_t)(stand >> 8);
        a.b[15] = (uint8_t)stand;
    } else {
        stand_prefix(a.b);
        a.b[2] = (uint8_t)(stand >> 8);
        a.b[3] = (uint8_t)stand;
    }
    *ret = a;
}

bool stand_range(const struct host_addr *a)
{
    uint8_t two[2];
    stand_prefix(two);
    return a->v6 ? memcmp(a->b, prefix6, sizeof prefix6) == 0 : memcmp(a->b, two, sizeof two) == 0;
}

const char *stand_name(const struct host_addr *a)
{
    if (!stand_range(a) || (a->v6 && (a->b[12] || a->b[13])))
        return NULL;
    uint32_t stand = a->v6 ? (uint32_t)(a->b[14] << 8 | a->b[15]) : (uint32_t)(a->b[2] << 8 | a->b[3]);
    return stand && stand <= world.n_names ? world.names[stand - 1] : NULL;
}
