/*
 * Confines a process to the system calls that it needs, by a seccomp filter that is made from their list, and takes from it
 * what it could do with a descriptor or a limit that it has.
 */
#include "sys/calls.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include "sys/process.h"
#include "sys/sys.h"

#if defined __x86_64__
#define CALLS_ARCH AUDIT_ARCH_X86_64
#else
#define CALLS_ARCH AUDIT_ARCH_AARCH64
#endif

static struct sock_filter jump_if(uint32_t value, unsigned then, unsigned otherwise)
{
    return (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, (uint8_t)then, (uint8_t)otherwise);
}

static struct sock_filter bpf_load(unsigned offset)
{
    return (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset);
}

int sys_calls_only(const int *calls, unsigned n, bool internet)
{
    const struct sock_filter kill = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    static const struct sys_rlimit none = {0, 0};
    struct sock_filter f[SYS_CALLS_MAX + 12];
    unsigned at = 0;
    if (n > SYS_CALLS_MAX)
        return -EINVAL;
    f[at++] = bpf_load(offsetof(struct seccomp_data, arch));
    f[at++] = jump_if(CALLS_ARCH, 1, 0);
    f[at++] = kill;
    f[at++] = bpf_load(offsetof(struct seccomp_data, nr));
    if (internet) {
        f[at++] = jump_if(SYS_socket, 0, 4);
        f[at++] = bpf_load(offsetof(struct seccomp_data, args[0]));
        f[at++] = jump_if(AF_INET, n + 3, 0); /* to the last statement, as below */
        f[at++] = jump_if(AF_INET6, n + 2, 0);
        f[at++] = kill;
    }
    for (unsigned i = 0; i < n; i++)
        f[at++] = jump_if((uint32_t)calls[i], n - i, 0);
    f[at++] = kill;
    f[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {(unsigned short)at, f};

    int r = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (r == 0)
        r = sys_prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (r == 0)
        r = sys_prlimit(RLIMIT_FSIZE, &none, NULL);
    if (r == 0)
        r = sys_prlimit(RLIMIT_NPROC, &none, NULL);
    if (r == 0)
        r = (int)sys_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program, 0, 0, 0);
    return r;
}
