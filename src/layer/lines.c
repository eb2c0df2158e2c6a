/*
 * Compares two texts by lines: Myers' greedy algorithm between the first and the last difference, with a ceiling.
 * Texts further apart than that count as replaced as a whole. Pure; diff, hunks and merge are made of it.
 */
#include "layer/lines.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CONTEXT   3
#define MAX_LINES ((size_t)1 << 24)
#define MAX_STEPS 1500 /* differences; the time and memory of the search grow with the square */

static struct str *split(struct str text, struct arena *mem, size_t *ret_n)
{
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n' || i + 1 == text.n;
    *ret_n = n;
    if (n > MAX_LINES)
        return NULL;
    struct str *lines = arena_zero(mem, (n + 1) * sizeof *lines);
    for (size_t i = 0; lines && i < n; i++) {
        const char *end = memchr(text.p, '\n', text.n);
        lines[i] = (struct str){text.p, end ? (size_t)(end - text.p) + 1 : text.n};
        text = str_skip(text, lines[i].n);
    }
    return lines;
}

/* What differs, of `n` old and `m` new lines. */
struct line_search {
    const struct str *old, *new;
    long n, m;
    bool *removed, *added;
};

static bool equal(const struct line_search *s, long x, long y)
{
    return str_eq(s->old[x], s->new[y]);
}

/* trace[d] has the furthest x for the diagonals -d..d after d differences. Goes back from the end and marks them. */
static void mark(const struct line_search *s, int32_t *const *trace, long d)
{
    long x = s->n, y = s->m;
    for (; d > 0; d--) {
        const int32_t *before = trace[d - 1] + d - 1; /* indexed by diagonal */
        const long k = x - y;
        const bool down =
            k == -d || (k != d && (k - 1 < -(d - 1) || (k + 1 <= d - 1 && before[k - 1] < before[k + 1])));
        const long from_k = down ? k + 1 : k - 1, from_x = before[from_k], from_y = from_x - from_k;
        if (down)
            s->added[from_y] = true;
        else
            s->removed[from_x] = true;
        x = from_x;
        y = from_y;
    }
}

/* -ENOMEM; 0: marked; 1: they are too far apart. */
static int search(const struct line_search *s)
{
    int32_t *trace[MAX_STEPS + 1];
    int r = 1;
    long d = 0;
    for (; r == 1 && d <= MAX_STEPS; d++) {
        trace[d] = malloc((size_t)(2 * d + 1) * sizeof **trace);
        if (!trace[d]) {
            r = -ENOMEM;
            break;
        }
        int32_t *now = trace[d] + d;
        for (long k = -d; r == 1 && k <= d; k++) {
            now[k] = -1;
            if ((k + d) % 2 != 0)
                continue;
            long x = 0;
            if (d) {
                const int32_t *before = trace[d - 1] + d - 1;
                const long left = k - 1 >= -(d - 1) ? before[k - 1] : -1, right = k + 1 <= d - 1 ? before[k + 1] : -1;
                const bool down = k == -d || (k != d && left < right);
                x = down ? right : left + 1;
            }
            long y = x - k;
            while (x < s->n && y < s->m && equal(s, x, y))
                x++, y++;
            now[k] = (int32_t)x;
            if (x >= s->n && y >= s->m)
                r = 0;
        }
    }
    if (r == 0)
        mark(s, trace, d - 1);
    for (long i = 0; i < d; i++)
        free(trace[i]);
    return r;
}

int lines_compare(struct str old, struct str new, struct arena *mem, struct line_diff *ret)
{
    struct line_diff d = {.old = NULL};
    d.old = split(old, mem, &d.n_old);
    d.new = split(new, mem, &d.n_new);
    if (d.n_old > MAX_LINES || d.n_new > MAX_LINES)
        return -EFBIG;
    d.removed = arena_zero(mem, d.n_old + 1);
    d.added = arena_zero(mem, d.n_new + 1);
    if (!d.old || !d.new || !d.removed || !d.added)
        return -ENOMEM;
    size_t head = 0, tail = 0;
    while (head < d.n_old && head < d.n_new && str_eq(d.old[head], d.new[head]))
        head++;
    while (tail < d.n_old - head && tail < d.n_new - head &&
           str_eq(d.old[d.n_old - 1 - tail], d.new[d.n_new - 1 - tail]))
        tail++;
    const struct line_search s = {.old = d.old + head,
                                  .new = d.new + head,
                                  .n = (long)(d.n_old - head - tail),
                                  .m = (long)(d.n_new - head - tail),
                                  .removed = d.removed + head,
                                  .added = d.added + head};
    int r = s.n && s.m ? search(&s) : 1;
    if (r < 0)
        return r;
    if (r == 1) { /* all of it */
        memset(s.removed, true, (size_t)s.n);
        memset(s.added, true, (size_t)s.m);
    }
    *ret = d;
    return 0;
}

