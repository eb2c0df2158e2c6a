/*
 * A box and its command: limits, supervision, data, result. A run, a session's box and a command in a session have one
 * lifecycle, box_live() in run.c: the parts begin, the engine starts or the session daemon is asked, the loop, the parts end.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "backends/engine.h"
#include "plan/plan.h"
#include "gpg/assuan.h"
#include "protocol/control.h"
#include "ssh/decide.h"

enum box_end { BOX_EXITED, BOX_SIGNALED, BOX_TIMED_OUT, BOX_LIMIT, BOX_LOST /* sandbox: "ended: sandbox" */ };
enum box_limit {
    BOX_LIMIT_NONE,
    BOX_LIMIT_MEMORY,
    BOX_LIMIT_PROCESSES,
    BOX_LIMIT_DISK,
    BOX_LIMIT_OUTPUT,
    BOX_LIMIT_TIMEOUT
};

struct denial {
    char *kind;   /* "file", "socket", "network", "limit", "ssh-agent" */
    char *action; /* "create", "write", "connect" ... */
    char *target;
    char *rule;   /* as written, or "default" */
    char *origin; /* "file:line:column", "--flag", "built in" */
    char *how;    /* "guard", "limit"; of the network "transparent", "connect", "http", "socks", "dns", "reach" */
    uint32_t pid; /* in the box, or 0 */
    char *address, *command; /* network: the address connected to or refused, and the process's name (comm); or NULL */
    char *why;               /* of a git configuration: the key and what is wrong with it; or NULL */
    uint64_t count;          /* only in the audit log: how often, if more than once */
    bool ruled;              /* network: by a deny rule, which no allow rule overrides */
    uint32_t session;        /* session id in the box's numbering; 0: unknown */
    bool guess;              /* found after the command failed, from its own error text (run/asked/guess.c) */
    bool option;             /* `remedy` is an option that was found to allow it, otherwise words */
    char *remedy;            /* or NULL */
    int no;                  /* errno that the command got; 0: not said */
    bool soft;               /* in a session: only a denial if the command fails */
    bool seen;               /* seen by the monitor, and explained by `why` (run/asked/monitor.c) */
    char *argv;              /* the process's command line, without what looks like a secret; or NULL */
    char *host;              /* where the target is on the host, if it has another name there; or NULL */
    uint32_t key;            /* of equal ones that the guard counts; 0: none */
    uint64_t when_ms;        /* since 1970; 0: not kept */
};

/* A call of a monitored box that failed: what the guard saw of it. */
struct failed_call {
    enum denial_action action;
    int no; /* errno */
    const char *target;
};
/* What it comes to: nothing, ordinary permissions (*ret_action, static), a refusal by the sandbox in `ret`, whose texts are in `mem`:
   and whether the caller may know of it, or the log alone. */
enum explained { EXPLAINED_NOT, EXPLAINED_PERMISSION, EXPLAINED_DENIAL, EXPLAINED_FOR_LOG };

struct left_behind { /* something that the box leaves behind and that the user should look at; `what` may be NULL */
    char *kind, *path, *what;
};
#define MAX_LEFT 64 /* kept in a result */

/* What failed by ordinary permissions, found as guesses are: nothing of the sandbox's. */
struct permitted {
    const char *action; /* static */
    char *target;
};
#define MAX_PERMITTED 3

/* A call that failed in a box that is not monitored: it is explained once the command has failed, too (run/asked/guess.c). */
struct pending_call {
    enum denial_action action;
    int no;
    uint32_t pid, key;
    char *target, *argv;
};
#define MAX_PENDING 16

struct allowed { /* a connection that was allowed */
    char *action, *target, *address, *rule, *origin;
    const char *how;
    bool by_proxy; /* through the caller's own proxy */
    uint64_t count;
};
#define MAX_ALLOWED 256 /* kept in a result; equal ones and those beyond are only counted */

#define BOX_QUESTION_WRITE "write" /* box_question.how */

/* A question to the user: may the box reach this, or write this file (`how`: BOX_QUESTION_WRITE; port 0)? */
struct box_question {
    const char *target; /* "host:port", "[v6]:port" */
    uint16_t port;
    const char *how;
    uint32_t pid; /* in the box, or 0 */
    const char *command;
    uint32_t left_ms;
};

#define MAX_DENIALS 256 /* kept in a result; equal ones are kept once, those beyond are counted */

/* What the events of one run are chained by in the audit log (audit.h). */
struct sink; /* sink.h */
struct audit_chain {
    uint64_t seq; /* events so far */
    char sum[33]; /* of the last one */
};

