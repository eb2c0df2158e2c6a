/*
 * The builder of a box: runs BUILD, clones pid 1, tells it to go on, and becomes the guard. In the native engine it is
 * a clone of pinfold, in the boxes of other engines pinfold-init becomes it (init/).
 *
 *     builder_forget    drops what it inherited: descriptors, signals, umask, process group
 *     builder_map_ids   maps ids in its user namespace, if nobody has
 *     builder_run       all the rest, until the box ends
 *
 * Failures are sent as FRAME_VERDICT on `report`.
 */
#pragma once
#include "runtime/inner.h"

struct builder {
    const struct plan_image *plan;
    struct runner runner;
    struct job job;
    char (*names)[4096]; /* three host paths of regular files among stdio, or NULL if there are none */
    int control;         /* for pid 1 */
    int report;          /* to pinfold, for the builder itself */
    int publish;         /* where the user and network namespaces are sent (protocol/egress.h), or -1 */
    bool joins;          /* pid 1 enters a control group: */
    int group_dir;       /* its directory, for CLONE_INTO_CGROUP (v2), or -1 */
    int group_tasks[8];  /* `tasks` files: pid 1 writes "0" into each (v1) */
    int n_group_tasks;
    bool foreign; /* another program created the namespaces; its user and capabilities are this process's at first */
    bool dies_with_parent; /* PR_SET_PDEATHSIG in addition to the end of the streams */
    bool late_net;         /* pid 1 creates the network namespace, which takes as long as the rest of BUILD */
    bool recent;           /* the kernel clones from detached mounts (Linux 6.15) */
    uint32_t not_ignored; /* bits (1 << number) of signals that the caller does not ignore; handlers went with clone3 */
    bool judged;          /* `job.stdio` has been judged by this program */
    const uint32_t *groups; /* supplementary groups, for a box started by another root process */
    uint32_t n_groups;
    int program;  /* the running program, O_PATH, owned: what the guard becomes by exec; -1: none */
    char *stacks; /* builder_stacks() bytes for the processes that share this one's memory; NULL: allocated here */
    /* The guard: guard_serve(); its arguments are owned. Returns pid 1's wait status, or -errno. */
    int (*supervise)(struct builder *b, int notify, int host_proc, int init);

    /* Private to runtime/. */
    int pass[2]; /* the filter's listener goes from pid 1 to the builder, "all is built" back */
    /* It removes the mark of its layer, soon or at the end, and keeps its capabilities until then or until builder_yield(). */
    bool late;
    int settler; /* process that finishes overlays, or 0 */
    int keeper;  /* process that keeps masks for the next start, or 0 */
    /* pid 1 runs in parallel with the second half of BUILD, and waits for that message before it starts the command */
    bool beside;
    bool ahead; /* pid 1 was cloned before the first half, and waits for its end before its own steps */
};

/* What ends a box after its guard, for a guard that continues in another program. */
struct builder_end {
    int report, settler, keeper;
    bool tier, parent_death_signal;
    bool drops, ptrace; /* whether it gives up its capabilities, and then keeps CAP_SYS_PTRACE */
};

/* Initialises it for `plan` without any descriptor; `slots` as for runner_begin(). */
void builder_begin(struct builder *b, const struct plan_image *plan, int *slots);
_Noreturn void builder_give_up(const struct builder *b, uint32_t where, int e);
int builder_forget(struct builder *b);
/* Opens these files for reading, and sends each in a message of its own; 0 or -errno. */
int send_files(int to, const char *const *names, int n);
/* Maps one uid and gid in the process's own user namespace: `inside_uid` is `uid` outside (user_namespaces(7)). */
int map_ids(uint32_t inside_uid, uint32_t inside_gid, uint32_t uid, uint32_t gid);
/* Maps the caller's ids to those of the plan. */
int builder_map_ids(const struct builder *b, uint32_t uid, uint32_t gid);
/* Bytes for `stacks`, whole pages. */
size_t builder_stacks(void);
/* Makes the pages that a builder with `stacks` will touch, of its own stack, which ends at `stack_end`, and of those. */
void builder_populate(const struct builder *b, char *stack_end);
void builder_raise_score(struct builder *b); /* unless the caller, whose memory it shares, has done it */
/* Before it reads anything of a box's, or executes another program: gives up what the guard must not have; 0 or -errno. */
int builder_yield(struct builder *b);
/* A command that runs longer than a moment is not delayed by the mark of its layer: it is removed, and the capabilities for that are given
   up. An end, or something for the guard, ends the wait; nothing is waited for if that is done. `notify` may be -1. */
void builder_settle_in_time(struct builder *b, int notify, int init);
struct builder_end builder_end(const struct builder *b);
/* In the program that the guard continues in: first, keeps what `end` says of the builder's rights; 0 or -errno. */
int builder_resume(const struct builder_end *end);
/* There, last: pid 1 has ended with wait status `status`, or the guard failed with -errno. */
_Noreturn void builder_finish(const struct builder_end *end, int status);
/* Call in the box's user namespace, with the capabilities that it gives. */
_Noreturn void builder_run(struct builder *b);
