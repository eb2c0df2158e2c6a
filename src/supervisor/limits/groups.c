/*
 * Control groups as directories: reads, writes, names and removes them. A group outlives the process that created it,
 * so its name tells its owner, and whoever creates the next one removes those of dead owners.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "supervisor/parts.h"
#include "survey/owner.h"
#include "sys/fd.h"

#define STALE_SECONDS 60 /* younger ones may belong to a process of another pid namespace that is just starting */
#define REMOVE_TRIES                                                                                                   \
    2000 /* of 5 ms: members that were killed need a moment to be gone, and seconds on a busy machine */
#define REMOVE_WAIT_NS 5000000

int group_write(const char *dir, const char *name, const char *value)
{
    char path[CGROUP_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    auto_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    return write(fd, value, strlen(value)) < 0 ? -errno : 0;
}

int group_write_number(const char *dir, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return group_write(dir, name, text);
}

int group_read_number(const char *dir, const char *name, const char *key, uint64_t *ret)
{
    char path[CGROUP_PATH_MAX + 64], text[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    const long n = sys_read_text(AT_FDCWD, path, text, sizeof text);
    if (n < 0)
        return (int)n;
    const char *p = text;
    for (size_t k = key ? strlen(key) : 0; key; p++) {
        if (strncmp(p, key, k) == 0 && p[k] == ' ') {
            p += k + 1;
            break;
        }
        p = strchr(p, '\n');
        if (!p)
            return -ENOENT;
    }
    if (*p < '0' || *p > '9')
        return -ENODATA; /* "max" */
    *ret = strtoull(p, NULL, 10);
    return 0;
}

void group_name(char *ret, size_t n)
{
    static unsigned count; /* several boxes of one process; two threads' equal numbers differ by mkdir's EEXIST */
    snprintf(ret, n, "pinfold-%d-%llu-%u", (int)getpid(), process_start_time(0),
             __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED));
}

static void remove_group(const char *dir)
{
    char inner[CGROUP_PATH_MAX + 16];
    /* The layout of version 2: a group around the box's own. */
    snprintf(inner, sizeof inner, "%s/box", dir);
    (void)rmdir(inner);
    (void)rmdir(dir);
}

void group_remove(const char *dir)
{
    struct timespec wait = {0, REMOVE_WAIT_NS};
    for (int i = 0; i < REMOVE_TRIES; i++) {
        if (rmdir(dir) == 0 || (errno != EBUSY && errno != EINTR))
            return;
        nanosleep(&wait, NULL);
    }
}

/* Whether the owner named in "pinfold-PID-START-N" is gone. */
static bool maker_is_dead(const char *name)
{
    int pid;
    unsigned long long start;
    if (sscanf(name, "pinfold-%d-%llu-", &pid, &start) != 2 || pid <= 0)
        return false;
    return process_start_time(pid) != start;
}

void group_sweep(const char *parent)
{
    DIR *d = opendir(parent);
    struct dirent *entry;
    while (d && (entry = readdir(d))) {
        char path[CGROUP_PATH_MAX + 300];
        struct stat st;
        if (strncmp(entry->d_name, "pinfold-", 8) != 0 || !maker_is_dead(entry->d_name))
            continue;
        snprintf(path, sizeof path, "%s/%s", parent, entry->d_name);
        if (strlen(path) < CGROUP_PATH_MAX && stat(path, &st) == 0 && time(NULL) - st.st_mtime >= STALE_SECONDS)
            remove_group(path);
    }
    if (d)
        closedir(d);
}
