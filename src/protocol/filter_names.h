/*
 * The system calls that the filters pass, refuse and inspect, by name: one table for the generator
 * (tools/filter_gen.c), its test, and `explain`. A call in no list gets ENOSYS, as if the kernel did not have it: new
 * kernels add calls that nobody has reviewed, and programs can cope with a missing one.
 *
 * A refusal uses the errno that makes programs fall back: ENOSYS for features a kernel may lack, EPERM for missing
 * privilege, EOPNOTSUPP for operations that a file system may not support.
 */
#pragma once

/* Passed by every filter, except those that are judged by arguments (FILTER_JUDGED). */
#define FILTER_ALLOWED                                                                                                                      \
    /* descriptors and bytes */                                                                                                             \
    "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 close close_range lseek dup dup2 dup3 "                       \
    "flock pipe pipe2 splice tee vmsplice sendfile copy_file_range fsync fdatasync sync syncfs sync_file_range "                            \
    "fadvise64 readahead ftruncate fallocate eventfd eventfd2 signalfd signalfd4 timerfd_create timerfd_settime "                           \
    "timerfd_gettime epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 epoll_ctl_old "                               \
    "epoll_wait_old poll ppoll select pselect6 inotify_init inotify_init1 inotify_add_watch inotify_rm_watch "                              \
    "memfd_create memfd_secret cachestat " /* looking at names */                                                                           \
    "stat lstat fstat newfstatat statx access faccessat faccessat2 readlink readlinkat statfs fstatfs getcwd chdir "                        \
    "fchdir getdents getdents64 getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr getxattrat listxattrat "                       \
    "file_getattr " /* memory */                                                                                                            \
    "mmap mprotect munmap mremap msync mincore madvise process_madvise process_mrelease brk mlock mlock2 munlock "                          \
    "mlockall munlockall remap_file_pages mseal membarrier pkey_alloc pkey_free pkey_mprotect map_shadow_stack "                            \
    "mbind set_mempolicy set_mempolicy_home_node get_mempolicy migrate_pages move_pages " /* processes, signals, time */                    \
    "fork vfork execve execveat exit exit_group wait4 waitid getpid getppid gettid getpgid getpgrp getsid setpgid "                         \
    "setsid set_tid_address set_robust_list get_robust_list futex futex_wait futex_wake futex_requeue futex_waitv "                         \
    "rseq restart_syscall kill tkill tgkill rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait "                        \
    "rt_sigqueueinfo rt_tgsigqueueinfo rt_sigsuspend sigaltstack pause alarm nanosleep clock_nanosleep getitimer "                          \
    "setitimer timer_create timer_settime timer_gettime timer_getoverrun timer_delete time gettimeofday "                                   \
    "clock_gettime clock_getres adjtimex clock_adjtime times pidfd_open pidfd_send_signal pidfd_getfd ptrace "                              \
    "process_vm_readv process_vm_writev kcmp arch_prctl getrandom sched_yield sched_setparam sched_getparam "                               \
    "sched_setscheduler sched_getscheduler sched_get_priority_max sched_get_priority_min sched_rr_get_interval "                            \
    "sched_setaffinity sched_getaffinity sched_setattr sched_getattr getpriority setpriority ioprio_set ioprio_get "                        \
    "getcpu getrlimit getrusage sysinfo uname umask landlock_create_ruleset landlock_add_rule "                                             \
    "landlock_restrict_self seccomp " /* users: without a capability these change between the ids one has */                                \
    "getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid setresuid setresgid "                      \
    "setfsuid setfsgid setgroups capget capset " /* sockets that exist, System V IPC and message queues (of the box's own IPC namespace) */ \
    "accept accept4 listen shutdown getsockname getpeername setsockopt getsockopt sendto sendmsg sendmmsg recvfrom "                        \
    "recvmsg recvmmsg shmget shmat shmctl shmdt semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open "                        \
    "mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr"

/* Calls that change, create or connect by name: passed if nothing guards names; otherwise protocol/notified.h lists
   what happens. */
#define FILTER_BY_NAME                                                                                                 \
    "truncate mkdir mkdirat rmdir unlink unlinkat symlink symlinkat link linkat rename renameat renameat2 chown "      \
    "lchown fchown fchownat utime utimes futimesat utimensat setxattr lsetxattr fsetxattr setxattrat removexattr "     \
    "lremovexattr fremovexattr removexattrat bind connect"

/* Passed, refused or notified depending on their arguments; tools/filter_gen.c has one function for each. */
#define FILTER_JUDGED                                                                                                  \
    "open openat creat mknod mknodat chmod fchmod fchmodat fchmodat2 clone unshare ioctl prctl personality "           \
    "socket socketpair fcntl setrlimit prlimit64"

/*
 * ioctl(2): the requests that pass; all others get ENOTTY, as from a file that does not support them. A request number
 * does not show the kind of its descriptor, and file systems accept hundreds on one opened read-only: some change the
 * file (attributes, generation, layout), some the whole file system (encryption keys, subvolumes), some reach a program
 * of the host (FUSE).
 *     X(mask, value, the requests and why they pass)
 */
