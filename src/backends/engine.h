/*
 * An engine is a way to create a box: probe + start, and argv for engines that are other programs. backends/table.c
 * lists all engines.
 */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "plan/plan.h"

struct cgroup_join { /* how processes of the box enter their control group; made by supervisor/limits/limits.c */
    enum cgroup_kind kind;
    int v2_dir;      /* directory descriptor for CLONE_INTO_CGROUP, or -1 */
    int v1_tasks[8]; /* `tasks` files: pid 1 writes "0" into each (never cgroup.procs, which costs more) */
    int n_v1;
};

struct start_request {
    const struct plan *plan;
    /* the command; argv[0] is searched in the plan's PATH, inside. NULL: none; pid 1 sends FRAME_READY and serves
       FRAME_EXEC (protocol/job.h) */
    const char *const *argv;
    int stdio[3]; /* the command's; -1: the pty's slave */
    bool tty;     /* create a pty in the box's devpts and return the master */
    bool no_echo; /* for the vm engine: the terminal has already echoed what is typed */
    uint16_t rows, columns;
    uint32_t umask;
    int egress;  /* where CATCH sends its sockets (SOCK_SEQPACKET), or -1; borrowed */
    int publish; /* where the builder sends its user and network namespaces (protocol/egress.h), or -1; borrowed */
    struct cgroup_join cgroup;
    struct net_kept *net_kept; /* a network namespace to reuse (backends/native/net_kept.h), or NULL */
    /* Memory of the caller that the copy in the box's processes unmaps once the command runs, because they do not
       need it. */
    const struct span *spare;
    size_t n_spare;
    /* bits (1 << number) of signals that the caller does not ignore; the others get their default disposition in the builder */
    uint32_t not_ignored;
    /* the starting thread outlives the box: PR_SET_PDEATHSIG may be used in addition to EOF */
    bool parent_death_signal;
};

/* A started box: owned by the caller, who must call engine->finish. */
struct started {
    int pid;     /* of the builder, for messages and /proc */
    int pidfd;   /* of the builder: readable when it has ended, which is after pid 1 */
    int control; /* SOCK_SEQPACKET to pid 1: frames of protocol/control.h */
    int builder; /* SOCK_SEQPACKET to the builder and guard: verdicts, denials */
    /* For engines that are other programs: */
    int tool, tool_pidfd; /* the program, a child of this process, or 0 and -1 */
    int tool_output;      /* its messages: a pipe, never waited for; or -1 */
    /* set by the caller before finish(), after FRAME_GONE, if it is about to exit: finish() then does not wait for
       the builder's exit, which takes the kernel half a millisecond */
    bool leave_builder;
    bool exits;   /* and this process does nothing else before */
    void *memory; /* native: the builder's arguments and stacks, in memory that it shares with this process; or NULL */
};

/*
 * Kills a builder that does not end by itself, and waits until its children, including pid 1, have died: when the box
 * is reported as ended, no process of it is alive. finish() reaps the builder itself.
 */
void engine_kill(const struct started *s);

/*
 * Optimistic facts. A quick probe assumes that user namespaces work, because checking costs more than a start. If they
 * do not, start() or engine_verdict() returns -ENGINE_STALE with a message. The caller then probes again with
 * `thorough`, makes a new plan (in the Landlock tier, or the error that names what is lost) and starts once more. If
 * the thorough facts still have TIER_NAMESPACES, the first message is the result.
 */
#define ENGINE_STALE ESTALE

/* What the command line of an engine's program depends on besides the plan. */
struct tool_ask {
    const char *program; /* path of the program */
    const char *init;    /* path of pinfold-init */
    const char *place;   /* the directory of the check-in on the host; unused by engines that pass descriptors */
    const char *id;      /* of this box, unique among running ones: letters and digits */
    const char *boot;    /* boot id of this machine, or NULL */
    const char *instance, *process; /* the owner (survey/owner.h), or NULL */
};

struct engine {
    const char *name;
    const char *program; /* name of the program in PATH; NULL: the engine is no other program */
    const char *package; /* its package on Debian, for package_install(); or NULL */
    bool images;         /* its boxes have the files of an image (policy->image) instead of the host's */
    /*
     * Fills in what this engine can and cannot do here. Cheap (microseconds); starts no process unless `thorough`. The
     * caller fills in f->cgroup first (survey/cgroup.h): CGROUP_LIMITS follows from it.
     */
    int (*probe)(struct facts *f, struct arena *mem, bool thorough, struct err *e);
    /* The id of the policy's image, as in the facts; "" if it is missing. NULL for engines without images. */
    int (*image_id)(const struct policy *p, struct arena *mem, const char **ret, struct err *e);
    uint32_t namespaces; /* facts.tool_namespaces: those that the program creates as its command line says; 0: none */
    /*
     * The tool's command line for the plan, NULL-terminated, in `mem`. Pure: the same plan gives the same words on any
     * machine; they contain no secret. NULL for engines that are no other program.
     */
    int (*argv)(const struct plan *plan, const struct tool_ask *ask, struct arena *mem, const char *const **ret,
                struct err *e);
    /*
     * Starts the box with its command. Returns once the processes exist; later failures come as FRAME_VERDICT. Any
     * descriptor that engine_stdio() accepts may be given as stdio. Those it calls STDIO_PIPE are returned as
     * FRAME_PIPE on `builder` and cost a relay, so callers should create the pipe themselves.
     */
    int (*start)(const struct start_request *ask, struct started *ret, struct err *e);
    /* Kills what is left, reaps, closes. Also for a box that was started in part. */
    void (*finish)(struct started *s);
};
extern const struct engine engine_native, engine_bwrap, engine_nsjail, engine_firejail, engine_vm, engine_seatbelt;
/* For --unsandboxed-fallback; not in the table. */
extern const struct engine engine_unsandboxed;
/* All engines of this build, NULL-terminated, in the order of `auto`. */
extern const struct engine *const engines[];
/* NULL: no engine has this name. */
const struct engine *engine_by_name(const char *name);
/*
 * A socket on which the box's guard performs the file API (protocol/files.h); owned by the caller. A box that has
 * ended, or whose plan has no guard, closes the other end at once.
 */
int engine_files(const struct started *s, int *ret, struct err *e);
/* The same with one end of an existing socket pair; borrowed. 0 or -errno. */
int engine_files_give(const struct started *s, int end);
/* How `fd` would be passed as a command's stdio: enum stdio_way; -EINVAL for what may not enter; -EBADF. */
int engine_stdio(int fd);
/* The error message for that, for standard input, output or error (`which` 0, 1, 2). */
int engine_stdio_error(int which, int fd, int no, struct err *e);
/* The error message for a verdict; returns -no, or -ENGINE_STALE. For example: "step 14, attach /home/u/src on /work
   (policy.yaml:9:3): permission denied". */
int engine_verdict(const struct plan *p, uint32_t where, int no, struct err *e);
