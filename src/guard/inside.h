/*
 * What the files of guard/ share: the state of one worker, the call it serves, places (a directory and a name in it)
 * and objects.
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

/* dispatch.c: waits until something is to be judged; false: the box has ended. If that takes a while, what calls that have returned had
   used of this process's stack, which reaches down to `stack`, is given back; NULL: nothing. */
bool guard_asked(const struct guard_ask *ask, char *stack);
struct guard_beginning { /* of the first command of a monitored box; zero at first (begin.c) */
    bool executed;
    pid_t tid;
    uint64_t opens; /* the instruction of its loader */
};
/* Whether a call is part of that beginning, and may go on without a look. Only the numbers of the call are read. */
bool guard_begins(struct guard_beginning *b, const struct guard_ask *ask, const struct seccomp_notif *n);
/* Waits for pid 1, which has ended or is about to; its wait status, or -errno. */
int guard_end_of_init(int init_pidfd);
/* target.c: where the texts of this program begin. */
uint64_t guard_text(void);

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

enum file_system { FS_ORDINARY = 1, FS_PROC, FS_PTS };

/* Sets g->who without asking whether a known thread has ended, and opens nothing of an unknown one: for what is thrown away then. Its
   memory can be read where process_vm_readv(2) is permitted. */
void target_likely(struct guard *g);
/* Sets g->who; -ENOENT if it is gone. */
int target_find(struct guard *g);
/* The same, but a thread that is known may have ended, and another one have its number: target_sure() finds that out. So do target_dir(),
   target_fd(), target_umask() and places of an absolute path; what else asks about g->who needs it before, if it can be the first. */
int target_expect(struct guard *g);
int target_sure(struct guard *g);
int pid_of_init(const struct guard *g);               /* as the guard's /proc has it; 1 when that cannot be told */
int target_status(struct guard *g, struct target *t); /* fills tgid, box ids, umask */
/* Its command line, words with their NULs, as it says itself; how many bytes. */
uint32_t target_line(struct guard *g, char to[DENIAL_ARGV]);
uint32_t target_session(struct guard *g); /* its session (setsid(2)) now, in the box's numbering; 0: unknown */
/* Signals that wait for a process and that it does not block, by the `status` of it in `dir`; all, if that cannot be read. */
uint64_t signals_waiting(int dir, const char *status);
/* Who traces the process of this directory, in its own numbers, and whether that has stopped it. */
int32_t stopped_by(int proc, bool *ret_stopped);
#define CAP_ADMIN 21                                  /* CAP_SYS_ADMIN */
int target_caps(struct guard *g, uint64_t *ret);      /* its effective capabilities, in its own user namespace */
int target_umask(struct guard *g);                    /* sets our umask to the caller's */
void target_mask_set(struct guard *g, uint32_t mask); /* the caller is about to set it */
int target_string(struct guard *g, uint64_t at, char text[PATH_MAX]); /* length, -EFAULT, -ENAMETOOLONG */
/* 0, -EFAULT, or nobody waits for the answer any more */
int target_bytes(struct guard *g, uint64_t at, void *bytes, size_t n);
int target_write(struct guard *g, uint64_t at, const void *bytes, size_t n); /* what was read came from the caller */
int target_valid(struct guard *g);                                           /* what was read was the caller's own */
int target_fd(struct guard *g, int fd);                                      /* a duplicate; -EBADF */
/* Where g->again is set after target_fd(), that is not the caller's open file (again.c). */
int again_fd(struct guard *g, int fd);
/* A new Unix socket in place of the caller's; its inode; and to give it to the caller, who still waits. */
int again_socket(struct guard *g, int fd, int type);
int again_inode(struct guard *g, int fd, uint64_t *ret);
int again_hand_over(struct guard *g, int fd, int own);
int target_dir(struct guard *g, int fd); /* O_PATH of AT_FDCWD or fd as a directory; -EBADF, -ENOTDIR */
void targets_drop(struct guard *g);

/* own.c */
enum file_system file_system_of(struct guard *g, int fd, const struct sys_stat *st);
void ptrace_hide(struct guard *g, bool hide);
/* Whether the box's own namespace has this mount now; `id` was just read (statx(2)). */
bool mount_ours(struct guard *g, uint64_t id);
void mounts_drop(struct guard *g); /* in a forked worker, which reads its own list */

