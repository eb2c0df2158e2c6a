/*
 * A merge sort of pointers. Policies are mostly sorted already, which one pass detects; libc's qsort would compare as
 * often as for a shuffled array, and comparing paths is the expensive part.
 */
#include "plan/make.h"

int sort_pointers(struct arena *mem, const void **at, size_t n, int (*order)(const void *, const void *))
{
    size_t sorted = 1;
    while (sorted < n && order(&at[sorted - 1], &at[sorted]) <= 0)
        sorted++;
    if (sorted >= n)
        return 0;
    const void **other = arena_zero(mem, n * sizeof *other);
    if (!other)
        return -ENOMEM;
    const void **from = at, **to = other;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t low = 0; low < n; low += 2 * width) {
            size_t middle = low + width < n ? low + width : n, high = low + 2 * width < n ? low + 2 * width : n;
            size_t a = low, b = middle;
            if (middle == high || order(&from[middle - 1], &from[middle]) <= 0) {
                memcpy(to + low, from + low, (high - low) * sizeof *to);
                continue;
            }
            for (size_t k = low; k < high; k++)
                to[k] = a < middle && (b >= high || order(&from[a], &from[b]) <= 0) ? from[a++] : from[b++];
        }
        const void **swap = from;
        from = to;
        to = swap;
    }
    if (from != at)
        memcpy(at, from, n * sizeof *at);
    return 0;
}
