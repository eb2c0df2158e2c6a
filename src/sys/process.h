/*
 * Processes: creating, ending, waiting, signals, identity. Sources: clone(2), waitid(2), wait4(2),
 * pidfd_send_signal(2), prctl(2), prlimit(2), keyctl(2), seccomp(2).
 */
#pragma once
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "sys/sys.h"

/* struct clone_args of the kernel, as of Linux 5.7. */
struct sys_clone {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
};
#define SYS_CLONE_CLEAR_SIGHAND 0x100000000ull
#define SYS_CLONE_INTO_CGROUP   0x200000000ull
#define SYS_CLONE_PIDFD         0x1000u
#define SYS_CLONE_NEWCGROUP     0x02000000u

/*
 * Container runtimes answer clone3 with ENOSYS, because a filter cannot read its flags, so that programs fall back to
 * clone. clone takes only the low flags; the child of SYS_CLONE_CLEAR_SIGHAND must then reset the signal handlers
 * itself.
 */
static inline bool sys_clone_suffices(const struct sys_clone *how)
{
    return (how->flags & ~(SYS_CLONE_CLEAR_SIGHAND | 0xffffffffu)) == 0 && (how->flags & 0xff) == 0;
}
static inline void sys_clear_handlers(const struct sys_clone *how)
{
    struct {
        uint64_t handler, flags, restorer, mask;
    } now;
    for (int i = 1; how->flags & SYS_CLONE_CLEAR_SIGHAND && i <= 64; i++) {
        if (sys_raw(SYS_rt_sigaction, i, 0, (long)&now, sizeof now.mask, 0, 0) < 0 || now.handler <= 1)
            continue;
        now.handler = now.flags = 0;
        (void)sys_raw(SYS_rt_sigaction, i, (long)&now, 0, sizeof now.mask, 0, 0);
    }
}
/* Like fork(2): returns 0 in the child. libc does not know about it, so the child may use only sys/. */
static inline int sys_clone3(const struct sys_clone *how)
{
    int r = (int)sys_call(SYS_clone3, how, sizeof *how, 0, 0, 0, 0);
    if (r != -ENOSYS || !sys_clone_suffices(how))
        return r;
    r = (int)sys_call(SYS_clone, (uint32_t)how->flags | how->exit_signal, 0, how->pidfd, 0, 0, 0);
    if (r == 0)
        sys_clear_handlers(how);
    return r;
}

#ifdef PINFOLD_FAULTS
int sys_fault(void); /* 0, or the -errno with which this call must fail */
#else
#define sys_fault() 0
#endif

/* clone3(a, b) or clone(a, b, c, 0, 0) for a child that has its own stack and starts in `run`. */
static inline long sys_clone_onto(long nr, long a, long b, long c, void (*run)(void *), void *arg)
{
    long r;
#if defined __x86_64__
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = 0;
    register void *r12 __asm__("r12") = arg;
    register void (*r13)(void *) __asm__("r13") = run;
    __asm__ volatile("syscall\n\t"
                     "test %%eax, %%eax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %%r12, %%rdi\n\t"
                     "call *%%r13\n\t"
                     "ud2\n"
                     "1:"
                     : "=a"(r)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r12), "r"(r13)
                     : "rcx", "r11", "memory");
#else
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = 0;
    register long x4 __asm__("x4") = 0;
    register long x8 __asm__("x8") = nr;
    register void *x20 __asm__("x20") = arg;
    register void (*x21)(void *) __asm__("x21") = run;
    __asm__ volatile("svc 0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, #0\n\t"
                     "mov x0, x20\n\t"
                     "blr x21\n\t"
                     "brk #0\n"
                     "1:"
                     : "+r"(x0)
                     : "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x8), "r"(x20), "r"(x21)
                     : "memory");
    r = x0;
#endif
    return r;
}

/*
 * clone3 for a child that has its own stack and may share the parent's memory (CLONE_VM). It starts in `run`, which
 * must not return. Returns the pid, or -errno. The child also shares the parent's thread-local storage, so it must not
 * use libc's errno. Signal handlers are not reset.
 */
static inline int sys_clone3_run(const struct sys_clone *how, void (*run)(void *), void *arg)
{
    long r = sys_fault();
    if (r == 0)
        r = sys_clone_onto(SYS_clone3, (long)how, sizeof *how, 0, run, arg);
    if (r == -ENOSYS && sys_clone_suffices(how))
        r = sys_clone_onto(SYS_clone, (long)((uint32_t)how->flags | how->exit_signal),
                           (long)(how->stack + how->stack_size), (long)how->pidfd, run, arg);
    return (int)r;
}

/*
 * Like vfork(2): the child runs in the parent's memory and on its stack while the parent waits for it to exec or exit.
 * This must be inlined into its caller's frame, because the child would overwrite the frame of a function that has
 * returned. The caller must end the child (sys_execve, sys_exit) before it returns.
 */
