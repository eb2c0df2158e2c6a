/*
 * A way to switch a box on: probe + start (+ argv for the engines that are other people's programs).
 * The native engine is engine/native.c; others join this table.
 */
#pragma once
#include "base/err.h"
#include "plan/plan.h"

struct cgroup_join { /* how the box's processes enter their control group; made by box/limits.c */
    enum cgroup_kind kind;
    int v2_dir;      /* directory descriptor for CLONE_INTO_CGROUP, or -1            */
    int v1_tasks[8]; /* `tasks` files: pid 1 writes "0" to each (COSTS: never cgroup.procs) */
    int n_v1;
};

struct start_request {
    const struct plan *plan;
    const char *const *argv; /* the command; argv[0] is looked up in the plan's PATH, inside */
    int stdio[3];            /* what the command gets; -1: the pty's slave */
    bool tty;                /* make a pty in the box's devpts and hand the master out */
    uint16_t rows, columns;
    uint32_t umask;
    int egress;  /* where CATCH sends its sockets (SOCK_SEQPACKET), or -1; borrowed */
    int publish; /* where the builder sends its user and network namespaces (wire/egress.h), or -1; borrowed */
    struct cgroup_join cgroup;
    bool parent_death_signal; /* the starting thread outlives the box: PR_SET_PDEATHSIG may be used besides EOF */
};

/* A started box: owned by the caller, who must call engine->finish. */
struct started {
    int pid;            /* of the builder, for messages and /proc */
    int pidfd;          /* of the builder: readable when it ended; ends after pid 1 */
    int control;        /* SOCK_SEQPACKET to pid 1: frames of wire/control.h */
    int builder;        /* SOCK_SEQPACKET to the builder and guard: verdicts, denials */
    bool leave_builder; /* set by the caller before finish(), after FRAME_GONE, when it is about to exit itself: the
                           builder's end, half a millisecond of the kernel's, need not be waited for */
};

/*
 * Hopeful facts. A quick probe assumes that user namespaces work, for finding out costs more than a start. When they do
 * not, start() or engine_verdict() returns -ENGINE_STALE with a sentence: the caller then probes again with `thorough`,
 * makes a new plan (in the Landlock tier, or the error that names what is lost) and starts once more. When the thorough
 * facts still have TIER_NAMESPACES the first sentence is the answer.
 */
#define ENGINE_STALE ESTALE

struct engine {
    const char *name;
    /*
     * Fills what this engine can and cannot do here; cheap (microseconds), no process started unless `thorough`.
     * f->cgroup is the caller's to fill before (engine/cgroup.h): CGROUP_LIMITS follows from it.
     */
    int (*probe)(struct facts *f, struct arena *mem, bool thorough, struct err *e);
    /*
     * Starts the box with its command. Returns once the processes exist; failures inside come as FRAME_VERDICT. Any
     * descriptor may be given as stdio that engine_stdio() does not refuse; those it calls STDIO_PIPE come back as
     * FRAME_PIPE on `builder`, which costs a relay: callers had better make the pipe themselves.
     */
    int (*start)(const struct start_request *ask, struct started *ret, struct err *e);
    /* Kills what is left, reaps, closes. Takes half-started boxes. */
    void (*finish)(struct started *s);
};
extern const struct engine engine_native;
/* What will become of `fd` as a command's stdio: enum stdio_way, or -EINVAL for what never enters, -EBADF. */
int engine_stdio(int fd);
/* The sentence for a verdict; returns -no, or -ENGINE_STALE. For example: "step 14, attach /home/u/src on /work (policy.yaml:9:3): permission denied". */
int engine_verdict(const struct plan *p, uint32_t where, int no, struct err *e);
