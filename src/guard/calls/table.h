/*
 * The calls that the guard performs, one row each; dispatch.c makes the switch of it, monitor.c what it tells of a failure.
 *
 *     X(call, how it is performed, argument with a directory or descriptor (-1: none), with a path (-1: none),
 *       what a refusal is told as, whether finding its place, or taking its descriptor, is the first that is done with its caller)
 *
 * In a row `g` is the worker and `a` the arguments. An absolute path asks whether the thread that is known by this number is still
 * there, and a relative one opens its working directory or a descriptor, which are there only as long as that thread.
 */
#pragma once

#define INT(n)  (int)a[n]
#define UINT(n) (unsigned)a[n]

/* clang-format off */
#define GUARD_CALLS(X)                                                                                                                        \
    X(openat, open_call(g, INT(0), a[1], INT(2), UINT(3)), 0, 1, DENIAL_WRITE, true)                                                          \
    X(mkdirat, make_call(g, INT(0), a[1], true, UINT(2), 0), 0, 1, DENIAL_CREATE, true)                                                       \
    X(mknodat, make_call(g, INT(0), a[1], false, UINT(2), UINT(3)), 0, 1, DENIAL_CREATE, false)                                               \
    X(symlinkat, symlink_call(g, a[0], INT(1), a[2]), 1, 2, DENIAL_CREATE, true)                                                              \
    X(linkat, link_call(g, INT(0), a[1], INT(2), a[3], INT(4)), 2, 3, DENIAL_LINK, true)                                                      \
    X(unlinkat, unlink_call(g, INT(0), a[1], INT(2)), 0, 1, DENIAL_REMOVE, true)                                                              \
    X(renameat, rename_call(g, INT(0), a[1], INT(2), a[3], 0), 2, 3, DENIAL_RENAME, true)                                                     \
    X(renameat2, rename_call(g, INT(0), a[1], INT(2), a[3], UINT(4)), 2, 3, DENIAL_RENAME, true)                                              \
    X(truncate, truncate_call(g, a[0], (int64_t)a[1]), -1, 0, DENIAL_WRITE, false)                                                            \
    X(fchmod, change_fd(g, INT(0), NEW_MODE(UINT(1)), false), 0, -1, DENIAL_CHANGE, true)                                                     \
    X(fchmodat, change_at(g, INT(0), a[1], 0, NEW_MODE(UINT(2))), 0, 1, DENIAL_CHANGE, true)                                                  \
    X(fchmodat2, change_at(g, INT(0), a[1], INT(3), NEW_MODE(UINT(2))), 0, 1, DENIAL_CHANGE, true)                                            \
    X(fchown, change_fd(g, INT(0), NEW_OWNER(UINT(1), UINT(2)), false), 0, -1, DENIAL_OWNER, true)                                            \
    X(fchownat, change_at(g, INT(0), a[1], INT(4), NEW_OWNER(UINT(2), UINT(3))), 0, 1, DENIAL_OWNER, true)                                    \
    X(utimensat, times_call(g, INT(0), a[1], a[2], TIMES_SPEC, INT(3)), 0, 1, DENIAL_CHANGE, true)                                            \
    X(setxattr, a[0] ? setxattr_call(g, true, -1, a[0], a[1], a[2], a[3], INT(4)) : -EFAULT, -1, 0, DENIAL_CHANGE, false)                     \
    X(lsetxattr, a[0] ? setxattr_call(g, false, -1, a[0], a[1], a[2], a[3], INT(4)) : -EFAULT, -1, 0, DENIAL_CHANGE, false)                   \
    X(fsetxattr, setxattr_call(g, true, INT(0), 0, a[1], a[2], a[3], INT(4)), 0, -1, DENIAL_CHANGE, true)                                     \
    X(removexattr, a[0] ? removexattr_call(g, true, -1, a[0], a[1]) : -EFAULT, -1, 0, DENIAL_CHANGE, false)                                   \
    X(lremovexattr, a[0] ? removexattr_call(g, false, -1, a[0], a[1]) : -EFAULT, -1, 0, DENIAL_CHANGE, false)                                 \
    X(fremovexattr, removexattr_call(g, true, INT(0), 0, a[1]), 0, -1, DENIAL_CHANGE, true)                                                   \
    GUARD_CALLS_OLD(X)
