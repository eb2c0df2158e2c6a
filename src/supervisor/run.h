/*
 * One command in a fresh box: limits, supervision, bytes, result. The table of contents is box_run() in run.c:
 * io_begin, limits_begin, start, loop, limits_end, io_end, result.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "backends/engine.h"
#include "plan/plan.h"

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
    char *kind;   /* "file", "socket", "network", "limit" */
    char *action; /* "create", "write", "connect" ... */
    char *target;
    char *rule;   /* as said, or "default" */
    char *origin; /* "file:line:column", "--flag", "built in" */
    char *how;    /* "guard", "limit"; of the network "transparent", "connect", "http", "socks", "dns", "reach" */
    uint32_t pid; /* inside, or 0 */
    char *address, *command; /* network: what was dialled or refused, and what the kernel calls the process; or NULL */
    char *why;               /* of a git configuration: which key, and what is wrong with it; or NULL */
    uint64_t count;          /* in the audit log only: how often, when more than once */
    bool ruled;              /* network: by a rule that denies, which no rule that allows lifts */
    uint32_t session;        /* of processes, as the box numbers it; 0: not known */
};

struct left_behind { /* what the box leaves that a person should look at; `what` may be NULL */
    char *kind, *path, *what;
};
#define MAX_LEFT 64 /* kept in a result */

struct allowed { /* what the network let through */
    char *action, *target, *address, *rule, *origin;
    const char *how;
    bool by_proxy; /* the caller's own proxy was asked for it */
    uint64_t count;
};
#define MAX_ALLOWED 256 /* kept in a result; an equal one is counted, and so is what is beyond */

/* A question that somebody is asked: may the box reach this? */
struct box_question {
    const char *target; /* "host:port", "[v6]:port" */
    uint16_t port;
    const char *how;
    uint32_t pid; /* inside, or 0 */
    const char *command;
    uint32_t left_ms;
};

#define MAX_DENIALS 256 /* kept in a result; an equal one is kept once, what is beyond is counted */

struct box_result { /* freed with box_result_free */
    enum box_end end;
    int code;             /* exit status or signal number; with BOX_TIMED_OUT and BOX_LIMIT only when `status_known` */
    enum box_limit limit; /* also set when the limit was hit and the command went on and ended by itself */
    struct buf out, err;  /* when captured */
    bool out_truncated, err_truncated;
    uint64_t wall_us, cpu_us, peak_bytes, read_bytes, written_bytes;
    bool peak_is_largest_process; /* no cgroup: peak of the largest process or of the watcher's samples */
    struct denial *denials;
    size_t n_denials, denials_dropped;
    struct left_behind *left;
    size_t n_left;
    size_t left_dropped,
        left_untold; /* more than are kept here, but in the log; of which nobody knows more than the number */
    struct allowed *allowed;
    size_t n_allowed, allowed_dropped;
    uint64_t events_lost;  /* of the egress: more came than could be taken in time */
    const char *limits_by; /* "cgroup v1", "cgroup v2", "rlimits and watcher", "none asked" */
    bool status_known;     /* the command's own end was seen: `code`, a signal number when `by_signal` */
    bool by_signal;
    int exec_errno; /* the command could not be executed: status 127 for ENOENT and ENOTDIR, otherwise 126; or 0 */
    int reraise;    /* the command died of a terminal's SIGINT or SIGQUIT: a CLI ends itself by the same signal, or 0 */
    int output_errno;       /* what the command wrote could not be passed on (ENOSPC), or 0 */
    int audit_errno;        /* an event could not be written to the audit log, or 0 */
    char id[17];            /* of this run in the audit log: 16 hexadecimal digits */
    const char *session;    /* it ran in this one; borrowed; NULL: a run of its own */
    uint64_t session_limit; /* it was ended with its session, which used more than this of `limit`; 0 */
    uint32_t command;       /* then: the command's session of processes, as the box numbers it; 0: not known */
    bool guard_told;        /* and `denials` has what the guard refused to that, */
    bool network_told;      /* ... and what the network did */
};

struct started;
/*
 * Who keeps a box that has no command of its own (a session; sessiond/): called on the thread of box_keep(), never after
 * the box has begun to end.
 */
struct box_sessiond {
    void *ctx;
    /* Pid 1 serves; an error ends the box. */
    int (*begun)(void *ctx, const struct started *s, struct err *e);
    int fd; /* readable when there is something to do, or -1 */
    void (*ready)(void *ctx);
    /* When to be called next (microseconds, monotonic; UINT64_MAX: never), and that call. */
    uint64_t (*next)(void *ctx);
    void (*due)(void *ctx, uint64_t now);
    /* Each denial, also one that was told before: in what it is told of is the caller's business. */
    void (*denied)(void *ctx, const struct denial *d);
};

