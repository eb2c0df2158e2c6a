/*
 * Names the owner of a server's sessions by process, start time and boot, and finds dead ones. A number alone would
 * be another process's one day.
 */
#include "mcp/workers/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define PREFIX "mcp-"

/* When a process began, in ticks since the machine did; 0: there is none. */
static unsigned long long began(long pid)
{
    char path[48], text[1024];
    unsigned long long ticks = 0;

    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (n <= 0)
        return 0;
    text[n] = 0;
    const char *at = strrchr(text, ')'); /* the name may hold anything */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at)
        ticks = strtoull(at + 1, NULL, 10);
    return ticks;
}

static unsigned long long pid_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 ? (unsigned long long)st.st_ino : 0;
}

int owner_instance(char *to, size_t room)
{
    long pid = (long)getpid();
    unsigned long long when = began(pid);
    if (!when)
        return -ESRCH;
    snprintf(to, room, PREFIX "%ld-%llu-%llu", pid, when, pid_namespace());
    return 0;
}

void owner_scope(struct buf *out, const char *instance, const char *client)
{
    buf_printf(out, "%s/%s", instance, client);
}

bool owner_is_dead(const char *scope)
{
    char *end;
    if (strncmp(scope, PREFIX, strlen(PREFIX)) != 0)
        return false;
    long pid = strtol(scope + strlen(PREFIX), &end, 10);
    if (*end != '-')
        return false;
    unsigned long long when = strtoull(end + 1, &end, 10);
    if (*end != '-')
        return false;
    unsigned long long place = strtoull(end + 1, &end, 10);
    return *end == '/' && place == pid_namespace() && began(pid) != when;
}
