/*
 * Which calls the guard must see, and which must not work at all because nobody could judge them. The filter generator
 * turns these tables into BPF; the guard (guard/dispatch.c) knows every notified call by the same name.
 *
 *     X(call, filter bit, verb, first condition, second condition)
 *
 * Rows of one call are read top down and the first whose conditions all hold decides; when none holds, the filter's
 * other rules decide as if these tables did not exist. A row counts only in filters that have its bit; FILTER_READS is
 * never used without FILTER_GUARD, and its rows come first in their call. FILTER_LAYERED takes the place of FILTER_GUARD where
 * all that the box can write is a copy-on-write layer or its own: only the rows of FILTER_HELD are left then, because a
 * call of the others can change nothing of the host's, and the mounts alone enforce what is hidden or protected there. Numbers are written out because the generator
 * runs on another machine than the filter: the bits used here have the same value on x86-64 and arm64.
 * Arguments are compared as the kernel sees them: flags, families and commands are 32 bits wide, the upper half of the
 * register is ignored.
 *
 * What else the guard relies on, and the generator does for every filter:
 *   - only the native entry: AUDIT_ARCH differs, or the x32 bit is set -> the process is killed (a second set of
 *     numbers would walk past all of this);
 *   - the listener is made with SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (Linux 5.19;
 *     without it a signal's handler makes a performed call return EINTR or be restarted: a spurious EEXIST);
 *   - RLIMIT_CORE is 1, hard, and stays so: a core file is a name that the kernel creates without asking.
 */
#pragma once

/* Verbs. */
#define NOTIFIED_CALL 0 /* SECCOMP_RET_USER_NOTIF; any other number is the errno that the call fails with */

/* Conditions on argument n: some bit of the mask is set; none is set; the masked bits equal the value. */
#define NOTIFIED_ALWAYS             0, 0, 0u, 0u
#define NOTIFIED_HAS(n, mask)       1, n, (unsigned)(mask), 0u
#define NOTIFIED_LACKS(n, mask)     2, n, (unsigned)(mask), 0u
#define NOTIFIED_IS(n, mask, value) 3, n, (unsigned)(mask), (unsigned)(value)
enum notified_test { NOTIFIED_TEST_NONE, NOTIFIED_TEST_HAS, NOTIFIED_TEST_LACKS, NOTIFIED_TEST_IS };

/*
 * Opens that may change something: O_WRONLY 01, O_RDWR 02 (and 03, which asks for both permissions), O_CREAT 0100,
 * O_TRUNC 01000. O_PATH 010000000 makes the kernel ignore all of these, and its descriptor can do nothing by itself
 * (open through /proc/self/fd is an open again). __O_TMPFILE 020000000 makes no name: linkat is the gate.
 */
#define NOTIFIED_O_CHANGE 01103
#define NOTIFIED_O_FREE   030000000

#define NOTIFIED_ALL 0xffffffffu /* bits of an argument */

#define NOTIFIED_EPERM           1
#define NOTIFIED_EBUSY           16
#define NOTIFIED_ENOSYS          38
#define NOTIFIED_ESOCKTNOSUPPORT 94
#define NOTIFIED_EOPNOTSUPP      95

/*
 * Rows of both. rename: a directory from below is moved by the guard, and no directory above something mounted may move.
 * link: the layer gives a copied file another number. bind and connect: sockets of the host. flock: the guards of other
 * boxes wait for locks that any process may take which can open a directory.
 */
#define FILTER_HELD (FILTER_GUARD | FILTER_LAYERED)