#if defined __x86_64__
#define sys_vfork()                                                                                                    \
    __extension__({                                                                                                    \
        long r_ = sys_fault();                                                                                         \
        if (r_ == 0)                                                                                                   \
            __asm__ volatile("xor %%edx, %%edx; xor %%r10d, %%r10d; xor %%r8d, %%r8d; syscall"                         \
                             : "=a"(r_)                                                                                \
                             : "a"((long)SYS_clone), "D"((long)(CLONE_VM | CLONE_VFORK | SIGCHLD)), "S"(0l)            \
                             : "rcx", "rdx", "r8", "r10", "r11", "memory");                                            \
        (int)r_;                                                                                                       \
    })
#else
#define sys_vfork()                                                                                                    \
    __extension__({                                                                                                    \
        register long x0_ __asm__("x0") = CLONE_VM | CLONE_VFORK | SIGCHLD;                                            \
        register long x1_ __asm__("x1") = 0;                                                                           \
        register long x2_ __asm__("x2") = 0;                                                                           \
        register long x3_ __asm__("x3") = 0;                                                                           \
        register long x4_ __asm__("x4") = 0;                                                                           \
        register long x8_ __asm__("x8") = SYS_clone;                                                                   \
        __asm__ volatile("svc 0" : "+r"(x0_) : "r"(x1_), "r"(x2_), "r"(x3_), "r"(x4_), "r"(x8_) : "memory");           \
        (int)x0_;                                                                                                      \
    })
#endif

static inline _Noreturn void sys_exit(int status)
{
    for (;;)
        (void)sys_raw(SYS_exit_group, status, 0, 0, 0, 0, 0);
}
/* execveat(2) of the program that `fd` (possibly O_PATH) is. */
SYS_CALL(int, sys_exec_fd, (int fd, const char *const *argv, const char *const *envp), SYS_execveat, fd, "", argv, envp,
         0x1000 /* AT_EMPTY_PATH */)
SYS_CALL(int, sys_execve, (const char *path, const char *const *argv, const char *const *envp), SYS_execve, path, argv,
         envp)
SYS_CALL(int, sys_wait4, (int pid, int *ret_status, int flags, struct rusage *ret_usage), SYS_wait4, pid, ret_status,
         flags, ret_usage)
enum { SYS_OF_PIDFD = 3 }; /* waitid(2): P_PIDFD, which glibc before 2.36 lacks */
SYS_CALL(int, sys_waitid, (int kind, int id, siginfo_t *ret, int flags), SYS_waitid, kind, id, ret, flags)
SYS_CALL(int, sys_kill, (int pid, int signal), SYS_kill, pid, signal)
/* A descriptor that becomes readable when process `pid` ends, or -errno. pidfd_open(2). */
SYS_CALL(int, sys_pidfd_open, (int pid, unsigned flags), SYS_pidfd_open, pid, flags)
SYS_CALL(int, sys_pidfd_kill, (int pidfd, int signal), SYS_pidfd_send_signal, pidfd, signal)
SYS_CALL(int, sys_getpid, (void), SYS_getpid)
SYS_CALL(uint32_t, sys_geteuid, (void), SYS_geteuid)
SYS_CALL(int, sys_getppid, (void), SYS_getppid)
SYS_CALL(int, sys_setsid, (void), SYS_setsid)
SYS_CALL(int, sys_setpgid, (int pid, int group), SYS_setpgid, pid, group)
SYS_CALL(int, sys_prctl, (int what, unsigned long a, unsigned long b, unsigned long c, unsigned long d), SYS_prctl,
         what, a, b, c, d)
SYS_CALL(int, sys_chdir, (const char *path), SYS_chdir, path)
SYS_CALL(int, sys_fchdir, (int dir), SYS_fchdir, dir)
/* The length of the path with its NUL. "(unreachable)/..." if it does not lead from our root: see getcwd(2). */
SYS_CALL(long, sys_getcwd, (char *path, size_t n), SYS_getcwd, path, n)
SYS_CALL(int, sys_unshare, (unsigned long flags), SYS_unshare, flags)
/* setns(2): enters the namespace of a descriptor, which must be one of `kinds` (CLONE_NEW*). */
SYS_CALL(int, sys_setns, (int fd, unsigned long kinds), SYS_setns, fd, kinds)
SYS_CALL(int, sys_sethostname, (const char *name, size_t n), SYS_sethostname, name, n)
struct sys_rlimit {
    uint64_t soft, hard;
};
SYS_CALL(int, sys_prlimit, (int what, const struct sys_rlimit *set, struct sys_rlimit *ret_old), SYS_prlimit64, 0, what,
         set, ret_old)
/* Signal sets as the kernel has them: bit n - 1 is signal n. */
#define SYS_SIGNAL_BIT(n) (1ull << ((n)-1))
SYS_CALL(int, sys_sigmask, (int how, uint64_t set), SYS_rt_sigprocmask, how, &set, 0, sizeof set)
/* The same; *ret_old is the previous mask. */
SYS_CALL(int, sys_sigmask_swap, (int how, uint64_t set, uint64_t *ret_old), SYS_rt_sigprocmask, how, &set, ret_old,
         sizeof set)
