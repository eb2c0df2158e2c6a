/*
 * What runs between clone and exec: the steps of a plan, and pid 1. The native engine uses it in its own process,
 * pinfold-init in the boxes of other engines. Nothing here allocates, formats or uses libc's errno; all system calls go
 * through sys/. A failure is reported as two numbers (step, errno); the parent makes the message.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "protocol/control.h"
#include "protocol/egress.h"
#include "protocol/job.h"
#include "protocol/plan_shape.h"
#include "protocol/step.h"

enum { KEPT_ROOM = 48 << 10, AHEAD = 64 };
struct kept_index;
/* Layers of masks that an earlier box made (runtime/kept_masks.c). */
struct kept_masks {
    const char *home, *key;   /* the runtime directory, and the name of this plan's masks in it; NULL: not used */
    struct kept_index *index; /* KEPT_ROOM bytes */
    int dir;                  /* the usable layers, or -1 */
    int lock;      /* their index, locked; pid 1 holds it, so that they are not removed while the box lives; or -1 */
    int keep_in;   /* `home`, writable, while there are none; or -1 */
    bool noting;   /* what the layers are made from, to keep them */
    uint32_t veil; /* number of the present mask */
};

/* State passed from phase to phase. */
struct runner {
    const struct plan_image *plan;
    int *slots; /* source slots, then one for each OVERLAY, owned; runner_room() of them, with `fresh` */
    uint32_t n_slots;
    /* Of overlays that were mounted, their fsopen(2), for pinfold, owned; see runner_freshens(). */
    int *fresh;
    uint32_t n_fresh, fresh_room; /* fresh_room 0: none is wanted */
    bool fresh_layers;            /* not of masks alone */
    int host_proc; /* the outer /proc, O_PATH, for the guard; -1 unless the plan's filter has a listener */
    int notify;    /* listener of the filter, -1 until FILTER ran */
    int egress;    /* where CATCH sends its sockets, owned, or -1 */
    int pty[2]; /* Landlock tier with a terminal: master and slave, opened while that is still possible; otherwise -1 */
    uint32_t failed; /* index of the step that failed */

    /* Private to runtime/. */
    const struct step *root;   /* ROOT or ROOT_EMPTY, for ENTER */
    int own;                   /* the box's own tmpfs, whose parts are stubs, /dev and small private trees; or -1 */
    bool own_visible;          /* it had to be attached to clone from it (before Linux 6.15); until it is parked */
    uint32_t n_own;            /* names used in it so far */
    bool kept_net;             /* the network namespace was used before: skip the steps that set it up */
    bool late_net;             /* LOOPBACK waits for net_begin(): there is no network namespace before */
    uint32_t split;            /* the first step of BUILD that runs in parallel with pid 1, 0: none */
    bool denied;               /* the sources for denied paths exist in it */
    int denying[2];            /* the first mounts of the file and of the directory: others are their clones; or -1 */
    bool whiteout;             /* the inode shared by all whiteouts exists in it */
    const struct step *layer;  /* LAYER, after layer_prepare() */
    int layer_dir, layer_tree; /* its directory, and the overlay that PARTs are cloned from; -1: none */
    uint32_t n_locked;         /* of `works`, by these descriptors */
    uint32_t n_parts;          /* of those that are overlays of their own */
    int apart;                 /* a mount that an overlay was made from; dropped at the end, because the kernel waits */
    int works[8];              /* work directories of overlays, until overlays_settle() */
    uint32_t n_works;
    int command_ruleset;      /* Landlock tier: what each command enters, so that it cannot signal or trace pid 1 */
    bool scoping;             /* it keeps signals in, which Landlock can from ABI 6 on */
    bool scoped;              /* this process has entered that: kill(-1) reaches only the box */
    char oom_text[8];         /* oom_score_adj before the builder raised it for the command to inherit */
    uint8_t oom_bytes;        /* 0: unchanged */
    const struct span *spare; /* memory shared with the builder that pid 1 unmaps once its command runs */
    size_t n_spare;
    char *
        stack; /* where that of this process ends, if it is one in shared memory, or NULL: what is below its frames goes back while it waits */
    struct kept_masks kept;
    uint64_t open_files; /* soft RLIMIT_NOFILE before the builder raised it, 0: unchanged */
    uint64_t own_files;  /* that of pid 1, which has it back by then; 0: not known */
    uint64_t most_files; /* the hard one, which without a capability nobody raises; 0: not known */
    int beside;          /* directory of the places of the present steps: beside_path, so many bytes of it; or -1 */
    uint32_t beside_bytes;
    const char *beside_path;
    int ahead[AHEAD]; /* places of the next SOURCEs, or -errno */
    uint32_t n_ahead, next_ahead;
    int done[72]; /* descriptors that are needed no more, until close_done() */
    uint32_t n_done, done_room;
};

