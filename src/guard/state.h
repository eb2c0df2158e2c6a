/*
 * What the files of guard/ share: the state of one worker, the call it serves, places (a directory and a name in it)
 * and objects. What they do for each other: workers.h, places/places.h, rules/rules.h, calls/calls.h.
 *
 * Path of a call: dispatch.c receives it, target.c identifies the caller and copies its arguments, resolve.c walks to
 * the place by descriptors, verdict.c consults the rules (judge.c) and the file system, name.c / open.c / attribute.c /
 * socket.c perform it, dispatch.c answers. A handler returns the call's result, -errno, or one of these:
 */
#pragma once
#include <limits.h>
#include <linux/seccomp.h>
#include <stdatomic.h>
#include "base/buf.h"
#include "base/text.h"
#include "git/gitconfig.h"
#include "guard/guard.h"
#include "judge/judge.h"
#include "judge/layout.h"
#include "sys/file.h"
#include "sys/notify.h"
#include "sys/process.h"
#include "protocol/control.h"

#define ANSWERED LONG_MAX       /* the handler has sent the answer */
#define CONTINUE (LONG_MAX - 1) /* let the kernel perform the call: only if nothing depends on memory or names */
/* Larger than any descriptor, because a call may return any number from 0 on. */
#define MOVES_ASK    (-4096)       /* verdict_rename: hooks have to judge first (branches.c); no errno */
#define GONE_ON      (INT_MAX - 1) /* guard_may_block: another process finishes this call; drop it */
#define AGAIN        (INT_MAX - 2) /* inside open.c: start over, the place has changed */
#define WORKERS_MAX  64
#define FILES_MAX    16 /* of those: workers of the file API */
#define TARGETS      64
#define BORN_MAX     1024
#define ABSTRACT_MAX 1024
#define HIDDEN_MAX   256
#define HIDDEN_DIRS  64 /* of those: directories that are tracked */
#define SEEN_MAX     256
#define FREE_MAX     64    /* programs */
#define LINKS_MADE   65536 /* files with several names made by this guard; pages are allocated on use */
#define MASKS        256
#define DEVICES      32
#define WATCHED_MAX  16          /* of those: watchers of a .gitmodules */
#define WATCHERS     WATCHED_MAX /* calls wait for all: one that lands later would put back what was there before */
#define PLACE_PATH   (PATH_MAX + NAME_MAX + 2)
#define HOLDS_MAX    24
#define REPEATED_MAX 1024
#define KEPT_DIRS    128
#define QUIET_TEXTS  2048
#define KEPT_TEXT    240 /* of their paths; longer ones are looked at each time */

/* ---- shared by all workers (MAP_SHARED) ---- */

struct born { /* an object created in this box */
    uint64_t device, inode;
    int64_t seconds;
    uint32_t nanoseconds;
};
struct hidden { /* what was at a hidden name */
    struct born is;
    uint32_t rule; /* index in the table */
    int fd;        /* of a directory, O_PATH; -1 */
};
struct links { /* a file, and how many of its names this guard made */
    struct born is;
    uint32_t n; /* 0: unused entry */
};
struct mask { /* the umask that a process has set */
    int32_t tgid;
    uint32_t value;
    uint64_t when; /* shared.clock */
};
struct places { /* paths one after the other, each with its NUL */
    uint32_t n, left_out;
    char text[32 << 10];
};
struct watcher {                  /* process that watches a .gitmodules while it is written */
    int32_t pid;                  /* 0: none; removed, under the table's lock, before it ends */
    _Atomic uint32_t asked, told; /* requests to look so far, and how many of them are done */
};
struct shared {
    _Atomic uint32_t names;         /* lock of the name space: number of readers, or NAMES_WRITER */
    _Atomic uint32_t names_waiting; /* workers that the kernel holds for it */
    _Atomic uint32_t idle;          /* workers waiting for the token */
    _Atomic uint32_t main_idle;     /* the main worker waits */
    _Atomic uint32_t workers;
    _Atomic uint32_t files, watched;
    _Atomic uint32_t locks_own,
        lock_queue;              /* flock.c: processes that wait for one lock each; whether there is a queue */
    _Atomic uint32_t epoch;      /* incremented when the token is taken from a hung leader */
    _Atomic uint64_t busy_since; /* in ms; 0: the leader waits for a call */
    _Atomic uint32_t last;       /* thread whose call was received last */
    _Atomic uint32_t table;      /* a small lock for what follows */
    uint64_t clock, masks_dropped;
    struct mask masks[MASKS];
    struct born born[BORN_MAX];
    uint32_t born_at;
    struct hidden seen[SEEN_MAX];
    uint32_t seen_at;
    struct born free[FREE_MAX]; /* programs found where nothing is hidden */
    uint32_t free_at;
    uint64_t abstract[ABSTRACT_MAX]; /* inodes of sockets bound to an abstract name in this box */
    uint32_t abstract_at;
    struct bucket {
        uint64_t ms;
        uint32_t left, dropped;
    } denials, built, looks, inquiries, grants; /* rate limits of frames: DENIAL_BURST, which refill (deny.c) */
    int32_t pids[WORKERS_MAX];
    bool ends; /* those in `pids` have been killed: who is not in it yet leaves by itself. Under the table's lock */
    _Atomic uint32_t watching; /* entries of `watchers` in use */
    struct watcher watchers[WATCHERS];
    _Atomic uint32_t linked; /* whether there ever was an entry in: */
    struct links links[LINKS_MADE];
    /* Unused until the first entry: roots of others' repositories that are gone, and of those made here
       (reporoot.c). */
    struct places lost, made, left; /* left: links and FIFOs (told.c) */
    struct places points;           /* point.c */
    struct repeated {
        uint32_t key, times, told; /* key 0: unused entry */
    } repeated[REPEATED_MAX];      /* calls of a monitored box that failed (calls/monitor.c) */
    bool repeats;                  /* whether there ever was one of these: what was never used takes no memory */
    _Atomic uint32_t moves; /* renames, links and modes in it: a name may mean something else since (calls/quiet.c) */
};

