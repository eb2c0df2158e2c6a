/*
 * The watcher: takes samples of what the box uses, for limits without a control group. Between two samples a box can
 * exceed its limit; how far is bounded by the interval and shown in the result (peak against limit).
 *
 * The box's processes are those below its pid 1, the builder's first child: in a pid namespace every orphan is
 * reparented to pid 1; without one pid 1 is a child subreaper. They are found by /proc/PID/task/TID/children
 * (CONFIG_PROC_CHILDREN), whose cost depends on the box, not on the machine.
 *
 * Memory is counted as PSS (smaps_rollup), which divides shared pages, but reading it walks page tables. So resident
 * sizes are added first: while their sum, which is never less, is below the limit, nothing else is read. A process that
 * may not be examined (not dumpable) counts with its resident size.
 *
 * Memory in no process's address space counts, too: files in the box's tmpfs by its used blocks, and memfds that a process
 * has open. What of both is mapped is in PSS already (Pss_Shmem) and taken out there. Not seen are memfds that are only on
 * their way in a socket, and more than MEMFDS_MAX of them.
 *
 * The interval depends on the remaining room: a box far from its limit is rarely sampled. Memory grows by at most a few
 * GiB per second on any machine, so the interval is the time until the room would be used up at that rate.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "match/proctext.h"
#include "supervisor/parts.h"
#include "sys/fd.h"

#define GROWTH_PER_US       2048u /* bytes: 2 GiB/s of first touches */
#define PAUSE_MIN_US        10000u
#define PAUSE_HARD_US       100000u  /* the longest between samples when somebody asked for the limit */
#define PAUSE_SOFT_US       2000000u /* and for the generous defaults */
#define PAUSE_SOFT_FIRST_US 100000u  /* before the first sample for those: starts that are slow need no more work */
#define TREE_MAX            4096     /* processes looked at in one sample */
#define MEMFDS_MAX          1024     /* memfds counted in one sample */
#define FDS_MAX             16384    /* descriptors looked at in one sample */
#define TMPFS               0x01021994

struct memfd {
    dev_t device;
    ino_t inode;
};

/* Not on the stack, which may be small (ulimit -s 64). */
struct sample {
    uint64_t resident, proportional, tasks;
    uint64_t files, mapped; /* bytes in tmpfs and memfds; of these or others in address spaces, if PSS was read */
    unsigned n;             /* before them, in the one page that a small box's sample touches */
    unsigned n_memfds, looked;
    int pids[TREE_MAX], parents[TREE_MAX];
    struct memfd memfds[MEMFDS_MAX];
};

/* One room is always there, so that a start needs no call for it; a library's caller may have a box in each of its threads. */
static struct sample own_room;
static atomic_bool own_is_taken;

static struct sample *sample_take(void)
{
    struct sample *s = atomic_exchange(&own_is_taken, true) ? malloc(sizeof *s) : &own_room;
    if (s)
        s->n = 0;
    return s;
}

static void sample_drop(struct sample *s)
{
    if (s == &own_room)
        atomic_store(&own_is_taken, false);
    else
        free(s);
}

static void children_in(const char *path, void (*take)(void *ctx, int child), void *ctx)
{
    char text[PROC_TEXT];
    auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t kept = 0;
    for (;;) {
        ssize_t n = fd < 0 ? 0 : read(fd, text + kept, sizeof text - 1 - kept);
        if (n <= 0)
            break;
        size_t all = kept + (size_t)n;
        text[all] = 0;
        char *p = text, *space;
        while ((space = strchr(p, ' '))) {
            int pid = atoi(p);
            if (pid > 0)
                take(ctx, pid);
            p = space + 1;
        }
        kept = all - (size_t)(p - text);
        memmove(text, p, kept);
    }
}

