/*
 * Arenas: memory of one lifetime, freed by one call. A policy and a plan are each built in one and immutable
 * afterwards. An arena has a size limit. Above it, or without memory, allocations return NULL and arena_failed() stays
 * true; so a builder may check once at its end if it tests the pointers it dereferences.
 */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include "base/str.h"

struct arena;

/* A new arena that hands out at most `max` bytes; NULL without memory. */
struct arena *arena_new(size_t max);
/* For what as a rule needs a few kilobytes. */
struct arena *arena_new_small(size_t max);
/* From now on the first few small ones lie in static memory: for a program that needs no other and ends soon. */
void arenas_use_rooms(void);
struct arena *arena_free(struct arena *a); /* takes NULL; returns NULL */
/* For a program that is about to exit and whose user waits for that: from now on arena_free() frees nothing and
   leaves all memory to exit. */
void arenas_leave_to_exit(void);
/*
 * For a single-threaded process that repeats the same work: new arenas reuse a few blocks of freed ones, zeroed, which
 * costs a fraction of returning pages to the kernel and getting new ones.
 */
void arenas_reuse(void);
void arenas_reuse_end(void); /* frees those blocks */
/* `n` zeroed bytes aligned for any object, or NULL. */
void *arena_zero(struct arena *a, size_t n);
/* Copies; the result is NUL-terminated. */
char *arena_str(struct arena *a, struct str s);
static inline char *arena_text(struct arena *a, const char *s)
{
    return arena_str(a, str_of(s));
}
static inline char *arena_text_or_null(struct arena *a, const char *s)
{
    return s ? arena_text(a, s) : NULL;
}
char *arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * Appends a zeroed element to the array `*items` of `*n` elements of `size` bytes, and returns it, or NULL. The array
 * doubles as needed; old copies stay in the arena until it is freed.
 */
void *arena_push(struct arena *a, void *items, size_t *n, size_t size);
bool arena_failed(const struct arena *a);

/* A range of whole pages. */
struct span {
    void *at;
    size_t bytes;
};
/*
 * The pages of `a` except those that hold the `but_bytes` at `but` (NULL: all pages), for a forked copy of this process
 * that unmaps them itself. Puts at most `room` into `ret` and returns how many.
 */
size_t arena_spans(const struct arena *a, const void *but, size_t but_bytes, struct span *ret, size_t room);
/* Frees all pages except those of the object `but` in this arena. Nothing can be allocated from it any more. */
void arena_keep(struct arena *a, const void *but, size_t but_bytes);
/* Frees the whole pages of the blocks that were not allocated from. */
void arena_trim(struct arena *a);

static inline void arena_drop(struct arena **a)
{
    *a = arena_free(*a);
}
#define auto_arena __attribute__((cleanup(arena_drop)))
