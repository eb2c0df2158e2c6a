/*
 * Growing byte buffers with a maximum size. An overflow or a failed allocation is remembered and checked once at the
 * end.
 */
#include "base/buf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void buf_free(struct buf *b)
{
    if (!b->lent)
        free(b->p);
    *b = BUF(b->max);
}

char *buf_space(struct buf *b, size_t n)
{
    if (b->broken || n > b->max - b->n) {
        b->broken = true;
        return NULL;
    }
    if (b->n + n + 1 > b->room) {
        /* A large one soon leaves the sizes for which the C library asks the kernel, and copies, each time. */
        size_t room = b->room ? b->room : 64;
        while (room < b->n + n + 1)
            room *= room < 16384 ? 4 : 2;
        char *p = b->lent ? malloc(room) : realloc(b->p, room);
        if (!p) {
            b->broken = true;
            return NULL;
        }
        if (b->lent)
            memcpy(p, b->p, b->n);
        b->lent = false;
        b->p = p;
        b->room = room;
    }
    return b->p + b->n;
}

void buf_put(struct buf *b, const void *bytes, size_t n)
{
    char *at = buf_space(b, n);
    if (!at)
        return;
    if (n)
        memcpy(at, bytes, n);
    buf_grew(b, n);
}

void buf_char(struct buf *b, char c)
{
    buf_put(b, &c, 1);
}

void buf_text(struct buf *b, const char *text)
{
    buf_put(b, text, strlen(text));
}

void buf_str(struct buf *b, struct str s)
{
    buf_put(b, s.p, s.n);
}

void buf_shell_word(struct buf *b, struct str s)
{
    buf_char(b, '\'');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\'')
            buf_text(b, "'\\''");
        else
            buf_char(b, s.p[i]);
    }
    buf_char(b, '\'');
}

void buf_vprintf(struct buf *b, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *at = n < 0 ? NULL : buf_space(b, (size_t)n);
    if (!at) {
        b->broken = true;
        return;
    }
    vsnprintf(at, (size_t)n + 1, format, args);
    b->n += (size_t)n;
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    buf_vprintf(b, format, args);
    va_end(args);
}

char *buf_take(struct buf *b)
{
    if (!b->n)
        buf_put(b, "", 0);
    char *p = b->broken ? NULL : b->lent ? malloc(b->n + 1) : b->p;
    if (p && b->lent)
        memcpy(p, b->p, b->n + 1);
    if (!p && !b->lent)
        free(b->p);
    *b = BUF(b->max);
    return p;
}

void buf_amount(struct buf *out, uint64_t bytes)
{
    static const char units[] = "BKMGTPE";
    unsigned unit = 0;
    uint64_t whole = bytes, tenths = 0;

    while (whole >= 1024 && unit < sizeof units - 2) {
        tenths = whole % 1024 * 10 / 1024;
        whole /= 1024;
        unit++;
    }
    if (unit == 0)
        buf_printf(out, "%" PRIu64 "B", whole);
    else if (tenths && whole < 100)
        buf_printf(out, "%" PRIu64 ".%" PRIu64 "%c", whole, tenths, units[unit]);
    else
        buf_printf(out, "%" PRIu64 "%c", whole, units[unit]);
}