/* A copy-on-write layer after its box has ended. */
struct box_layer {
    char id[17]; /* "": the box had none */
    bool kept;   /* false: nothing was changed, so it was removed */
    uint64_t edited, added, deleted;
    uint64_t waiting;     /* of these: what apply writes only if it is named itself */
    char waits[120];      /* the first of them, as it can be shown; "" */
    char all_waits[2048]; /* as many as fit, as they can be shown, each with its NUL */
    size_t all_waits_n;   /* bytes used */
    bool repository;      /* the workspace's repository changed, which is in none of these numbers */
};

#define CALLER_ID_ROOM 129u /* with its end */

struct box_result {
    struct box_layer layer; /* freed with box_result_free */
    enum box_end end;
    int code;             /* exit status or signal number; with BOX_TIMED_OUT and BOX_LIMIT only if `status_known` */
    enum box_limit limit; /* also set if the limit was reached but the command went on and exited by itself */
    uint64_t limit_seen;  /* what was seen of it then: bytes, processes; 0: not known */
    struct buf out, err;  /* with capture */
    bool out_truncated, err_truncated;
    uint64_t wall_us, cpu_us, peak_bytes, read_bytes, written_bytes;
    bool peak_is_largest_process; /* no control group: peak of the largest process, or of the watcher's samples */
    struct denial *denials;
    size_t n_denials, denials_dropped;
    struct permitted permissions[MAX_PERMITTED];
    size_t n_permissions;
    struct pending_call pending[MAX_PENDING];
    size_t n_pending;
    struct left_behind *left;
    size_t n_left;
    size_t left_dropped, left_untold; /* beyond what is kept here, but logged; of which only the number is known */
    struct allowed *allowed;
    size_t n_allowed, allowed_dropped;
    uint64_t seen_lost;    /* of the monitor, likewise */
    uint64_t events_lost;  /* of the egress proxy, which sent more than could be received in time */
    const char *limits_by; /* "cgroup v1", "cgroup v2", "rlimits and watcher", "none asked" */
    bool status_known;     /* the command's exit was seen: `code`, a signal number if `by_signal` */
    bool by_signal;
    int exec_errno; /* errno of execve: status 127 for ENOENT and ENOTDIR, otherwise 126; or 0 */
    /* the command died of a terminal's SIGINT or SIGQUIT: a command line kills itself with the same signal; or 0 */
    int reraise;
    int output_errno;               /* errno of passing on the command's output (ENOSPC), or 0 */
    int audit_errno;                /* errno of writing to the audit log, or 0 */
    int events_errno;               /* the same for where else events go */
    char id[17];                    /* of this run in the audit log: 16 hexadecimal digits */
    char caller_id[CALLER_ID_ROOM]; /* the caller's own; "": none */
    struct audit_chain chain;
    const char *session;    /* the session it ran in; borrowed; NULL: none */
    uint64_t session_limit; /* it was ended with its session, which exceeded this much of `limit`; 0 */
    uint32_t command;       /* if in a session: the command's session id in the box's numbering; 0: unknown */
    bool guard_told;        /* `denials` includes what the guard denied to that id, */
    bool network_told;      /* ... and what the network did */
};

struct started;
/*
 * Callbacks of a session daemon (sessiond/), whose box has no command of its own: called on the thread of box_keep(),
 * never after the box has begun to end.
 */
struct box_sessiond {
    void *ctx;
    /* Pid 1 serves; an error ends the box. */
    int (*begun)(void *ctx, const struct started *s, struct err *e);
    int fd; /* readable when there is work, or -1 */
    void (*ready)(void *ctx);
    /* The time of the next call (microseconds, monotonic; UINT64_MAX: never), and that call. */
    uint64_t (*next)(void *ctx);
    void (*due)(void *ctx, uint64_t now);
    /* Called for each denial, also for repeated ones. */
    void (*denied)(void *ctx, const struct denial *d);
    /* FRAME_CALLER from pid 1; takes ownership of `fd`. */
    void (*back)(void *ctx, int fd, uint32_t stream);
};

/* What a command gets of its caller, and the caller of it: the same for a run and for a command in a session. */
struct box_command {
    int stdio[3]; /* the caller's, who keeps them; -1: /dev/null. A number that is not open is closed in the box, too */
    bool capture; /* stdout and stderr go into the result (bounded by `capture_max` each) */
    size_t capture_max;
    void (*output)(void *ctx, int which, const char *bytes, size_t n); /* captured bytes as they come; may be NULL */
    void *output_ctx;
    enum tty_mode tty;
    bool foreground;       /* the process may take signals, the terminal and raw mode (a command line; not a library) */
    const char *caller_id; /* the caller's own name for this command, shorter than CALLER_ID_ROOM; or NULL */
};

/* What a box may have of its user's ssh-agent (run/keys/ssh.c). */
struct box_ssh {
    struct ssh_rules rules;
    int listener;      /* non-blocking; where the box connects to */
    const char *agent; /* the agent's own socket */
};

