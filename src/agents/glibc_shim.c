/*
 * Debian's static SQLite is built for glibc, with _FORTIFY_SOURCE and 64-bit file offsets by name. The C library here lacks
 * these (it had names that end in 64 until 1.2.3, for linking only); the structures behind them are the kernel's or equal on
 * both sides. The names are given to the linker, because a header may make each of them a macro.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) == 8, "the names that end in 64 are the plain ones");

int shim_fcntl(int fd, int what, ...) __asm__("fcntl64");
int shim_open(const char *path, int flags, ...) __asm__("open64");
int shim_stat(const char *path, struct stat *ret) __asm__("stat64");
int shim_lstat(const char *path, struct stat *ret) __asm__("lstat64");
int shim_fstat(int fd, struct stat *ret) __asm__("fstat64");
int shim_ftruncate(int fd, off_t n) __asm__("ftruncate64");
off_t shim_lseek(int fd, off_t to, int whence) __asm__("lseek64");
ssize_t shim_pread(int fd, void *to, size_t n, off_t at) __asm__("pread64");
ssize_t shim_pwrite(int fd, const void *from, size_t n, off_t at) __asm__("pwrite64");
void *shim_mmap(void *at, size_t n, int access, int flags, int fd, off_t from) __asm__("mmap64");
void *__memcpy_chk(void *to, const void *from, size_t n, size_t room);
void *__memmove_chk(void *to, const void *from, size_t n, size_t room);
void *__memset_chk(void *to, int byte, size_t n, size_t room);

int shim_fcntl(int fd, int what, ...)
{
    va_list args;
    va_start(args, what);
    void *value = va_arg(args, void *);
    va_end(args);
    return fcntl(fd, what, value);
}

int shim_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    return open(path, flags, mode);
}

int shim_stat(const char *path, struct stat *ret)
{
    return stat(path, ret);
}

int shim_lstat(const char *path, struct stat *ret)
{
    return lstat(path, ret);
}

int shim_fstat(int fd, struct stat *ret)
{
    return fstat(fd, ret);
}

int shim_ftruncate(int fd, off_t n)
{
    return ftruncate(fd, n);
}

off_t shim_lseek(int fd, off_t to, int whence)
{
    return lseek(fd, to, whence);
}

ssize_t shim_pread(int fd, void *to, size_t n, off_t at)
{
    return pread(fd, to, n, at);
}

ssize_t shim_pwrite(int fd, const void *from, size_t n, off_t at)
{
    return pwrite(fd, from, n, at);
}

void *shim_mmap(void *at, size_t n, int access, int flags, int fd, off_t from)
{
    return mmap(at, n, access, flags, fd, from);
}

void *__memcpy_chk(void *to, const void *from, size_t n, size_t room)
{
    if (n > room)
        abort();
    return memcpy(to, from, n);
}

void *__memmove_chk(void *to, const void *from, size_t n, size_t room)
{
    if (n > room)
        abort();
    return memmove(to, from, n);
}

void *__memset_chk(void *to, int byte, size_t n, size_t room)
{
    if (n > room)
        abort();
    return memset(to, byte, n);
}
