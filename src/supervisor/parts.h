/*
 * What the parts of box/ share: one struct box per run, on box_run's stack, and each part's begin and end.
 *
 *     run.c      table of contents        io.c       what the command gets as 0, 1, 2
 *     loop.c     waiting and stages       relay.c    moving bytes
 *     signals.c  forwarding, stopping     term.c     raw mode and its watcher
 *     limits.c   choosing the means       cgroup1.c cgroup2.c groups.c systemd.c watcher.c   the means
 *     told.c     frames -> what the box leaves
 *     denial.c   frames -> denials        audit.c    denials -> audit log            result.c   JSON
 *     egress.c   the egress process       live.h     rules, questions and events of the network meanwhile
 */
#pragma once
#include <poll.h>
#include <signal.h>
#include <sys/types.h>
#include "base/fd.h"
#include "supervisor/run.h"
#include "survey/cgroup.h"
#include "sys/tty.h"
#include "protocol/control.h"

#define NEVER UINT64_MAX /* a time (microseconds, monotonic) that does not come */

#define PROC_TEXT 4096 /* bytes of a short file of /proc: status, stat, children */

uint64_t now_us(void);

/* --- relays ------------------------------------------------------------------------------------------------------- */

#define RELAY_CHUNK (64u << 10)
#define FIRST_CHUNK 2000u      /* of a capture that has nothing yet */
#define RELAY_PIPE  (1u << 20) /* asked for by F_SETPIPE_SZ; the kernel may give less */

enum relay_kind {
    RELAY_OUT,     /* box -> a descriptor of the caller         */
    RELAY_CAPTURE, /* box -> a bounded buffer, the rest dropped */
    RELAY_IN       /* the caller's stdin -> box                 */
};

/*
 * One direction of bytes. Either `hold` has bytes waiting for `to`, or `from` is read; never both, so a slow reader
 * holds back the writer as a pipe would. Ended when `from` is -1 and nothing is held.
 */
struct relay {
    enum relay_kind kind;
    int from, to; /* polled and moved between */
    bool own_from, own_to;
    bool from_socket, to_socket;
    bool pty;             /* the box's end is the pty's master: `from` (out, capture) or `to` (in) */
    bool splice;          /* the kernel moves it, no copy here */
    bool want_out;        /* a splice found `to` full */
    bool small_writes;    /* `to` may block: write little, and only when it polls writable */
    bool line_mode;       /* in: the terminal is shared; read it only while it is in line mode */
    bool terminal;        /* in: `from` is a terminal */
    bool hung_up;         /* and it has gone away */
    bool drain;           /* the box is gone: what is not there now will not come */
    uint64_t sleep_until; /* do not poll before (a pty without slaves, a terminal in somebody else's raw mode) */
    char *hold;
    size_t at, n;
    char last;           /* the byte last read, for ending a pty's input */
    struct buf *capture; /* RELAY_CAPTURE */
    void (*output)(void *ctx, int which, const char *bytes, size_t n); /* besides; or NULL */
    void *output_ctx;
    int which;
    size_t capture_max;
    bool *truncated;
    int broken; /* errno of a write that failed, but EPIPE */
};

/* Moves what can be moved without waiting, at most `room` bytes; returns how many were taken from `from`. */
size_t relay_step(struct relay *r, size_t room, uint64_t now);
/* What to poll for: fills at most two entries, returns how many. `ret_sleep` (us) is lowered when the relay sleeps. */
unsigned relay_poll(const struct relay *r, uint64_t now, struct pollfd *ret, uint64_t *ret_sleep);
/* No more will be read; what is held is still written. */
void relay_stop(struct relay *r);
void relay_close(struct relay *r);
static inline bool relay_done(const struct relay *r)
{
    return r->from < 0 && r->at == r->n;
}

/* --- stdio -------------------------------------------------------------------------------------------------------- */

struct term { /* the caller's terminal, while we use it */
    int fd;   /* the caller's descriptor of it, or -1 */
    bool may_raw, raw;
    bool keys_only;  /* keys come one by one, and what is written is still made into lines */
    bool background; /* somebody else is in the foreground: hands off until we are */
    struct term_shared *shared;
    int watcher_pid, watcher_pipe;
};