/* Number of descriptors that a runner of this plan needs: the length of `slots`. */
uint32_t runner_room(const struct plan_image *plan);
/* `slots` has runner_room(plan) elements and outlives the runner. */
void runner_begin(struct runner *r, const struct plan_image *plan, int *slots);
/* Keeps what pinfold needs to make the kernel look anew at what masks, and perhaps layers, have below them: FRAME_FRESH. */
void runner_freshens(struct runner *r, bool layers);
/* Opens a pty in the devpts that this process sees: master and slave. */
int terminal_open(int pty[2]);
/* Runs the steps of `phase`; 0 or -errno with r->failed set. */
int steps_run(struct runner *r, enum phase phase);
/* Where BUILD may be split, 0: nowhere. */
uint32_t steps_split(const struct runner *r, bool may_split);
/* Raises the limit of open files as far as BUILD needs it; steps_run() and steps_build_first() do that, too. */
int steps_room(struct runner *r);
/* BUILD in two halves, for two processors: after the first one, pid 1 can be cloned and run INSIDE and LOCK while the
   builder runs the second. *ret_rest says whether the plan permits that; otherwise the first half is all of it. */
int steps_build_first(struct runner *r, bool may_split, bool *ret_rest);
int steps_build_rest(struct runner *r);
/* In a pid 1 cloned between the halves: restores the limit of open files. */
int room_back(struct runner *r);
/* Sets "lo" up in the network namespace of this process; 0 or -errno. */
int loopback_up(void);
/* With late_net: creates the network namespace and runs LOOPBACK in it. Returns a descriptor for setns(2), owned. */
int net_begin(struct runner *r);
/* With late_net: runs CATCH in the current network namespace; 0 also if the plan has none. */
int steps_catch(struct runner *r);
/* Postponed work on overlays: in the builder, after it started pid 1 and while it still has its capabilities; in pid 1
   (`here` false) this only closes the descriptors. */
void overlays_settle(struct runner *r, bool here);
/* CATCH's part of the current network namespace: addresses, routes and rules of `way`; 0 or -errno. catch_alone(): 0 if
   all its routes lead to lo, -ENOTUNIQ if one does not. */
int catch_prepare(enum catch_way way, bool *ret_v6);
int catch_alone(void);
/* The same of one read of the kernel's list: 0, or 1 at its end; -EAGAIN: it is to be read anew. */
int catch_routes(const uint8_t *in, size_t n);
/* Runs the steps of each command in its process before exec: limits, and the working directory unless it has its own. */
int steps_run_command(const struct runner *r, bool own_cwd, uint32_t *ret_failed);

struct job { /* one command */
    const char *const *argv;
    const char *const *envp;
    const char *cwd; /* NULL: the plan's */
    int stdio[3];    /* -1: slave of the pty */
    bool tty;
    uint16_t rows, columns;
    uint32_t umask;
    int64_t stdin_at; /* set by stdio_enter(): file offset of a reopened stdin, otherwise -1 */
    /* For a command in a session: its own limits, within the plan's, and whether its umask differs from pid 1's. */
    const struct job_rlimit *rlimits;
    uint32_t n_rlimits;
    bool own_umask, of_session;
    int session; /* id of its session of processes, reported with its end; 0 */
};

/* An enum stdio_way; -EBADF; or -EINVAL for what may never enter: directories, O_PATH, block devices, kernel
   handles. A pipe that the command only reads is marked for the guard. */
int stdio_way(int fd);
/*
 * In the builder, after BUILD: replaces reopenable files of `job` by descriptors opened in the box. If the box does not
 * have the file, a pipe replaces it whose other end goes to `report` with FRAME_PIPE. `names` are three host paths, or
 * NULL.
 */
int stdio_enter(struct job *job, char (*names)[4096], int report);

/* Without a pid namespace: kills and reaps every descendant of this process. */
void hunt_down(const struct runner *r);

/*
 * Pid 1: locks down, starts the job (without argv: sends FRAME_READY and serves, session.c), reaps, forwards signals,
 * reports. `control` leads to pinfold. `pass`, a socket to the builder, carries the listener's descriptor and, with
 * `beside`, the builder's message that its half is done, for which the job waits. Never returns.
 */
_Noreturn void init_main(struct runner *r, const struct job *job, int control, int pass, bool beside);
