/*
 * Chooses the means that enforce limits, and evaluates them at the end.
 *
 *   memory, processes or cpus requested     a control group if possible (survey/cgroup.h): version 2 in our own delegated
 *                                           tree, version 2 through systemd, version 1
 *   no group possible, or only defaults     rlimits (steps of the plan) and the watcher: groups cost 0.6 ms, and through
 *                                           systemd several, on every run
 *   cpus without that group                 the pacer: stops and continues the box, approximately
 *   disk                                    RLIMIT_FSIZE and private sizes (from the plan), growth by the watcher
 *
 * A box that runs out of memory is ended: the kernel kills all of a version 2 group at once (memory.oom.group); version
 * 1 notifies an eventfd and we end it; the watcher ends it. So "out of memory" means the same everywhere. A full
 * process table makes fork fail with EAGAIN, which a command may survive: then the limit is only reported.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "supervisor/parts.h"

static bool wants_group(const struct limit *l)
{
    return l->asked && l->value != LIMIT_NONE;
}

/* The controllers for which somebody asked a limit. */
static unsigned asked_controllers(const struct limits *l)
{
    return (wants_group(&l->memory) ? 1u << CGROUP_MEMORY : 0) | (wants_group(&l->processes) ? 1u << CGROUP_PIDS : 0) |
           (wants_group(&l->cpus) ? 1u << CGROUP_CPU : 0);
}

/* Whether the plan counts on a group for what is not there: never weaker than said. */
static bool broken_promise(const struct plan *plan, unsigned lacking)
{
    features can = plan->facts->can;
    return ((lacking & (1u << CGROUP_CPU)) && plan->facts->cpu_by_group) ||
           ((lacking & ((1u << CGROUP_MEMORY) | (1u << CGROUP_PIDS))) && (can & F(CGROUP_LIMITS)));
}

/*
 * Whether the plan itself holds the number of processes: RLIMIT_NPROC counts per user namespace since Linux 5.14. Its
 * number has room for our own processes, so where somebody asked the watcher counts besides; a generous default is not
 * worth waking for.
 */
static bool plan_counts_processes(const struct plan *plan)
{
    const struct plan_image *image = plan->image;
    for (uint32_t i = 0; image && i < image->n_steps; i++) {
        const struct step *s = &plan_steps(image)[i];
        if (s->kind == STEP_RLIMIT && s->a == RLIMIT_NPROC)
            return plan->facts->uid != 0; /* root is exempt */
    }
    return false;
}

/* What no group holds is sampled. */
static int watch_the_rest(struct means *m, const struct plan *plan, struct err *e)
{
    const struct limits *l = &plan->policy->limits;
    struct limit_watcher *w = &m->watcher;

    const bool machine = plan->facts->machine;
    if (!(m->used & (1u << CGROUP_MEMORY)) && !machine)
        w->memory = l->memory.value;
    if (!(m->used & (1u << CGROUP_PIDS)) && !machine && (l->processes.asked || !plan_counts_processes(plan)))
        w->processes = l->processes.value;
    m->disk_asked = wants_group(&l->disk);
    /* What a layered box writes to its workspace grows where the layer is. */
    const char *grows = plan->layered ? plan->facts->state_home : plan->workspace;
    if (m->disk_asked && grows && watcher_disk(w, grows, l->disk.value) < 0)
        return err_sys(e, ERR_SYSTEM, errno, "limits.disk: cannot read the free space of '%s'", grows);
    w->hard = (w->memory != LIMIT_NONE && l->memory.asked) || (w->processes != LIMIT_NONE && l->processes.asked) ||
              w->disk != LIMIT_NONE;
    w->on = w->memory != LIMIT_NONE || w->processes != LIMIT_NONE || w->disk != LIMIT_NONE;
    if (wants_group(&l->cpus) && !(m->used & (1u << CGROUP_CPU)) && !machine && !plan->facts->container &&
        pacer_start(&m->pacer, l->cpus.value) < 0)
        return err_sys(e, ERR_SYSTEM, ENOMEM, "limits.cpus cannot be enforced");
    return 0;
}

void limits_none(struct means *m)
{
    memset(m, 0, sizeof *m);
    m->join.v2_dir = -1;
    m->oom_event = m->helper_with = -1;
    m->watcher = (struct limit_watcher){
        .memory = LIMIT_NONE, .processes = LIMIT_NONE, .disk = LIMIT_NONE, .disk_fd = -1, .tmp_fd = -1};
}

static int paths_begin(struct means *m, struct err *e)
{
    m->paths = calloc(1, sizeof *m->paths);
    return m->paths ? 0 : err_sys(e, ERR_SYSTEM, ENOMEM, "limits: control groups");
}

/* For the controllers of `asked`. */
static int groups_begin(struct means *m, const struct plan *plan, unsigned asked, struct err *e)
{
    const struct limits *l = &plan->policy->limits;
    struct cgroup_place place;
    cgroup_find(&place);
    m->used = asked & place.controllers;
    if (broken_promise(plan, asked & ~m->used))
        return err_say(e, ERR_CANNOT, "limits: the control group can no longer be used: %s",
                       place.why_not ? place.why_not : "its controllers have changed");
    int r = m->used ? paths_begin(m, e) : 0;
    if (r < 0 || !m->used)
        return r;
    m->kind = place.kind;
    return m->kind == CGROUP_V1   ? cgroup1_begin(m, &place, l, e)
           : m->kind == CGROUP_V2 ? cgroup2_begin(m, &place, l, e)
                                  : 0;
}

