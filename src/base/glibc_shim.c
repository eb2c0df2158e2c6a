/*
 * The static libyaml and libjansson of Debian and Ubuntu are built for glibc, with _FORTIFY_SOURCE (2, or 3 on Ubuntu). musl
 * lacks the checked functions that such a build calls. tests/lint/archives.sh looks that none is missing here.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int __vsnprintf_chk(char *to, size_t n, int flag, size_t room, const char *format, va_list args)
    __attribute__((format(printf, 5, 0)));
int __snprintf_chk(char *to, size_t n, int flag, size_t room, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
int __vsprintf_chk(char *to, int flag, size_t room, const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));
int __sprintf_chk(char *to, int flag, size_t room, const char *format, ...) __attribute__((format(printf, 4, 5)));
int __fprintf_chk(FILE *to, int flag, const char *format, ...) __attribute__((format(printf, 3, 4)));
void *__memcpy_chk(void *to, const void *from, size_t n, size_t room);
void *__memmove_chk(void *to, const void *from, size_t n, size_t room);
void *__memset_chk(void *to, int byte, size_t n, size_t room);
char *__strcpy_chk(char *to, const char *from, size_t room);
char *__strcat_chk(char *to, const char *from, size_t room);
char *__strncpy_chk(char *to, const char *from, size_t n, size_t room);
size_t __fread_chk(void *to, size_t room, size_t size, size_t n, FILE *from);
ssize_t __read_chk(int fd, void *to, size_t n, size_t room);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
long long __isoc23_strtoll(const char *text, char **end, int base);
unsigned long long __isoc23_strtoull(const char *text, char **end, int base);
long __isoc23_strtol(const char *text, char **end, int base);
unsigned long __isoc23_strtoul(const char *text, char **end, int base);

/* `room` is what the object has, in bytes; each of these aborts when more is to be written (LSB 5.0, __memcpy_chk and others). */
static void must_fit(size_t n, size_t room)
{
    if (n > room)
        abort();
}

int __vsprintf_chk(char *to, int flag, size_t room, const char *format, va_list args)
{
    (void)flag;
    int n = vsnprintf(to, room, format, args);
    if (n >= 0)
        must_fit((size_t)n + 1, room);
    return n;
}

int __sprintf_chk(char *to, int flag, size_t room, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = __vsprintf_chk(to, flag, room, format, args);
    va_end(args);
    return n;
}

int __vsnprintf_chk(char *to, size_t n, int flag, size_t room, const char *format, va_list args)
{
    (void)flag;
    must_fit(n, room);
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

int __fprintf_chk(FILE *to, int flag, const char *format, ...)
{
    va_list args;
    (void)flag;
    va_start(args, format);
    int r = vfprintf(to, format, args);
    va_end(args);
    return r;
}

void *__memcpy_chk(void *to, const void *from, size_t n, size_t room)
{
    must_fit(n, room);
    return memcpy(to, from, n);
}

void *__memmove_chk(void *to, const void *from, size_t n, size_t room)
{
    must_fit(n, room);
    return memmove(to, from, n);
}

void *__memset_chk(void *to, int byte, size_t n, size_t room)
{
    must_fit(n, room);
    return memset(to, byte, n);
}

char *__strcpy_chk(char *to, const char *from, size_t room)
{
    return __memcpy_chk(to, from, strlen(from) + 1, room);
}

char *__strcat_chk(char *to, const char *from, size_t room)
{
    const size_t n = strlen(to);
    must_fit(n, room);
    (void)__strcpy_chk(to + n, from, room - n);
    return to;
}

char *__strncpy_chk(char *to, const char *from, size_t n, size_t room)
{
    must_fit(n, room);
    return strncpy(to, from, n);
}

size_t __fread_chk(void *to, size_t room, size_t size, size_t n, FILE *from)
{
    if (size)
        must_fit(n, room / size);
    return fread(to, size, n, from);
}

ssize_t __read_chk(int fd, void *to, size_t n, size_t room)
{
    must_fit(n, room);
    return read(fd, to, n);
}

/* open(2) without a mode, which creating a file would need. */
int __open_2(const char *path, int flags)
{
    if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE)
        abort();
    return open(path, flags);
}

int __open64_2(const char *path, int flags)
{
    return __open_2(path, flags);
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
