/* The filter reads hostile bytes: its seccomp filter permits no call that opens a file, makes a socket or affects a process. */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include "ssh/filter.h"
#include "sys/sys.h"

#if defined __x86_64__
#define SSH_ARCH AUDIT_ARCH_X86_64
#else
#define SSH_ARCH AUDIT_ARCH_AARCH64
#endif

static const int needed_calls[] = {
    SYS_read,    SYS_write,         SYS_readv, SYS_writev,     SYS_recvfrom,     SYS_sendto,          SYS_recvmsg,
    SYS_sendmsg, SYS_accept4,       SYS_close, SYS_ppoll,      SYS_mmap,         SYS_munmap,          SYS_madvise,
    SYS_brk,     SYS_clock_gettime, SYS_exit,  SYS_exit_group, SYS_rt_sigreturn, SYS_restart_syscall,
};

int ssh_lock(void)
{
    enum { N = sizeof needed_calls / sizeof *needed_calls };
    struct sock_filter f[N + 6];
    unsigned n = 0;
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SSH_ARCH, 1, 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < N; i++) {
        f[n] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)needed_calls[i], (uint8_t)(N - i), 0);
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