#define FILTER_IOCTLS(X)                                                                                               \
    X(0xff00, 0x5400, "TC*, TIO*, FIO*: terminals of the box, and what every descriptor knows")                        \
    X(0xff00, 0x8900, "SIOC*: sockets and interfaces; what changes them takes powers over the network")                \
    X(0xff00, 0x8a00, "EPIOC*: how an epoll descriptor polls")                                                         \
    X(0xff00, 0xb700, "NS_GET_*: how namespaces are related; the kernel asks for powers where it opens one")           \
    X(0xff00, 0xff00, "PIDFD_GET_*: what is told of a process; its namespaces only to whoever may trace it")           \
    X(0xff00, 0x2100, "SECCOMP_IOCTL_NOTIF_*: a filter that the command itself made")                                  \
    X(0xffffffff, 0x00000002, "FIGETBSZ: size of a block")                                                             \
    X(0xffffffff, 0x80045200, "RNDGETENTCNT: how much entropy the kernel has")                                         \
    X(0xffffffff, 0x80086601, "FS_IOC_GETFLAGS: reads attributes, as lsattr does")                                     \
    X(0xffffffff, 0x80087601, "FS_IOC_GETVERSION: reads the generation")                                               \
    X(0xffffffff, 0xc020660b, "FS_IOC_FIEMAP: where the parts of a sparse file lie (cp, tar)")                         \
    X(0xffffffff, 0x801c581f, "FS_IOC_FSGETXATTR: reads attributes")                                                   \
    X(0xffffffff, 0x81009431, "FS_IOC_GETFSLABEL: reads the label")                                                    \
    X(0xffffffff, 0x80111500, "FS_IOC_GETFSUUID: reads the number of the file system")                                 \
    X(0xffffffff, 0x80811501, "FS_IOC_GETFSSYSFSPATH: where /sys describes it")                                        \
    X(0xffffffff, 0xc0046686, "FS_IOC_MEASURE_VERITY: reads a digest")                                                 \
    X(0xffffffff, 0xc0686611, "PROCMAP_QUERY: asks /proc/PID/maps, which is open, about an address")                   \
    X(0xffffffff, 0x40049409, "FICLONE: writes to a descriptor that was opened, and judged, for writing")              \
    X(0xffffffff, 0x4020940d, "FICLONERANGE: the same")                                                                \
    X(0xffffffff, 0xc0189436, "FIDEDUPERANGE: shares what is equal already")

/*
 * If a rule makes a device visible (FILTER_DEVICES), all requests pass except those that file systems handle:
 *     X(mask, value, whose)
 */
#define FILTER_FILE_IOCTLS(X)                                                                                          \
    X(0xffffffff, 0x0001, "FIBMAP")                                                                                    \
    X(0xff00, 0x6600, "all file systems: attributes, verity, encryption; ext4, f2fs")                                  \
    X(0xff00, 0x5800, "freezing and trimming; XFS")                                                                    \
    X(0xff00, 0x7600, "generations of files")                                                                          \
    X(0xff00, 0x7200, "FAT")                                                                                           \
    X(0xff00, 0x9400, "btrfs")                                                                                         \
    X(0xff00, 0xf500, "f2fs")                                                                                          \
    X(0xff00, 0xbc00, "bcachefs")                                                                                      \
    X(0xff00, 0x9300, "autofs")                                                                                        \
    X(0xff00, 0x9700, "ceph")                                                                                          \
    X(0xff00, 0xcf00, "CIFS")                                                                                          \
    X(0xff00, 0x1500, "all file systems: what they are")                                                               \
    X(0xfff0, 0x6e80, "nilfs2")                                                                                        \
    X(0xffff, 0x6f04, "ocfs2: reflinks by name")

/* Refused: X(errno, enum filter bit that allows it or 0, the calls, text for people) */
#define FILTER_REFUSED(X)                                                                                              \
    X(EPERM, FILTER_USERNS,                                                                                            \
      "mount umount2 pivot_root chroot move_mount open_tree open_tree_attr fsopen fsconfig fsmount fspick "            \
      "mount_setattr",                                                                                                 \
      "mounts")                                                                                                        \
    X(EPERM, FILTER_USERNS, "setns sethostname setdomainname", "entering and renaming namespaces")                     \
    /* its flags lie in memory; libc then falls back to clone, whose flags can be judged */                            \
    X(ENOSYS, FILTER_USERNS, "clone3", "clone3 (clone works)")                                                         \
    /* open_how lies in memory: without the guard nobody could judge its mode */                                       \
    X(ENOSYS, FILTER_USERNS, "openat2", "openat2 (openat works)")                                                      \
    X(ENOSYS, 0,                                                                                                       \
      "file_setattr statmount listmount lsm_get_self_attr lsm_set_self_attr lsm_list_modules listns "                  \
      "rseq_slice_yield",                                                                                              \
      "calls of newer kernels with older forms")                                                                       \
    X(ENOSYS, 0, "io_uring_setup io_uring_enter io_uring_register", "io_uring")                                        \
    /* the kernel has some for the whole machine, and whoever opens no files would take the last */                    \
    X(ENOSYS, 0, "io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents", "AIO contexts")                 \
    X(EPERM, 0, "bpf perf_event_open userfaultfd", "bpf, perf events, userfaultfd")                                    \
    X(ENOSYS, 0, "add_key request_key keyctl", "kernel keyrings")                                                      \
    X(EPERM, 0, "open_by_handle_at fanotify_init fanotify_mark lookup_dcookie", "files by handle, fanotify")           \
    X(EOPNOTSUPP, 0, "name_to_handle_at", "handles of files")                                                          \
    X(EPERM, 0,                                                                                                        \
      "kexec_load kexec_file_load init_module finit_module delete_module reboot swapon swapoff acct quotactl "         \
      "quotactl_fd iopl ioperm settimeofday clock_settime syslog vhangup",                                             \
      "administration of the machine")                                                                                 \
    X(ENOSYS, 0,                                                                                                       \
      "create_module get_kernel_syms query_module nfsservctl getpmsg putpmsg afs_syscall tuxcall security vserver "    \
      "_sysctl uselib ustat sysfs modify_ldt set_thread_area get_thread_area uretprobe uprobe",                        \
      "obsolete calls, and calls only for the kernel's own probes")

