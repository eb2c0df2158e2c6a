/*
 * What runs between clone and exec: the steps of a plan, and pid 1. Used by the native engine in its own image and by
 * pinfold's static init in other engines' boxes. Nothing here allocates, formats or uses errno of a libc; all kernel
 * calls go through sys/. A failure is told as two numbers (step, errno); the parent finds the words.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "protocol/control.h"
#include "protocol/egress.h"
#include "protocol/job.h"
#include "protocol/step.h"

enum phase { PHASE_BUILD, PHASE_INSIDE, PHASE_LOCK };

/* What the phases hand on to each other. */
struct runner {
    const struct plan_image *plan;
    int *slots; /* source slots, then one for each OVERLAY, owned; runner_room() of them */
    uint32_t n_slots;
    int host_proc;   /* the outer /proc, O_PATH, for the guard; -1 unless the plan's filter has a listener */
    int notify;      /* listener of the filter, -1 until FILTER ran */
    int egress;      /* where CATCH sends its sockets, owned, or -1 */
    int pty[2];      /* Landlock tier, with a terminal: master and slave, opened while they still could be; else -1 */
    uint32_t failed; /* index of the step that failed */

    /* Private to inner/. */
    const struct step *root;   /* ROOT or ROOT_EMPTY, for ENTER */
    int own;                   /* the box's own tmpfs, of which stubs, /dev, small private trees are parts, or -1 */
    bool own_visible;          /* it had to be attached to be cloned from (before Linux 6.15); until it is parked */
    uint32_t n_own;            /* names given out in it */
    bool kept_net;             /* the network namespace is one that was used before: nothing of it is to be made */
    bool late_net;             /* LOOPBACK waits for net_begin(), for there is no network namespace before */
    uint32_t split;            /* the first step of BUILD that runs beside pid 1, 0: none */
    bool denied;               /* what refusals are mounts of was made in it */
    bool whiteout;             /* the one inode of all whiteouts was made in it */
    const struct step *layer;  /* LAYER, after layer_prepare() */
    int layer_dir, layer_tree; /* its directory, and the overlay that PARTs are cloned from; -1: none */
    uint32_t n_parts;          /* that are overlays of their own */
    int works[8];              /* work directories of overlays, until overlays_settle() */
    uint32_t n_works;
    int command_ruleset; /* Landlock tier: scopes each command takes on, so that it cannot signal pid 1 */
    bool scoped;         /* this process has taken them on itself: kill(-1) reaches the box only */
    char oom_text[8];    /* oom_score_adj before the builder raised it for the command to inherit */
    uint8_t oom_bytes;   /* 0: it is as it was */
    const struct span
        *spare; /* what pid 1 gives back of the memory it shares with the builder, once its command runs */
    size_t n_spare;
    uint64_t open_files; /* RLIMIT_NOFILE (soft) before the builder raised it, 0: as it was */
};

/* Descriptors that a runner of this plan needs room for: the length of `slots`. */
uint32_t runner_room(const struct plan_image *plan);
/* `slots` has runner_room(plan) elements and outlives the runner. */
void runner_begin(struct runner *r, const struct plan_image *plan, int *slots);
/* A pty of the devpts that this process sees: master and slave. */
int terminal_open(int pty[2]);
/* Runs the steps of `phase`; 0 or -errno with r->failed set. */
int steps_run(struct runner *r, enum phase phase);
/*
 * BUILD in two halves, for two processors: after the first, pid 1 can be cloned and run INSIDE and LOCK while the builder
 * goes on with the second, where that is the same as one after the other; *ret_rest says whether it is. Otherwise the
 * first half is all of it.
 */
int steps_build_first(struct runner *r, bool may_split, bool *ret_rest);
int steps_build_rest(struct runner *r);
/* In pid 1 that was cloned in between: the limit of open files as it was before the builder made room. */
int room_back(struct runner *r);
/* Brings up "lo" in the network namespace of this process; 0 or -errno. */
int loopback_up(void);
/* With late_net: makes the network namespace and runs LOOPBACK in it; a descriptor of it, owned, for setns(2). */
int net_begin(struct runner *r);
/* With late_net: CATCH, by whoever is in the network namespace now; 0 where the plan has none. */
int steps_catch(struct runner *r);
/*
 * What overlays leave for later: in the builder, after it started pid 1 and while it still has its powers; in pid 1 (`here`
 * false) only the descriptors are closed.
 */
void overlays_settle(struct runner *r, bool here);
/*
 * CATCH's part of the network namespace the caller is in: addresses, routes and rules of `way`; 0 or -errno.
 * catch_alone(): 0 when no route of it leads anywhere but to lo, -ENOTUNIQ when one does.
 */
int catch_prepare(enum catch_way way, bool *ret_v6);
int catch_alone(void);
/* Runs what belongs to each command, in its process before exec: limits and working directory. */
int steps_run_command(const struct runner *r, uint32_t *ret_failed);

struct job { /* one command */
    const char *const *argv;
    const char *const *envp;
    const char *cwd; /* NULL: as the plan says */
    int stdio[3];    /* -1: slave of the pty */
    bool tty;
    uint16_t rows, columns;
    uint32_t umask;
    int64_t stdin_at; /* set by stdio_enter(): the file position when stdin was reopened, otherwise -1 */
    /* Of a command in a session: its own limits, within the plan's, and whether its umask is another one than pid 1's. */
    const struct job_rlimit *rlimits;
    uint32_t n_rlimits;
    bool own_umask, of_session;
    int session; /* of processes: told with the end of a command in a session; 0 */
};

/* An enum stdio_way; -EBADF; or -EINVAL for what never enters: directories, O_PATH, block devices, handles of the kernel. */
int stdio_way(int fd);
/*
 * In the builder, after BUILD: replaces reopenable files of `job` by descriptors opened inside. Where the box does not
 * have the file, a pipe stands for it whose other end goes to `report` with FRAME_PIPE. `names` are the files' host paths,
 * three, or NULL.
 */
int stdio_enter(struct job *job, char (*names)[4096], int report);

/* Without a pid namespace: kills and reaps every descendant of this process. */
void hunt_down(const struct runner *r);

/*
 * Pid 1: locks down, starts the job (one without argv: none; it says FRAME_READY and serves, session.c), reaps, forwards, reports. `control` goes to P; `pass` (a socket to the builder)
 * carries the listener's descriptor once and, with `beside`, the builder's word that its half is done, which is waited
 * for before the job. Never returns.
 */
_Noreturn void init_main(struct runner *r, const struct job *job, int control, int pass, bool beside);