/* Opens what the guard's own `fd` refers to once more, or gives it (one without a name, too: open(2)) another name. */
int own_reopen(const struct guard *g, int fd, int flags);
int own_link(const struct guard *g, int fd, int dir, const char *name);
int task_of(const struct guard *g, pid_t tid); /* its directory in /proc, O_PATH */

/* resolve.c */
/* Opens an absolute path in the box ("" is the root), over no link. */
int open_in_box(struct str path, int flags);
int place_find(struct guard *g, int dir_fd, const char *text,
               struct place *ret); /* does not follow the last component */
/* For a call with two paths: the directory that both begin at, opened once, or -1: each finds its own. */
int place_base(struct guard *g, const char *a, const char *b, int a_dir, int b_dir);
int place_find_at(struct guard *g, int base, int dir_fd, const char *text, struct place *ret);
/* The directory that `text` names for the caller, O_PATH, without a verdict about hidden names on the way. */
int directory_seen(struct guard *g, int base, const char *text);
void place_drop(struct place *p);
/* spelling.c: 0, or a refusal because the file system may take the name for one that rules are about */
int place_spelling(struct guard *g, const struct place *p);
bool place_stays(struct guard *g, const struct place *p); /* its directory has not moved */
int place_again(struct guard *g, struct place *p);        /* finds it again, because its directory has moved */
/* Whether the caller has mounted something there: then removing and renaming fail with EBUSY. */
bool place_mounted(struct guard *g, const struct place *p);
/* Opens what is there now. `follow`: follows links (at most 40); otherwise the link itself. */
int object_find(struct guard *g, struct place *p, bool follow, struct object *ret);
int object_of_fd(struct guard *g, int fd, struct object *ret); /* `fd` stays the caller's; a duplicate is kept */
void object_drop(struct object *o);
int path_of(struct guard *g, int fd, char path[PLACE_PATH], size_t *ret_n);
/* Follows one link: `p` becomes the place it names, or `o` the object of a magic link (o->magic). */
int link_follow(struct guard *g, struct place *p, struct object *o, unsigned *links);

/* The text of a link in /proc as the caller would see it: its length, 0 for a magic link, or -errno. */
long proc_link(struct guard *g, int dir, const char *name, int link, char *text, size_t room);
/* The same for "self" and "thread-self" of the proc file system that `st` belongs to; 0: neither of them. */
long proc_self(struct guard *g, const struct sys_stat *st, const char *name, char *text, size_t room);

/* Whether the object's path leads to it without a link and in the same mount; otherwise it has moved. */
bool object_leads(const struct object *o);

/* hidden.c: what the host moved away from a hidden name; the rule, or NULL */
void hidden_begin(struct guard *g, const struct guard_table *table, size_t bytes);
void hidden_seen(struct guard *g, const struct rule *rule, const struct object *o); /* it was seen at a hidden name */
void hidden_not(struct guard *g, const struct sys_stat *st);
bool hidden_was_not(struct guard *g, const struct sys_stat *st);
const struct rule *hidden_moved(struct guard *g, const struct object *o);
const struct rule *hidden_around(struct guard *g, struct str path); /* the path is in such a directory */

/* running.c: hidden files that are being executed */
int running_judge(struct guard *g);                /* 0, or -EACCES if the caller executes one */
bool running_closed(struct guard *g, int process); /* nobody may look into its directory in /proc */
/* The directory of the process whose memory the file `o` at `p` shows; -ENOENT: it shows none, or reads are not judged;
   -EACCES: unknown whose. Once the memory is open the process is judged: it could execute something else before. */
int running_memory(struct guard *g, const struct place *p, const struct object *o);
long ptrace_call(struct guard *g, long request, pid_t pid);

