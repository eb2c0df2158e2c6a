/*
 * The egress proxy parses untrusted input, so it gives up everything it does not need: its seccomp filter permits no
 * call that opens a file, starts a process or affects another one. Any other call kills it.
 */
#include "egress/egress.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include "sys/sys.h"

#if defined __x86_64__
#define THIS_ARCH AUDIT_ARCH_X86_64
#else
#define THIS_ARCH AUDIT_ARCH_AARCH64
#endif

static const int allowed_calls[] = {
    SYS_read,          SYS_write,      SYS_readv,     SYS_writev,      SYS_recvfrom,
    SYS_sendto,        SYS_recvmsg,    SYS_sendmsg,   SYS_accept4,     SYS_connect,
    SYS_bind,          SYS_close,      SYS_shutdown,  SYS_getsockname, SYS_getpeername,
    SYS_getsockopt,    SYS_setsockopt, SYS_epoll_ctl, SYS_epoll_pwait,
#ifdef SYS_epoll_wait
    SYS_epoll_wait,
#endif
    SYS_mmap,          SYS_munmap,     SYS_mremap,    SYS_madvise,     SYS_brk,
    SYS_clock_gettime, SYS_getrandom,  SYS_exit,      SYS_exit_group,  SYS_rt_sigreturn,
    SYS_futex,         SYS_splice,     SYS_pipe2,     SYS_fcntl,       SYS_restart_syscall,
};

int egress_lock(void)
{
    enum { N = sizeof allowed_calls / sizeof *allowed_calls };
    struct sock_filter f[N + 12];
    unsigned n = 0;
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    /* socket(): only TCP and UDP over IP */
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 4);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, (uint8_t)(N + 3), 0);
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, (uint8_t)(N + 2), 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    for (unsigned i = 0; i < N; i++) {
        f[n] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)allowed_calls[i], (uint8_t)(N - i), 0);
        n++;
    }
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)n, f};
    struct rlimit none = {0, 0};

    long r = sys_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0);
    if (r == 0)
        r = sys_call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0);
    if (r == 0)
        r = sys_call(SYS_prlimit64, 0, RLIMIT_FSIZE, &none, NULL, 0, 0);
    if (r == 0)
        r = sys_call(SYS_prlimit64, 0, RLIMIT_NPROC, &none, NULL, 0, 0);
    if (r == 0)
        r = sys_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program, 0, 0, 0);
    return (int)r;
}
