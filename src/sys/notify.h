/*
 * For a process that supervises another one: seccomp user notifications (seccomp_unotify(2)), the other's memory and
 * descriptors. Everything returns -errno.
 */
#pragma once
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include "sys/sys.h"

/* Linux 6.6, missing in older headers: replies and notifications wake the other side on the same processor. */
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

/* `n` must be zeroed. -ENOENT: the caller died meanwhile; -EINTR: a signal. */
SYS_CALL(int, sys_notify_receive, (int notify, struct seccomp_notif *n), SYS_ioctl, notify, SECCOMP_IOCTL_NOTIF_RECV, n)
/* -ENOENT: the caller no longer waits for this answer. */
static inline int sys_notify_answer(int notify, uint64_t id, int64_t value, int error, unsigned flags)
{
    struct seccomp_notif_resp answer = {.id = id, .val = value, .error = error, .flags = flags};
    return (int)sys_call(SYS_ioctl, notify, SECCOMP_IOCTL_NOTIF_SEND, &answer, 0, 0, 0);
}
/* 0 while the caller still waits: then what was read from its memory was really its own. */
SYS_CALL(int, sys_notify_valid, (int notify, uint64_t id), SYS_ioctl, notify, SECCOMP_IOCTL_NOTIF_ID_VALID, &id)
/* Installs `fd` as the caller's lowest free descriptor and returns its number; the caller still waits. */
static inline int sys_notify_install(int notify, uint64_t id, int fd, unsigned fd_flags)
{
    struct seccomp_notif_addfd give = {.id = id, .srcfd = (uint32_t)fd, .newfd_flags = fd_flags};
    return (int)sys_call(SYS_ioctl, notify, SECCOMP_IOCTL_NOTIF_ADDFD, &give);
}
/* Replaces the caller's descriptor `number` by `fd`. */
static inline int sys_notify_replace(int notify, uint64_t id, int fd, int number, unsigned fd_flags)
{
    struct seccomp_notif_addfd give = {id, SECCOMP_ADDFD_FLAG_SETFD, (uint32_t)fd, (uint32_t)number, fd_flags};
    return (int)sys_call(SYS_ioctl, notify, SECCOMP_IOCTL_NOTIF_ADDFD, &give);
}
SYS_CALL(int, sys_notify_flags, (int notify, uint64_t flags), SYS_ioctl, notify, SECCOMP_IOCTL_NOTIF_SET_FLAGS, flags)
/* Returns bytes read, fewer if the rest is not mapped; -EFAULT if nothing is. */
static inline long sys_memory_read(pid_t pid, uint64_t at, void *bytes, size_t n)
{
    struct iovec here = {bytes, n}, there = {(void *)(uintptr_t)at, n}; // NOLINT: an address of another process
    return sys_call(SYS_process_vm_readv, pid, &here, 1, &there, 1, 0);
}
SYS_CALL(int, sys_pidfd_getfd, (int pidfd, int fd), SYS_pidfd_getfd, pidfd, fd)