struct io {
    int give[3]; /* for struct start_request: -1 is the pty's slave */
    bool own_give[3];
    bool tty;
    int master; /* of the pty, after FRAME_TTY, or -1 */
    struct relay relays[4];
    unsigned n_relays;
    int tty_out, tty_in; /* relays that wait for the master, or -1 */
    struct term term;
    bool all_output_passes; /* output is counted */
    uint64_t out_bytes;
    int stdin_fd;       /* the caller's */
    bool stdin_is_file; /* given as it is, to be opened again inside */
    int output_errno;   /* writing the command's output failed (ENOSPC), or 0 */
};

void io_none(struct io *io); /* so that io_end may be called */
int io_begin(struct io *io, const struct box_ask *ask, const struct limits *limits, struct box_result *result,
             struct err *e);
/* After the start: closes the command's ends. */
void io_started(struct io *io);
/* The command on the pty has ended: what it wrote is still read, no more is waited for. False when there is no pty. */
bool io_last_words(struct io *io);
/* The master has come: owned from now on. */
void io_master(struct io *io, int master);
/* The builder could not open the caller's descriptor again and put a pipe in its place: `end`, owned, is ours. */
void io_pipe(struct io *io, unsigned which, int end);
/* Where the command left a stdin that was opened again inside: the caller's own position moves along. */
void io_stdin_at(const struct io *io, int64_t at);
void io_resize(struct io *io);
/* Whether the caller's terminal has gone away under us; io_hang_up() then closes the pty, too. */
bool io_hung_up(const struct io *io);
void io_hang_up(struct io *io);
/* The box is gone: its ends of the relays will bring no more than what is in the pipes. */
void io_box_gone(struct io *io);
void io_end(struct io *io);

/* Takes the terminal into raw mode where we may; starts the watcher the first time. */
int term_raw(struct term *t, struct err *e);
void term_restore(struct term *t);
/* The modes the terminal had before raw mode; only while t->raw. */
const struct termios *term_before(const struct term *t);
bool term_is_foreground(const struct term *t);
void term_end(struct term *t);

/* --- signals ------------------------------------------------------------------------------------------------------ */

struct signals {
    bool on;
    int fd; /* signalfd, or -1 */
    sigset_t taken, before;
    bool pipe_blocked, pipe_was_pending;
    int terminal_signal; /* the last SIGINT or SIGQUIT that a terminal sent */
};

int signals_begin(struct signals *s, bool foreground, struct err *e);
void signals_end(struct signals *s);

/* --- limits ------------------------------------------------------------------------------------------------------- */

struct limit_watcher {                /* samples, where no control group holds the limit */
    bool on, hard;                    /* hard: somebody asked, so sample closely */
    int builder;                      /* pid: the tree below its first child is the box */
    int command;                      /* pid: only this one and what is below it; or 0 */
    uint64_t memory, processes, disk; /* LIMIT_NONE: not watched */
    uint64_t disk_start;              /* free bytes at the start */
    int disk_fd;
    uint64_t peak, next_us, pause_us;
    uint64_t seen_memory, seen_processes, seen_disk; /* the sample that exceeded */
};

struct means { /* by what limits are held */
    enum cgroup_kind kind;
    struct cgroup_place place;
    unsigned used;                                 /* controllers with a limit of ours */
    char dir[CGROUP_CONTROLLERS][CGROUP_PATH_MAX]; /* v1: per controller; v2: [0] the box's group */
    char outer[CGROUP_PATH_MAX];                   /* v2: a group around dir[0] that must go, too, or "" */
    char aside[CGROUP_PATH_MAX];                   /* v2: where the builder is, or "" */
    struct cgroup_join join;
    int oom_event;   /* v1: eventfd; v2: inotify; or -1 */
    int helper;      /* pid: who keeps systemd's scope from being empty, or 0 */
    int helper_with; /* it ends when this is closed; or -1 */
    struct limit_watcher watcher;
    bool disk_asked, memory_seen;  /* memory_seen: an event said so */
    bool container;                /* memory is limited by an engine's container */
    char engines[CGROUP_PATH_MAX]; /* the memory group of an engine's container, or "" */
};

