/*
 * Shared by the files of supervisor/: one struct box per run, on the stack of box_run() and its like, and the begin and end of each
 * part.
 *
 *     run.c      order of everything       io.c       the command's descriptors 0, 1, 2
 *     loop.c     waiting and stages        relay.c    moving data
 *     signals.c  forwarding, stopping      term.c     raw mode and its watcher
 *     limits.c   choosing the means        cgroup1.c cgroup2.c groups.c systemd.c watcher.c   the means
 *     told.c     frames -> what the box leaves behind     monitor.c   frames of a monitored box -> denials
 *     inquiry.c  questions of the box's own processes        grant.c   files that somebody allows meanwhile
 *     command_line.c   a process's words, without secrets                                      sink.c   events elsewhere
 *     meanwhile.c      what the caller does now and then while the box lives
 *     denial.c   frames -> denials         audit.c    denials -> audit log            result.c   JSON
 *     egress.c   the egress proxy          live.h     rules, questions and events of the network
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

#define NEVER UINT64_MAX /* a time (microseconds, monotonic) that never comes */

#define PROC_TEXT 4096 /* large enough for a short file of /proc: status, stat, children */

uint64_t now_us(void);

/* --- relays ------------------------------------------------------------------------------------------------------- */

#define RELAY_CHUNK (64u << 10)
#define FIRST_CHUNK 2000u      /* of an empty capture buffer */
#define RELAY_PIPE  (1u << 20) /* requested with F_SETPIPE_SZ; the kernel may grant less */

enum relay_kind {
    RELAY_OUT,     /* box -> a descriptor of the caller */
    RELAY_CAPTURE, /* box -> a bounded buffer, the rest dropped */
    RELAY_IN       /* the caller's stdin -> box */
};

/*
 * One direction of data. Either `hold` has data waiting for `to`, or `from` is read, never both; so a slow reader slows
 * the writer down as a pipe would. Finished when `from` is -1 and nothing is held.
 */
struct relay {
    enum relay_kind kind;
    int from, to; /* polled; data moves between them */
    bool own_from, own_to;
    bool from_socket, to_socket;
    bool pty;             /* the box's end is the pty's master: `from` (out, capture) or `to` (in) */
    bool splice;          /* use splice(2): the data is not copied here */
    bool want_out;        /* splice(2) found `to` full */
    bool small_writes;    /* `to` may block: write little, and only when it polls writable */
    bool line_mode;       /* in: the terminal is shared; read it only in line mode */
    bool terminal;        /* in: `from` is a terminal */
    bool hung_up;         /* and it has hung up */
    int ahead;            /* bytes of it that were typed before it was raw; among them its end of file is a 0 */
    char ahead_eof;       /* the character that was */
    bool drain;           /* the box has ended: no more data will arrive */
    uint64_t sleep_until; /* do not poll before (a pty without slaves, a terminal in another program's raw mode) */
    char *hold;
    size_t at, n;
    char last;                                                         /* last byte read, for ending a pty's input */
    struct buf *capture;                                               /* RELAY_CAPTURE */
    void (*output)(void *ctx, int which, const char *bytes, size_t n); /* also called; or NULL */
    void *output_ctx;
    int which;
    size_t capture_max;
    bool *truncated;
    int broken; /* errno of a failed write, except EPIPE */
};

/* Moves data without waiting, at most `room` bytes; returns how many were read from `from`. */
size_t relay_step(struct relay *r, size_t room, uint64_t now);
/* Fills in at most two poll entries and returns how many. Lowers `ret_sleep` (us) if the relay sleeps. */
unsigned relay_poll(const struct relay *r, uint64_t now, struct pollfd *ret, uint64_t *ret_sleep);
/* Reads no more; what is held is still written. */
void relay_stop(struct relay *r);
void relay_close(struct relay *r);
static inline bool relay_done(const struct relay *r)
{
    return r->from < 0 && r->at == r->n;
}

/* --- stdio -------------------------------------------------------------------------------------------------------- */

