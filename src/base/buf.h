/*
 * A growing byte buffer with a size limit that is set when it is created. Going over the limit, or running out of
 * memory, marks the buffer broken: later puts do nothing, and a single buf_ok() at the end reports it. A NUL that is
 * not counted always follows the content.
 */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

struct buf {
    char *p;
    size_t n, room, max;
    bool broken;
    bool lent; /* `p` is the caller's memory */
};

#define BUF(ceiling) ((struct buf){.max = (ceiling)})
/* Begins in an array of the caller's, which must outlive it: what is short takes no memory of the C library's. */
#define BUF_LENT(array, ceiling) ((struct buf){.p = (array), .room = sizeof(array), .max = (ceiling), .lent = true})

void buf_free(struct buf *b);
void buf_put(struct buf *b, const void *bytes, size_t n);
void buf_char(struct buf *b, char c);
void buf_text(struct buf *b, const char *text);
void buf_str(struct buf *b, struct str s);
/* As one word of sh's, in single quotes. */
void buf_shell_word(struct buf *b, struct str s);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
void buf_amount(struct buf *b, uint64_t bytes); /* 512M, 1.5G */
/* Makes room for `n` more bytes and returns where they go (NULL when broken); follow with buf_grew(). */
char *buf_space(struct buf *b, size_t n);
static inline void buf_grew(struct buf *b, size_t n)
{
    b->n += n;
    b->p[b->n] = 0;
}
static inline bool buf_ok(const struct buf *b)
{
    return !b->broken;
}
static inline struct str buf_view(const struct buf *b)
{
    return (struct str){b->p ? b->p : "", b->n};
}
/* The NUL-terminated content, never NULL; borrowed until the next put. */
static inline const char *buf_cstr(const struct buf *b)
{
    return b->n ? b->p : "";
}
/* Hands the malloc()ed, NUL-terminated content to the caller and leaves the buffer empty; NULL when broken. */
char *buf_take(struct buf *b);

#define auto_buf __attribute__((cleanup(buf_free)))
