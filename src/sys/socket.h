/*
 * Sockets: one thin function per kernel call. Everything returns -errno.
 */
#pragma once
#include <sys/socket.h>
#include <sys/un.h>
#include "sys/sys.h"

static inline int sys_socket(int family, int type, int protocol)
{
    return (int)sys_call(SYS_socket, family, type, protocol, 0, 0, 0);
}
static inline int sys_socketpair(int family, int type, int protocol, int ret[2])
{
    return (int)sys_call(SYS_socketpair, family, type, protocol, ret, 0, 0);
}
static inline int sys_bind(int fd, const void *address, size_t n)
{
    return (int)sys_call(SYS_bind, fd, address, n, 0, 0, 0);
}
static inline int sys_connect(int fd, const void *address, size_t n)
{
    return (int)sys_call(SYS_connect, fd, address, n, 0, 0, 0);
}
static inline int sys_getsockopt(int fd, int level, int name, void *value, socklen_t *n)
{
    return (int)sys_call(SYS_getsockopt, fd, level, name, value, n, 0);
}
static inline int sys_setsockopt(int fd, int level, int name, const void *value, socklen_t n)
{
    return (int)sys_call(SYS_setsockopt, fd, level, name, value, n, 0);
}
static inline int sys_getsockname(int fd, void *address, socklen_t *n)
{
    return (int)sys_call(SYS_getsockname, fd, address, n, 0, 0, 0);
}
static inline long sys_send(int fd, const void *bytes, size_t n, int flags)
{
    return sys_call(SYS_sendto, fd, bytes, n, flags, 0, 0);
}
static inline long sys_recv(int fd, void *bytes, size_t n, int flags)
{
    return sys_call(SYS_recvfrom, fd, bytes, n, flags, 0, 0);
}
static inline long sys_sendmsg(int fd, const struct msghdr *message, int flags)
{
    return sys_call(SYS_sendmsg, fd, message, flags, 0, 0, 0);
}
static inline long sys_recvmsg(int fd, struct msghdr *message, int flags)
{
    return sys_call(SYS_recvmsg, fd, message, flags, 0, 0, 0);
}