struct term { /* the caller's terminal while we use it */
    int fd;   /* the caller's descriptor, or -1 */
    bool may_raw, raw;
    bool keys_only;  /* input is unbuffered, but output still gets line processing */
    bool background; /* another process group is in the foreground: do nothing until we are */
    bool signals;    /* keys still make signals: what they shall go to has not answered yet */
    struct term_shared *shared;
    int watcher_pid, watcher_pipe;
};

struct io {
    int give[3]; /* for struct start_request: -1 is the pty's slave */
    bool own_give[3];
    bool tty;
    int master; /* master side of the pty, after FRAME_TTY, or -1 */
    struct relay relays[4];
    unsigned n_relays;
    int tty_out, tty_in; /* relays waiting for the master, or -1 */
    struct term term;
    bool all_output_passes; /* all output is read here, because it is counted */
    uint64_t out_bytes;
    int stdin_fd;       /* the caller's */
    bool stdin_is_file; /* passed as it is, to be reopened in the box */
    int output_errno;   /* errno of writing the command's output (ENOSPC), or 0 */
};

void io_none(struct io *io); /* so that io_end may be called */
/* `own_box`: of an engine, which opens a file anew as standard input where a session's pid 1 cannot. */
int io_begin(struct io *io, const struct box_command *command, bool own_box, const struct limits *limits,
             struct box_result *result, struct err *e);
/* After the start: closes the command's ends. */
void io_started(struct io *io);
/* The command on the pty has ended: reads what it wrote, without waiting for more. False without a pty. */
bool io_last_words(struct io *io);
/* The master has arrived; takes ownership. */
void io_master(struct io *io, int master);
/* The builder could not reopen the caller's descriptor and uses a pipe instead: `end` is ours. */
void io_pipe(struct io *io, unsigned which, int end);
/* Sets the file offset of the caller's stdin to where the command left the reopened file. */
void io_stdin_at(const struct io *io, int64_t at);
void io_resize(struct io *io);
/* Whether the caller's terminal has hung up; io_hang_up() then closes the pty, too. */
bool io_hung_up(const struct io *io);
void io_hang_up(struct io *io);
/* The box has ended: only data already in the pipes will arrive. */
void io_box_gone(struct io *io);
void io_end(struct io *io);

/* Sets raw mode if we may; starts the watcher the first time. */
int term_raw(struct term *t, struct err *e);
/* From now on keys make no signals (t->signals). */
void term_answered(struct term *t);
void term_restore(struct term *t);
/* The modes before raw mode; only while t->raw. */
const struct termios *term_before(const struct term *t);
bool term_is_foreground(const struct term *t);
void term_end(struct term *t);

#define UNHEARD_US                                                                                                     \
    2000000u /* for a session to read what a signal is forwarded with, on a machine that has no time for it */

/* --- signals ------------------------------------------------------------------------------------------------------ */

struct signals {
    bool on;
    int fd; /* signalfd, or -1 */
    sigset_t taken, before;
    bool pipe_blocked, pipe_was_pending;
    int terminal_signal;  /* the last SIGINT or SIGQUIT from a terminal */
    uint32_t not_ignored; /* bits (1 << number) of those that were found not to be ignored */
};

int signals_begin(struct signals *s, bool foreground, struct err *e);
void signals_end(struct signals *s);

/* --- limits ------------------------------------------------------------------------------------------------------- */

struct limit_watcher {                /* takes samples, for limits without a control group */
    bool on, hard;                    /* hard: explicitly requested, so sample often */
    int builder;                      /* pid; the box is the tree below its first child */
    int command;                      /* pid; only it and its descendants; or 0 */
    uint64_t memory, processes, disk; /* LIMIT_NONE: not watched */
    uint64_t disk_start;              /* free bytes at the start */
    int disk_fd;
    int tmp_fd; /* the box's own tmpfs, of which all its private places are parts; -1: not found (yet) */
    uint64_t peak, next_us, pause_us;
    uint64_t seen_memory, seen_processes, seen_disk; /* the sample above the limit */
    struct sample *sample;                           /* room for one, once the first was taken */
};

