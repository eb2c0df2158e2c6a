/*
 * One thin function per system call. Each returns -errno and uses nothing of libc: no errno, no cancellation points, no
 * state; so they can be used in a process that shares its memory with another (clone(2) without libc's knowledge).
 * Every call goes through sys_call(), where a test build can make the n-th one fail (sys/fault.h).
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "sys/numbers.h"

#if defined __x86_64__
static inline long sys_raw(long nr, long a, long b, long c, long d, long e, long f)
{
    long r;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(r)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return r;
}
#elif defined __aarch64__
static inline long sys_raw(long nr, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#else
#error "pinfold knows the system call convention of x86-64 and arm64"
#endif

#ifdef PINFOLD_FAULTS
long sys_faulty(long nr, long a, long b, long c, long d, long e, long f); /* tools/fault.c */
#define sys_call6 sys_faulty
#else
#define sys_call6 sys_raw
#endif
#define SYS_ARG(x) ((long)(x))
#define SYS_CALL6(nr, a, b, c, d, e, f, ...)                                                                           \
    sys_call6((nr), SYS_ARG(a), SYS_ARG(b), SYS_ARG(c), SYS_ARG(d), SYS_ARG(e), SYS_ARG(f))
/* The number of a call and its arguments; those that are left out are 0. */
#define sys_call(...) SYS_CALL6(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
/* A row of a header's table: the function `name` that makes a call, and returns what the kernel returns. */
#define SYS_CALL(type, name, parameters, ...)                                                                          \
    static inline type name parameters                                                                                 \
    {                                                                                                                  \
        return (type)sys_call(__VA_ARGS__);                                                                            \
    }
