/*
 * Limits by control groups, version 1 (Documentation/admin-guide/cgroup-v1): one directory for each controller that is
 * needed. The box's pid 1 enters by writing "0" into `tasks` itself: moving one's own thread takes no lock over all
 * processes, while any other way waits about 11 ms for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include "supervisor/parts.h"
#include "sys/poll.h"

/* An eventfd that the kernel bumps when the group runs out of memory (memory.txt, "OOM Control"), or -errno. */
static int oom_event(const char *dir)
{
    char path[CGROUP_PATH_MAX + 64], text[32];
    auto_fd int event = sys_eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    snprintf(path, sizeof path, "%s/memory.oom_control", dir);
    auto_fd int control = open(path, O_RDONLY | O_CLOEXEC);
    if (event < 0 || control < 0)
        return -EIO;
    snprintf(text, sizeof text, "%d %d", event, control);
    int r = group_write(dir, "cgroup.event_control", text);
    return r < 0 ? r : take_fd(&event);
}

static int set_memory(struct means *m, const char *dir, uint64_t bytes)
{
    int r = group_write_number(dir, "memory.limit_in_bytes", bytes);
    if (r < 0)
        return r;
    /* Without this the excess goes to swap instead. Kernels without swap accounting have no such file. */
    r = group_write_number(dir, "memory.memsw.limit_in_bytes", bytes);
    if (r == -ENOENT)
        r = group_write(dir, "memory.swappiness", "0");
    m->oom_event = oom_event(dir);
    return r < 0 ? r : m->oom_event < 0 ? m->oom_event : 0;
}

static int set_limit(struct means *m, enum cgroup_controller c, const struct limits *l)
{
    const char *dir = m->paths->dir[c];
    switch (c) {
    case CGROUP_MEMORY:
        return set_memory(m, dir, l->memory.value);
    case CGROUP_PIDS: /* pid 1 of the box is a member, too */
        return group_write_number(dir, "pids.max", l->processes.value + 1);
    default: {
        int r = group_write_number(dir, "cpu.cfs_period_us", CPU_PERIOD_US);
        uint64_t quota = l->cpus.value * (CPU_PERIOD_US / 1000);
        return r < 0 ? r : group_write_number(dir, "cpu.cfs_quota_us", quota < 1000 ? 1000 : quota); /* its minimum */
    }
    }
}

static int begin_one(struct means *m, const char *parent, enum cgroup_controller c, const char *name,
                     const struct limits *l, struct err *e)
{
    char dir[CGROUP_PATH_MAX], path[CGROUP_PATH_MAX + 64];
    int n = snprintf(dir, sizeof dir, "%s/%s", parent, name);

    if (n < 0 || (size_t)n >= sizeof dir)
        return err_sys(e, ERR_SYSTEM, ENAMETOOLONG, "cannot create a control group below '%s'", parent);
    group_sweep(parent);
    if (mkdir(dir, 0755) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot create the control group '%s'", dir);
    strcpy(m->paths->dir[c], dir);
    int r = set_limit(m, c, l);
    if (r < 0)
        return err_sys(e, ERR_SYSTEM, -r, "cannot set the %s limit of control group '%s'", cgroup_controller_name(c),
                       dir);
    snprintf(path, sizeof path, "%s/tasks", dir);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot open '%s'", path);
    m->join.v1_tasks[m->join.n_v1++] = fd;
    return 0;
}

int cgroup1_begin(struct means *m, const struct cgroup_place *place, const struct limits *l, struct err *e)
{
    char name[64];

    group_name(name, sizeof name);
    m->join.kind = CGROUP_V1;
    for (unsigned c = 0; c < CGROUP_CONTROLLERS; c++) {
        if (!(m->used & (1u << c)))
            continue;
        int r = begin_one(m, place->parent[c], (enum cgroup_controller)c, name, l, e);
        if (r < 0)
            return r;
    }
    return 0;
}

void cgroup1_end(struct means *m, struct box_result *r, bool *oom, bool *pids)
{
    uint64_t n;
    const char *memory = m->paths->dir[CGROUP_MEMORY], *tasks = m->paths->dir[CGROUP_PIDS];

    if (*memory && group_read_number(memory, "memory.max_usage_in_bytes", NULL, &n) == 0)
        r->peak_bytes = n;
    if (*memory && group_read_number(memory, "memory.oom_control", "oom_kill", &n) == 0 && n > 0)
        *oom = true;
    if (*tasks && group_read_number(tasks, "pids.events", "max", &n) == 0 && n > 0)
        *pids = true;
    for (unsigned c = 0; c < CGROUP_CONTROLLERS; c++) {
        if (m->paths->dir[c][0])
            group_remove(m->paths->dir[c]);
        m->paths->dir[c][0] = 0;
    }
}
