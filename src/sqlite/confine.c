/*
 * Confines pinfold-sqlite before it opens a database: no capability, no new process, no network, no file but below its two
 * directories. The loader has finished by then: nothing executable can be mapped any more.
 */
#include "sqlite/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "sys/caps.h"
#include "sys/fd.h"
#include "sys/landlock.h"

#if defined __x86_64__
#define THIS_ARCH AUDIT_ARCH_X86_64
#else
#define THIS_ARCH AUDIT_ARCH_AARCH64
#endif

/* Files are opened by openat2 alone. What is not here is unknown to the process (ENOSYS). */
static const int allowed_calls[] = {
    SYS_read,      SYS_write,      SYS_pread64,      SYS_pwrite64,        SYS_openat2,      SYS_close,
    SYS_fstat,     SYS_newfstatat, SYS_lseek,        SYS_munmap,          SYS_mremap,       SYS_madvise,
    SYS_brk,       SYS_fcntl,      SYS_fsync,        SYS_fdatasync,       SYS_ftruncate,    SYS_fchmod,
    SYS_fchown,    SYS_unlinkat,   SYS_renameat2,    SYS_faccessat,       SYS_faccessat2,   SYS_getpid,
    SYS_getuid,    SYS_geteuid,    SYS_getrandom,    SYS_clock_gettime,   SYS_gettimeofday, SYS_clock_nanosleep,
    SYS_nanosleep, SYS_futex,      SYS_rt_sigreturn, SYS_restart_syscall, SYS_exit,         SYS_exit_group,
};

static int filter_calls(void)
{
    enum { N = sizeof allowed_calls / sizeof *allowed_calls };
    struct sock_filter f[N + 12];
    unsigned n = 0;
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    /* Memory, as long as it is not executable. */
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0);
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2]));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, (uint8_t)(N + 2));
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    for (unsigned i = 0; i < N; i++) {
        f[n] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)allowed_calls[i], (uint8_t)(N - i), 0);
        n++;
    }
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)n, f};
    return (int)sys_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program, 0, 0, 0);
}

#define READ_RIGHTS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)

static int allow(int ruleset, int place, uint64_t rights)
{
    return sys_landlock_allow(ruleset, &(struct sys_landlock_path){.rights = rights, .parent = place});
}

/* Nothing but these directories; of the host's only the index of readers is written (database.c). */
static int restrict_files(int host, int session, const char *name)
{
    int abi = sys_landlock_abi();
    if (abi < 1)
        return 0; /* SQLite's replaced calls hold by themselves */
    uint64_t all =
        SYS_LANDLOCK_ALL_FILES_1 | (abi >= 2 ? SYS_LANDLOCK_REFER : 0u) | (abi >= 3 ? SYS_LANDLOCK_TRUNCATE : 0u);
    char index[300];
    own_fd int ruleset = sys_landlock_create(&(struct sys_landlock_ruleset){.files = all});
    int no = ruleset < 0 ? ruleset : 0;
    if (no == 0 && session >= 0)
        no = allow(ruleset, session, all & ~(uint64_t)(LANDLOCK_ACCESS_FS_EXECUTE | SYS_LANDLOCK_REFER));
    if (no == 0 && host >= 0)
        no = allow(ruleset, host, READ_RIGHTS);
    snprintf(index, sizeof index, "%s-shm", name);
    own_fd int shm = host < 0 ? -1 : sys_openat(host, index, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (no == 0 && shm >= 0) /* after a crash it is begun anew */
        no = allow(
            ruleset, shm,
            all & (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | (uint64_t)SYS_LANDLOCK_TRUNCATE));
    return no < 0 ? no : sys_landlock_restrict(ruleset);
}

int sqlite_confine(int host, int session, const char *name, struct err *e)
{
    static const struct sys_rlimit none = {0, 0}, one = {1, 1};
    int no = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (no == 0)
        no = sys_prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (no == 0)
        no = sys_caps_keep(0);
    if (no == 0)
        no = sys_prlimit(RLIMIT_NPROC, &none, NULL);
    if (no == 0)
        no = sys_prlimit(RLIMIT_CORE, &one, NULL); /* 0 would not stop a program of core_pattern */
    if (no == 0)
        no = restrict_files(host, session, name);
    if (no == 0)
        no = filter_calls();
    return no < 0 ? err_sys(e, ERR_SYSTEM, -no, "cannot confine the process that copies a login") : 0;
}
