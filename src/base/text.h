/* Builds texts without a C library. Each function returns the end of the text, where it has put a NUL. */
#pragma once
#include <stdint.h>

static inline char *put_text(char *to, const char *s)
{
    while (*s)
        *to++ = *s++;
    *to = 0;
    return to;
}

static inline char *put_number(char *to, uint32_t v) /* at most ten digits */
{
    char digits[12];
    int n = 0;
    do
        digits[n++] = (char)('0' + v % 10);
    while (v /= 10);
    while (n)
        *to++ = digits[--n];
    *to = 0;
    return to;
}
/* Of no more than eleven digits; returns `room`. */
static inline char *decimal(char room[12], int number)
{
    put_number(room, (uint32_t)number);
    return room;
}