/* What a box may have of its user's gpg-agent (run/keys/gpg.c). */
struct box_gpg {
    struct gpg_rules rules;
    int listener;
    const char *agent;
};

/* Of a login's box: the addresses that a person is asked to have opened in a browser outside, and who opens one. */
struct box_browser {
    const char *agent;                       /* as messages name it */
    const char *const *hosts;                /* match/url.h; NULL-terminated */
    int (*open)(void *ctx, const char *url); /* 0, or -errno */
    void *ctx;
};

struct inquiry_answer; /* protocol/inquiry.h */
/*
 * A box to start, from the library or the session daemon to the builder. `start` is what the engine is given: the caller
 * fills in plan, argv, net_kept and spare, the supervisor everything else (run.c, start()).
 */
struct box_terms;
struct run_spec {
    const struct engine *engine;
    struct start_request start;
    struct box_command command;
    void (*on_denial)(void *ctx, const struct denial *d); /* may be NULL */
    /* Of a monitored box: finds out what refused a call. */
    enum explained (*explain)(void *ctx, const struct failed_call *call, struct arena *mem, struct denial *ret,
                              const char **ret_action);
    void *explain_ctx;
    /* Answers a process of the box; NULL: nobody is answered. Both texts are the box's own words. */
    void (*answer)(void *ctx, const char *act, const char *target, struct inquiry_answer *ret);
    void *answer_ctx;
    int moves;         /* the checker of protected branches (run/moves.h), borrowed; 0: there is none */
    struct sink *sink; /* where events go besides the log; NULL: nowhere */
    /* Answers where no rule decides; may be NULL. `ret_run`: the answer holds for the rest of the run. */
    void (*on_question)(void *ctx, const struct box_question *q, bool *ret_allow, bool *ret_run);
    void *ctx;
    bool leave;                        /* the process exits next: do not wait for cleanup */
    const struct box_ssh *ssh;         /* borrowed; NULL: none */
    const struct box_gpg *gpg;         /* likewise */
    const struct box_browser *browser; /* likewise */
    int control_fd; /* a connected stream socket with JSON lines (supervisor/network/control.c), borrowed; 0: none */
    /* Called once, when the command has run for a while, so that the caller can free memory needed for the start. */
    void (*lasting)(void *ctx);
    void *lasting_ctx;
    /* Called now and then while the box lives, in a process of its own that has no descriptor but this one (meanwhile.c); may be NULL.
       True: something was new, so that it is called again soon. */
    bool (*meanwhile)(void *ctx);
    /* Adds what is to be watched to `inotify`: all of it (`deep`; in that process), or what is there when the box begins. May be NULL. */
    void (*meanwhile_watch)(void *ctx, int inotify, bool deep);
    void *meanwhile_ctx;
    int meanwhile_fd;
    /* Called while the box lives and there is nothing else to do; says after how many microseconds it wants to be called again. Each call
       must be short: the end of the command waits for it. May be NULL. */
#define RUN_IDLE_NEVER UINT64_MAX
    uint64_t (*idle)(void *ctx);
    void *idle_ctx;
    const char *session, *scope; /* of a box that is kept: the session's name and owner, for the audit log; or NULL */
    /* As in struct box_terms: of a box that is kept, for what its daemon reports. */
    void (*offer)(const struct box_terms *terms, const struct box_result *r, const struct denial *d, struct buf *out);
};

/* 0 if the command ran (whatever its status), -errno with `e` if the start failed. */
int box_run(const struct run_spec *spec, struct box_result *ret, struct err *e);
/*
 * A box without a command, kept until its session daemon ends it (box_keep_end), pid 1 exits or a limit is reached.
 * `spec` has no argv; its command and the policy's limits of time and output do not matter. 0 if it was started.
 */
struct box;
/* *ret_box, for the callbacks: the box while it runs, otherwise NULL. */
int box_keep(const struct run_spec *spec, const struct box_sessiond *sessiond, struct box **ret_box,
             struct box_result *ret, struct err *e);
/* From a callback: ends the box now. */
void box_keep_end(struct box *b);
/*
 * From a callback: adds network rules, one per line, "allow HOST" or "deny HOST". All of them or none; what the policy
 * denies stays denied. -EOPNOTSUPP with a message if the network has no rules.
 */