struct limit_pacer { /* stops and continues the box, for a limit of processor time without a control group */
    uint64_t quota;  /* thousandths of a processor; 0: off */
    uint64_t slice_us, idle_us, next_us, looked_us;
    uint64_t last_us;      /* processor time at the last look, of what is there */
    uint64_t looked_ticks; /* that look, in clock ticks since the machine's start */
    uint64_t used_us;      /* since the start, what was counted */
    uint64_t waited_us;    /* for processes to stop, this time */
    uint64_t late_us;      /* since when something has been late */
    int64_t credit_us;     /* what the box may use at once; below 0: what it owes */
    struct paced *stopped;
    unsigned n, room; /* n > 0: the box stands still */
    bool late;        /* but for what waits for a processor, and what is below that */
    int builder;      /* the parent of the box's first process, which is not paced */
};

struct group_paths {
    char dir[CGROUP_CONTROLLERS][CGROUP_PATH_MAX]; /* v1: per controller; v2: [0] the box's group */
    char outer[CGROUP_PATH_MAX];                   /* v2: a group around dir[0] to be removed, too, or "" */
    char aside[CGROUP_PATH_MAX];                   /* v2: the builder's group, or "" */
    char engines[CGROUP_PATH_MAX];                 /* the memory control group of an engine's container, or "" */
};

struct means { /* the means by which limits are enforced */
    enum cgroup_kind kind;
    unsigned used;             /* controllers with one of our limits */
    struct group_paths *paths; /* owned; NULL: no control group. Six KiB, which a waiting box would keep on its stack */
    struct cgroup_join join;
    int oom_event;   /* v1: eventfd; v2: inotify; or -1 */
    int helper;      /* pid of a process that keeps systemd's scope from being empty, or 0 */
    int helper_with; /* closing this ends it; or -1 */
    struct limit_watcher watcher;
    struct limit_pacer pacer;
    bool disk_asked, memory_seen; /* memory_seen: an event reported it */
    bool container;               /* an engine's container limits memory */
};

struct limits_hit {
    enum box_limit limit;
    uint64_t seen, allowed;
};

void limits_none(struct means *m); /* initialises it so that limits_end may be called */
int limits_begin(struct means *m, const struct plan *plan, struct err *e);
void limits_started(struct means *m, const struct started *s);
/* A container's group is removed with it: call when the command has ended, to read its counters. */
void limits_look(struct means *m);
/* When to call limits_tick next. */
uint64_t limits_next(const struct means *m);
/* Takes a sample; returns BOX_LIMIT_NONE or the limit that was exceeded. */
void limits_release(struct means *m); /* the box is about to end */
enum box_limit limits_tick(struct means *m, uint64_t now, struct limits_hit *hit);
/* Call when the event descriptor is readable: true if memory ran out. */
bool limits_event(struct means *m);
/* Kills all members of the group at once, if the kernel can (v2). */
void limits_kill(const struct means *m);
/* After the box has ended: reads counters, removes the groups; fills in `hit` if it is empty and a counter says so. */
void limits_end(struct means *m, struct box_result *r, struct limits_hit *hit);

int cgroup1_begin(struct means *m, const struct cgroup_place *place, const struct limits *l, struct err *e);
void cgroup1_end(struct means *m, struct box_result *r, bool *oom, bool *pids);
int cgroup2_begin(struct means *m, const struct cgroup_place *place, const struct limits *l, struct err *e);
/* In the calling process, whose group is the delegated and otherwise empty `scope`. */
int cgroup2_begin_scope(struct means *m, const char *scope, const struct limits *l, struct err *e);
void cgroup2_count(const struct means *m, struct box_result *r, bool *oom, bool *pids);
void cgroup2_end(struct means *m);
typedef int engine_start_fn(const struct start_request *ask, struct started *ret, struct err *e);
/* Where only a process inside the scope may make the box's group (CGROUP_V2_SYSTEMD): `begin` is called by a helper there. */
int systemd_start(struct means *m, const struct limits *l, engine_start_fn *begin, struct start_request *request,
                  struct started *ret, struct err *e);