/* hardlink.c: files that have names outside are copied before they are changed */
enum hardlink_change {
    HARDLINK_CONTENT,
    HARDLINK_EMPTY /* the old content is not needed */,
    HARDLINK_ATTRIBUTE,
    HARDLINK_TOUCH
};
#define HARDLINK_AGAIN (INT_MAX - 3) /* start over with only the name lock held: a copy is waiting */
/* Copies extended attributes, including access lists; not those that need a privilege. */
void hardlink_attributes(int from, int to, unsigned mode);
bool hardlink_foreign(struct guard *g, const struct object *o);  /* it may have names outside */
bool hardlink_nameless(struct guard *g, const struct object *o); /* it has no names but those made here */
/* Call before a change: 0 if `o` is now the box's own; HARDLINK_AGAIN or GONE_ON, with the lock released; or an error,
   perhaps with it. `p` is NULL for an object reached by descriptor. */
int hardlink_own(struct guard *g, const struct place *p, struct object *o, enum hardlink_change change);
void hardlink_done(struct guard *g);                         /* call afterwards */
void hardlink_made(struct guard *g, const struct object *o); /* one more name; o->st is from before */
/* This name is about to be removed: true if hardlink_gone() must be told. */
bool hardlink_look(struct guard *g, const struct place *p, struct sys_stat *ret);
void hardlink_gone(struct guard *g, const struct sys_stat *st);

/* proc.c */
enum proc_way {
    PROC_HERE,  /* everybody may */
    PROC_OWN,   /* only the caller's own */
    PROC_APART, /* in a separate process, where the kernel decides as for the caller */
    PROC_CLOSED
};
enum proc_way proc_way(struct guard *g, const struct place *p, const struct object *o, int flags);
int proc_open(struct guard *g, const struct object *o, enum proc_way way, int flags);
bool proc_is_box(struct guard *g, const struct sys_stat *st); /* in the same file system as the box's /proc */
/* Runs `run`, which ends by sys_exit(), in a new process with the descriptors of this one, but memory of its own; the stack of `room`
   bytes is this function's until then. What it exits with as -errno, or -EACCES. */
int apart_wait(void (*run)(void *), void *arg, char *stack, size_t room);
/* Opens a namespace of the caller, a name below its /proc/TID/ns, if it is not ours: *ret -1. 0 or -errno. */
int space_of(struct guard *g, const char *name, int *ret);
/* Opens with all capabilities of the caller's user namespace; -ENOENT if that is ours. */
int proc_open_whole(struct guard *g, const struct object *o, int flags);
/* Opens through a magic link with the caller's rights only. *ret_writes: it is a writable descriptor of the caller. */
int magic_open(struct guard *g, int dir, const char *name, int flags, bool *ret_writes);
/* readlink(2) of one, as the caller sees it: length of the text, or -errno. */
long magic_read(struct guard *g, int dir, const char *name, char text[PATH_MAX]);
/* For a descriptor of a non-dumpable caller, whose fd directory nobody else may enter. -EACCES: not such a place. */
long descriptor_read(struct guard *g, const struct place *p, char text[PATH_MAX]);
/* The same in a process with only the caller's capabilities and root; `name` "": of the link that `dir` is. */
long link_apart(struct guard *g, int dir, const char *name, char text[PATH_MAX]);

/* nested.c: the box's path of something in a mount that is not ours; -EACCES if it has none. 1: no other mount has it,
   and the path is one in a private tree. */
int nested_path(struct guard *g, int fd, const struct sys_stat *st, char path[PLACE_PATH], size_t *ret_n);
bool nested_shows(struct guard *g, unsigned major, unsigned minor); /* the box shows that file system */
bool nested_is_map(const struct place *p, const struct object *o);  /* an id map of a user namespace */
/* The root of the caller, and whether that is the box's; -errno: unknown. */
int caller_root(struct guard *g, bool *ret_ours);
int nested_root(struct guard *g); /* the caller's root if it differs from ours; otherwise -1 */

/* names_lock.c */
int names_lock(struct guard *g, bool exclusive); /* 0, or -ETIMEDOUT without the lock: its holder hangs */
void names_unlock(struct guard *g);
void table_lock(struct shared *s);
void table_unlock(struct shared *s);
/*
 * Installs `fd`, which stays the guard's own, as the caller's lowest free descriptor; `fd_flags`: 0 or O_CLOEXEC.
 * Returns its number or -errno; the caller still waits for its answer. (install.c)
 */