uint64_t watcher_children(int pid, void (*take)(void *ctx, int child), void *ctx)
{
    char path[300];
    uint64_t threads = 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *d = opendir(path);
    struct dirent *entry;
    while (d && (entry = readdir(d))) {
        if (entry->d_name[0] == '.')
            continue;
        threads++;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/children", pid, entry->d_name);
        children_in(path, take, ctx);
    }
    if (d)
        closedir(d);
    return threads;
}

static void add_to_sample(void *ctx, int child)
{
    struct sample *s = ctx;
    if (s->n < TREE_MAX)
        s->pids[s->n++] = child;
}

static uint64_t resident(int pid)
{
    char path[48], text[128];
    unsigned long long total = 0, pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", pid);
    if (sys_read_text(AT_FDCWD, path, text, sizeof text) <= 0 || sscanf(text, "%llu %llu", &total, &pages) != 2)
        return 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t proportional(int pid, uint64_t *mapped)
{
    char path[48], text[PROC_TEXT];
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    const char *p = sys_read_text(AT_FDCWD, path, text, sizeof text) > 0 ? strstr(text, "\nPss:") : NULL;
    const char *shared = p ? strstr(p, "\nPss_Shmem:") : NULL;
    *mapped += shared ? strtoull(shared + 11, NULL, 10) << 10 : 0;
    return p ? strtoull(p + 5, NULL, 10) << 10 : resident(pid);
}

/* ---- files in memory ---- */

static bool is_hosts(dev_t device)
{
    static const char hosts[][12] = {"/tmp", "/dev/shm", "/run", "/var/tmp"};
    struct stat st;
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        if (stat(hosts[i], &st) == 0 && st.st_dev == device)
            return true;
    }
    return false;
}

static uint64_t used_bytes(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS || fs.f_blocks < fs.f_bfree
               ? 0
               : (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
}

/* Opens the box's /tmp by the first process that may be examined, unless it is the host's or no tmpfs. */
static void find_tmp(struct limit_watcher *w, const struct sample *s)
{
    char path[48];
    struct stat st;
    struct statfs fs;
    for (unsigned i = 1; i < s->n && i < 8 && w->tmp_fd < 0; i++) {
        snprintf(path, sizeof path, "/proc/%d/root/tmp", s->pids[i]);
        auto_fd int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && fstat(fd, &st) == 0 && fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS && !is_hosts(st.st_dev))
            w->tmp_fd = take_fd(&fd);
    }
}

static bool is_new(struct sample *s, const struct stat *st)
{
    for (unsigned i = 0; i < s->n_memfds; i++) {
        if (s->memfds[i].inode == st->st_ino && s->memfds[i].device == st->st_dev)
            return false;
    }
    if (s->n_memfds == MEMFDS_MAX)
        return false;
    s->memfds[s->n_memfds++] = (struct memfd){st->st_dev, st->st_ino};
    return true;
}

/* Bytes of the memfds that `pid` has open and that were not counted yet. */
static uint64_t open_memfds(int pid, struct sample *s)
{
    char path[300], to[16];
    uint64_t sum = 0;
    struct dirent *entry;
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *d = opendir(path);
    while (d && s->looked < FDS_MAX && (entry = readdir(d))) {
        if (entry->d_name[0] == '.')
            continue;
        s->looked++;
        ssize_t n = readlinkat(dirfd(d), entry->d_name, to, sizeof to);
        if (n >= 7 && memcmp(to, "/memfd:", 7) == 0 && fstatat(dirfd(d), entry->d_name, &st, 0) == 0 && is_new(s, &st))
            sum += (uint64_t)st.st_blocks * 512;
    }
    if (d)
        closedir(d);
    return sum;
}

static uint64_t files_in_memory(struct limit_watcher *w, struct sample *s)
{
    uint64_t sum = 0;
    s->n_memfds = s->looked = 0;
    if (!w->command && w->tmp_fd < 0)
        find_tmp(w, s);
    if (w->tmp_fd >= 0)
        sum = used_bytes(w->tmp_fd);
    for (unsigned i = 0; i < s->n; i++)
        sum += open_memfds(s->pids[i], s);
    return sum;
}

