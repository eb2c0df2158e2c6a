/*
 * Arenas: memory that is allocated piece by piece and freed at once. Blocks can be kept for reuse, or left to the exit
 * of the process.
 */
#include "base/arena.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

struct block {
    struct block *next;
    size_t used, room;
    size_t there; /* bytes from its start whose pages were populated */
    enum { OF_PAGES, OF_MALLOC, OF_ROOM } from;
    max_align_t bytes[];
};

struct arena {
    struct block *blocks;
    size_t used, max;
    bool failed, small;
};

/*
 * Blocks consist of whole pages, which the kernel is asked for in steps, ahead of use: eight page faults cost twice as
 * much as getting eight pages at once. They are zeroed, and no part is handed out twice.
 */
enum {
    BLOCK_BYTES = 320 << 10, /* the blocks that a default start fills end near their ends */
    STEP_BYTES = 16 << 10,
    MORE_BYTES = 108 << 10, /* two of them are what a default start needs */
    LARGE_BYTES = 48 << 10, /* less than MORE_BYTES; the statements of profile "base" take 36 KiB */
    SMALL_BYTES = 4700,
    PAGE = 4096
};
static bool all_to_exit, with_rooms;
/*
 * Small arenas: on request the first few have static rooms, with their first blocks. A program that needs no more memory than that,
 * `pinfold exec`, never begins the C library's, which takes five calls and eight page faults; base/start.c gets the pages of these
 * rooms with others. One that stays, such as `pinfold run`, would keep them. Whoever sets `taken` first has the room, in any thread.
 */
enum { ROOMS = 3, ROOM_BYTES = 7168 };
static struct arena_room {
    struct arena arena;
    int taken;
    _Alignas(max_align_t) char block[ROOM_BYTES - sizeof(struct arena) - sizeof(max_align_t)];
} arena_rooms[ROOMS];
/* Blocks of freed arenas for reuse, zeroed: only on request, in a single-threaded program. */
enum { SPARE_MAX = 4 };
static struct {
    bool wanted;
    unsigned n;
    struct block *at[SPARE_MAX];
} spare;

void arenas_leave_to_exit(void)
{
    all_to_exit = true;
}

void arenas_use_rooms(void)
{
    with_rooms = true;
}

void arenas_reuse(void)
{
    spare.wanted = true;
}

void arenas_reuse_end(void)
{
    while (spare.n) {
        struct block *b = spare.at[--spare.n];
        (void)munmap(b, sizeof *b + b->room);
    }
    spare.wanted = false;
}

/* errno stays the caller's. */
static void populate(void *at, size_t bytes)
{
    int no = errno;
    (void)madvise(at, bytes, MADV_POPULATE_WRITE); /* if it fails, pages are populated by faults */
    errno = no;
}

/* The room that `a` lies in, or NULL. Out of the table: the optimising linker would warn of a room that is taken from an `a` out of calloc(). */
static struct arena_room *room_of(const struct arena *a)
{
    for (struct arena_room *r = arena_rooms; r < arena_rooms + ROOMS; r++) {
        if (&r->arena == a)
            return r;
    }
    return NULL;
}

/* An arena with an empty block, both zeroed; NULL when all rooms are taken. */
static struct arena *room_take(void)
{
    for (struct arena_room *r = arena_rooms; r < arena_rooms + ROOMS; r++) {
        struct block *b = (struct block *)(void *)r->block;
        if (__atomic_exchange_n(&r->taken, 1, __ATOMIC_ACQUIRE))
            continue;
        b->from = OF_ROOM;
        b->there = sizeof r->block;
        b->room = sizeof r->block - sizeof *b;
        r->arena.blocks = b;
        return &r->arena;
    }
    return NULL;
}

static void room_give(struct arena_room *r)
{
    struct block *b = (struct block *)(void *)r->block;
    memset(b, 0, sizeof *b + b->used);
    r->arena = (struct arena){0};
    __atomic_store_n(&r->taken, 0, __ATOMIC_RELEASE);
}

/* The first block of another small arena: no call to the kernel as a rule. */
static struct block *block_small(size_t room)
{
    if (room > SMALL_BYTES - sizeof(struct block))
        return NULL;
    struct block *b = calloc(1, SMALL_BYTES);
    if (!b)
        return NULL;
    b->there = SMALL_BYTES;
    b->room = SMALL_BYTES - sizeof *b;
    b->from = OF_MALLOC;
    return b;
}

/* A large arena grows by a quarter of its size. */
static struct block *block_new(size_t room, size_t used)
{
    if (room < used / 4)
        room = used / 4;
    if (room > SIZE_MAX - sizeof(struct block) - PAGE)
        return NULL;
    size_t bytes = (sizeof(struct block) + room + PAGE - 1) / PAGE * PAGE;
    if (bytes < BLOCK_BYTES)
        bytes = BLOCK_BYTES;
    if (bytes == BLOCK_BYTES && spare.n)
        return spare.at[--spare.n];
    struct block *b = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED)
        return NULL;
    populate(b, STEP_BYTES);
    b->there = STEP_BYTES;
    b->room = bytes - sizeof *b;
    return b;
}

