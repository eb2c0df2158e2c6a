/* FNV-1a: where a text belongs in a table. Whoever knows the seed can make two texts of one hash, so only speed may rest on it. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define HASH32 2166136261u /* to begin with; what tells tables or kinds apart is added by ^ */
#define HASH64 14695981039346656037u

static inline uint32_t hash32(uint32_t h, const void *bytes, size_t n)
{
    for (const unsigned char *p = bytes; n--; p++)
        h = (h ^ *p) * 16777619u;
    return h;
}

static inline uint64_t hash64(uint64_t h, const void *bytes, size_t n)
{
    for (const unsigned char *p = bytes; n--; p++)
        h = (h ^ *p) * 1099511628211u;
    return h;
}

/* Two of 64 bits with two seeds, for names of files: nothing tells apart two texts of which both agree. */
static inline void hash128(const void *bytes, size_t n, uint64_t ret[2])
{
    ret[0] = HASH64;
    ret[1] = 0x9ae16a3b2f90404fu;
    for (const unsigned char *p = bytes; n--; p++) {
        ret[0] = (ret[0] ^ *p) * 1099511628211u;
        ret[1] = (ret[1] ^ *p) * 1099511628211u + (ret[1] >> 29);
    }
}