int descriptor_install(struct guard *g, int fd, unsigned fd_flags);
void install_next(struct guard *g);  /* a call begins */
void install_leave(struct guard *g); /* this worker may run on all its processors again */
uint64_t now_ms(void);               /* names_lock.c: coarse, and takes half the time */
uint64_t exact_ns(void);

/*
 * hold.c: locks the directories that a rule with several components depends on, so that no other box changes them
 * between verdict and act. Call with the name lock held, before the verdict; a place that has moved is found again. 0
 * (also if nothing needs locking), -EACCES with the denial reported, or another error.
 */
int hold_place(struct guard *g, struct place *p, enum denial_action action);
int hold_rename(struct guard *g, struct place *from, struct place *to, unsigned flags);
/* Locks one more directory while others are held: true if it is locked now. */
bool hold_more(struct guard *g, int dir, const char *name);
void holds_drop(struct guard *g);
void holds_forget(struct guard *g); /* in a child: the locks are its parent's */

/* Why, in more than one file. */
#define OPTION_REF "a branch, tag or remote whose name is an option"
#define MOVED_AWAY "something the host moved away from a hidden name"
#define SUBMODULE  "a link on the path to a submodule's files"
#define REPOSITORY "a hook, a remote, commondir, attributes, the configuration or the index of a git repository"
#define GIT_LINK   "a link in a git repository, through which git outside would write"

/* verdict.c: 0, or -EACCES with the denial reported */
/* The rule that guards `path` now: in mode "existing" what is new is free. *ret_end: of the guarded name. */
const struct rule *verdict_guarded(struct guard *g, struct str path, size_t *ret_end);
/* Why nothing is changed at `path`, in a guarded name or a repository's own place; NULL: nothing says so. *ret_rule: or NULL;
   *ret_config: it is a configuration or an index, judged by content. */
const char *verdict_claimed(struct guard *g, struct str path, const struct rule **ret_rule, size_t *ret_end,
                            bool *ret_config);
/* For a path outside of all trees, with the event of it, the error of a mount; `fd` is the object, or the directory with the name. */
int verdict_outside(struct guard *g, enum denial_action action, int fd, struct str path);
int verdict_outside_at(struct guard *g, enum denial_action action, const struct place *p);
enum made {
    MADE_FILE,
    MADE_DIRECTORY,
    MADE_LINK,
    MADE_OTHER,
    MADE_EMPTY_FILE, /* by mknod or open: empty; g->point says whether it must stay so */
    MADE_EMPTY_DIRECTORY
};
int verdict_make(struct guard *g, const struct place *p, enum made made);
/* Call after creating: whether the host's changes meanwhile make it something to be refused. */
int verdict_made(struct guard *g, const struct place *p, enum made made);
int verdict_arrived(struct guard *g, const struct place *to);
/* Whether rules begin to apply to the contents of a directory when it gets this name (rename_counted, name.c). */
bool verdict_counts(struct guard *g, const struct place *to);
int verdict_moving(struct guard *g, const struct place *to,
                   const char *temp); /* in transit, under a name of the guard's */
/* The same for a link, or (`moved`: its old place) for a directory that contains links. */
int verdict_linked(struct guard *g, const struct place *p, const struct place *moved);
int verdict_git_link(struct guard *g, const struct place *p, const char *text); /* NULL: whatever it leads to */
/* Whether its name is guarded. */
bool object_guarded(struct guard *g, const struct object *o);
/* Before every user gets the permission to write: 0, or -EACCES with the denial reported, where another user could then do what
   the box may not. */
int verdict_opened_to_all(struct guard *g, const struct object *o);
/* A directory is to pass on to all that is made in it that others may write: there may be repositories. */
int verdict_passed_on(struct guard *g, const struct object *o);
/* The mode of a directory that is made, after target_umask(): likewise not for every user to write, as if the umask said so. */
unsigned verdict_mode(struct guard *g, const struct place *p, unsigned mode);
/* Whether its content is judged; the rule, or NULL for a repository's configuration that is not under .git. */
bool verdict_config(struct guard *g, const struct place *p, const struct rule **ret_rule);
int verdict_object(struct guard *g, const struct object *o, enum denial_action action);
/* Whether `p` is a .gitmodules, or a repository's configuration that does not exist yet: both are written in place
   (gitdir.c). */