/* Prepares `n` bytes of `b`. A large allocation may be for a worst case: its pages are populated on use. */
static void block_ready(struct block *b, size_t n)
{
    size_t end = sizeof *b + b->used + n, all = sizeof *b + b->room;
    if (end <= b->there)
        return;
    if (n <= LARGE_BYTES) { /* an arena that goes beyond its first step usually needs much more */
        size_t bytes = all - b->there < MORE_BYTES ? all - b->there : MORE_BYTES;
        populate((char *)b + b->there, bytes);
        b->there += bytes;
        return;
    }
    b->there = (end + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
    if (b->there > all)
        b->there = all;
}

static void block_free(struct block *b)
{
    if (b->from == OF_ROOM)
        return;
    if (b->from == OF_MALLOC) {
        free(b);
        return;
    }
    if (!spare.wanted || spare.n == SPARE_MAX || sizeof *b + b->room != BLOCK_BYTES) {
        (void)munmap(b, sizeof *b + b->room);
        return;
    }
    memset(b->bytes, 0, b->used);
    b->used = 0;
    b->next = NULL;
    spare.at[spare.n++] = b;
}

struct arena *arena_new(size_t max)
{
    struct arena *a = calloc(1, sizeof *a);
    if (a)
        a->max = max;
    return a;
}

struct arena *arena_new_small(size_t max)
{
    struct arena *a = with_rooms ? room_take() : NULL;
    if (!a)
        a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->max = max;
    a->small = true;
    return a;
}

struct arena *arena_free(struct arena *a)
{
    if (!a || all_to_exit)
        return NULL;
    for (struct block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        block_free(b);
    }
    struct arena_room *r = room_of(a);
    if (r)
        room_give(r);
    else
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
        b = a->small && !b ? block_small(want) : NULL;
        if (!b)
            b = block_new(want, a->used);
        if (!b) {
            a->failed = true;
            return NULL;
        }
        b->next = a->blocks;
        a->blocks = b;
    }
    void *p = (char *)b->bytes + b->used;
    block_ready(b, want);
    b->used += want;
    a->used += want > a->max - a->used ? a->max - a->used : want;
    return p;
}

/* Extends the last allocation in place by `more` bytes. */
static bool grow_last(struct arena *a, const char *at, size_t bytes, size_t more)
{
    const size_t unit = sizeof(max_align_t);
    struct block *b = a->blocks;
    if (bytes % unit || more % unit || a->failed || !b || at + bytes != (char *)b->bytes + b->used ||
        more > b->room - b->used || more > a->max - a->used)
        return false;
    block_ready(b, more);
    b->used += more;
    a->used += more;
    return true;
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
    /* The array has room for the next power of two (at least 8), so it is full exactly if n is such a number. */
    if (*n == 0 || (*n >= 8 && (*n & (*n - 1)) == 0)) {
        size_t room = *n ? *n * 2 : 8;
        if (*n && room <= SIZE_MAX / size && grow_last(a, *array, *n * size, *n * size))
            return *array + (*n)++ * size;
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

/* The pages of the block before and after the `n` bytes at `but` in it, except that of its head. */
static void around(struct block *b, const void *but, size_t n, struct span ret[2])
{
    char *from = (char *)b + PAGE, *end = (char *)b->bytes + b->room, *at = (char *)b;
    char *object = at + ((size_t)((const char *)but - at)) / PAGE * PAGE;
    char *behind = at + ((size_t)((const char *)but - at) + n + PAGE - 1) / PAGE * PAGE;
    ret[0] = (struct span){from, object > from ? (size_t)(object - from) : 0};
    ret[1] = (struct span){behind, end > behind ? (size_t)(end - behind) : 0};
}

size_t arena_spans(const struct arena *a, const void *but, size_t but_bytes, struct span *ret, size_t room)
{
    size_t n = 0;
    for (struct block *b = a->blocks; b && n < room; b = b->next) {
        struct span parts[2] = {{b, sizeof *b + b->room}};
        if (b->from != OF_PAGES) /* no pages of its own */
            continue;
        if (holds(b, but))
            around(b, but, but_bytes, parts);
        for (int i = 0; i < 2 && n < room; i++) {
            if (parts[i].bytes)
                ret[n++] = parts[i];
        }
    }
    return n;
}

void arena_keep(struct arena *a, const void *but, size_t but_bytes)
{
    struct block *kept = NULL;
    for (struct block *b = a->blocks, *next; b; b = next) {
        struct span parts[2];
        next = b->next;
        if (!holds(b, but)) {
            if (b->from == OF_PAGES)
                (void)munmap(b, sizeof *b + b->room);
            else
                block_free(b); /* a room stays the arena's */
            continue;
        }
        kept = b;
        if (b->from != OF_PAGES)
            continue;
        around(b, but, but_bytes, parts);
        for (int i = 0; i < 2; i++) {
            if (parts[i].bytes) /* the addresses stay reserved: the whole block is unmapped at the end */
                (void)madvise(parts[i].at, parts[i].bytes, MADV_DONTNEED);
        }
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
        if (b->from == OF_PAGES && used < all && munmap((char *)b + used, all - used) == 0) {
            b->room = used - sizeof *b;
            b->there = used < b->there ? used : b->there;
        }
    }
}

bool arena_failed(const struct arena *a)
{
    return a->failed;
}