/* Walks the tree; breadth first, the list is its own queue. */
static void take_sample(struct sample *s, struct limit_watcher *w, uint64_t memory_limit)
{
    char path[64];
    s->n = 0;
    s->resident = s->proportional = s->tasks = s->files = s->mapped = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", w->builder, w->builder);
    if (w->command)
        s->pids[s->n++] = w->command;
    else
        children_in(path, add_to_sample, s);
    if (s->n > 1)
        s->n = 1; /* the first child is pid 1 of the box; others are helpers of the builder */
    for (unsigned i = 0; i < s->n; i++) {
        s->tasks += watcher_children(s->pids[i], add_to_sample, s);
        s->resident += resident(s->pids[i]);
    }
    if (memory_limit != LIMIT_NONE && w->hard)
        s->files = files_in_memory(w, s);
    s->proportional = s->resident + s->files;
    if (memory_limit == LIMIT_NONE || s->proportional <= memory_limit)
        return;
    s->proportional = 0;
    for (unsigned i = 0; i < s->n; i++)
        s->proportional += proportional(s->pids[i], &s->mapped);
    s->proportional += s->files > s->mapped ? s->files - s->mapped : 0;
}

void watcher_walk(const struct limit_watcher *w, void (*see)(void *ctx, int pid, int parent), void *ctx)
{
    struct sample *s = sample_take();
    char path[64];
    if (!s)
        return;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", w->builder, w->builder);
    children_in(path, add_to_sample, s);
    if (s->n > 1)
        s->n = 1; /* as in take_sample() */
    s->parents[0] = w->builder;
    for (unsigned i = 0, known = s->n; i < s->n; i++) {
        see(ctx, s->pids[i], s->parents[i]);
        (void)watcher_children(s->pids[i], add_to_sample, s);
        for (; known < s->n; known++)
            s->parents[known] = s->pids[i];
    }
    sample_drop(s);
}

static uint64_t free_bytes(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) < 0 ? UINT64_MAX : (uint64_t)fs.f_bfree * (uint64_t)fs.f_bsize;
}

/* The last number of a NSpid line is that of the innermost namespace: proc_pid_status(5). */
static int pid_inside(int pid)
{
    char path[48], text[PROC_TEXT];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    (void)sys_read_text(AT_FDCWD, path, text, sizeof text);
    const long inside = proc_last_number(text, "\nNSpid:");
    return inside > 0 ? (int)inside : 0;
}

int watcher_find(int sessiond, int inside)
{
    struct sample *s = sample_take();
    int found = -1;
    if (!s)
        return -1;
    (void)watcher_children(sessiond, add_to_sample, s);
    for (unsigned i = 0; i < s->n && found <= 0; i++) {
        const int here = pid_inside(s->pids[i]);
        if (i > 0 && here == inside)
            found = s->pids[i];
        else if (i > 0 && (here == 1 || here == s->pids[i])) /* the box is seen */
            found = 0;
        (void)watcher_children(s->pids[i], add_to_sample, s);
    }
    sample_drop(s);
    return found;
}

void watcher_disk_from_now(struct limit_watcher *w)
{
    if (w->disk_fd >= 0)
        w->disk_start = free_bytes(w->disk_fd);
}