bool verdict_in_place(struct guard *g, const struct place *p, int flags, const struct rule **ret_rule);
int verdict_remove(struct guard *g, const struct place *p, bool directory);
/* 1: done, with the judged bytes (gitdir.c); MOVES_ASK */
int verdict_rename(struct guard *g, const struct place *from, const struct place *to, unsigned flags,
                   struct sys_stat *ret); /* the object that was judged */
/* Whether nothing but where it is refuses writing to it: a regular file outside of all trees, about which there is no rule. */
bool verdict_grantable(struct guard *g, const struct object *o);
/* A second name of a file that is guarded or hidden under its first (rules of fixed place only, as others cannot be
   listed). */
int verdict_identity(struct guard *g, const struct sys_stat *st, enum denial_action action, struct str path);
int verdict_link(struct guard *g, const struct object *from, const struct place *to);

/* repository.c. Where a repository's own place begins in `path`, whatever the repository is called; otherwise 0. `ret_config`: it is a
   configuration or an index, judged by content. */
size_t repository_place(struct guard *g, struct str path, bool *ret_config);
/* An empty directory for remotes comes with git's templates; the contents of another, or of a link's target, were not judged. */
bool repository_for_remotes(struct guard *g, const struct place *p);
bool repository_brings(struct guard *g, const struct place *from, const struct place *to);
bool repository_brings_links(struct guard *g, const struct place *from, const struct place *to);
/* The second of `objects` and `refs` makes its directory a repository, and what is in it effective: 0 or an error, told. */
int repository_completed(struct guard *g, const struct place *p);
/* The same of one that was just created; false: the place is neither of the two. */
bool repository_half_made(struct guard *g, const struct place *p, int *ret);
/* Something guarded but without effect (only samples, a configuration without programs) may be removed with the repository. */
bool repository_inert(struct guard *g, const struct rule *rule, struct str path, size_t end, int dir, const char *name);
/* The same of `rest` in the directory at `p`, that leaves, or arrives and comes into effect. */
bool repository_rest_inert(struct guard *g, const struct place *p, const struct rule *rule, struct str rest,
                           bool arrives);

/* born.c */
struct born born_of(const struct sys_stat *st); /* with SYS_STAT_BORN */
bool born_same(const struct born *a, const struct born *b);
void born_add(struct guard *g, const struct sys_stat *st);
bool born_has(struct guard *g, const struct sys_stat *st);
struct str places_next(const struct places *all, uint32_t *at); /* from offset *at on; "" at the end */
bool places_add(struct guard *g, struct places *all, struct str path);
/* To shared.left, to be told of at the end; if there is no room even without what is gone, it is only counted. */
void left_add(struct guard *g, struct str path);

/* gittext.c */
bool git_is_nothing(int no); /* this errno says that nothing is there; any other leaves it unknown */
bool git_is_common(int dir); /* it has objects and refs, or that is unknown; `dir`: or the errno of opening it */
int git_text_open(int dir, const char *name); /* O_NONBLOCK: a FIFO in its place must not block us */
/* the content of a regular file, malloc()ed */
int git_text_read(int fd, enum gitconfig_kind kind, char **ret, size_t *ret_n);

/* gitdir.c */
void guard_temp_name(const struct guard *g, char text[64]); /* a name that no box may touch */
bool git_hooks_inert(int dir, const char *name);            /* missing, or only samples */
/* Hooks (or remotes) become effective: moves the samples to a new directory, which nobody can have open, and gives it
   the name. 0 (also if there is none), -EACCES if something else is in it. */
int git_hooks_renew(struct guard *g, int dir, const char *name);
bool git_config_inert(struct guard *g, int dir, const char *name, struct str path);
/* The configuration `path` in `dir` becomes effective: if it passes, it is copied into a new file, which nobody has
   open or under another name. 0 (also if there is none), -EACCES if it may not exist, or another error. */
int git_config_adopt(struct guard *g, int dir, const char *name, struct str directory);
int git_config_replace(struct guard *g, const struct place *from, const struct place *to, const struct rule *rule,
                       bool keep_source);
/* Puts these bytes into a new file at `to`, with the mode and time of `from`, which goes. */
int git_put_refs(struct guard *g, const struct place *from, const struct place *to, struct str text);

