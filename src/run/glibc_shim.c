/*
 * Debian's static libyaml and libjansson are built for glibc with _FORTIFY_SOURCE. These functions are missing in musl;
 * tests/lint/archives.sh checks that the archives need no others.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int __vsnprintf_chk(char *to, size_t n, int flag, size_t room, const char *format, va_list args)
    __attribute__((format(printf, 5, 0)));
int __snprintf_chk(char *to, size_t n, int flag, size_t room, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
char *__strncpy_chk(char *to, const char *from, size_t n, size_t room);
long long __isoc23_strtoll(const char *text, char **end, int base);
unsigned long long __isoc23_strtoull(const char *text, char **end, int base);
long __isoc23_strtol(const char *text, char **end, int base);
unsigned long __isoc23_strtoul(const char *text, char **end, int base);
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

/* The same with a length of the caller's, which must not be more than there is. */
int __vsnprintf_chk(char *to, size_t n, int flag, size_t room, const char *format, va_list args)
{
    (void)flag;
    if (n > room)
        abort();
    return vsnprintf(to, n, format, args);
}

int __snprintf_chk(char *to, size_t n, int flag, size_t room, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int r = __vsnprintf_chk(to, n, flag, room, format, args);
    va_end(args);
    return r;
}

char *__strncpy_chk(char *to, const char *from, size_t n, size_t room)
{
    if (n > room)
        abort();
    return strncpy(to, from, n);
}

/* Since glibc 2.38. The difference is base 2, and base 0 with "0b": nothing here asks for either. */
long long __isoc23_strtoll(const char *text, char **end, int base)
{
    return strtoll(text, end, base);
}

unsigned long long __isoc23_strtoull(const char *text, char **end, int base)
{
    return strtoull(text, end, base);
}

long __isoc23_strtol(const char *text, char **end, int base)
{
    return strtol(text, end, base);
}

unsigned long __isoc23_strtoul(const char *text, char **end, int base)
{
    return strtoul(text, end, base);
}
