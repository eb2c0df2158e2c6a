/*
 * What --info-fd and --json-status-fd are told: JSON in the layout of bubblewrap, because programs read it by line.
 * Written as bubblewrap writes it, blanks and order too.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>

#include "bwrap/bwrap.h"
#include "sys/fd.h"
#include "sys/process.h"

static const struct namespace
{
    const char *name, *file;
    unsigned long flag;
}
namespaces[] = {
    {"cgroup", "cgroup", SYS_CLONE_NEWCGROUP},
    {"ipc", "ipc", CLONE_NEWIPC},
    {"mnt", "mnt", CLONE_NEWNS},
    {"net", "net", CLONE_NEWNET},
    {"pid", "pid", CLONE_NEWPID},
    {"uts", "uts", CLONE_NEWUTS},
};

static void write_all(int fd, const char *text, size_t n)
{
    while (n) {
        long k = sys_write(fd, text, n);
        if (k == -EINTR)
            continue;
        if (k < 0)
            bw_die_sys((int)k, "Write to info_fd");
        text += k;
        n -= (size_t)k;
    }
}

static void tell(int fd, int pid, unsigned long made, const char *begin, const char *between, const char *end)
{
    char text[1024], path[64];
    size_t n = (size_t)snprintf(text, sizeof text, "%s\"child-pid\": %d", begin, pid);
    for (size_t i = 0; i < sizeof namespaces / sizeof *namespaces; i++) {
        struct sys_stat st;
        snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, namespaces[i].file);
        if (made & namespaces[i].flag && sys_stat_at(AT_FDCWD, path, 0, SYS_STAT_BASIC, &st) == 0)
            n += (size_t)snprintf(text + n, sizeof text - n, ",%s\"%s-namespace\": %llu", between, namespaces[i].name,
                                  (unsigned long long)st.inode);
    }
    n += (size_t)snprintf(text + n, sizeof text - n, "%s", end);
    write_all(fd, text, n);
}

void bw_tell_child(const struct bw_line *l, int pid, unsigned long made)
{
    if (l->info >= 0) {
        tell(l->info, pid, made, "{\n    ", "\n    ", "\n}\n");
        sys_shut(l->info);
    }
    if (l->json >= 0)
        tell(l->json, pid, made, "{ ", " ", " }\n");
}

void bw_tell_exit(const struct bw_line *l, int status)
{
    char text[64];
    if (l->json >= 0)
        write_all(l->json, text, (size_t)snprintf(text, sizeof text, "{ \"exit-code\": %d }\n", status));
}