struct limits_hit {
    enum box_limit limit;
    uint64_t seen, allowed;
};

void limits_none(struct means *m); /* so that limits_end may be called */
int limits_begin(struct means *m, const struct plan *plan, struct err *e);
void limits_started(struct means *m, const struct started *s);
/* A container's group goes with the container: what it counted is read when the command has ended. */
void limits_look(struct means *m);
/* When to call limits_tick next. */
uint64_t limits_next(const struct means *m);
/* Samples; BOX_LIMIT_NONE or what was exceeded. */
enum box_limit limits_tick(struct means *m, uint64_t now, struct limits_hit *hit);
/* The event descriptor is readable: true when memory ran out. */
bool limits_event(struct means *m);
/* Ends every member of the group at once, where the kernel can (v2). */
void limits_kill(const struct means *m);
/* After the box is gone: reads counters, removes the groups; fills `hit` when it is empty and a counter says so. */
void limits_end(struct means *m, struct box_result *r, struct limits_hit *hit);

int cgroup1_begin(struct means *m, const struct limits *l, struct err *e);
void cgroup1_end(struct means *m, struct box_result *r, bool *oom, bool *pids);
int cgroup2_begin(struct means *m, const struct limits *l, struct err *e);
/* In the calling process, whose own group is the delegated, otherwise empty `scope`. */
int cgroup2_begin_scope(struct means *m, const char *scope, const struct limits *l, struct err *e);
void cgroup2_count(const struct means *m, struct box_result *r, bool *oom, bool *pids);
void cgroup2_end(struct means *m);
typedef int engine_start_fn(const struct start_request *ask, struct started *ret, struct err *e);
/* Where only a process inside the scope may make the box's group (CGROUP_V2_SYSTEMD): `begin` is called by a helper there. */
int systemd_start(struct means *m, const struct limits *l, engine_start_fn *begin, struct start_request *request,
                  struct started *ret, struct err *e);
/* After the counters have been read: systemd may have its scope back. */
void systemd_leave(struct means *m);
/* A fresh name "pinfold-PID-START-N", and the removal of what dead pinfolds left in `parent`. */
void group_name(char *ret, size_t n);
void group_sweep(const char *parent);
/* rmdir, waiting up to a second for the last members to be gone. */
void group_remove(const char *dir);
#define CPU_PERIOD_US 100000u /* the kernel's own default */
int group_write(const char *dir, const char *name, const char *value);
int group_write_number(const char *dir, const char *name, uint64_t value);
/* The number in a one-line file, or after `key` in a file of "key number" lines (key NULL: the first number). */
int group_read_number(const char *dir, const char *name, const char *key, uint64_t *ret);

/* The command `inside` (its pid in the box) of a box below `session daemon`: its pid out here; 0: it has ended; -1: the box's
   processes cannot be seen. */
int watcher_find(int sessiond, int inside);
void watcher_start(struct limit_watcher *w, const struct started *s, uint64_t now);
enum box_limit watcher_sample(struct limit_watcher *w, uint64_t now);
int watcher_disk(struct limit_watcher *w, const char *workspace, uint64_t limit);
/* What was used until now is not counted. */
void watcher_disk_from_now(struct limit_watcher *w);
void watcher_end(struct limit_watcher *w);

/* --- the run ------------------------------------------------------------------------------------------------------ */

enum stage {
    STAGE_RUNNING, /* the command is alive                                             next: all below             */
    STAGE_GRACE,   /* SIGTERM was sent to everyone                                     next: ENDING, GONE          */
    STAGE_ENDING,  /* the command ended or must: FRAME_END was sent                    next: GONE                  */
    STAGE_GONE /* nothing of the box is left; only bytes in pipes are left                  no way back                 */
};

