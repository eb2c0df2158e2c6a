/*
 * Finds where a control group for a box could be created. Nothing is created or written here.
 *
 * Version 2 (cgroups(7), Documentation/admin-guide/cgroup-v2.rst): an ordinary user may move a process only if the user
 * may write `cgroup.procs` of the common ancestor of both groups; and a group that has member processes cannot enable
 * controllers for its children ("no internal processes"), except the true root. So from our own group upwards we look
 * for the nearest ancestor that is writable, of type domain, has the controllers, and is the true root or has no
 * processes. No other process is moved for that, least of all our caller. An ordinary user in a login session has no
 * such ancestor, because the session scope belongs to root; there, systemd's user manager can be asked for a delegated
 * scope (supervisor/limits/systemd.c).
 *
 * Version 1: every controller has its own tree and no such rules; whoever may mkdir in it may use it.
 */
#pragma once
#include <stdbool.h>
#include "base/arena.h"
#include "plan/facts.h"

enum cgroup_controller { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU, CGROUP_CONTROLLERS };
#define CGROUP_PATH_MAX 1024

struct cgroup_place {
    enum cgroup_kind kind;
    unsigned controllers; /* bits 1 << enum cgroup_controller of the usable ones */
    bool pin;             /* v2: a service manager works here, too: an inner group keeps the controllers enabled */
    char parent[CGROUP_CONTROLLERS][CGROUP_PATH_MAX]; /* v1: per controller; v2: [0], empty for CGROUP_V2_SYSTEMD */
    const char *why_not;                              /* if kind is CGROUP_NONE, or a controller is missing: a clause */
    const char *remedy;                               /* or NULL */
};

/* Takes about 20 microseconds with v1, 40 with v2. Always fills in `ret`. */
void cgroup_find(struct cgroup_place *ret);
/* The path of process `pid` in the v2 tree, or -errno. */
int cgroup_path_v2(int pid, char *ret, size_t n);
const char *cgroup_controller_name(enum cgroup_controller c);

/*
 * Fills in facts->cgroup and the limit features CGROUP_LIMITS, LIMIT_MEMORY, LIMIT_CPU, LIMIT_PROCESSES, LIMIT_DISK
 * with reasons and remedies. Call it after the engine's own probe; other features stay. Without `asked` no limit needs
 * a group (generous defaults use rlimits and the watcher), and none is looked for.
 */
void cgroup_probe(struct facts *f, bool asked, struct arena *mem);