/* Opens for writing what verdict_in_place() has approved. */
long git_in_place_open(struct guard *g, struct place *p, const struct rule *rule, int flags, unsigned mode);
/* Call before serving a call: names the files that their writers have closed by now. */
void git_modules_settle(struct guard *g);

/* module.c: where submodules' files are */
bool module_text_fits(struct guard *g, struct str directory, struct str old_text, struct str new_text);
/* Whether a link at `to`, or the directory `moved` with its links, would be on the path to such a place. */
bool module_behind(struct guard *g, const struct place *to, const struct place *moved);
/* Whether a directory to be moved contains a submodule's repository that would then point to another place. */
bool module_misled(struct guard *g, const struct place *from, const struct place *to);
/* Whether, once `dir` is a repository, repositories of submodules would be where module.c does not look. */
bool module_lost(struct guard *g, int dir, struct str directory);

/* rootkind.c: whether a directory is the root of a repository, by the markers in it and what the box has removed */
enum root_kind { ROOT_NONE, ROOT_OTHERS /* or was when the box began */, ROOT_OWN };
enum root_kind root_kind_of(struct guard *g, struct str directory);
enum root_kind root_kind_at(struct guard *g, int dir, const char *const *names); /* by these markers alone */
bool root_is_lost(struct guard *g, struct str directory);

/* deep.c: those of them that hold in all directories of a repository. Whether the one that `w` has found in `path` does. */
bool deep_holds(struct guard *g, const struct rooted *w, struct str path);
/* Whether it is such a name, in a repository and not at the root of one of the box's. */
bool deep_tells(struct guard *g, struct str path, struct str directory);
/* A marker that the box created (`own`), or another, is about to be put at `p`: 0 or an error, told. */
int deep_marked(struct guard *g, const struct place *p, bool own);
/* The directory that is at `now` moves, or has moved: 0 or an error, told; -EXDEV: programs then copy instead. */
int deep_moves(struct guard *g, const struct place *from, const struct place *to, const struct place *now);

/* reporoot.c: names of the `root` list at the roots of repositories not created by this box */
const struct rule *reporoot_guarded(struct guard *g, struct str path, size_t *ret_end);
/* The next such name that exists, or would, below the directory `path`. Begin with a zeroed `w`. */
const struct rule *reporoot_below(struct guard *g, struct str path, struct rooted *w);
/* a name that makes its directory the root of a repository */
bool reporoot_marks(struct guard *g, const struct place *p);
/* Before something is removed or added: 0, or -EACCES with the denial reported. */
int reporoot_marker_leaves(struct guard *g, const struct place *p, enum denial_action action);
int reporoot_leaves(struct guard *g, const struct place *from, const struct sys_stat *st);
int reporoot_arrives(struct guard *g, const struct place *from, const struct place *to, const struct sys_stat *st);
/* After something was created. */
void reporoot_made(struct guard *g, const struct place *p);
bool reporoot_tells(struct guard *g, int dir, struct str path,
                    struct buf *names); /* those in a repository created here */

/* told.c */
void told_link(struct guard *g, const struct place *p, const char *text);
void told_refs(struct guard *g, const struct place *p); /* the file was written, or replaced */
void told_fifo(struct guard *g, const struct place *p);
void told_moved(struct guard *g, const struct place *from, const struct place *to, bool exchange);
void told_end(struct guard *g); /* reports all that still exists */

/* branches.c: protected branches, which move when hooks have passed the commits. 0, or -EACCES with the denial reported. */
int branches_make(struct guard *g, struct str path, bool directory);
int branches_object(struct guard *g, struct str path, enum denial_action action);
int branches_leave(struct guard *g, struct str path, bool directory);
/* 1: done, with the judged bytes; MOVES_ASK: call branches_ask() without a lock, then start over. */
int branches_arrive(struct guard *g, const struct place *from, const struct place *to, const struct sys_stat *st,
                    bool may_replace);
/* 0: they were passed; GONE_ON: another process finishes this call; or an error. */
int branches_ask(struct guard *g);
void branches_done(struct guard *g);

