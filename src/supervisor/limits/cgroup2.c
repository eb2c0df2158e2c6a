/*
 * Limits by control groups, version 2 (Documentation/admin-guide/cgroup-v2.rst).
 *
 *   PARENT/pinfold-PID-START-N        the box's group
 *   PARENT/pinfold-PID-START-N/box    the box's group if a service manager controls PARENT: a controller cannot be
 *                                     disabled while a child has it enabled for its own children, so the manager cannot
 *                                     remove the limits by accident
 *   SCOPE/aside, SCOPE/box            in a scope that systemd created for the builder: the builder moves aside, because
 *                                     a group with members cannot have controllers for its children
 *
 * The builder clones pid 1 directly into the group (CLONE_INTO_CGROUP); no other process is moved.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "supervisor/parts.h"

/* Enables what we use for the children of `dir`, as far as it is not enabled. */
static int enable(const char *dir, unsigned controllers)
{
    char path[CGROUP_PATH_MAX + 64], have[1024], want[64] = "";
    snprintf(path, sizeof path, "%s/cgroup.subtree_control", dir);
    auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, have, sizeof have - 2);
    if (n < 0)
        return -errno;
    have[n] = 0;
    for (unsigned c = 0; c < CGROUP_CONTROLLERS; c++) {
        const char *name = cgroup_controller_name((enum cgroup_controller)c);
        size_t k = strlen(name);
        bool on = false;
        for (const char *p = have; (p = strstr(p, name)); p += k)
            on |= (p == have || p[-1] == ' ') && (p[k] == ' ' || p[k] == '\n' || p[k] == 0);
        if ((controllers & (1u << c)) && !on)
            snprintf(want + strlen(want), sizeof want - strlen(want), "%s+%s", *want ? " " : "", name);
    }
    return *want ? group_write(dir, "cgroup.subtree_control", want) : 0;
}

static int make_dir(char ret[CGROUP_PATH_MAX], const char *parent, const char *name, struct err *e)
{
    char path[CGROUP_PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", parent, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return err_sys(e, ERR_SYSTEM, ENAMETOOLONG, "cannot create a control group below '%s'", parent);
    if (mkdir(path, 0755) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot create the control group '%s'", path);
    strcpy(ret, path);
    return 0;
}

static int set_limits(const char *dir, unsigned used, const struct limits *l)
{
    int r = 0;
    if (used & (1u << CGROUP_MEMORY)) {
        r = group_write_number(dir, "memory.max", l->memory.value);
        if (r == 0)
            r = group_write(dir, "memory.oom.group", "1");
        int k = r == 0 ? group_write(dir, "memory.swap.max", "0") : 0; /* no file without swap accounting */
        if (k < 0 && k != -ENOENT)
            r = k;
    }
    if (r == 0 && (used & (1u << CGROUP_PIDS)))
        r = group_write_number(dir, "pids.max", l->processes.value + 1); /* pid 1 is a member, too */
    if (r == 0 && (used & (1u << CGROUP_CPU))) {
        char text[64];
        uint64_t quota = l->cpus.value * (CPU_PERIOD_US / 1000);
        snprintf(text, sizeof text, "%llu %u", (unsigned long long)(quota < 1000 ? 1000 : quota), CPU_PERIOD_US);
        r = group_write(dir, "cpu.max", text);
    }
    return r;
}

static int enable_said(const char *dir, unsigned controllers, struct err *e)
{
    int r = enable(dir, controllers);
    return r < 0 ? err_sys(e, ERR_SYSTEM, -r, "cannot enable controllers below the control group '%s'", dir) : 0;
}

/* Makes `parent`/`name`, the group that holds the limits. */
static int make_box(struct means *m, const char *parent, const char *name, const struct limits *l, struct err *e)
{
    char *dir = m->paths->dir[0];
    int r = enable_said(parent, m->used, e);
    if (r == 0)
        r = make_dir(dir, parent, name, e);
    if (r < 0)
        return r;
    r = set_limits(dir, m->used, l);
    if (r < 0)
        return err_sys(e, ERR_SYSTEM, -r, "cannot set the limits of control group '%s'", dir);
    m->join.kind = CGROUP_V2;
    m->join.v2_dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (m->join.v2_dir < 0)
        return err_sys(e, ERR_SYSTEM, errno, "cannot open the control group '%s'", dir);
    return 0;
}

int cgroup2_begin(struct means *m, const struct cgroup_place *place, const struct limits *l, struct err *e)
{
    const char *parent = place->parent[0];
    char name[64];

    group_name(name, sizeof name);
    group_sweep(parent);
    if (!place->pin)
        return make_box(m, parent, name, l, e);
    int r = enable_said(parent, m->used, e);
    if (r == 0)
        r = make_dir(m->paths->outer, parent, name, e);
    return r < 0 ? r : make_box(m, m->paths->outer, "box", l, e);
}

int cgroup2_begin_scope(struct means *m, const char *scope, const struct limits *l, struct err *e)
{
    int r = make_dir(m->paths->aside, scope, "aside", e);
    if (r < 0)
        return r;
    r = group_write(m->paths->aside, "cgroup.procs", "0");
    if (r < 0)
        return err_sys(e, ERR_SYSTEM, -r, "cannot move the builder process into the control group '%s'",
                       m->paths->aside);
    return make_box(m, scope, "box", l, e);
}

static void read_counters(const char *dir, struct box_result *r, bool *oom, bool *pids)
{
    uint64_t n;
    if (group_read_number(dir, "memory.peak", NULL, &n) == 0) /* Linux 5.19 */
        r->peak_bytes = n;
    if (group_read_number(dir, "cpu.stat", "usage_usec", &n) == 0)
        r->cpu_us = n;
    if (group_read_number(dir, "memory.events", "oom_kill", &n) == 0 && n > 0)
        *oom = true;
    if (group_read_number(dir, "pids.events", "max", &n) == 0 && n > 0)
        *pids = true;
}

void cgroup2_count(const struct means *m, struct box_result *r, bool *oom, bool *pids)
{
    if (m->paths->dir[0][0])
        read_counters(m->paths->dir[0], r, oom, pids);
}

void cgroup2_end(struct means *m)
{
    struct group_paths *p = m->paths;
    if (!p)
        return;
    if (p->dir[0][0])
        group_remove(p->dir[0]);
    if (p->aside[0])
        group_remove(p->aside);
    if (p->outer[0])
        group_remove(p->outer);
    p->dir[0][0] = p->aside[0] = p->outer[0] = 0;
}
