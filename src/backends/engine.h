/*
 * A way to switch a box on: probe + start, and argv for the engines that are other people's programs. The table of them
 * is backends/table.c: an engine that is not in it does not exist here.
 */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "plan/plan.h"

struct cgroup_join { /* how the box's processes enter their control group; made by supervisor/limits/limits.c */
    enum cgroup_kind kind;
    int v2_dir;      /* directory descriptor for CLONE_INTO_CGROUP, or -1            */
    int v1_tasks[8]; /* `tasks` files: pid 1 writes "0" to each (COSTS: never cgroup.procs) */
    int n_v1;
};

struct start_request {
    const struct plan *plan;
    const char *const *argv; /* the command; argv[0] is looked up in the plan's PATH, inside. NULL: none; pid 1 says
                                FRAME_READY and serves: FRAME_EXEC (protocol/job.h) */
    int stdio[3];            /* what the command gets; -1: the pty's slave */
    bool tty;                /* make a pty in the box's devpts and hand the master out */
    bool no_echo;            /* of a machine's: what is typed has been shown already */
    uint16_t rows, columns;
    uint32_t umask;
    int egress;  /* where CATCH sends its sockets (SOCK_SEQPACKET), or -1; borrowed */
    int publish; /* where the builder sends its user and network namespaces (protocol/egress.h), or -1; borrowed */
    struct cgroup_join cgroup;
    struct net_kept *net_kept; /* to be used again and again (backends/native/net_kept.h), or NULL */
    /* Memory of the caller that its copy in the box's processes gives back once the command runs: nothing they need. */
    const struct span *spare;
    size_t n_spare;
    bool parent_death_signal; /* the starting thread outlives the box: PR_SET_PDEATHSIG may be used besides EOF */
};

/* A started box: owned by the caller, who must call engine->finish. */
struct started {
    int pid;     /* of the builder, for messages and /proc */
    int pidfd;   /* of the builder: readable when it ended; ends after pid 1 */
    int control; /* SOCK_SEQPACKET to pid 1: frames of protocol/control.h */
    int builder; /* SOCK_SEQPACKET to the builder and guard: verdicts, denials */
    /* Of engines that are other people's programs: */
    int tool, tool_pidfd; /* the program, a child of this process, or 0 and -1 */
    int tool_output;      /* what it printed, to be read: a pipe that is never waited for, or -1 */
    bool leave_builder;   /* set by the caller before finish(), after FRAME_GONE, when it is about to exit itself: the
                           builder's end, half a millisecond of the kernel's, need not be waited for */
};

/*
 * Kills a builder that does not end by itself, and waits until its children, pid 1 among them, have died of that: whoever
 * learns that a box is over finds nothing of it alive. The builder itself is reaped by finish().
 */
void engine_kill(const struct started *s);

/*
 * Hopeful facts. A quick probe assumes that user namespaces work, for finding out costs more than a start. When they do
 * not, start() or engine_verdict() returns -ENGINE_STALE with a sentence: the caller then probes again with `thorough`,
 * makes a new plan (in the Landlock tier, or the error that names what is lost) and starts once more. When the thorough
 * facts still have TIER_NAMESPACES the first sentence is the answer.
 */
#define ENGINE_STALE ESTALE

/* What the command line of another program depends on besides the plan. */
struct tool_ask {
    const char *program; /* the tool, as it was found: a path */
    const char *init;    /* pinfold-init, likewise */
    const char *place; /* the directory of the check-in on the host; engines that pass descriptors do not look at it */
    const char *id;    /* of this box, unique among living ones: letters and digits */
    const char *boot;  /* which boot of this machine it is, or NULL */
    const char *instance, *process; /* whose it is (survey/owner.h), or NULL */
};

struct engine {
    const char *name;
    const char *program; /* the tool's name in PATH, or NULL: this is no other program */
    const char *package; /* that brings it in Debian, or NULL */
    bool images;         /* its boxes show the files of an image (policy->image), not the host's */
    /*
     * Fills what this engine can and cannot do here; cheap (microseconds), no process started unless `thorough`.
     * f->cgroup is the caller's to fill before (survey/cgroup.h): CGROUP_LIMITS follows from it.
     */
    int (*probe)(struct facts *f, struct arena *mem, bool thorough, struct err *e);
    /* The id of the policy's image, as the facts would have it; "" when it is not there. NULL for engines without images. */
    int (*image_id)(const struct policy *p, struct arena *mem, const char **ret, struct err *e);
    /* Pure: marks what of an image the tool's command line does (STEP_TOOL, `outer`); at the end of plan_make. Or NULL. */
    void (*take)(struct plan_image *image);
    /*
     * The tool's command line for the plan, NULL-terminated, in `mem`. Pure: the same plan gives the same words on any
     * machine, and nothing secret is in them. NULL for engines that are no other program.
     */
    int (*argv)(const struct plan *plan, const struct tool_ask *ask, struct arena *mem, const char *const **ret,
                struct err *e);
    /*
     * Starts the box with its command. Returns once the processes exist; failures inside come as FRAME_VERDICT. Any
     * descriptor may be given as stdio that engine_stdio() does not refuse; those it calls STDIO_PIPE come back as
     * FRAME_PIPE on `builder`, which costs a relay: callers had better make the pipe themselves.
     */
    int (*start)(const struct start_request *ask, struct started *ret, struct err *e);
    /* Kills what is left, reaps, closes. Takes half-started boxes. */
    void (*finish)(struct started *s);
};
extern const struct engine engine_native, engine_bwrap, engine_nsjail, engine_firejail, engine_vm, engine_seatbelt;
/* Of --unsandboxed-fallback; in no table. */
extern const struct engine engine_unsandboxed;
/* All that are built, NULL-terminated, in the order in which `auto` asks them. */
extern const struct engine *const engines[];
/* NULL: there is none of that name here. */
const struct engine *engine_by_name(const char *name);
/*
 * A socket on which the box's guard performs the file API (protocol/files.h); the caller's. A box whose plan has no guard, and
 * one that is gone, close its other end at once.
 */
int engine_files(const struct started *s, int *ret, struct err *e);
/* The same on a socket pair of somebody else's, of which this is one end; borrowed. 0 or -errno. */
int engine_files_give(const struct started *s, int end);
/* What will become of `fd` as a command's stdio: enum stdio_way, or -EINVAL for what never enters, -EBADF. */
int engine_stdio(int fd);
/* The sentence for what it said, of descriptor `fd` as standard input, output or error (0, 1, 2). */
int engine_stdio_error(int which, int fd, int no, struct err *e);
/* The sentence for a verdict; returns -no, or -ENGINE_STALE. For example: "step 14, attach /home/u/src on /work (policy.yaml:9:3): permission denied". */
int engine_verdict(const struct plan *p, uint32_t where, int no, struct err *e);
