/*
 * memcpy, memmove, memset, strlen and strcmp for short arguments. musl's versions are optimised for size (byte by byte,
 * or string instructions whose startup takes longer than copying a path), and a start of pinfold calls them some
 * thousand times: these save 0.2 ms. Only in the product on x86-64, where they replace libc's; glibc has better ones.
 *
 * Reads of 16 bytes stay within the page of a byte that belongs to the string, so they cannot fault. They may read past
 * its end, which is harmless here (sanitizers are built with glibc).
 */
#include <emmintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t u64 __attribute__((aligned(1), may_alias));
typedef uint32_t u32 __attribute__((aligned(1), may_alias));
typedef uint16_t u16 __attribute__((aligned(1), may_alias));

static inline __m128i load(const char *p)
{
    return _mm_loadu_si128((const __m128i_u *)(const void *)p);
}
static inline void store(char *p, __m128i v)
{
    _mm_storeu_si128((__m128i_u *)(void *)p, v);
}

/* Copies both ends with accesses that may overlap: no loop up to 32 bytes. */
void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    char *d = to;
    const char *s = from;
    if (n >= 16) {
        __m128i last = load(s + n - 16);
        for (size_t i = 0; i + 16 < n; i += 16)
            store(d + i, load(s + i));
        store(d + n - 16, last);
    } else if (n >= 8) {
        uint64_t a = *(const u64 *)s, b = *(const u64 *)(s + n - 8);
        *(u64 *)d = a;
        *(u64 *)(d + n - 8) = b;
    } else if (n >= 4) {
        uint32_t a = *(const u32 *)s, b = *(const u32 *)(s + n - 4);
        *(u32 *)d = a;
        *(u32 *)(d + n - 4) = b;
    } else if (n) {
        char a = s[0], b = s[n / 2], c = s[n - 1];
        d[0] = a;
        d[n / 2] = b;
        d[n - 1] = c;
    }
    return to;
}

/* Defined here, because musl's is in the same object as its memcpy. */
void *memmove(void *to, const void *from, size_t n)
{
    char *d = to;
    const char *s = from;
    if ((uintptr_t)d - (uintptr_t)s >= n) { /* copying upwards overwrites nothing that is still to be read */
        size_t i = 0;
        for (; i + 16 <= n; i += 16)
            store(d + i, load(s + i));
        for (; i < n; i++)
            d[i] = s[i];
        return to;
    }
    for (; n >= 16; n -= 16)
        store(d + n - 16, load(s + n - 16));
    while (n--)
        d[n] = s[n];
    return to;
}

void *memset(void *to, int byte, size_t n)
{
    char *d = to;
    const uint64_t all = 0x0101010101010101u * (unsigned char)byte;
    if (n >= 16) {
        const __m128i v = _mm_set1_epi8((char)byte);
        for (size_t i = 0; i + 16 < n; i += 16)
            store(d + i, v);
        store(d + n - 16, v);
    } else if (n >= 8) {
        *(u64 *)d = all;
        *(u64 *)(d + n - 8) = all;
    } else if (n >= 4) {
        *(u32 *)d = (uint32_t)all;
        *(u32 *)(d + n - 4) = (uint32_t)all;
    } else if (n) {
        d[0] = d[n / 2] = d[n - 1] = (char)byte;
    }
    return to;
}

/* A bit for each of the 16 bytes that is zero. */
static inline unsigned zeros(__m128i v)
{
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_setzero_si128()));
}

size_t strlen(const char *text)
{
    const unsigned into = (uintptr_t)text & 15;
    const char *p = text - into;
    unsigned found = zeros(_mm_load_si128((const __m128i *)(const void *)p)) >> into << into;
    while (!found) {
        p += 16;
        found = zeros(_mm_load_si128((const __m128i *)(const void *)p));
    }
    return (size_t)(p - text) + (unsigned)__builtin_ctz(found);
}

static inline int near_page_end(const char *p)
{
    return ((uintptr_t)p & 4095) > 4096 - 16;
}

int strcmp(const char *a, const char *b)
{
    for (;;) {
        if (near_page_end(a) || near_page_end(b)) {
            for (int i = 0; i < 16; i++, a++, b++) {
                if (*a != *b || !*a)
                    return (unsigned char)*a - (unsigned char)*b;
            }
            continue;
        }
        __m128i x = load(a);
        unsigned differ = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(x, load(b))) ^ 0xffffu;
        unsigned stop = differ | zeros(x);
        if (stop) {
            unsigned i = (unsigned)__builtin_ctz(stop);
            return (unsigned char)a[i] - (unsigned char)b[i];
        }
        a += 16;
        b += 16;
    }
}
