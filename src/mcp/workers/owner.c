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
#include "match/proctext.h"
#include "sys/fd.h"

#define PREFIX "mcp-"

/* When a process began, in ticks since the machine did; 0: there is none. */
static unsigned long long began(long pid)
{
    char path[48], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    (void)sys_read_text(AT_FDCWD, path, text, sizeof text);
    return proc_began(text);
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