struct box {
    const struct box_ask *ask;
    const struct box_exec *exec; /* one command in somebody else's box: started.control is its reply socket */
    bool cancelled;              /* by exec->cancel_fd */
    bool begun;                  /* a box that is kept: pid 1 serves */
    int gone_errno;              /* exec: what the session daemon said instead of running it */
    const struct limits *limits;
    struct box_result *result;
    struct err *err;
    struct started started;
    struct io io;
    struct egress_process {
        int pid, pidfd; /* -1: the plan needs none */
        int sockets;    /* the builder's end of where the sockets go, until it started */
        int events;     /* struct egress_event comes here; its closing ends the egress */
        void *memory;   /* what the child begins with, ours */
    } egress;
    struct live *live; /* supervisor/network/live.h; NULL where there is no egress */
    struct publish_process {
        pid_t pid;   /* -1: nothing is published */
        int sockets; /* the builder's end of where its namespaces go, until it started */
        int events;  /* its closing ends the process */
        void *ask;   /* struct egress_ask, ours */
    } publish;
    struct means means;
    struct signals signals;
    enum stage stage;
    int failed; /* -errno of a verdict: the box failed before the command */
    uint64_t began, deadline /* timeout, then grace, then the builder's patience */;
    bool timed_out;
    bool last_words; /* the command has ended; the box ends when what it wrote to its terminal has been read */
    bool all_gone;   /* FRAME_GONE came */
    bool audit_given_up;
    enum stop_step { STOP_NONE, STOP_ASKED /* SIGTSTP was sent */, STOP_FORCED /* SIGSTOP was sent */ } stop;
    uint64_t stop_deadline;    /* of that step */
    uint64_t lasting_at;       /* when to call ask->lasting, NEVER: not (any more) */
    uint64_t stop_report_late; /* until then the report of a stop that we did not wait for may still come */
    bool give_up_output;       /* a signal came while only bytes were left to write */
    struct limits_hit hit;
    void *audit; /* struct audit_log, opened at the first event */
};

int loop(struct box *b);
/* Starts the end of the box for `limit`; the first reason stays. */
void loop_limit(struct box *b, enum box_limit limit);
struct frame;
void box_send(struct box *b, const struct frame *f);
/* The terminal of the box has the size of the caller's. That of a virtual machine is the machine's own, which is told. */
void box_resize(struct box *b);
void box_signal(struct box *b, int sig, enum signal_target target);
void loop_end_box(struct box *b);
void signals_read(struct box *b);
/* The command has stopped: hand the terminal back and stop this process, until it is continued. */
void signals_stop_self(struct box *b);
/* The next step of a stop that is under way is due. */
void signals_stop_due(struct box *b);

/* The egress process of net allow: forked before the box, handed its sockets by the builder (supervisor/network/egress.c). */
void egress_none(struct box *b);
int egress_begin(struct box *b);
void egress_started(struct box *b); /* or failed to: the builder's ends are closed */
bool egress_read(struct box *b);    /* events; false at the end of file: the egress is gone */
void egress_end(struct box *b);

/* An equal one is kept already. */
bool denial_is_new(const struct box *b, const struct denial *d);
/* Keeps a copy of `d`, tells, logs; or counts it. */
void denial_keep(struct box *b, const struct denial *d);
void denial_log(struct box *b, const struct denial *d);
void network_free(struct box_result *r);
void network_end(struct box *b);

/* The process of published ports (supervisor/network/publish.c), in the same manner. */
void publish_none(struct box *b);
int publish_begin(struct box *b);
void publish_started(struct box *b);
void publish_end(struct box *b); /* once the box is gone: what is still to be read by a client goes out first */

void denial_frame(struct box *b, const struct denial_frame *f, size_t n);
void told_frame(struct box *b, const struct denial_frame *f, size_t n); /* told.c */
void told_free_all(struct box_result *r);
void denial_limit(struct box *b, const struct limits_hit *hit);
void denial_offline(struct box *b); /* a command that failed in a box without a network, and looked for one */
void denial_end(struct box *b);
void denial_free_all(struct box_result *r);