/* `handler`: 0 SIG_DFL, 1 SIG_IGN; neither flags nor mask. */
static inline int sys_signal_action(int signal, uint64_t handler)
{
    const uint64_t action[4] = {handler}; /* handler, flags, restorer, mask */
    return (int)sys_call(SYS_rt_sigaction, signal, action, 0, sizeof(uint64_t));
}
static inline int sys_signal_ignore(int signal)
{
    return sys_signal_action(signal, 1);
}
static inline int sys_signal_default(int signal)
{
    return sys_signal_action(signal, 0);
}
/* Joins a new, empty, anonymous session keyring. */
SYS_CALL(int, sys_keyring_new, (void), SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */)
/* Returns the listener's descriptor with SECCOMP_FILTER_FLAG_NEW_LISTENER, otherwise 0. */
static inline int sys_seccomp_filter(const struct sock_filter *code, unsigned short n, unsigned long flags)
{
    const struct {
        unsigned short n;
        const struct sock_filter *code;
    } program = {n, code};
    return (int)sys_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program, 0, 0, 0);
}
/* Number of processors on which this process may run, at least 1. sched_getaffinity(2). */
static inline unsigned sys_processors(void)
{
    uint64_t set[128] = {0}; /* 8,192 processors */
    unsigned n = 0;
    long got = sys_call(SYS_sched_getaffinity, 0, sizeof set, set, 0, 0, 0);
    for (long i = 0; i < got / 8; i++)
        n += (unsigned)__builtin_popcountll(set[i]);
    return n ? n : 1;
}
/* Processors on which a thread may run: bit N of `bits` is processor N, `bytes` as the kernel's own set is long. */
struct sys_processor_set {
    size_t bytes;
    uint64_t bits[16]; /* 1,024 processors: where there are more, the calls fail */
};
/* `tid` 0: this thread. sched_getaffinity(2). */
static inline int sys_processors_allowed(int tid, struct sys_processor_set *ret)
{
    const long got = sys_call(SYS_sched_getaffinity, tid, sizeof ret->bits, ret->bits, 0, 0, 0);
    ret->bytes = got > 0 ? (size_t)got : 0;
    return got < 0 ? (int)got : 0;
}
/* sched_setaffinity(2). */
SYS_CALL(int, sys_processors_allow, (int tid, const struct sys_processor_set *set), SYS_sched_setaffinity, tid,
         set->bytes, set->bits)
/* The one on which this thread runs, or -errno. getcpu(2). */
static inline int sys_processor(void)
{
    unsigned cpu = 0;
    const long e = sys_call(SYS_getcpu, &cpu, 0, 0, 0, 0, 0);
    return e < 0 ? (int)e : (int)cpu;
}
/* mmap(2) of `n` bytes; NULL where it fails. */
static inline void *sys_map(size_t n, int access, int flags, int fd)
{
    long p = sys_call(SYS_mmap, 0, n, access, flags, fd);
    return p < 0 && p > -4096 ? 0 : (void *)p; /* NOLINT(performance-no-int-to-ptr) */
}
/* New zeroed memory of `n` bytes, shared with child processes, or NULL. */
static inline void *sys_pages_shared(size_t n)
{
    return sys_map(n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
}
/* Memory with a descriptor (memfd_create(2)), close-on-exec. */
SYS_CALL(int, sys_memory, (const char *name), SYS_memfd_create, name, 1 /* MFD_CLOEXEC */)
/* The same, for memory that will be sealed (fcntl(2), F_ADD_SEALS). */
SYS_CALL(int, sys_memory_sealable, (const char *name), SYS_memfd_create, name, 3 /* MFD_CLOEXEC, MFD_ALLOW_SEALING */)
/* Has all pages of this memory made at once, which costs a fraction of a page fault each (madvise(2), Linux 5.14). */
static inline void sys_populate(void *at, size_t n)
{
    (void)sys_call(SYS_madvise, at, n, 23 /* MADV_POPULATE_WRITE */, 0, 0, 0);
}
/* Gives back what calls that have returned had used of this process's stack, which reaches down to `low`; NULL: nothing. */
__attribute__((noinline, unused)) static void sys_stack_back(char *low)
{
    const uintptr_t page = 4096, from = ((uintptr_t)low + page - 1) / page * page;
    const uintptr_t to = ((uintptr_t)__builtin_frame_address(0) - 512) / page * page; /* this call takes less */
    if (low && from < to)
        (void)sys_call(SYS_madvise, from, to - from, 4 /* MADV_DONTNEED */, 0, 0, 0);
}
static inline void sys_unmap(const void *at, size_t n)
{
    (void)sys_call(SYS_munmap, at, n, 0, 0, 0, 0);
}
/* New zeroed private memory of `n` bytes, or NULL. */
static inline void *sys_pages(size_t n)
{
    return sys_map(n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}