/* Calls both machines have. */
#define NOTIFIED_COMMON(X)                                                                                                            \
    X(openat, FILTER_READS, NOTIFIED_CALL, NOTIFIED_LACKS(2, NOTIFIED_O_FREE), NOTIFIED_ALWAYS)                                       \
    X(openat, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_HAS(2, NOTIFIED_O_CHANGE), NOTIFIED_LACKS(2, NOTIFIED_O_FREE))                    \
    /* Only looked at (guard/calls/monitor.c): the kernel performs them as if there were no row. */                                   \
    X(openat, FILTER_MONITOR, NOTIFIED_CALL, NOTIFIED_LACKS(2, NOTIFIED_O_FREE), NOTIFIED_ALWAYS)                                     \
    X(execve, FILTER_MONITOR, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                        \
    X(execveat, FILTER_MONITOR, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                      \
    X(chdir, FILTER_MONITOR, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                         \
    /* Of one process (guard/calls/monitor.c). At its end a box sends signals to all of it (-1), which may wait for nobody. */        \
    X(kill, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_HAS(1, NOTIFIED_ALL), NOTIFIED_LACKS(0, 0x80000000))                                \
    /* Its flags lie in memory. Callers know of kernels without it and fall back to openat; bubblewrap does not                     \
       (guard/calls/open_below.c). */ \
    X(openat2, FILTER_USERNS, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                        \
    X(openat2, FILTER_GUARD, NOTIFIED_ENOSYS, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                       \
    X(mkdirat, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                         \
    X(mknodat, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                         \
    X(symlinkat, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                       \
    X(linkat, FILTER_HELD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                           \
    X(unlinkat, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                        \
    X(renameat, FILTER_HELD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                         \
    X(renameat2, FILTER_HELD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                        \
    X(truncate, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                        \
    /* By descriptor, too: one that was opened for reading can still change mode, owner, times and attributes. */                     \
    X(fchmod, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                          \
    X(fchmodat, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                        \
    X(fchmodat2, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                       \
    X(fchown, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                          \
    X(fchownat, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                        \
    X(utimensat, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                       \
    X(setxattr, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                        \
    X(lsetxattr, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                       \
    X(fsetxattr, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                       \
    X(removexattr, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                     \
    X(lremovexattr, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                    \
    X(fremovexattr, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                    \
    /* The guard creates with the caller's mask, and learns of a new one here; the call itself goes on. */                            \
    X(umask, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                           \
    /* The guards of all boxes hold directories by it (guard/rules/hold.c). LOCK_UN 8 gives back. */                                  \
    X(flock, FILTER_HELD, NOTIFIED_CALL, NOTIFIED_LACKS(1, 8), NOTIFIED_ALWAYS)                                                       \
    /* What a name gives away without an open: where a link leads, attributes, what happens in a directory (guard/calls/look.c). */   \
    X(readlinkat, FILTER_READS, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                      \
    X(getxattr, FILTER_READS, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                        \
    X(lgetxattr, FILTER_READS, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                       \
    X(listxattr, FILTER_READS, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                       \
    X(llistxattr, FILTER_READS, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                      \
    X(inotify_add_watch, FILTER_READS, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                               \
    /* Linux 6.13; libc and coreutils fall back to the older calls. */                                                                \
    X(getxattrat, FILTER_READS, NOTIFIED_ENOSYS, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                    \
    X(listxattrat, FILTER_READS, NOTIFIED_ENOSYS, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                   \
    X(ptrace, FILTER_READS, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                          \
    /* Into a process that may begin a hidden program meanwhile; ptrace and /proc/PID/mem are tried next. */                          \
    X(process_vm_readv, FILTER_READS, NOTIFIED_ENOSYS, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                              \
    X(process_vm_writev, FILTER_READS, NOTIFIED_ENOSYS, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                             \
    X(bind, FILTER_HELD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                             \
    X(connect, FILTER_HELD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                          \
    /*                                                                                                                 \
     * Where mounts are allowed at all (FILTER_USERNS): what makes a new file system. MS_REMOUNT 0x20, MS_BIND 0x1000, \
     * MS_MOVE 0x2000 and the four of propagation make none; of flags that begin with MS_MGC_VAL the kernel takes the  \
     * lower half only.                                                                                                \
     */              \
    X(mount, FILTER_HELD, NOTIFIED_CALL, NOTIFIED_LACKS(3, 0x1e3020), NOTIFIED_ALWAYS)                                                \
    X(mount, FILTER_HELD, NOTIFIED_CALL, NOTIFIED_IS(3, 0xffff0000, 0xc0ed0000), NOTIFIED_LACKS(3, 0x3020))                           \
    X(fsopen, FILTER_HELD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                           \
    /* AF_UNIX datagram sockets (SOCK_DGRAM 2; SOCK_RAW 3 becomes one): every sendmsg may name another receiver. */                   \
    X(socket, FILTER_HELD, NOTIFIED_ESOCKTNOSUPPORT, NOTIFIED_IS(0, 0xffffffff, 1), NOTIFIED_IS(1, 0xf, 2))                           \
    X(socket, FILTER_HELD, NOTIFIED_ESOCKTNOSUPPORT, NOTIFIED_IS(0, 0xffffffff, 1), NOTIFIED_IS(1, 0xf, 3))                           \
    /* A pair of them is made by the guard, of a kind that sends to nobody but its peer (guard/calls/socket.c). */                    \
    X(socketpair, FILTER_HELD, NOTIFIED_CALL, NOTIFIED_IS(0, 0xffffffff, 1), NOTIFIED_IS(1, 0xf, 2))                                  \
    X(socketpair, FILTER_HELD, NOTIFIED_CALL, NOTIFIED_IS(0, 0xffffffff, 1), NOTIFIED_IS(1, 0xf, 3))                                  \
    /* The newest filter with a listener would answer in the guard's place (SECCOMP_FILTER_FLAG_NEW_LISTENER 8). */                   \
    X(seccomp, FILTER_HELD, NOTIFIED_EBUSY, NOTIFIED_HAS(1, 8), NOTIFIED_ALWAYS)                                                      \
    /* Objects without a name to judge, and calls that do the others' work in memory nobody sees. */                                  \
    X(open_by_handle_at, FILTER_GUARD, NOTIFIED_EPERM, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                              \
    X(name_to_handle_at, FILTER_GUARD, NOTIFIED_EOPNOTSUPP, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                         \
    X(io_uring_setup, FILTER_GUARD, NOTIFIED_ENOSYS, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                \
    X(io_uring_enter, FILTER_GUARD, NOTIFIED_ENOSYS, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                \
    X(io_uring_register, FILTER_GUARD, NOTIFIED_ENOSYS, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                             \
    X(fanotify_init, FILTER_GUARD, NOTIFIED_EPERM, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                  \
    X(fanotify_mark, FILTER_GUARD, NOTIFIED_EPERM, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                  \
    X(userfaultfd, FILTER_GUARD, NOTIFIED_EPERM, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                    \
    X(acct, FILTER_GUARD, NOTIFIED_EPERM, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                           \
    /* Linux 6.13 and 6.17. libc and coreutils fall back to the older calls. */                                                       \
    X(setxattrat, FILTER_GUARD, NOTIFIED_ENOSYS, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                    \
    X(removexattrat, FILTER_GUARD, NOTIFIED_ENOSYS, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                 \
    X(file_setattr, FILTER_GUARD, NOTIFIED_ENOSYS, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                                  \
    /*                                                                                                                 \
     * Where no pid namespace stands between (the Landlock tier) a number may be that of a host's process. 0 means the \
     * caller and goes on; so does 0 for a group, which is the box's own: each command begins a session. The users' is \
     * everybody's.                                                                                                    \
     */              \
    X(prlimit64, FILTER_PEERS, NOTIFIED_CALL, NOTIFIED_HAS(0, NOTIFIED_ALL), NOTIFIED_ALWAYS)                                         \
    X(sched_setaffinity, FILTER_PEERS, NOTIFIED_CALL, NOTIFIED_HAS(0, NOTIFIED_ALL), NOTIFIED_ALWAYS)                                 \
    X(sched_setattr, FILTER_PEERS, NOTIFIED_CALL, NOTIFIED_HAS(0, NOTIFIED_ALL), NOTIFIED_ALWAYS)                                     \
    X(sched_setparam, FILTER_PEERS, NOTIFIED_CALL, NOTIFIED_HAS(0, NOTIFIED_ALL), NOTIFIED_ALWAYS)                                    \
    X(sched_setscheduler, FILTER_PEERS, NOTIFIED_CALL, NOTIFIED_HAS(0, NOTIFIED_ALL), NOTIFIED_ALWAYS)                                \
    X(setpriority, FILTER_PEERS, NOTIFIED_CALL, NOTIFIED_IS(0, NOTIFIED_ALL, 0) /* PRIO_PROCESS */,                                   \
      NOTIFIED_HAS(1, NOTIFIED_ALL))                                                                                                  \
    X(setpriority, FILTER_PEERS, NOTIFIED_EPERM, NOTIFIED_IS(0, NOTIFIED_ALL, 1) /* PRIO_PGRP */,                                     \
      NOTIFIED_HAS(1, NOTIFIED_ALL))                                                                                                  \
    X(setpriority, FILTER_PEERS, NOTIFIED_EPERM, NOTIFIED_IS(0, NOTIFIED_ALL, 2) /* PRIO_USER */, NOTIFIED_ALWAYS)                    \
    X(ioprio_set, FILTER_PEERS, NOTIFIED_CALL, NOTIFIED_IS(0, NOTIFIED_ALL, 1) /* IOPRIO_WHO_PROCESS */,                              \
      NOTIFIED_HAS(1, NOTIFIED_ALL))                                                                                                  \
    X(ioprio_set, FILTER_PEERS, NOTIFIED_EPERM, NOTIFIED_IS(0, NOTIFIED_ALL, 2) /* IOPRIO_WHO_PGRP */,                                \
      NOTIFIED_HAS(1, NOTIFIED_ALL))                                                                                                  \
    X(ioprio_set, FILTER_PEERS, NOTIFIED_EPERM, NOTIFIED_IS(0, NOTIFIED_ALL, 3) /* IOPRIO_WHO_USER */, NOTIFIED_ALWAYS)

/* Calls only x86-64 has: the old names of those above. */
#define NOTIFIED_X86_64(X)                                                                                             \
    X(open, FILTER_READS, NOTIFIED_CALL, NOTIFIED_LACKS(1, NOTIFIED_O_FREE), NOTIFIED_ALWAYS)                          \
    X(open, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_HAS(1, NOTIFIED_O_CHANGE), NOTIFIED_LACKS(1, NOTIFIED_O_FREE))       \
    X(open, FILTER_MONITOR, NOTIFIED_CALL, NOTIFIED_LACKS(1, NOTIFIED_O_FREE), NOTIFIED_ALWAYS)                        \
    X(readlink, FILTER_READS, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                         \
    X(creat, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                            \
    X(mkdir, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                            \
    X(rmdir, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                            \
    X(mknod, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                            \
    X(symlink, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                          \
    X(link, FILTER_HELD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                              \
    X(unlink, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                           \
    X(rename, FILTER_HELD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                            \
    X(chmod, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                            \
    X(chown, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                            \
    X(lchown, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                           \
    X(utime, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                            \
    X(utimes, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                           \
    X(futimesat, FILTER_GUARD, NOTIFIED_CALL, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)                                        \
    X(uselib, FILTER_GUARD, NOTIFIED_ENOSYS, NOTIFIED_ALWAYS, NOTIFIED_ALWAYS)

/*
 * Calls that would give a process another view of the tree than the guard's: refused unless the filter has
 * FILTER_USERNS; then the guard mounts new file systems itself, and refuses names that lie in mounts it does not know. (chroot, mount and the like fail
 * without capabilities anyway; open_tree without OPEN_TREE_CLONE is an O_PATH open.)
 */
#define NOTIFIED_VIEW(X)                                                                                               \
    X(mount)                                                                                                           \
    X(umount2)                                                                                                         \
    X(pivot_root)                                                                                                      \
    X(chroot) X(setns) X(fsopen) X(fsconfig) X(fsmount) X(fspick) X(move_mount) X(mount_setattr) X(open_tree_attr)
