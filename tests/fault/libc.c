/*
 * Fault injection below the C library's functions, as a preloaded library: the n-th call fails that the program or one of its
 * processes makes of those below. PINFOLD_LIBC_FAULT=N[:ERRNO]. One counter, in the file PINFOLD_LIBC_FAULT_LOG.count, is shared by
 * every process that comes from the program without exec, and by those in which it executes itself with this library again
 * (PINFOLD_LIBC_HANDED); a program that these start does not have the library.
 *
 * tools/fault.c does this for the calls of sys/; supervisor, egress proxy, MCP server and session daemon use the C library.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static struct faults {
    atomic_uint at; /* calls so far */
    unsigned nth;   /* which one fails; 0: none */
    int error;
} * shared;

/* Where the name of the function that failed is written: PINFOLD_LIBC_FAULT_LOG, opened before anything can fail. */
static int told = -1;

__attribute__((constructor)) static void begin(void)
{
    const char *said = getenv("PINFOLD_LIBC_FAULT");
    char *end;
    const char *log = getenv("PINFOLD_LIBC_FAULT_LOG"), *handed = getenv("PINFOLD_LIBC_HANDED");
    char count[4096];
    if (!said || !log)
        return;
    snprintf(count, sizeof count, "%s.count", log);
    int file = (int)syscall(SYS_openat, AT_FDCWD, count, O_RDWR | O_CREAT | O_CLOEXEC | (handed ? 0 : O_TRUNC), 0666);
    if (syscall(SYS_ftruncate, file, sizeof *shared) != 0)
        abort();
    void *p = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (p == MAP_FAILED)
        abort();
    (void)syscall(SYS_close, file);
    shared = p;
    shared->nth = (unsigned)strtoul(said, &end, 10);
    shared->error = *end == ':' ? atoi(end + 1) : EIO;
    /* high: the program's own numbers stay what they are */
    told =
        (int)syscall(SYS_fcntl, syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND, 0666), F_DUPFD, 200);
    if (!handed)
        setenv("PINFOLD_LIBC_HANDED", getenv("LD_PRELOAD"), 1);
    unsetenv("LD_PRELOAD");
}

static int fails(const char *name)
{
    if (!shared || atomic_fetch_add(&shared->at, 1) + 1 != shared->nth)
        return 0;
    if (told >= 0)
        (void)syscall(SYS_write, told, name + sizeof "own_" - 1, strlen(name) - (sizeof "own_" - 1));
    errno = shared->error;
    return 1;
}

