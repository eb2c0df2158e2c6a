/*
 * Debian's static libyaml is built for glibc with _FORTIFY_SOURCE. Of what that adds, the C library here lacks one:
 * tests/lint/archives.sh checks that the archives ask for nothing else.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int __sprintf_chk(char *to, int flag, size_t room, const char *format, ...) __attribute__((format(printf, 4, 5)));

/* sprintf() into an object of `room` bytes; aborts when they do not suffice (LSB, __sprintf_chk). */
int __sprintf_chk(char *to, int flag, size_t room, const char *format, ...)
{
    va_list args;
    (void)flag;
    va_start(args, format);
    int n = vsnprintf(to, room, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n >= room)
        abort();
    return n;
}
