/*
 * Debian's static SQLite is built for glibc, with _FORTIFY_SOURCE and 64-bit file offsets by name. Of what that adds, the C
 * library here lacks three; the structures behind them are the kernel's or equal on both sides.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

int fcntl64(int fd, int what, ...);
void *__memcpy_chk(void *to, const void *from, size_t n, size_t room);
void *__memset_chk(void *to, int byte, size_t n, size_t room);

int fcntl64(int fd, int what, ...)
{
    va_list args;
    va_start(args, what);
    void *value = va_arg(args, void *);
    va_end(args);
    return fcntl(fd, what, value);
}

void *__memcpy_chk(void *to, const void *from, size_t n, size_t room)
{
    if (n > room)
        abort();
    return memcpy(to, from, n);
}

void *__memset_chk(void *to, int byte, size_t n, size_t room)
{
    if (n > room)
        abort();
    return memset(to, byte, n);
}
