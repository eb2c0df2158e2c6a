/*
 * One lifetime, one arena: a policy and a plan are each built in one, immutable afterwards, and freed by one call.
 * The arena has a ceiling; past it, or without memory, allocation returns NULL and `arena_failed` stays true, so a
 * builder may check once at its end as long as it tests what it dereferences.
 */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include "base/str.h"

struct arena;

/* A new arena that hands out at most `max` bytes; NULL without memory. */
struct arena *arena_new(size_t max);
struct arena *arena_free(struct arena *a); /* takes NULL; returns NULL */
/* For a program that is about to end, and whose user waits for that: from now on arena_free() leaves it all to exit. */
void arenas_leave_to_exit(void);
/*
 * For a process of one thread that does much the same again and again: a few blocks of arenas that were freed serve the next
 * ones, zeroed, which costs a fraction of giving pages back and getting new ones.
 */
void arenas_reuse(void);
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
 * Room for one more element at the end of the array `*items` of `*n` elements of `size` bytes; doubles as needed
 * (the old array stays in the arena until its end). Returns the zeroed new element and counts it, or NULL.
 */
void *arena_push(struct arena *a, void *items, size_t *n, size_t size);
bool arena_failed(const struct arena *a);

/* A piece of memory of whole pages. */
struct span {
    void *at;
    size_t bytes;
};
/*
 * What of the memory of `a` does not hold the `but_bytes` at `but` (NULL: all of it), for a forked copy of this process that
 * gives it back itself: at most `room` into `ret`; returns how many.
 */
size_t arena_spans(const struct arena *a, const void *but, size_t but_bytes, struct span *ret, size_t room);
/* Gives back all pages but those with the object `but` of this arena. Nothing is handed out from it any more. */
void arena_keep(struct arena *a, const void *but, size_t but_bytes);
/* Gives back what of the blocks was not handed out, in whole pages. */
void arena_trim(struct arena *a);

static inline void arena_drop(struct arena **a)
{
    *a = arena_free(*a);
}
#define auto_arena __attribute__((cleanup(arena_drop)))