static void put_line(struct buf *out, char sign, struct str line)
{
    buf_char(out, sign);
    buf_str(out, line);
    if (!line.n || line.p[line.n - 1] != '\n')
        buf_text(out, "\n\\ No newline at end of file\n");
}

void lines_put_hunk(const struct line_diff *d, const struct line_hunk *h, struct buf *out)
{
    const size_t n = h->end_x - h->x, m = h->end_y - h->y;
    buf_printf(out, "@@ -%zu,%zu +%zu,%zu @@\n", n ? h->x + 1 : h->x, n, m ? h->y + 1 : h->y, m);
    for (size_t x = h->x, y = h->y; x < h->end_x || y < h->end_y;) {
        if (x < h->end_x && d->removed[x])
            put_line(out, '-', d->old[x++]);
        else if (y < h->end_y && d->added[y])
            put_line(out, '+', d->new[y++]);
        else {
            put_line(out, ' ', d->old[x++]);
            y++;
        }
    }
}

/* The first hunk from *x, *y on, and where it ends. */
static bool next_hunk(const struct line_diff *d, size_t *at_x, size_t *at_y, struct line_hunk *ret)
{
    size_t x = *at_x, y = *at_y, same_lines = 0;
    while ((x < d->n_old || y < d->n_new) && !(x < d->n_old && d->removed[x]) && !(y < d->n_new && d->added[y]))
        x++, y++;
    if (x >= d->n_old && y >= d->n_new)
        return false;
    const size_t before = x - *at_x < CONTEXT ? x - *at_x : CONTEXT;
    *ret = (struct line_hunk){.x = x - before, .y = y - before};
    while ((x < d->n_old || y < d->n_new) && same_lines <= (size_t)2 * CONTEXT) {
        if (x < d->n_old && d->removed[x]) {
            x++;
            same_lines = 0;
        } else if (y < d->n_new && d->added[y]) {
            y++;
            same_lines = 0;
        } else {
            x++, y++;
            same_lines++;
        }
    }
    const size_t beyond = same_lines > CONTEXT ? same_lines - CONTEXT : 0;
    *at_x = ret->end_x = x - beyond;
    *at_y = ret->end_y = y - beyond;
    return true;
}

void lines_put_hunks(const struct line_diff *d, struct buf *out)
{
    struct line_hunk h;
    for (size_t x = 0, y = 0; next_hunk(d, &x, &y, &h);)
        lines_put_hunk(d, &h, out);
}

struct line_hunk *lines_hunks(const struct line_diff *d, struct arena *mem, size_t *ret_n)
{
    struct line_hunk *all = NULL, *slot, h;
    *ret_n = 0;
    for (size_t x = 0, y = 0; next_hunk(d, &x, &y, &h); *slot = h) {
        slot = arena_push(mem, &all, ret_n, sizeof *slot);
        if (!slot)
            return NULL;
    }
    return all;
}

void lines_merge(const struct line_diff *d, const struct line_hunk *hunks, size_t n, const bool *take, struct buf *out)
{
    size_t x = 0;
    for (size_t i = 0; i < n; i++) {
        const struct line_hunk *h = &hunks[i];
        for (; x < (take[i] ? h->x : h->end_x); x++)
            buf_str(out, d->old[x]);
        for (size_t y = h->y; take[i] && y < h->end_y; y++)
            buf_str(out, d->new[y]);
        x = h->end_x;
    }
    for (; x < d->n_old; x++)
        buf_str(out, d->old[x]);
}