/* After reading the counters: leaves the scope to systemd. */
void systemd_leave(struct means *m);
/* Makes a new name "pinfold-PID-START-N", and removes what dead pinfolds left in `parent`. */
void group_name(char *ret, size_t n);
void group_sweep(const char *parent);
/* rmdir, waiting for the last members to exit. */
void group_remove(const char *dir);
#define CPU_PERIOD_US 100000u /* the kernel's default */
int group_write(const char *dir, const char *name, const char *value);
int group_write_number(const char *dir, const char *name, uint64_t value);
/* Reads the number in a one-line file, or after `key` in a file of "key number" lines (key NULL: the first number). */
int group_read_number(const char *dir, const char *name, const char *key, uint64_t *ret);

/* Finds the command with pid `inside` of a box below the session daemon: its pid on the host; 0: it has ended; -1:
   the box's processes are not visible. */
int watcher_find(int sessiond, int inside);
void watcher_start(struct limit_watcher *w, const struct started *s, uint64_t now);
enum box_limit watcher_sample(struct limit_watcher *w, uint64_t now);
int watcher_disk(struct limit_watcher *w, const char *workspace, uint64_t limit);
/* Counts disk usage from now on. */
void watcher_disk_from_now(struct limit_watcher *w);
/* Processor time of the box (of the command, in a session) so far, in microseconds; from the engine's `s`. */
uint64_t watcher_cpu(const struct limit_watcher *w, const struct started *s);
void watcher_end(struct limit_watcher *w);
/* Calls `see` for each process of the box and its parent: parents first, and a process's children are looked for after
   the call. */
void watcher_walk(const struct limit_watcher *w, void (*see)(void *ctx, int pid, int parent), void *ctx);
/* Calls `take` for each child of each thread of `pid`; returns the number of its threads. */
uint64_t watcher_children(int pid, void (*take)(void *ctx, int child), void *ctx);

#define PACED_MAX 4096                                        /* processes that are stopped at one time */
int pacer_start(struct limit_pacer *p, uint64_t thousandths); /* of a processor; -ENOMEM */
void pacer_begin(struct limit_pacer *p, uint64_t now);        /* the box runs */
void pacer_tick(struct limit_pacer *p, const struct limit_watcher *box, uint64_t now);
/* Continues the box, as before its end: what stands still acts on nothing. */
void pacer_release(struct limit_pacer *p);
void pacer_end(struct limit_pacer *p);

/* --- the run ------------------------------------------------------------------------------------------------------ */

enum stage {
    STAGE_RUNNING, /* next: all below */
    STAGE_GRACE,   /* SIGTERM was sent to everyone                                     next: ENDING, GONE */
    STAGE_ENDING,  /* the command ended or must: FRAME_END was sent                    next: GONE */
    STAGE_GONE     /* nothing of the box is left; only bytes in pipes are left                  no way back */
};

/* Processes between the box and an agent of its user. */
enum filter_kind { FILTER_SSH, FILTER_GPG, FILTERS };

/* Questions of the box's processes that wait for an answer (inquiry.c). */
#define INQUIRIES_MAX 4u
struct inquiries {
    unsigned n;
    int fds[INQUIRIES_MAX];
    uint64_t full_at;
};