struct box_ask {
    const struct plan *plan;
    const struct engine *engine;
    const char *const *argv;
    int stdio
        [3]; /* the caller's; owned by the caller; -1: /dev/null. A number that is no open descriptor: closed, too */
    bool capture; /* stdout and stderr into the result (bounded by `capture_max` each) */
    size_t capture_max;
    enum tty_mode tty;
    bool foreground; /* the process may take signals, the terminal and raw mode (a CLI; not a library) */
    void (*on_denial)(void *ctx, const struct denial *d); /* may be NULL */
    /* Answers where no rule decides; may be NULL. `ret_run`: for the rest of the run, too. */
    void (*on_question)(void *ctx, const struct box_question *q, bool *ret_allow, bool *ret_run);
    void *ctx;
    bool leave;                /* the process ends next: what only tidies up need not be waited for */
    struct net_kept *net_kept; /* struct start_request's */
    int control_fd; /* a connected stream socket with JSON lines (supervisor/network/control.c), borrowed; 0: none */
    /* Called once, when the command has run for a while: the caller may give back memory it needed for the start. */
    void (*lasting)(void *ctx);
    void *lasting_ctx;
    const struct span *spare; /* struct start_request's */
    size_t n_spare;
    const struct box_sessiond *sessiond; /* of box_keep() */
    const char *session, *scope;         /* its name and whose it is, for the audit log; or NULL */
};

/* 0 when the command ran (whatever its status), -errno with `e` when the box failed before the command. */
int box_run(const struct box_ask *ask, struct box_result *ret, struct err *e);
/*
 * A box without a command, kept until its session daemon ends it (box_keep_end), pid 1 is gone or a limit was hit; argv, stdio,
 * capture, tty, the policy's time and output limits have no meaning here. 0 when it had begun.
 */
struct box;
/* *ret_box, for the callbacks: the box while it lives, otherwise NULL. */
int box_keep(const struct box_ask *ask, struct box **ret_box, struct box_result *ret, struct err *e);
/* From a callback: the box ends now. */
void box_keep_end(struct box *b);
/*
 * From a callback: rules of the network, one a line, "allow HOST" or "deny HOST", on top of those that hold. All of them or
 * none; what the policy denies stays denied. -EOPNOTSUPP with a sentence where no rules decide.
 */
int box_keep_rules(struct box *b, const char *lines, struct err *e);
/* From a callback: takes what the guard has told by now. */
void box_keep_hear(struct box *b);
/* Adds a copy to the result's denials, within their bounds; false when it is not kept. */
bool box_result_deny(struct box_result *r, const struct denial *d);
/* Removes control groups whose pinfold is dead. */
void box_sweep_groups(void);
/* From a callback: `end`, of a socket pair, goes to the box's guard, which serves the file API on it (protocol/files.h). */
int box_keep_files(struct box *b, int end);

/*
 * One command in a box that somebody else keeps, and of which no plan is at hand (`ask.plan` is NULL). `send` hands the command's descriptors (-1: the terminal's)
 * and the terminal's size to the session daemon, and gives the socket on which pid 1 answers.
 */
struct box_exec {
    struct box_ask ask;          /* argv: for messages */
    const struct limits *limits; /* the command's: timeout, grace, output; memory and processes are watched */
    const char *cwd;             /* for messages, too; NULL: the session's */
    int sessiond;                /* pid: the box is below it */
    int cancel_fd;               /* readable or hung up: the command is to end; -1 */
    void (*output)(void *ctx, int which, const char *bytes, size_t n); /* captured bytes as they come; may be NULL */
    void *output_ctx;
    int (*send)(void *ctx, const int stdio[3], bool tty, unsigned rows, unsigned columns, uint32_t umask,
                int *ret_socket, struct err *e);
    void *send_ctx;
};
/* -ESTALE with a sentence when the session went away before; when it did meanwhile the end is BOX_LOST. */
int box_exec(const struct box_exec *ask, struct box_result *ret, struct err *e);
/* The words for what pid 1 of a session could not do for one command (words.c); `cwd` NULL: the session's. Returns -errno. */
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
    const struct policy *policy; /* whose names are guarded; NULL: its session daemon knows */
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
/*
 * What a CLI does last: ends the process by r->reraise, so that a shell's loop around it stops as it would around the
 * bare command. Returns when there is nothing to re-raise.
 */
void box_reraise(const struct box_result *r);
/*
 * Whether a command run with these descriptors gets a terminal of its own (the plan wants to know before): the same
 * decision as box_run takes. `stdio` as in struct box_ask.
 */
bool box_wants_tty(enum tty_mode tty, const int stdio[3], bool capture);
