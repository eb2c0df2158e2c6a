/*
 * The builder of a box: runs BUILD, clones pid 1, lets it go ahead, and is the guard from then on. In the native engine it
 * is a clone of pinfold, in other engines' boxes what pinfold-init becomes (init/).
 *
 *     builder_forget    descriptors, signals, umask, process group of whoever it was
 *     builder_map_ids   the user namespace it is in, where nobody mapped it
 *     builder_run       the rest, to the end of the box
 *
 * Failures are FRAME_VERDICTs on `report`.
 */
#pragma once
#include "runtime/inner.h"

struct builder {
    const struct plan_image *plan;
    struct runner runner;
    struct job job;
    char (*names)[4096]; /* host paths of regular files among stdio: three, or NULL when there are none */
    int control;         /* for pid 1 */
    int report;          /* to pinfold, of the builder itself */
    int publish;         /* where the user and network namespaces are sent (protocol/egress.h), or -1 */
    bool joins;          /* pid 1 enters a control group: */
    int group_dir;       /* its directory, for CLONE_INTO_CGROUP (v2), or -1 */
    int group_tasks[8];  /* `tasks` files: pid 1 writes "0" to each (v1) */
    int n_group_tasks;
    bool foreign;          /* another program made what this process is in: its powers and user are what that left */
    bool dies_with_parent; /* PR_SET_PDEATHSIG besides the end of the streams */
    bool late_net;         /* the network namespace is pid 1's to make, which takes as long as the rest of BUILD */
    /* The guard: guard_serve() of these, all owned; pid 1's wait status, or -errno. */
    const uint32_t *groups; /* supplementary ones, for a box that begins as another root */
    uint32_t n_groups;
    int (*supervise)(const struct builder *b, int notify, int host_proc, int init);

    /* Private to inner/. */
    int pass[2]; /* the filter's listener comes from pid 1 to the builder; the word that all is built goes back */
    int settler; /* process that settles overlays, or 0 */
    bool beside; /* pid 1 runs beside the second half of BUILD, and waits for that word before its command */
};

/* For `plan`, with no descriptor in it; `slots` as for runner_begin(). */
void builder_begin(struct builder *b, const struct plan_image *plan, int *slots);
_Noreturn void builder_give_up(const struct builder *b, uint32_t where, int e);
/* Closes every descriptor that is not in `keep` (negative ones are no descriptors; it is sorted). */
int close_others(int *keep, int n);
int builder_forget(struct builder *b);
/* One identity each in the process's own user namespace: `inside_uid` is what `uid` is outside (user_namespaces(7)). */
int map_ids(uint32_t inside_uid, uint32_t inside_gid, uint32_t uid, uint32_t gid);
/* The caller's, under the name the plan gives it. */
int builder_map_ids(const struct builder *b, uint32_t uid, uint32_t gid);
/* The process is in the box's user namespace, and what it has is what it needs. */
_Noreturn void builder_run(struct builder *b);
