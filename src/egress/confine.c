/*
 * The egress proxy parses untrusted input, so it gives up everything it does not need: its seccomp filter permits no
 * call that opens a file, starts a process or affects another one. Any other call kills it.
 */
#include "egress/egress.h"
#include "sys/calls.h"
#include "sys/sys.h"

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

/* socket(2) only for TCP and UDP over IP. */
int egress_lock(void)
{
    return sys_calls_only(allowed_calls, sizeof allowed_calls / sizeof *allowed_calls, true);
}