/* ---- the caller ---- */

struct target {
    pid_t tid, tgid;         /* in the guard's pid namespace; tgid 0: status not read yet */
    int proc;                /* /proc/TID, O_PATH */
    int pidfd;               /* of the thread (Linux 6.9), or -1 */
    int process;             /* of the process, before Linux 6.9, if needed; or -1 */
    pid_t box_tid, box_tgid; /* in the box's pid namespace */
    pid_t own_tid, own_tgid; /* in its own pid namespace */
    pid_t tracer;
    uint32_t umask;
    uint64_t umask_when;
};

/* ---- places ---- */

struct place {
    int dir; /* O_PATH; owned unless borrowed */
    bool borrowed;
    /*
     * For a place in a mount that the caller made (nested.c): the directory as the caller sees it, owned, or -1. Then
     * `dir` is the same directory in the box's own mount, where nothing can be mounted over a name; rules are checked
     * there.
     */
    int seen;
    bool frozen;             /* the caller sees it read-only, and so does `dir`: nothing may be changed */
    bool slash;              /* a "/" followed the name: it must be a directory */
    bool plain;              /* an ordinary name: neither ".", ".." nor "/" */
    char name[NAME_MAX + 2]; /* as passed to the kernel, with the slash */
    size_t name_n;           /* without the slash */
    char path[PLACE_PATH];   /* canonical: directory, "/", name */
    size_t dir_n, n;         /* lengths of the directory's path ("" for the root: 0) and of all */
};
/* A directory locked against all boxes (hold.c). */
struct hold {
    int fd;
    uint64_t device, inode;
};
struct object {
    int fd; /* O_PATH, owned */
    struct sys_stat st;
    bool magic;  /* reached through a magic link of /proc: trust its identity, not its path */
    bool proc;   /* is in a proc file system */
    bool placed; /* in a mount that is not ours, judged by its place in the box */
    bool held;   /* the caller already has it open for writing, so a reopen grants nothing */
    char path[PLACE_PATH];
    size_t n;
};
/* The directory in which the call is performed, with whatever the caller has mounted in it. */
static inline int place_seen(const struct place *p)
{
    return p->seen >= 0 ? p->seen : p->dir;
}
/* hardlink.c: a copy that will replace a file with other names, for the call being served. */
struct hardlink_copy {
    bool waits, named; /* a copy exists; it has the name `temp` in `dir` */
    int fd, dir;       /* fd -1: a symbolic link, not created yet */
    uint32_t tries;
    struct sys_stat of; /* the original */
    char temp[64];
};
static inline struct str place_path(const struct place *p)
{
    return (struct str){p->path, p->n};
}
/* The last component without a slash behind it; "" of the root. */
static inline const char *place_bare(const struct place *p)
{
    return p->path + p->dir_n + 1;
}
static inline struct str place_last(const struct place *p)
{
    return (struct str){p->name, p->name_n};
}
/* What is there now, a link itself: 0 or -errno. */
static inline int place_stat(const struct place *p, unsigned mask, struct sys_stat *ret)
{
    return sys_stat_at(p->dir, place_bare(p), AT_SYMLINK_NOFOLLOW, mask, ret);
}
/* Something is there, or may be. */
static inline bool place_taken(const struct place *p)
{
    struct sys_stat st;
    return place_stat(p, SYS_STAT_BASIC, &st) != -ENOENT;
}
static inline struct str place_dir(const struct place *p)
{
    return p->dir_n ? (struct str){p->path, p->dir_n} : (struct str){"/", 1};
}
static inline struct str object_path(const struct object *o)
{
    return (struct str){o->path, o->n};
}

/* ---- one worker ---- */