/* point.c: mount points at guarded names. `p` is the name that `rule` guards. */
/* it may be created, empty, as a directory or a file */
bool point_may(struct guard *g, const struct place *p, const struct rule *rule, bool directory);
/* a .gitmodules is about to be created for that, not to be written */
bool point_modules(struct guard *g, const struct place *p, int flags, unsigned mode);
/* it was created so and is still empty */
bool point_is(struct guard *g, const struct place *p, const struct rule *rule);
void points_end(struct guard *g); /* removes those that still exist */

/* deny.c */
/* Whether one more frame may be sent now, and how many were dropped since the last. */
bool denial_passes(struct shared *s, struct bucket *b, uint32_t *ret_dropped);
uint32_t pid_inside(struct guard *g); /* the caller's own pid; 0: it is gone */
/* Tells pinfold of a refusal that is no rule's (FRAME_BUILT). */
void deny_built(struct guard *g, enum denial_action action, struct str path);
/* Root's box: user 0 has no CAP_SETFCAP, without which the kernel maps it in no namespace below. */
void deny_root_map(struct guard *g);
/* clone and unshare with new namespaces, where the filter does not pass them: told, and -EPERM. */
int deny_namespace(struct guard *g);
int deny(struct guard *g, enum denial_action action, const struct rule *rule, struct str path, const char *why);

/* Gives pinfold one end of a new pair of sockets, with a frame of this kind, once `n` bytes, perhaps with `fd`, wait for it there:
   the other end, or -errno; -EPIPE: it takes none. */
int report_pair(struct guard *g, uint32_t kind, const void *first, size_t n, int fd);

/* rules_told.c: whether the open in text[0] asks for the rules; the answer to it */
bool rules_told_at(const struct guard *g, int flags);
long rules_tell(struct guard *g, int flags);

/* name.c: -EEXIST for a refusal (`no`) of a name that exists, as `mkdir -p` and O_EXCL expect */
int refused_or_there(const struct place *p, int no);
/* verdict_make(), or verdict_link() of `linked`, told of only where the name is free: an existing file that is opened is judged, and
 * told of, as such. */
int verdict_new(struct guard *g, const struct place *p, enum made made, const struct object *linked);

/* handlers */
long open_call(struct guard *g, int dir, uint64_t path, int flags, unsigned mode);
long make_call(struct guard *g, int dir, uint64_t path, bool directory, unsigned mode,
               uint64_t device); /* mkdir, mknod */
long symlink_call(struct guard *g, uint64_t target, int dir, uint64_t path);
long link_call(struct guard *g, int from_dir, uint64_t from, int to_dir, uint64_t to, int flags);
long unlink_call(struct guard *g, int dir, uint64_t path, int flags);
/* move.c: what the kernel answers EXDEV for behind a layer. 0, or -errno (-EXDEV: it stays at that). */
int move_directory(struct guard *g, const struct place *from, const struct place *to, unsigned flags);
long rename_call(struct guard *g, int from_dir, uint64_t from, int to_dir, uint64_t to, unsigned flags);
long truncate_call(struct guard *g, uint64_t path, int64_t length);
/* attribute.c: one change, by whatever call. */
#define AS_IT_IS ((uint32_t)-1)
struct wish {
    uint32_t mode, uid, gid;
};
struct alteration {
    enum changed { CHANGE_MODE, CHANGE_OWNER, CHANGE_TIMES, CHANGE_XATTR, CHANGE_NO_XATTR } what;
    struct wish wish; /* mode, owner */
    enum hardlink_change copy;
    const struct timespec *times; /* NULL: now */
    size_t n;                     /* of an attribute's value, in g->bytes; its name is in g->text[1] */
    int flags;
};
#define NEW_MODE(m)                                                                                                    \
    (&(const struct alteration){CHANGE_MODE, .wish = {(m)&07777, AS_IT_IS, AS_IT_IS}, .copy = HARDLINK_ATTRIBUTE})
#define NEW_OWNER(u, group)                                                                                            \
    (&(const struct alteration){CHANGE_OWNER, .wish = {AS_IT_IS, (u), (group)}, .copy = HARDLINK_ATTRIBUTE})