struct box {
    /* One of two: the box that this process starts, or a command in a box of somebody else's, whose plan is not known
       here and whose reply socket is started.control. */
    const struct run_spec *spec;
    const struct box_exec *exec;
    const struct box_command *command;   /* that one's */
    const struct box_sessiond *sessiond; /* of a box that is kept: it has no command; otherwise NULL */
    bool cancelled;                      /* by exec->cancel_fd */
    bool begun;                          /* a box for a session: pid 1 serves */
    int gone_errno;                      /* exec: errno with which the session daemon refused */
    const struct limits *limits;
    struct box_result *result;
    struct err *err;
    struct started started;
    struct io io;
    struct egress_process {
        int pid, pidfd; /* pid -1: no egress proxy */
        int sockets;    /* the builder's end of the socket for sockets, until it has started */
        int events;     /* receives struct egress_event; closing it ends the proxy */
        void *memory;   /* owned: what the child starts with */
    } egress;
    struct live *live; /* supervisor/network/live.h; NULL without an egress proxy, unless keys are asked for */
    struct publish_process {
        pid_t pid;   /* -1: nothing is published */
        int sockets; /* the builder's end of the socket for namespaces, until it has started */
        int events;  /* closing it ends the process */
        void *ask;   /* struct egress_ask, owned */
    } publish;
    struct agent_filter {
        pid_t pid;  /* -1: the box has no keys of that agent */
        int events; /* closing it ends the process */
    } filters[FILTERS];
    struct means means;
    struct signals signals;
    enum stage stage;
    int failed;          /* -errno of a verdict: the start failed */
    struct fresh *fresh; /* what came with FRAME_FRESH, n_fresh of them, owned until fresh_end() */
    size_t n_fresh;
    bool fresh_lost;   /* one could not be taken */
    bool fresh_given;  /* somebody else looks names up: the file API */
    uint32_t commands; /* the number of the last one (box_keep_command()) */
    /* Until then nothing has to be done for what is asked of box_keep_fresh(); 0: there is something. */
    uint64_t idle_until;
    uint64_t idle_look; /* when to do that, as nothing has run since command `commands`; NEVER: not (any more) */
    uint64_t fresh_at;  /* not before: fresh_awake() */
    uint64_t began, deadline /* timeout, then grace, then the builder's patience */;
    bool timed_out;
    size_t
        last_words; /* not 0: the command has ended; the box ends once its output on the terminal, at most so much, was read */
    bool all_gone; /* FRAME_GONE was received */
    bool audit_given_up;
    enum stop_step { STOP_NONE, STOP_ASKED /* SIGTSTP was sent */, STOP_FORCED /* SIGSTOP was sent */ } stop;
    uint64_t stop_deadline; /* of that step */
    uint64_t woken;         /* when the loop looked last */
    uint64_t unheard_at;    /* when a signal must have been read by the session that has the command; NEVER */
    uint64_t lasting_at;    /* when to call spec->lasting, NEVER: not (any more) */
    uint64_t idle_at;       /* when to call spec->idle, if nothing else is to be done then; NEVER: not (any more) */
    struct meanwhile {
        int pid;                   /* of the last one, until it has ended; 0: none */
        uint64_t at, began, every; /* the next one's time, the last one's, and how long to wait after it */
        uint64_t least;            /* not before so long after the last one, by what that took */
        int watch;                 /* inotify(7); -1: none */
        bool told;                 /* by it, since the last one began */
        bool new;                  /* it is still to be made */
    } meanwhile;
    uint64_t stop_report_late; /* a late report of a stop we did not wait for is ignored until then */
    bool give_up_output;       /* a signal came while only output was left to write */
    struct limits_hit hit;
    /* The last refusals of FRAME_BUILT: they become denials if the command fails. */
    struct built {
        char *path; /* owned, or NULL: that place was read-only, and the caller could change it */
        bool way;   /* in a directory that this machine lacks */
        char *argv; /* owned, or NULL */
        uint32_t action, pid;
        bool namespaces, root_map;
        char *map_argv; /* of the latter: owned, or NULL */
        char *namespace_argv;
        uint32_t map_pid;
    } built;
    struct inquiries inquiries;
    void *audit; /* struct audit_log, opened on the first event */
};

/* fresh.c */
struct fresh {
    int fs; /* fsopen(2) of a mounted overlay */
    bool read_only;
};
/* Takes ownership of `fs`. */
void fresh_take(struct box *b, int fs, bool read_only);
/* This process is awake, and has done what there was to do. */
void fresh_awake(struct box *b, uint64_t now);
/* FRAME_IDLE */
void fresh_idle(struct box *b, uint32_t number);
void fresh_idle_due(struct box *b, uint64_t now);
/* Before the end of the box, whose overlays then go with it. */
void fresh_end(struct box *b);