/*
 * Of those refused above: with FILTER_GUARD the guard refuses them, with the same errno, and tells pinfold. Not those by which
 * programs only find out what a kernel has. X(errno, enum filter bit that allows it or 0, call)
 */
#define FILTER_TOLD(X)                                                                                                 \
    X(EPERM, FILTER_USERNS, mount)                                                                                     \
    X(EPERM, FILTER_USERNS, umount2)                                                                                   \
    X(EPERM, FILTER_USERNS, pivot_root)                                                                                \
    X(EPERM, FILTER_USERNS, chroot)                                                                                    \
    X(EPERM, FILTER_USERNS, fsopen)                                                                                    \
    X(EPERM, FILTER_USERNS, open_tree)                                                                                 \
    X(EPERM, FILTER_USERNS, mount_setattr)                                                                             \
    X(EPERM, FILTER_USERNS, setns)                                                                                     \
    X(EPERM, FILTER_USERNS, sethostname)                                                                               \
    X(EPERM, FILTER_USERNS, setdomainname)                                                                             \
    X(EPERM, 0, bpf)                                                                                                   \
    X(EPERM, 0, perf_event_open)                                                                                       \
    X(EPERM, 0, userfaultfd)                                                                                           \
    X(EPERM, 0, open_by_handle_at)                                                                                     \
    X(EPERM, 0, fanotify_init)                                                                                         \
    X(EPERM, 0, kexec_load)                                                                                            \
    X(EPERM, 0, init_module)                                                                                           \
    X(EPERM, 0, finit_module)                                                                                          \
    X(EPERM, 0, delete_module)                                                                                         \
    X(EPERM, 0, reboot)                                                                                                \
    X(EPERM, 0, swapon)                                                                                                \
    X(EPERM, 0, swapoff)                                                                                               \
    X(EPERM, 0, acct)                                                                                                  \
    X(EPERM, 0, quotactl)                                                                                              \
    X(EPERM, 0, settimeofday)                                                                                          \
    X(EPERM, 0, clock_settime)                                                                                         \
    X(EPERM, 0, syslog)                                                                                                \
    X(ENOSYS, 0, add_key)                                                                                              \
    X(ENOSYS, 0, request_key)                                                                                          \
    X(ENOSYS, 0, keyctl)

/* Refused by argument; texts for people: X(what, the reason or what the program sees) */
#define FILTER_REFUSED_ARGUMENTS(X)                                                                                    \
    X("clone and unshare with new namespaces", "EPERM; allowed with allow_nested_userns")                              \
    X("new file systems, with allow_nested_userns where names are guarded",                                            \
      "EPERM but for tmpfs, proc, devpts, mqueue and sysfs")                                                           \
    X("sockets other than Unix, internet (TCP, UDP, ICMP echo) and route netlink", "EAFNOSUPPORT, EPROTONOSUPPORT")    \
    X("datagram Unix sockets, where host sockets are guarded", "ESOCKTNOSUPPORT")                                      \
    X("ioctl TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS", "EPERM")                                                         \
    X("ioctl but those of terminals and sockets, and some that read or clone a file; of shown devices all but files'", \
      "ENOTTY")                                                                                                        \
    X("setrlimit and prlimit of core files: a dump would go to a program on the host", "nothing happens, and 0")       \
    X("limits, scheduling and priority of processes outside, where there is no pid namespace", "EPERM, ESRCH")         \
    X("set-user-id and set-group-id modes", "EPERM")                                                                   \
    X("prctl PR_SET_MM, personality beyond address layout", "EPERM")                                                   \
    X("fcntl F_SETLEASE, F_SETDELEG: a lease holds up whoever opens the file, the host's programs as well", "EPERM")   \
    X("seccomp listeners, where names are guarded", "EBUSY")                                                           \
    X("every call of another architecture (i386, x32)", "ENOSYS")