struct guard {
    const struct plan_image *plan;
    struct rules rules;
    struct shared *shared;
    int notify, host_proc, report, init_pidfd;
    int self_fd;       /* /proc/self/fd of the guard's own process; also its working directory */
    int token, summon; /* eventfds: whoever reads one receives calls; the second is for the main worker */
    int children;      /* signalfd; -1 except in the main worker */
    int locks[2];      /* to the queue of flock.c: it receives from the first */
    int lent;          /* -1, or the caller's open file, which no process that is forked now may keep open */
    bool main, leader, parallel;
    long main_pid;
    bool again;        /* pidfd_getfd(2) is refused: descriptors are opened again (again.c) */
    bool memory_files; /* the caller's memory is read by /proc/TID/mem: process_vm_readv(2) is refused */
    bool deaf;         /* pinfold sends nothing any more */
    bool watches;      /* puts in place what was written (gitdir.c), also after the end of the box */
    void (*files)(struct guard *g, int socket);
    void (*serve)(struct guard *g); /* a worker's main loop (dispatch.c) */
    uint32_t epoch;
    uint32_t processors;                     /* how many may work in parallel */
    uint32_t umask;                          /* ours at the moment */
    struct sys_processor_set processors_own; /* on which this worker may run; no bytes: not looked at yet (install.c) */
    bool processors_whole;                   /* these are all of its cpuset */
    struct sys_processor_set processors_here; /* the one where it stays, for so many calls more: */
    unsigned stays;
    uint32_t stays_for; /* calls of this thread */
    int installs;
    int names_held; /* 0, 1 shared, 2 exclusive */
    bool has_ptrace, ptrace_off;
    bool nested;       /* callers may have their own mount namespaces (nested.c) */
    int init_pid;      /* of pid 1, in the box's /proc */
    uint64_t own_text; /* where the texts of this program are in pid 1's memory */
    int init_tid;      /* the same in the guard's /proc; 0: not looked up yet */
    bool proc_has_us;  /* the box's /proc shows the guard: there is no pid namespace between */
    bool proc_known;
    uint64_t proc_device; /* of the box's /proc, if known; 0: none */
    struct target targets[TARGETS];
    struct {
        uint64_t device;
        uint32_t kind;
    } devices[DEVICES];
    unsigned n_devices;
    struct hidden hidden[HIDDEN_MAX]; /* from the start; the same in every worker */
    unsigned n_hidden;
    uint64_t *mounts; /* ids of the mounts in our namespace, sorted */
    size_t n_mounts;
    int mounts_fd;       /* where they were read, or -1: the worker's own, because each open file tells a change once */
    struct shown *shown; /* what each of them shows (nested.c) */
    /* Only in a worker of the file API (file_api.c). */
    bool ours;     /* the call comes from pinfold: its texts are in our own memory */
    int given;     /* the opened file */
    char why[256]; /* the reason of a refusal */
    const struct rule *why_rule;
    struct kept_dir { /* where the name of a directory has led (calls/quiet.c) */
        uint64_t until;
        uint32_t moves;
        uint16_t n, real_n; /* n 0: unused entry */
        bool clear;         /* of no name in it the host may have something that the box has not */
        char text[KEPT_TEXT], real[KEPT_TEXT];
    } kept[KEPT_DIRS];
    struct quiet_text { /* a path of which there was nothing to tell */
        uint64_t sum, until;
        uint32_t moves;
    } quiet[QUIET_TEXTS];
    struct last_dir { /* where the last relative path led (resolve.c) */
        bool used;    /* by the call being served, which may have two: `fd` stays open until it is done */
        bool known;   /* what it is */
        int fd;
        uint16_t n; /* of the text and its NUL; 0: there is none */
        char text[KEPT_TEXT];
        struct sys_stat is;
    } last;
    bool null_kept; /* /dev/null, which may be written (open.c) */
    int null;
    struct sys_stat null_is;
    uint64_t seed;
    uint32_t served; /* calls, by the main worker while no other leads (workers_apart()) */
    bool quick;      /* the last call was one of which there was nothing to tell */
    bool handed;     /* `n` was received before this process began */
    bool alone;      /* the last call that was to be received was none: maybe no process with the filter is left */
    /* The call being served. */
    uint32_t moves; /* shared.moves when it was looked at */
    struct seccomp_notif n;
    struct target *who;
    bool sure; /* it has not ended since it was found: what is remembered of it is the caller's (target_sure()) */
    struct target passing; /* of an unknown thread (target_likely()) */
    struct place from, to;
    struct object object;
    struct hold holds[HOLDS_MAX];
    unsigned n_holds;
    struct hardlink_copy copy;
    /* Protected branches that it moves, as protocol/moves.h has them, and whether those were passed (branches.c). */
    struct moves {
        char *lines; /* owned, or NULL */
        size_t n;
        bool passed;
        const struct rule *rule;
        char path[PLACE_PATH]; /* of what is replaced */
        size_t path_n;
    } wanted;
    bool told;    /* its refusal was reported by deny() */
    bool unread;  /* its memory could not be read: said once it is answered (dispatch.c) */
    bool birth;   /* this call creates a guarded name that did not exist: guard mode "existing", or a mount point */
    bool crosses; /* the directory that is renamed changes to another repository, or from none into one (deep.c) */
    bool point;   /* allowed only as a mount point: the creator gets no writable descriptor */
    char text[2][PATH_MAX];
    char walk[2 * PATH_MAX];
    char bytes[64 << 10];
};