/* meanwhile.c */
void meanwhile_begin(struct box *b);
void meanwhile_due(struct box *b, uint64_t now);
void meanwhile_soon(struct box *b, uint64_t now);
int meanwhile_poll(
    const struct box *b); /* a descriptor that becomes readable when meanwhile_told() is to be called, or -1 */
void meanwhile_told(struct box *b, uint64_t now);
void meanwhile_end(struct box *b); /* ends it if it is at work */

void grant_frame(struct box *b, int from); /* grant.c: FRAME_GRANT */
void inquiry_take(struct box *b, int fd);  /* FRAME_INQUIRY; takes ownership */
void inquiry_poll(const struct box *b, struct pollfd p[INQUIRIES_MAX]);
void inquiry_ready(struct box *b, const struct pollfd p[INQUIRIES_MAX], uint64_t now);
void inquiries_end(struct box *b);

int loop(struct box *b);
/* Begins to end the box because of `limit`; the first reason is kept. */
void loop_limit(struct box *b, enum box_limit limit);
struct frame;
void box_send(struct box *b, const struct frame *f);
/* Gives the box's terminal the size of the caller's. In a virtual machine, pinfold-init is told. */
void box_resize(struct box *b);
void box_signal(struct box *b, int sig, enum signal_target target);
void loop_end_box(struct box *b);
void signals_read(struct box *b);
/* The command has stopped: restores the terminal and stops this process until it is continued. */
void signals_stop_self(struct box *b);
/* Call when the next step of a stop is due. */
void signals_stop_due(struct box *b);

/* The egress proxy of net allow: forked before the box; the builder sends it its sockets
   (supervisor/network/egress.c). */
void egress_none(struct box *b);
int egress_begin(struct box *b);
void egress_started(struct box *b); /* also after a failed start: closes the builder's ends */
bool egress_read(struct box *b);    /* events; false at the end of file: the proxy has exited */
void egress_end(struct box *b);

/* False if an equal one is kept already. */
bool denial_is_new(const struct box *b, const struct denial *d);
/* Keeps a copy of `d`, reports and logs it; or only counts it. */
void denial_keep(struct box *b, const struct denial *d);
void denial_log(struct box *b, const struct denial *d);
void network_free(struct box_result *r);
void network_end(struct box *b);

/* The process of published ports (supervisor/network/publish.c), likewise. */
void publish_none(struct box *b);
int publish_begin(struct box *b);
void publish_started(struct box *b);
/* A login's box: whether `port` of 127.0.0.1 leads there, or can from now on; and that it does. 0, or -errno: -EADDRINUSE. */
bool publish_can(const struct box *b, uint16_t port);
int publish_more(struct box *b, uint16_t port);
void publish_end(struct box *b); /* call when the box has ended: first sends what clients have not read yet */

/* The filters of the ssh-agent and the gpg-agent (supervisor/network/filters.c), likewise. */
void filters_none(struct box *b);
int filters_begin(struct box *b);
bool filter_read(struct box *b, enum filter_kind kind); /* false at the end of file: the filter has exited */
void filter_end(struct box *b, enum filter_kind kind);
void filters_end(struct box *b);

void denial_frame(struct box *b, const struct denial_frame *f, size_t n);
void told_frame(struct box *b, const struct denial_frame *f, size_t n); /* told.c */
void told_free_all(struct box_result *r);
void seen_frame(struct box *b, const struct denial_frame *f, size_t n); /* monitor.c */
#define EXPLAIN_ARENA (16u << 20)
bool pending_has_network(const struct box_result *r); /* a connection that a box without a network could not make */
void denial_limit(struct box *b, const struct limits_hit *hit);
void built_frame(struct box *b, const struct denial_frame *f, size_t n); /* FRAME_BUILT */
void denial_built(struct box *b, bool failed);                           /* once, at the end of the command */
/* A command failed in a box without a network after it tried to use one. `told`: a refused connection waits for its end. */
void denial_offline(struct box *b, bool told);
/* In a session without a monitor: told to the session daemon, which keeps it for the end of the command. */
void offline_in_session(struct box *b, const struct denial_frame *f);
void denial_end(struct box *b);
void denial_free_all(struct box_result *r);