/* With AT_EMPTY_PATH in `flags` an empty path is the descriptor `dir`. `by_path`: a descriptor with O_PATH is valid, too. */
long change_at(struct guard *g, int dir, uint64_t path, int flags, const struct alteration *c);
long change_fd(struct guard *g, int fd, const struct alteration *c, bool by_path);
enum times { TIMES_SPEC, TIMES_VAL, TIMES_BUF };
long times_call(struct guard *g, int dir, uint64_t path, uint64_t times, enum times form, int flags);
long setxattr_call(struct guard *g, bool follow, int fd, uint64_t path, uint64_t name, uint64_t value, uint64_t n,
                   int flags); /* path 0: use fd */
long removexattr_call(struct guard *g, bool follow, int fd, uint64_t path, uint64_t name);
int xattr_name(struct guard *g, uint64_t at); /* into g->text[1] */
long bind_call(struct guard *g, int fd, uint64_t address, uint32_t n);
long flock_call(struct guard *g, int fd, int operation);
long connect_call(struct guard *g, int fd, uint64_t address, uint32_t n);
/* inquiry.c: whether the abstract name `name`, with its first NUL, stands for pinfold; and a connect to it. */
bool inquiry_is(const char *name, size_t n);
long inquiry_call(struct guard *g, int fd);
/* grant.c: whether somebody may be asked to allow this open, and the question: a descriptor or -errno. Hold no lock. */
bool grant_wanted(struct guard *g, const struct object *o, int flags);
int grant_ask(struct guard *g, const struct object *o, int flags);
long pair_call(struct guard *g, int type, int protocol, uint64_t to);
long mount_call(struct guard *g, uint64_t source, uint64_t target, uint64_t type, uint64_t flags, uint64_t data);
long open_below_call(struct guard *g, int dir, uint64_t path, uint64_t at, uint64_t size); /* open_below.c */
long fsopen_call(struct guard *g, uint64_t type, unsigned flags);

/* look.c: calls that read by name without opening */
/* Finds g->object at g->from, and (`judged`) whether it may be read. Drop both if this returns 0. */
int look_found(struct guard *g, int dir, const char *text, bool follow, bool judged);
int link_text(struct guard *g, int dir, uint64_t path, char text[PATH_MAX]); /* the length */
long readlink_call(struct guard *g, int dir, uint64_t path, uint64_t to, int room);
long getxattr_call(struct guard *g, bool follow, uint64_t path, uint64_t name, uint64_t to, uint64_t room);
long listxattr_call(struct guard *g, bool follow, uint64_t path, uint64_t to, uint64_t room);
long inotify_call(struct guard *g, int fd, uint64_t path, uint32_t mask);

/* peer.c: calls that name a process */
long peer_call(struct guard *g);
bool peer_of_box(struct guard *g, pid_t who); /* in the Landlock tier: the process belongs to the box */
/*
 * monitor.c. Whether the call is notified only to be seen, and its answer: CONTINUE, or what the filter
 * would have answered. And for a call that was performed: its result.
 */
bool monitor_only(const struct guard *g);
long monitor_look(struct guard *g);
void monitor_result(struct guard *g, long result);
void monitor_end(struct guard *g); /* tells how often what was told has happened */

/* quiet.c: whether a call that continues (monitor_only()) has nothing to be told of. */
bool quiet_call(struct guard *g);
/* What the call names, nothing, was found to be at `path`; `clear` as plan_masks() has said. */
void quiet_keep(struct guard *g, int dir, const char *text, const char *path, bool clear);
/* Of the program at `text`, and of the one that interprets it, there was nothing to tell. */
void quiet_program(struct guard *g, const char *text);

/* workers.c */
int worker_own(struct guard *g);       /* opens descriptors and sets the working directory, which are per process */
void worker_hand_on(struct guard *g);  /* lets another worker receive */
void workers_apart(struct guard *g);   /* a monitored box asks often: another worker than the main one leads */
void workers_share(struct guard *g);   /* calls queue up: another processor may take the next one */
int guard_child(struct guard *g);      /* forks a process of ours: 1 in it, 0, or -EAGAIN if there are too many */
int guard_child_kept(struct guard *g); /* the same for the one process that a place is kept for (flock.c) */
_Noreturn void guard_leave(struct guard *g); /* exits normally */
int guard_may_block(struct guard *g);        /* 0: another worker receives, go on; GONE_ON; -EAGAIN: too many */