int watcher_disk(struct limit_watcher *w, const char *workspace, uint64_t limit)
{
    w->disk_fd = open(workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (w->disk_fd < 0)
        return -errno;
    watcher_disk_from_now(w);
    w->disk = limit;
    return 0;
}

void watcher_start(struct limit_watcher *w, const struct started *s, uint64_t now)
{
    w->builder = s->pid;
    w->pause_us = w->hard ? PAUSE_MIN_US : PAUSE_SOFT_FIRST_US;
    w->next_us = now + w->pause_us;
}

/* How long `room` bytes last at the fastest growth. */
static uint64_t lasts(uint64_t room)
{
    return room / GROWTH_PER_US;
}

static void plan_next(struct limit_watcher *w, uint64_t now, uint64_t used, uint64_t disk_used)
{
    uint64_t longest = w->hard ? PAUSE_HARD_US : PAUSE_SOFT_US, pause = longest;
    if (w->memory != LIMIT_NONE && used < w->memory && lasts(w->memory - used) < pause)
        pause = lasts(w->memory - used);
    if (w->disk != LIMIT_NONE && disk_used < w->disk && lasts(w->disk - disk_used) < pause)
        pause = lasts(w->disk - disk_used);
    /* The first samples come close together: a box that wants to exceed its limit does so at once. */
    if (pause > 2 * w->pause_us)
        pause = 2 * w->pause_us;
    w->pause_us = pause < PAUSE_MIN_US ? PAUSE_MIN_US : pause;
    w->next_us = now + w->pause_us;
}

enum box_limit watcher_sample(struct limit_watcher *w, uint64_t now)
{
    uint64_t disk_used = 0, memory = 0, tasks = 0;

    if (!w->sample) /* stays for the next one; without memory that one tries again */
        w->sample = sample_take();
    if (w->sample && (w->memory != LIMIT_NONE || w->processes != LIMIT_NONE)) {
        take_sample(w->sample, w, w->memory);
        memory = w->sample->proportional;
        tasks = w->sample->tasks;
    }
    if (memory > w->peak)
        w->peak = memory;
    if (w->disk != LIMIT_NONE) {
        uint64_t left = free_bytes(w->disk_fd);
        disk_used = left < w->disk_start ? w->disk_start - left : 0;
    }
    plan_next(w, now, memory, disk_used);
    if (w->memory != LIMIT_NONE && memory > w->memory) {
        w->seen_memory = memory;
        return BOX_LIMIT_MEMORY;
    }
    if (w->processes != LIMIT_NONE &&
        tasks > w->processes + (w->command ? 0 : 1)) { /* pid 1 of the box is counted, too */
        w->seen_processes = tasks - (w->command ? 0 : 1);
        return BOX_LIMIT_PROCESSES;
    }
    if (w->disk != LIMIT_NONE && disk_used > w->disk) {
        w->seen_disk = disk_used;
        return BOX_LIMIT_DISK;
    }
    return BOX_LIMIT_NONE;
}

/* Of one process and the children that it waited for, in clock ticks: proc_pid_stat(5), fields 14 to 17. */
static uint64_t ticks(int pid)
{
    char path[48], text[PROC_TEXT];
    unsigned long long user = 0, kernel = 0;
    long long waited_user = 0, waited_kernel = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const char *p = sys_read_text(AT_FDCWD, path, text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
    if (!p || sscanf(p, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld", &user, &kernel,
                     &waited_user, &waited_kernel) != 4)
        return 0;
    return user + kernel + (uint64_t)waited_user + (uint64_t)waited_kernel;
}

uint64_t watcher_cpu(const struct limit_watcher *w, const struct started *s)
{
    struct limit_watcher from = *w;
    uint64_t sum = 0;
    from.builder = s->pid;
    if (s->pid <= 0 && !w->command)
        return 0;
    struct sample *sample = w->sample ? w->sample : sample_take();
    if (!sample)
        return 0;
    take_sample(sample, &from, LIMIT_NONE);
    for (unsigned i = 0; i < sample->n; i++)
        sum += ticks(sample->pids[i]);
    if (sample != w->sample)
        sample_drop(sample);
    return sum * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

void watcher_end(struct limit_watcher *w)
{
    w->on = false;
    w->disk_fd = close_fd(w->disk_fd);
    w->tmp_fd = close_fd(w->tmp_fd);
    if (w->sample)
        sample_drop(w->sample);
    w->sample = NULL;
}
