/*
 * In which namespace of processes a client is. The kernel is asked with a descriptor of that process (SO_PEERPIDFD, SCM_PIDFD: Linux 6.5)
 * if there is one, because its number may be another process's by now: whoever sends a request and ends gives his number away.
 */
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include "sessiond/parts.h"
#include "sys/process.h"

#define PIDFD_PID_NS _IO(0xFF, 5) /* PIDFD_GET_PID_NAMESPACE, Linux 6.11 */

bool peer_pid_namespace(int process, int pid, uint64_t *ret_dev, uint64_t *ret_ino)
{
    struct stat st;
    char path[48];
    auto_fd int ns = process >= 0 ? ioctl(process, PIDFD_PID_NS, 0) : -1;
    snprintf(path, sizeof path, "/proc/%d/ns/pid", pid); /* five times as long */
    if (ns >= 0 ? fstat(ns, &st) < 0 : stat(path, &st) < 0)
        return false;
    /* Not waited for yet after the look: until then no other process has its number. */
    if (ns < 0 && process >= 0 && sys_pidfd_kill(process, 0) < 0)
        return false;
    *ret_dev = st.st_dev;
    *ret_ino = st.st_ino;
    return true;
}