/* All others: X(call, how it is performed). From readlinkat on only where reads are judged. */
#define GUARD_OTHER_CALLS(X)                                                                                                                  \
    X(bind, bind_call(g, INT(0), a[1], UINT(2)))                                                                                              \
    X(connect, connect_call(g, INT(0), a[1], UINT(2)))                                                                                        \
    X(socketpair, pair_call(g, INT(1), INT(2), a[3]))                                                                                         \
    X(flock, flock_call(g, INT(0), INT(1)))                                                                                                   \
    X(mount, mount_call(g, a[0], a[1], a[2], a[3], a[4]))                                                                                     \
    X(fsopen, fsopen_call(g, a[0], UINT(1)))                                                                                                  \
    X(openat2, open_below_call(g, INT(0), a[1], a[2], a[3]))                                                                                  \
    X(clone, deny_namespace(g))                                                                                                               \
    X(unshare, deny_namespace(g))                                                                                                             \
    X(umask, (target_mask_set(g, UINT(0)), CONTINUE))                                                                                         \
    X(prlimit64, peer_call(g))                                                                                                                \
    X(sched_setaffinity, peer_call(g))                                                                                                        \
    X(sched_setattr, peer_call(g))                                                                                                            \
    X(sched_setparam, peer_call(g))                                                                                                           \
    X(sched_setscheduler, peer_call(g))                                                                                                       \
    X(setpriority, peer_call(g))                                                                                                              \
    X(ioprio_set, peer_call(g))                                                                                                               \
    X(readlinkat, readlink_call(g, INT(0), a[1], a[2], INT(3)))                                                                               \
    X(getxattr, getxattr_call(g, true, a[0], a[1], a[2], a[3]))                                                                               \
    X(lgetxattr, getxattr_call(g, false, a[0], a[1], a[2], a[3]))                                                                             \
    X(listxattr, listxattr_call(g, true, a[0], a[1], a[2]))                                                                                   \
    X(llistxattr, listxattr_call(g, false, a[0], a[1], a[2]))                                                                                 \
    X(inotify_add_watch, inotify_call(g, INT(0), a[1], UINT(2)))                                                                              \
    X(ptrace, ptrace_call(g, (long)a[0], (pid_t)a[1]))                                                                                        \
    GUARD_OTHER_CALLS_OLD(X)
/* Names of those above that only x86-64 has. */
#if defined __x86_64__
#define GUARD_CALLS_OLD(X)                                                                                                                    \
    X(open, open_call(g, AT_FDCWD, a[0], INT(1), UINT(2)), -1, 0, DENIAL_WRITE, true)                                                         \
    X(creat, open_call(g, AT_FDCWD, a[0], O_CREAT | O_WRONLY | O_TRUNC, UINT(1)), -1, 0, DENIAL_WRITE, true)                                  \
    X(mkdir, make_call(g, AT_FDCWD, a[0], true, UINT(1), 0), -1, 0, DENIAL_CREATE, true)                                                      \
    X(mknod, make_call(g, AT_FDCWD, a[0], false, UINT(1), UINT(2)), -1, 0, DENIAL_CREATE, false)                                              \
    X(symlink, symlink_call(g, a[0], AT_FDCWD, a[1]), -1, 1, DENIAL_CREATE, true)                                                             \
    X(link, link_call(g, AT_FDCWD, a[0], AT_FDCWD, a[1], 0), -1, 1, DENIAL_LINK, true)                                                        \
    X(unlink, unlink_call(g, AT_FDCWD, a[0], 0), -1, 0, DENIAL_REMOVE, true)                                                                  \
    X(rmdir, unlink_call(g, AT_FDCWD, a[0], AT_REMOVEDIR), -1, 0, DENIAL_REMOVE, true)                                                        \
    X(rename, rename_call(g, AT_FDCWD, a[0], AT_FDCWD, a[1], 0), -1, 1, DENIAL_RENAME, true)                                                  \
    X(chmod, change_at(g, AT_FDCWD, a[0], 0, NEW_MODE(UINT(1))), -1, 0, DENIAL_CHANGE, true)                                                  \
    X(chown, change_at(g, AT_FDCWD, a[0], 0, NEW_OWNER(UINT(1), UINT(2))), -1, 0, DENIAL_OWNER, true)                                         \
    X(lchown, change_at(g, AT_FDCWD, a[0], AT_SYMLINK_NOFOLLOW, NEW_OWNER(UINT(1), UINT(2))), -1, 0, DENIAL_OWNER, true)                      \
    X(utime, a[0] ? times_call(g, AT_FDCWD, a[0], a[1], TIMES_BUF, 0) : -EFAULT, -1, 0, DENIAL_CHANGE, false)                                 \
    X(utimes, a[0] ? times_call(g, AT_FDCWD, a[0], a[1], TIMES_VAL, 0) : -EFAULT, -1, 0, DENIAL_CHANGE, false)                                \
    X(futimesat, times_call(g, INT(0), a[1], a[2], TIMES_VAL, 0), 0, 1, DENIAL_CHANGE, false)
#define GUARD_OTHER_CALLS_OLD(X) X(readlink, readlink_call(g, AT_FDCWD, a[0], a[1], INT(2)))
#else
#define GUARD_CALLS_OLD(X)
#define GUARD_OTHER_CALLS_OLD(X)
#endif
/* clang-format on */
