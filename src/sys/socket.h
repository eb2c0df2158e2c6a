/*
 * Sockets: one thin function per kernel call. Everything returns -errno.
 */
#pragma once
#include <sys/socket.h>
#include <sys/un.h>
#include "sys/sys.h"

SYS_CALL(int, sys_socket, (int family, int type, int protocol), SYS_socket, family, type, protocol)
SYS_CALL(int, sys_socketpair, (int family, int type, int protocol, int ret[2]), SYS_socketpair, family, type, protocol,
         ret)
SYS_CALL(int, sys_bind, (int fd, const void *address, size_t n), SYS_bind, fd, address, n)
SYS_CALL(int, sys_connect, (int fd, const void *address, size_t n), SYS_connect, fd, address, n)
SYS_CALL(int, sys_getsockopt, (int fd, int level, int name, void *value, socklen_t *n), SYS_getsockopt, fd, level, name,
         value, n)
SYS_CALL(int, sys_setsockopt, (int fd, int level, int name, const void *value, socklen_t n), SYS_setsockopt, fd, level,
         name, value, n)
SYS_CALL(int, sys_getsockname, (int fd, void *address, socklen_t *n), SYS_getsockname, fd, address, n)
SYS_CALL(long, sys_send, (int fd, const void *bytes, size_t n, int flags), SYS_sendto, fd, bytes, n, flags)
SYS_CALL(long, sys_recv, (int fd, void *bytes, size_t n, int flags), SYS_recvfrom, fd, bytes, n, flags)
SYS_CALL(long, sys_sendmsg, (int fd, const struct msghdr *message, int flags), SYS_sendmsg, fd, message, flags)
SYS_CALL(long, sys_recvmsg, (int fd, struct msghdr *message, int flags), SYS_recvmsg, fd, message, flags)
