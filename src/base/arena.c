#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

struct block {
    struct block *next;
    size_t used, room;
    max_align_t bytes[];
};

struct arena {
    struct block *blocks;
    size_t used, max;
    bool failed;
};

/*
 * Blocks are pages of their own, all there from the start: eight page faults cost twice what the kernel takes to hand
 * out eight pages at once. They come zeroed, and no part of one is handed out twice.
 */
enum { BLOCK_BYTES = 32 << 10, PAGE = 4096 };
static bool all_to_exit;

void arenas_leave_to_exit(void)
{
    all_to_exit = true;
}

/* A large arena grows by a quarter of itself. */
static struct block *block_new(size_t room, size_t used)
{
    if (room < used / 4)
        room = used / 4;
    if (room > SIZE_MAX - sizeof(struct block) - PAGE)
        return NULL;
    size_t bytes = (sizeof(struct block) + room + PAGE - 1) / PAGE * PAGE;
    if (bytes < BLOCK_BYTES)
        bytes = BLOCK_BYTES;
    int populate = bytes == BLOCK_BYTES ? MAP_POPULATE : 0; /* a larger one may be for a worst case */
    struct block *b = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | populate, -1, 0);
    if (b == MAP_FAILED)
        return NULL;
    b->room = bytes - sizeof *b;
    return b;
}

struct arena *arena_new(size_t max)
{
    struct arena *a = calloc(1, sizeof *a);
    if (a)
        a->max = max;
    return a;
}

struct arena *arena_free(struct arena *a)
{
    if (!a || all_to_exit)
        return NULL;
    for (struct block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        (void)munmap(b, sizeof *b + b->room);
    }
    free(a);
    return NULL;
}

void *arena_zero(struct arena *a, size_t n)
{
    const size_t unit = sizeof(max_align_t);
    if (a->failed || n > a->max - a->used) {
        a->failed = true;
        return NULL;
    }
    size_t want = (n + unit - 1) / unit * unit;
    struct block *b = a->blocks;
    if (!b || want > b->room - b->used) {
        b = block_new(want, a->used);
        if (!b) {
            a->failed = true;
            return NULL;
        }
        b->next = a->blocks;
        a->blocks = b;
    }
    void *p = (char *)b->bytes + b->used;
    b->used += want;
    a->used += want > a->max - a->used ? a->max - a->used : want;
    return p;
}

char *arena_str(struct arena *a, struct str s)
{
    char *p = arena_zero(a, s.n + 1);
    if (p && s.n)
        memcpy(p, s.p, s.n);
    return p;
}

char *arena_printf(struct arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *p = n < 0 ? NULL : arena_zero(a, (size_t)n + 1);
    if (!p)
        return NULL;
    va_start(args, format);
    vsnprintf(p, (size_t)n + 1, format, args);
    va_end(args);
    return p;
}

void *arena_push(struct arena *a, void *items, size_t *n, size_t size)
{
    char **array = items;
    /* The array has room for the next power of two (at least 8): it is full exactly when n is such a number. */
    if (*n == 0 || (*n >= 8 && (*n & (*n - 1)) == 0)) {
        size_t room = *n ? *n * 2 : 8;
        char *grown = room > SIZE_MAX / size ? NULL : arena_zero(a, room * size);
        if (!grown)
            return NULL;
        if (*n)
            memcpy(grown, *array, *n * size);
        *array = grown;
    }
    return *array + (*n)++ * size;
}

static bool holds(const struct block *b, const void *p)
{
    return p && (uintptr_t)p >= (uintptr_t)b && (uintptr_t)p < (uintptr_t)b->bytes + b->room;
}

size_t arena_spans(const struct arena *a, const void *but, struct span *ret, size_t room)
{
    size_t n = 0;
    for (struct block *b = a->blocks; b && n < room; b = b->next) {
        if (!holds(b, but))
            ret[n++] = (struct span){b, sizeof *b + b->room};
    }
    return n;
}

void arena_keep(struct arena *a, const void *but)
{
    struct block *kept = NULL;
    for (struct block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        if (holds(b, but))
            kept = b;
        else
            (void)munmap(b, sizeof *b + b->room);
    }
    if (kept)
        kept->next = NULL;
    a->blocks = kept;
    a->failed = true;
}

void arena_trim(struct arena *a)
{
    for (struct block *b = a->blocks; b; b = b->next) {
        size_t used = (sizeof *b + b->used + PAGE - 1) / PAGE * PAGE, all = sizeof *b + b->room;
        if (used < all && munmap((char *)b + used, all - used) == 0)
            b->room = used - sizeof *b;
    }
}

bool arena_failed(const struct arena *a)
{
    return a->failed;
}
