/* Bytes as hexadecimal digits. */
#pragma once
#include <stddef.h>

/* Two digits for each of the `n` bytes, and a NUL. */
static inline void hex_digits(const void *bytes, size_t n, char *ret)
{
    for (const unsigned char *p = bytes; n--; p++) {
        *ret++ = "0123456789abcdef"[*p >> 4];
        *ret++ = "0123456789abcdef"[*p & 15];
    }
    *ret = 0;
}
