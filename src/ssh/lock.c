/* The filter reads hostile bytes: its seccomp filter permits no call that opens a file, makes a socket or affects a process.
   Set before the first client; gpg's filter uses it, too. */
#include "ssh/filter.h"
#include "sys/calls.h"
#include "sys/sys.h"

static const int needed_calls[] = {
    SYS_read,    SYS_write,         SYS_readv, SYS_writev,     SYS_recvfrom,     SYS_sendto,          SYS_recvmsg,
    SYS_sendmsg, SYS_accept4,       SYS_close, SYS_ppoll,      SYS_mmap,         SYS_munmap,          SYS_madvise,
    SYS_brk,     SYS_clock_gettime, SYS_exit,  SYS_exit_group, SYS_rt_sigreturn, SYS_restart_syscall,
};

int ssh_lock(void)
{
    return sys_calls_only(needed_calls, sizeof needed_calls / sizeof *needed_calls, false);
}