int box_keep_rules(struct box *b, const char *lines, struct err *e);
/* From a callback: processes what the guard has sent so far. */
void box_keep_hear(struct box *b);
/* A run's name in the log, of 16 digits. */
void box_new_id(char ret[17]);
/* Logs what is a denial only now that the command has failed (denial.soft). */
void box_keep_log(struct box *b, const struct denial *d);
/* Adds a copy to the result's denials, within their limit; false if it is not kept. */
bool box_result_deny(struct box_result *r, const struct denial *d);
/* Adds what failed by ordinary permissions; `action` is static. */
void box_result_permit(struct box_result *r, const char *action, const char *target);
/* A command line for events: words, each with its NUL, as one text without what looks like a secret; malloc()ed; NULL: none. */
char *box_command_line(const char *argv, size_t n);
/* Adds what the user should look at, or counts it as dropped; copies the texts, `what` may be NULL. */
void box_result_left(struct box_result *r, const char *kind, const char *path, const char *what);
/* Removes control groups left by dead pinfolds. */
void box_sweep_groups(void);
/*
 * From a callback: what the host has changed in the tree below a copy-on-write workspace is seen from now on, but for
 * objects that a process holds open. Names that were looked up before would stay as they were for good, absent ones, too.
 */
int box_keep_fresh(struct box *b, struct err *e);
/* From a callback: a command is about to be sent to pid 1. The number for its FRAME_EXEC. */
uint32_t box_keep_command(struct box *b);
/* From a callback: passes `end` of a socket pair to the box's guard, which serves the file API on it
   (protocol/files.h). */
int box_keep_files(struct box *b, int end);

/*
 * One command in a box that somebody else keeps: no engine starts, and no plan is at hand. `send` hands the command's
 * descriptors (-1: the terminal's) and the terminal's size to the session daemon, and gives the socket on which pid 1
 * answers.
 */
struct box_exec {
    struct box_command command;
    const struct limits *limits; /* the command's: timeout, grace, output; memory and processes are watched */
    const char *cwd;             /* for messages; NULL: the session's */
    int sessiond;                /* pid: the box is below it */
    int cancel_fd;               /* readable or hung up: the command is to end; -1 */
    int (*send)(void *ctx, const int stdio[3], bool tty, unsigned rows, unsigned columns, uint32_t umask,
                int *ret_socket, struct err *e);
    void *send_ctx;
    const char *session; /* its name, for the audit log, and the owner of that; its box's workspace */
    const char *scope, *workspace;
};
/* -ESTALE with a message if the session had already ended; if it ends meanwhile, the end is BOX_LOST. */
int box_exec(const struct box_exec *exec, struct box_result *ret, struct err *e);
/* The message for what pid 1 of a session could not do for a command (words.c); `cwd` NULL: the session's. Returns
   -errno. */
int box_exec_verdict(uint32_t where, int no, const char *cwd, struct err *e);
void box_result_free(struct box_result *r);
/*
 * What a result says of the box that its command ran in, besides how that went: of a run's own box from the plan, of a session's
 * from its record. Borrowed.
 */
struct box_terms {
    const char *engine, *policy_digest, *plan_digest;
    enum tier tier;
    enum net_mode net;
    const struct limits *limits; /* the command's */
    features lost;
    const struct enforcement *enforced;
    size_t n_enforced;
    const struct engine_reason *others; /* engines that were not taken */
    size_t n_others;
    bool monitor;                /* refusals by mounts, modes and the filter were told, too */
    const struct policy *policy; /* whose names are guarded; NULL: its session daemon knows */
    /* By which the command line starts the command's session; NULL: there is none, or it has an owner of its own. */
    const char *start_name;
    /* Writes what would allow a refusal, in words for where the result is read; NULL: what the refusal itself says. */
    void (*offer)(const struct box_terms *terms, const struct box_result *r, const struct denial *d, struct buf *out);
};
/* Of a plan; digests are there when plan_digests() has made them. */
struct box_terms box_terms(const struct plan *plan);
/* The result as one JSON object, the same for run, exec, library and MCP. `captured` false: stdout and stderr are null. */
int box_result_json(const struct box_result *r, const struct box_terms *terms, bool captured, struct buf *out);
struct json;
void box_result_members(const struct box_result *r, const struct box_terms *terms, bool captured, struct json *j);
/* The exit status for this result: the command's own, 124 timeout, 125 sandbox, 128+n signals, 137 limits. */
int box_result_status(const struct box_result *r);
const char *box_end_name(enum box_end end);       /* "exit", "signal", "timeout", "limit", "sandbox" */
const char *box_limit_name(enum box_limit limit); /* "memory" ...; NULL for none */
const char *box_errno_name(int no);               /* "EROFS"; NULL for 0 and what no box is answered */
/*
 * The last call of a command line: kills the process with r->reraise, so that a shell's loop around it stops as it
 * would for the bare command. Returns if there is nothing to re-raise.
 */
void box_reraise(const struct box_result *r);
/*
 * Whether a command with these descriptors gets a terminal of its own, as box_run() will decide; planning needs to
 * know. `stdio` as in struct box_command.
 */
bool box_wants_tty(enum tty_mode tty, const int stdio[3], bool capture);
/* A file in memory that has these bytes, for what is too large for a message; whoever gets it reads from the beginning. Or -errno. */
int bytes_in_memory(struct str bytes);
