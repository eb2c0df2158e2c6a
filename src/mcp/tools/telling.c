/*
 * The last line of a command's output, told as progress a few times a second at most. A client sees that a long
 * command goes on without getting all of its output twice.
 */
#include "mcp/tools/telling.h"

#include <time.h>

#define TELL_MS 250

static uint64_t milliseconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* The last line so far, as progress. */
void telling_output(void *ctx, int which, const char *bytes, size_t n)
{
    struct telling *t = ctx;
    auto_buf struct buf line = BUF(4096);
    uint64_t now = milliseconds();

    (void)which;
    if (now - t->told < TELL_MS)
        return;
    while (n && (bytes[n - 1] == '\n' || bytes[n - 1] == '\r'))
        n--;
    size_t from = n;
    while (from && bytes[from - 1] != '\n' && n - from < 200)
        from--;
    words_of(&line, (struct str){bytes + from, n - from});
    if (!line.n)
        return;
    job_progress(t->job, buf_cstr(&line));
    t->told = now;
}