/* A function of the library: what it answers when it fails, its parameters, its arguments. */
#define FAIL(type, failure, name, parameters, arguments)                                                               \
    type own_##name parameters __asm__(#name); /* the library's own prototype is of no use here */                     \
    type own_##name parameters                                                                                         \
    {                                                                                                                  \
        static type(*real) parameters;                                                                                 \
        if (!real)                                                                                                     \
            real = (type(*) parameters)dlsym(RTLD_NEXT, #name);                                                        \
        return fails(__func__) ? (failure) : real arguments;                                                           \
    }
#define F0(name)                FAIL(int, -1, name, (void), ())
#define F1(name, a)             FAIL(int, -1, name, (a x), (x))
#define F2(name, a, b)          FAIL(int, -1, name, (a x, b y), (x, y))
#define F3(name, a, b, c)       FAIL(int, -1, name, (a x, b y, c z), (x, y, z))
#define F4(name, a, b, c, d)    FAIL(int, -1, name, (a x, b y, c z, d u), (x, y, z, u))
#define F5(name, a, b, c, d, e) FAIL(int, -1, name, (a x, b y, c z, d u, e v), (x, y, z, u, v))

F3(socket, int, int, int)
F4(socketpair, int, int, int, int *)
F3(connect, int, const void *, unsigned)
F3(bind, int, const void *, unsigned)
F2(listen, int, int)
F4(accept4, int, void *, void *, int)
F5(setsockopt, int, int, int, const void *, unsigned)
F5(getsockopt, int, int, int, void *, void *)
F3(getsockname, int, void *, void *)
F3(getpeername, int, void *, void *)
F2(shutdown, int, int)
F2(pipe2, int *, int)
F1(epoll_create1, int)
F4(epoll_ctl, int, int, int, void *)
F4(epoll_wait, int, void *, int, int)
F3(poll, void *, unsigned long, int)
F3(signalfd, int, const void *, int)
F2(memfd_create, const char *, unsigned)
F1(inotify_init1, int)
F3(inotify_add_watch, int, const char *, uint32_t)
F0(fork)
F2(dup2, int, int)
F3(dup3, int, int, int)
F2(setns, int, int)
F1(unshare, int)
F2(kill, pid_t, int)
F2(mkdir, const char *, mode_t)
F3(mkdirat, int, const char *, mode_t)
F1(rmdir, const char *)
F1(unlink, const char *)
F3(unlinkat, int, const char *, int)
F2(rename, const char *, const char *)
F4(renameat, int, const char *, int, const char *)
F2(link, const char *, const char *)
F2(chmod, const char *, mode_t)
F2(fchmod, int, mode_t)
F3(fchown, int, uid_t, gid_t)
F2(access, const char *, int)
F2(flock, int, int)
F1(fsync, int)
F2(ftruncate64, int, off_t)
F2(stat64, const char *, void *)
F2(lstat64, const char *, void *)
F2(fstat64, int, void *)
F4(fstatat64, int, const char *, void *, int)
F2(statfs64, const char *, void *)
F2(fstatfs64, int, void *)
F2(setrlimit64, int, const void *)
F2(getrlimit64, int, void *)
F3(sched_getaffinity, pid_t, size_t, void *)
FAIL(ssize_t, -1, read, (int f, void *p, size_t n), (f, p, n))
FAIL(ssize_t, -1, write, (int f, const void *p, size_t n), (f, p, n))
FAIL(ssize_t, -1, pread64, (int f, void *p, size_t n, off_t o), (f, p, n, o))
FAIL(ssize_t, -1, pwrite64, (int f, const void *p, size_t n, off_t o), (f, p, n, o))
FAIL(ssize_t, -1, recv, (int f, void *p, size_t n, int g), (f, p, n, g))
FAIL(ssize_t, -1, send, (int f, const void *p, size_t n, int g), (f, p, n, g))
FAIL(ssize_t, -1, recvfrom, (int f, void *p, size_t n, int g, void *a, void *l), (f, p, n, g, a, l))
FAIL(ssize_t, -1, sendto, (int f, const void *p, size_t n, int g, const void *a, unsigned l), (f, p, n, g, a, l))
FAIL(ssize_t, -1, recvmsg, (int f, void *m, int g), (f, m, g))
FAIL(ssize_t, -1, sendmsg, (int f, const void *m, int g), (f, m, g))
FAIL(ssize_t, -1, splice, (int f, void *a, int t, void *b, size_t n, unsigned g), (f, a, t, b, n, g))
FAIL(ssize_t, -1, readlink, (const char *p, char *b, size_t n), (p, b, n))
FAIL(ssize_t, -1, readlinkat, (int d, const char *p, char *b, size_t n), (d, p, b, n))
FAIL(ssize_t, -1, getrandom, (void *p, size_t n, unsigned g), (p, n, g))
FAIL(ssize_t, -1, fgetxattr, (int f, const char *n, void *p, size_t s), (f, n, p, s))
FAIL(off_t, -1, lseek64, (int f, off_t o, int w), (f, o, w))
FAIL(void *, NULL, opendir, (const char *p), (p))
FAIL(void *, NULL, fdopendir, (int f), (f))
FAIL(void *, NULL, readdir64, (void *d), (d))
FAIL(void *, NULL, fopen64, (const char *p, const char *m), (p, m))
FAIL(char *, NULL, realpath, (const char *p, char *b), (p, b))

/* Those whose last argument is there or not: an argument more does no harm on the machines that this runs on. */
#define FAIL_MORE(name, parameters, last, arguments)                                                                   \
    int own_##name parameters __asm__(#name);                                                                          \
    int own_##name parameters                                                                                          \
    {                                                                                                                  \
        static int(*real) parameters;                                                                                  \
        va_list more;                                                                                                  \
        if (!real)                                                                                                     \
            real = (int(*) parameters)dlsym(RTLD_NEXT, #name);                                                         \
        va_start(more, last);                                                                                          \
        long argument = va_arg(more, long);                                                                            \
        va_end(more);                                                                                                  \
        return fails(__func__) ? -1 : real arguments;                                                                  \
    }
FAIL_MORE(open64, (const char *p, int flags, ...), flags, (p, flags, argument))
FAIL_MORE(openat64, (int d, const char *p, int flags, ...), flags, (d, p, flags, argument))
FAIL_MORE(fcntl64, (int f, int command, ...), command, (f, command, argument))
FAIL_MORE(ioctl, (int f, unsigned long request, ...), request, (f, request, argument))
FAIL_MORE(prctl, (int option, ...), option, (option, argument, 0, 0, 0))
