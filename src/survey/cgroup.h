/*
 * Where a control group for a box could be made. Discovery only: nothing is created or written here.
 *
 * Version 2 (cgroups(7), Documentation/admin-guide/cgroup-v2.rst). A process may be put into a group by an ordinary user
 * only when the user may write `cgroup.procs` of the common ancestor of where it is and where it goes; and a group that
 * has member processes cannot enable controllers for its children ("no internal processes"), the true root excepted. So
 * from our own group upwards we look for the nearest ancestor that is writable, of type domain, has the controllers, and
 * either is the true root or has no processes of its own. Nobody's process is moved for that, our caller's least of all.
 * An ordinary user in a login session has no such ancestor: the session scope belongs to root. There systemd's user
 * manager can be asked for a delegated scope (supervisor/limits/systemd.c).
 *
 * Version 1: every controller has its own tree and no such rules; whoever may mkdir in it, may use it.
 */
#pragma once
#include <stdbool.h>
#include "base/arena.h"
#include "plan/facts.h"

enum cgroup_controller { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU, CGROUP_CONTROLLERS };
#define CGROUP_PATH_MAX 1024

struct cgroup_place {
    enum cgroup_kind kind;
    unsigned controllers; /* bits 1 << enum cgroup_controller of those that can be used */
    bool pin;             /* v2: a service manager rules here, too: an inner group keeps the controllers enabled */
    char parent[CGROUP_CONTROLLERS][CGROUP_PATH_MAX]; /* v1: per controller; v2: [0], empty for CGROUP_V2_SYSTEMD */
    const char *why_not;                              /* when kind is CGROUP_NONE, or a controller lacks: a clause */
    const char *remedy;                               /* or NULL */
};

/* Looks; costs some 20 microseconds with v1, 40 with v2. Always fills `ret`. */
void cgroup_find(struct cgroup_place *ret);
/* The path of process `pid` in the v2 tree, or -errno. */
int cgroup_path_v2(int pid, char *ret, size_t n);
const char *cgroup_controller_name(enum cgroup_controller c);

/*
 * Fills facts->cgroup and the limit features: CGROUP_LIMITS, LIMIT_MEMORY, LIMIT_CPU, LIMIT_PROCESSES, LIMIT_DISK with
 * reasons and remedies. Called after the engine's own probe, whose other features it leaves alone. Without `asked`
 * nobody's limit needs a group (generous defaults are held by rlimits and the watcher), and none is looked for.
 */
void cgroup_probe(struct facts *f, bool asked, struct arena *mem);