int limits_begin(struct means *m, const struct plan *plan, struct err *e)
{
    const struct limits *l = &plan->policy->limits;
    unsigned asked = plan->facts->machine ? 0 : asked_controllers(l); /* a machine has its size */
    int r = 0;

    limits_none(m);
    m->container = plan->facts->container != NULL && l->memory.value != LIMIT_NONE;
    if (asked && plan->facts->cgroup != CGROUP_NONE)
        r = groups_begin(m, plan, asked, e);
    if (r == 0 && m->container && !m->paths)
        r = paths_begin(m, e);
    if (r < 0)
        return r;
    return watch_the_rest(m, plan, e);
}

/* Where the kernel says that process `pid` is: the memory group of version 1, or the group of version 2. */
static void find_group(int pid, char ret[CGROUP_PATH_MAX])
{
    char name[32], line[CGROUP_PATH_MAX];
    snprintf(name, sizeof name, "/proc/%d/cgroup", pid);
    FILE *f = fopen(name, "re");
    ret[0] = 0;
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *of = strchr(line, ':'), *path = of ? strchr(of + 1, ':') : NULL;
        if (!path || !path[1] || !path[2])
            continue;
        *path++ = 0;
        if (same(of + 1, "memory") || (!of[1] && !ret[0]))
            snprintf(ret, CGROUP_PATH_MAX, "/sys/fs/cgroup%s%s", of[1] ? "/memory" : "", path);
    }
    if (f)
        (void)fclose(f);
}

void limits_look(struct means *m)
{
    uint64_t n;
    const char *group = m->paths ? m->paths->engines : "";
    if (!group[0])
        return;
    if ((group_read_number(group, "memory.oom_control", "oom_kill", &n) == 0 ||
         group_read_number(group, "memory.events", "oom_kill", &n) == 0) &&
        n > 0)
        m->memory_seen = true;
    if ((group_read_number(group, "memory.max_usage_in_bytes", NULL, &n) == 0 ||
         group_read_number(group, "memory.peak", NULL, &n) == 0) &&
        n > m->watcher.peak)
        m->watcher.peak = n;
}

void limits_started(struct means *m, const struct started *s)
{
    if (s->pid > 0 && m->container)
        find_group(s->pid, m->paths->engines);
    for (int i = 0; i < m->join.n_v1; i++)
        m->join.v1_tasks[i] = close_fd(m->join.v1_tasks[i]);
    m->join.n_v1 = 0;
    m->join.v2_dir = close_fd(m->join.v2_dir);
    if (s->pid <= 0)
        return;
    if (m->watcher.on || m->pacer.quota)
        watcher_start(&m->watcher, s, now_us());
    if (m->pacer.quota)
        pacer_begin(&m->pacer, now_us());
}

uint64_t limits_next(const struct means *m)
{
    const uint64_t sample = m->watcher.on ? m->watcher.next_us : NEVER;
    return m->pacer.quota && m->pacer.next_us < sample ? m->pacer.next_us : sample;
}

enum box_limit limits_tick(struct means *m, uint64_t now, struct limits_hit *hit)
{
    if (m->pacer.quota && m->pacer.next_us <= now)
        pacer_tick(&m->pacer, &m->watcher, now);
    enum box_limit limit =
        m->watcher.on && m->watcher.next_us <= now ? watcher_sample(&m->watcher, now) : BOX_LIMIT_NONE;
    if (limit == BOX_LIMIT_NONE)
        return limit;
    hit->seen = limit == BOX_LIMIT_MEMORY      ? m->watcher.seen_memory
                : limit == BOX_LIMIT_PROCESSES ? m->watcher.seen_processes
                                               : m->watcher.seen_disk;
    return limit;
}

void limits_release(struct means *m)
{
    pacer_release(&m->pacer);
}

bool limits_event(struct means *m)
{
    uint64_t count;
    ssize_t n;
    do
        n = read(m->oom_event, &count, sizeof count);
    while (n < 0 && errno == EINTR);
    m->memory_seen = m->memory_seen || n == (ssize_t)sizeof count;
    return m->memory_seen;
}

void limits_kill(const struct means *m)
{
    if ((m->kind == CGROUP_V2 || m->kind == CGROUP_V2_SYSTEMD) && m->paths->dir[0][0])
        (void)group_write(m->paths->dir[0], "cgroup.kill", "1"); /* Linux 5.14 */
}

void limits_end(struct means *m, struct box_result *r, struct limits_hit *hit)
{
    bool oom = false, pids = false;

    r->limits_by = m->kind == CGROUP_V1              ? "cgroup v1"
                   : m->kind != CGROUP_NONE          ? "cgroup v2"
                   : m->watcher.on || m->pacer.quota ? "rlimits and watcher"
                                                     : "none asked";
    r->peak_is_largest_process = !(m->used & (1u << CGROUP_MEMORY));
    if (m->watcher.peak > r->peak_bytes)
        r->peak_bytes = m->watcher.peak;
    limits_started(m, &(struct started){.pid = -1}); /* closes what a start that failed has left */
    if (m->kind == CGROUP_V1)
        cgroup1_end(m, r, &oom, &pids);
    else if (m->kind != CGROUP_NONE)
        cgroup2_count(m, r, &oom, &pids);
    if (m->pacer.used_us > r->cpu_us) /* also of those that nobody waited for */
        r->cpu_us = m->pacer.used_us;
    pacer_end(&m->pacer);
    systemd_leave(m);
    cgroup2_end(m);
    free(m->paths);
    m->paths = NULL;
    watcher_end(&m->watcher);
    m->oom_event = close_fd(m->oom_event);
    if (hit->limit == BOX_LIMIT_NONE && (oom || m->memory_seen))
        hit->limit = BOX_LIMIT_MEMORY;
    if (hit->limit == BOX_LIMIT_MEMORY && hit->seen == 0)
        hit->seen = r->peak_bytes;
    if (hit->limit == BOX_LIMIT_NONE && pids)
        hit->limit = BOX_LIMIT_PROCESSES;
}
