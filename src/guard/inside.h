/*
 * What the files of guard/ share: the state of one worker, the call it serves, places and objects.
 *
 * One call goes this way: dispatch.c receives it, target.c finds out who asks and copies its arguments, resolve.c walks to
 * the place by descriptor, verdict.c asks the rules (judge.c) and the file system, name.c / open.c / attribute.c /
 * socket.c perform, dispatch.c answers. Handlers return the call's result, a -errno, or ANSWERED.
 */
#pragma once
#include <limits.h>
#include <linux/seccomp.h>
#include <stdatomic.h>
#include "base/buf.h"
#include "guard/guard.h"
#include "guard/rules/judge.h"
#include "sys/file.h"
#include "sys/notify.h"
#include "protocol/control.h"

#define ANSWERED LONG_MAX       /* the handler answered itself */
#define CONTINUE (LONG_MAX - 1) /* the kernel performs: only where nothing depends on memory or names */
/* No descriptor is as large: what a call returns may be any number from 0 on. */
#define GONE_ON      (INT_MAX - 1) /* guard_may_block: another process goes on with this call; drop it */
#define AGAIN        (INT_MAX - 2) /* inside open.c: go on with what the place has become */
#define WORKERS_MAX  64
#define FILES_MAX    16 /* of them: workers of the file API */
#define TARGETS      64
#define BORN_MAX     1024
#define ABSTRACT_MAX 1024
#define HIDDEN_MAX   256
#define HIDDEN_DIRS  64 /* of them: directories that are followed */
#define SEEN_MAX     256
#define FREE_MAX     64    /* programs */
#define LINKS_MADE   65536 /* files that have several names by this guard; a page is had when it is used */
#define MASKS        256
#define DEVICES      32
#define WATCHED_MAX  16 /* of them: watchers of a .gitmodules */
#define WATCHERS     8  /* of those: that are waited for */
#define PLACE_PATH   (PATH_MAX + NAME_MAX + 2)
#define GUARD_TEMP   ".pinfold-guard-" /* prefix of names only the guard makes */
#define HOLDS_MAX    24

/* ---- what all workers see (MAP_SHARED) ---- */

struct born { /* an object made in this box */
    uint64_t device, inode;
    int64_t seconds;
    uint32_t nanoseconds;
};
struct hidden { /* what stood at a hidden name */
    struct born is;
    uint32_t rule; /* in the table */
    int fd;        /* of a directory, O_PATH; -1 */
};
struct links { /* a file, and how many of its names this guard made */
    uint64_t device, inode;
    int64_t seconds;
    uint32_t nanoseconds, n; /* n 0: no entry */
};
struct mask { /* the file mode creation mask a process has set */
    int32_t tgid;
    uint32_t value;
    uint64_t when; /* shared.clock */
};
struct places { /* one after the other, each with its NUL */
    uint32_t n, left_out;
    char text[32 << 10];
};
struct watcher {                  /* of a .gitmodules that is being written */
    int32_t pid;                  /* 0: none; it is taken out, under the table's lock, before it ends */
    _Atomic uint32_t asked, told; /* how often it was asked to look, and up to which of them it has */
};
struct shared {
    _Atomic uint32_t names;     /* lock of the name space: number of readers, NAMES_WRITER */
    _Atomic uint32_t idle;      /* workers that wait for the token */
    _Atomic uint32_t main_idle; /* the main worker waits */
    _Atomic uint32_t workers;
    _Atomic uint32_t files, watched;
    _Atomic uint32_t epoch;      /* raised when the token is taken from a hung leader */
    _Atomic uint64_t busy_since; /* milliseconds; 0: the leader waits */
    _Atomic uint32_t table;      /* a small lock around what follows */
    uint64_t clock, masks_dropped;
    struct mask masks[MASKS];
    struct born born[BORN_MAX];
    uint32_t born_at;
    struct hidden seen[SEEN_MAX];
    uint32_t seen_at;
    struct born free[FREE_MAX]; /* programs that were found where nothing is hidden */
    uint32_t free_at;
    uint64_t abstract[ABSTRACT_MAX]; /* inodes of sockets that were bound to an abstract name here */
    uint32_t abstract_at;
    uint64_t denial_ms; /* rate of denials: a bucket of DENIAL_BURST that refills */
    uint32_t denial_left, denial_dropped;
    int32_t pids[WORKERS_MAX];
    _Atomic uint32_t watching; /* entries of `watchers` in use */
    struct watcher watchers[WATCHERS];
    _Atomic uint32_t linked; /* there was ever something in: */
    struct links links[LINKS_MADE];
    /* Untouched until one is entered: where repositories of others were, and which were made here (reporoot.c). */
    struct places lost, made, left; /* left: links and FIFOs (told.c) */
    struct places points;           /* point.c */
};

/* ---- who asks ---- */

struct target {
    pid_t tid, tgid;         /* as the guard sees them; tgid 0: status not read yet */
    int proc;                /* /proc/TID, O_PATH */
    int pidfd;               /* of the thread (Linux 6.9), or -1 */
    int process;             /* of the process, before Linux 6.9 and when needed, or -1 */
    pid_t box_tid, box_tgid; /* as the box's /proc names them */
    pid_t own_tid, own_tgid; /* as it names itself, in a pid namespace of its own */
    pid_t tracer;
    uint32_t umask;
    uint64_t umask_when;
};

/* ---- where a name is ---- */

struct place {
    int dir; /* O_PATH; owned unless borrowed */
    bool borrowed;
    /*
     * In a mount of the caller's own (nested.c): the directory as it sees it, owned, or -1; `dir` is the same one in the
     * box's own mount then, where nobody can mount anything over a name: what is judged is looked at there.
     */
    int seen;
    bool frozen; /* the caller sees it read-only, and `dir` is as it sees it: nothing may be changed there */
    bool slash;  /* the name was followed by "/": a directory is meant */
    bool plain;  /* an ordinary name: neither ".", ".." nor "/" */
    char name[NAME_MAX + 2]; /* as the kernel gets it, with the slash */
    size_t name_n;           /* without the slash */
    char path[PLACE_PATH];   /* canonical: directory, "/", name */
    size_t dir_n, n;         /* bytes of the directory's path ("" for the root: 0) and of all */
};
/* A directory that is held against all boxes (hold.c). */
struct hold {
    int fd;
    uint64_t device, inode;
};
struct object {
    int fd; /* O_PATH, owned */
    struct sys_stat st;
    bool magic;  /* reached through a link of /proc: its path says less than its identity */
    bool proc;   /* lies in a proc file system */
    bool placed; /* in a mount that is not ours, and judged by its place in the box */
    bool held;   /* the caller has it open for writing itself: a reopen gives nothing new */
    char path[PLACE_PATH];
    size_t n;
};
/* Where objects are found and new ones made: the directory with what the caller has mounted in it. */
static inline int place_seen(const struct place *p)
{
    return p->seen >= 0 ? p->seen : p->dir;
}
/* hardlink.c: a copy that is to take the name of a file with other names, for the call being served. */
struct hardlink_copy {
    bool waits, named; /* there is one; it has the name `temp` in `dir` */
    int fd, dir;       /* fd -1: a symbolic link, not made yet */
    uint32_t tries;
    struct sys_stat of; /* the file it was made of */
    char temp[64];
};
static inline struct str place_path(const struct place *p)
{
    return (struct str){p->path, p->n};
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
    int self_fd;       /* /proc/self/fd as the guard's own process has it; also its working directory */
    int token, summon; /* eventfds: who reads one receives; the second is the main worker's */
    int children;      /* signalfd; -1 but in the main worker */
    bool main, leader, parallel;
    long main_pid;
    bool deaf; /* nothing more will come from pinfold */
    void (*files)(struct guard *g, int socket);
    void (*serve)(struct guard *g); /* what a worker does until it leaves (dispatch.c) */
    uint32_t epoch;
    uint32_t processors; /* that work in parallel at most */
    uint32_t umask;      /* our own, right now */
    int names_held;      /* 0, 1 shared, 2 exclusive */
    bool has_ptrace, ptrace_off;
    bool nested;      /* callers may have mount namespaces of their own (nested.c) */
    int init_pid;     /* of pid 1, as the box's /proc has it */
    int init_tid;     /* as the guard's has it; 0: nobody has asked yet */
    bool proc_has_us; /* the box's /proc lists the guard: there is no pid namespace between */
    bool proc_known;
    uint64_t proc_device; /* of the box's own /proc, when it is known; 0: there is none */
    struct target targets[TARGETS];
    struct {
        uint64_t device;
        uint32_t kind;
    } devices[DEVICES];
    unsigned n_devices;
    struct hidden hidden[HIDDEN_MAX]; /* from the beginning; the same in every worker */
    unsigned n_hidden;
    uint64_t *mounts; /* ids of the mounts of our namespace, sorted */
    size_t n_mounts;
    struct shown *shown; /* where they show what (nested.c) */
    /* Of a worker of the file API (file_api.c). */
    bool ours;     /* the call is pinfold's: texts are in our own memory */
    int given;     /* the open file it gets */
    char why[256]; /* it was refused */
    const struct rule *why_rule;
    /* Of the call being served. */
    struct seccomp_notif n;
    struct target *who;
    struct place from, to;
    struct object object;
    struct hold holds[HOLDS_MAX];
    unsigned n_holds;
    struct hardlink_copy copy;
    bool birth; /* what this call makes is a guarded name that did not exist: guard mode "existing", or a mount point */
    bool point; /* it may be made as a mount point alone: whoever makes a file gets no descriptor to write with */
    char text[2][PATH_MAX];
    char walk[2 * PATH_MAX];
    char bytes[64 << 10];
};

enum file_system { FS_ORDINARY = 1, FS_PROC, FS_PTS };

/* target.c */
int target_find(struct guard *g);                     /* sets g->who; -ENOENT when gone */
int pid_of_init(const struct guard *g);               /* as the guard's /proc has it; 1 when that cannot be told */
int target_status(struct guard *g, struct target *t); /* fills tgid, box ids, umask */
uint32_t target_session(struct guard *g);        /* its session (setsid(2)) as the box numbers it, now; 0: not known */
int target_caps(struct guard *g, uint64_t *ret); /* those it may use, in its own user namespace */
int target_umask(struct guard *g);               /* makes our mask the caller's */
void target_mask_set(struct guard *g, uint32_t mask);                        /* the caller is about to set it */
int target_string(struct guard *g, uint64_t at, char text[PATH_MAX]);        /* length, -EFAULT, -ENAMETOOLONG */
int target_bytes(struct guard *g, uint64_t at, void *bytes, size_t n);       /* 0 or -EFAULT */
int target_write(struct guard *g, uint64_t at, const void *bytes, size_t n); /* 0, -EFAULT, or nobody asks any more */
int target_valid(struct guard *g);                                           /* what was read was the caller's own */
int target_fd(struct guard *g, int fd);                                      /* a duplicate; -EBADF */
int target_dir(struct guard *g, int fd); /* O_PATH of AT_FDCWD or fd as a directory; -EBADF, -ENOTDIR */
void targets_drop(struct guard *g);

/* own.c */
enum file_system file_system_of(struct guard *g, int fd, const struct sys_stat *st);
void ptrace_hide(struct guard *g, bool hide);
bool mount_ours(struct guard *g, uint64_t id); /* a mount of the box's own namespace */

/* resolve.c */
int place_find(struct guard *g, int dir_fd, const char *text,
               struct place *ret); /* the last component is not followed */
void place_drop(struct place *p);
bool place_stays(struct guard *g, const struct place *p); /* its directory is where it was */
int place_again(struct guard *g, struct place *p);        /* by the directory it has, which has moved */
/* Whether something that the caller has mounted stands there: EBUSY for who would remove or move it. */
bool place_mounted(struct guard *g, const struct place *p);
/* What stands there now. `follow`: links are followed (40 at most); else the link itself. */
int object_find(struct guard *g, struct place *p, bool follow, struct object *ret);
int object_of_fd(struct guard *g, int fd, struct object *ret); /* `fd` stays the caller's; a duplicate is taken */
void object_drop(struct object *o);
int path_of(struct guard *g, int fd, char path[PLACE_PATH], size_t *ret_n);
char *decimal(char room[12], int number); /* returns where it begins */
/* One step over a link: `p` becomes the place it names, or `o` the object a magic link leads to (o->magic). */
int link_follow(struct guard *g, struct place *p, struct object *o, unsigned *links);

/* What a link of /proc says for the caller: length of the text, 0 when it is a magic link, or -errno. */
long proc_link(struct guard *g, int dir, const char *name, int link, char *text, size_t room);
/* The same of "self" and "thread-self" in a proc file system that `st` is of; 0: it is neither. */
long proc_self(struct guard *g, const struct sys_stat *st, const char *name, char *text, size_t room);

/* Whether the object's path leads to it, over no link and in the same mount: otherwise it is not where that says. */
bool object_leads(const struct object *o);

/* hidden.c: what the host moved away from a hidden name; the rule, or NULL */
void hidden_begin(struct guard *g, const struct guard_table *table, size_t bytes);
void hidden_seen(struct guard *g, const struct rule *rule, const struct object *o); /* at a hidden name */
void hidden_not(struct guard *g, const struct sys_stat *st);
bool hidden_was_not(struct guard *g, const struct sys_stat *st);
const struct rule *hidden_moved(struct guard *g, const struct object *o);
const struct rule *hidden_around(struct guard *g, struct str path); /* it lies in such a directory */

/* running.c: hidden files that are run */
int running_judge(struct guard *g);                /* 0, or -EACCES when the caller is one */
bool running_closed(struct guard *g, int process); /* its directory in a /proc: nobody looks into it */
long ptrace_call(struct guard *g, long request, pid_t pid);

/* hardlink.c: files with names elsewhere are copied before they are changed */
enum hardlink_change {
    HARDLINK_CONTENT,
    HARDLINK_EMPTY /* nothing of the content is kept */,
    HARDLINK_ATTRIBUTE,
    HARDLINK_TOUCH
};
#define HARDLINK_AGAIN (INT_MAX - 3)                             /* begin anew, holding the names alone: a copy waits */
bool hardlink_foreign(struct guard *g, const struct object *o);  /* it may have names outside */
bool hardlink_nameless(struct guard *g, const struct object *o); /* it has none but those made here */
/*
 * Before it is changed: 0 when `o` is the box's own from now on; HARDLINK_AGAIN and GONE_ON, when the lock is free; or an error,
 * when it may be. `p`: NULL for what was reached by descriptor.
 */
int hardlink_own(struct guard *g, const struct place *p, struct object *o, enum hardlink_change change);
void hardlink_done(struct guard *g);                         /* after the call */
void hardlink_made(struct guard *g, const struct object *o); /* one more name; o->st is from before */
/* What stands there is about to lose this name: true when that is to be told to hardlink_gone(). */
bool hardlink_look(struct guard *g, const struct place *p, struct sys_stat *ret);
void hardlink_gone(struct guard *g, const struct sys_stat *st);

/* proc.c */
enum proc_way {
    PROC_HERE,  /* everybody may */
    PROC_OWN,   /* the caller's */
    PROC_APART, /* by a process of its own, as the kernel decides for the caller */
    PROC_CLOSED
};
enum proc_way proc_way(struct guard *g, const struct place *p, const struct object *o, int flags);
int proc_open(struct guard *g, const struct object *o, enum proc_way way, int flags);
bool proc_is_box(struct guard *g, const struct sys_stat *st); /* of the same file system as the box's /proc */
/* Opened with all powers that there are in the caller's user namespace; -ENOENT when that is ours. */
int proc_open_whole(struct guard *g, const struct object *o, int flags);
/* Through a magic link, with no more right to it than the caller has. *ret_writes: it is a descriptor the caller writes to. */
int magic_open(struct guard *g, int dir, const char *name, int flags, bool *ret_writes);
/* What readlink(2) of one says to the caller: length of the text, or -errno. */
long magic_read(struct guard *g, int dir, const char *name, char text[PATH_MAX]);
/* Of a descriptor of a caller that cannot be dumped, whose list of them nobody else may enter; -EACCES: it is no such place. */
long descriptor_read(struct guard *g, const struct place *p, char text[PATH_MAX]);
/* The same by a process that has the caller's powers and root, and no more; `name` "": of the link that `dir` is. */
long link_apart(struct guard *g, int dir, const char *name, char text[PATH_MAX]);

/*
 * nested.c: the place in the box of what lies in a mount that is not ours; -EACCES when it has none. 1: nobody else has it,
 * and the path is one of a private tree.
 */
int nested_path(struct guard *g, int fd, const struct sys_stat *st, char path[PLACE_PATH], size_t *ret_n);
bool nested_shows(struct guard *g, unsigned major, unsigned minor); /* the box has that file system */
bool nested_is_map(const struct place *p, const struct object *o);  /* a user namespace's id map */
int nested_root(struct guard *g); /* the caller's root, when it is not ours; otherwise -1 */

/* names_lock.c */
int names_lock(struct guard *g, bool exclusive); /* 0, or -ETIMEDOUT and no lock: its holder hangs */
void names_unlock(struct guard *g);
void table_lock(struct shared *s);
void table_unlock(struct shared *s);
uint64_t now_ms(void);

/*
 * hold.c: what matters to a rule of several names is judged and done while no other box can change what was judged. Called with
 * the lock of the names, before the verdict; the place is found anew where it has moved. 0 (also when nothing is to be held),
 * -EACCES with the denial told, or another error.
 */
int hold_place(struct guard *g, struct place *p, enum denial_action action);
int hold_rename(struct guard *g, struct place *from, struct place *to, unsigned flags);
/* One more directory while others are held: true when it is. */
bool hold_more(struct guard *g, int dir, const char *name);
void holds_drop(struct guard *g);
void holds_forget(struct guard *g); /* in a child: they are its parent's */

/* verdict.c: 0, or -EACCES with the denial told */
enum made {
    MADE_FILE,
    MADE_DIRECTORY,
    MADE_LINK,
    MADE_OTHER,
    MADE_EMPTY_FILE, /* by mknod or open: empty, and g->point says whether it must stay so */
    MADE_EMPTY_DIRECTORY
};
int verdict_make(struct guard *g, const struct place *p, enum made made);
/* After the act: whether what the host did meanwhile makes it one that would have been refused. */
int verdict_made(struct guard *g, const struct place *p, enum made made);
int verdict_arrived(struct guard *g, const struct place *to);
/* Whether what is below a directory begins to count when that comes to stand there (rename_counted, name.c). */
bool verdict_counts(struct guard *g, const struct place *to);
int verdict_moving(struct guard *g, const struct place *to,
                   const char *temp); /* on its way, by a name of the guard's */
/* The same of a link, or (`moved`: the place itself) of a directory with links in it. */
int verdict_linked(struct guard *g, const struct place *p, const struct place *moved);
/* Whether its name is one that is guarded. */
bool object_guarded(struct guard *g, const struct object *o);
/* Whether its content is judged; the rule, or NULL for the configuration of a repository of another name than .git. */
bool verdict_config(struct guard *g, const struct place *p, const struct rule **ret_rule);
int verdict_object(struct guard *g, const struct object *o, enum denial_action action);
/* Whether `p` is a .gitmodules, or a repository's configuration that is not there yet: both are written in place (gitdir.c). */
bool verdict_in_place(struct guard *g, const struct place *p, int flags, const struct rule **ret_rule);
int verdict_remove(struct guard *g, const struct place *p, bool directory);
/* 1: performed by judged bytes (gitdir.c) */
int verdict_rename(struct guard *g, const struct place *from, const struct place *to, unsigned flags,
                   struct sys_stat *ret); /* what was judged */
int verdict_link(struct guard *g, const struct object *from, const struct place *to);
bool verdict_exclusive(const struct place *p); /* the place matters to repositories: hold the names alone */

/* born.c */
void born_add(struct guard *g, const struct sys_stat *st);
bool born_has(struct guard *g, const struct sys_stat *st);
struct str places_next(const struct places *all, uint32_t *at); /* from *at on; "" at the end */
bool places_add(struct guard *g, struct places *all, struct str path);

/* gittext.c */
bool git_is_nothing(int no); /* what a call failed with says that nothing stands there; anything else is not known */
bool git_is_common(
    int dir); /* objects and refs stand there, or it is not known; `dir`: or what opening it failed with */
int git_text_open(int dir, const char *name);         /* O_NONBLOCK: a FIFO in its place must not hold us */
int git_text_read(int fd, char **ret, size_t *ret_n); /* all bytes of a regular file, malloc()ed */

/* gitdir.c */
void guard_temp_name(const struct guard *g, char text[64]); /* one that no box may touch */
bool git_hooks_inert(int dir, const char *name);            /* missing, or samples only */
/*
 * Hooks (or remotes) that begin to count: the samples move to a directory that nobody has ever had open, which takes the name.
 * 0 (also when there is none), -EACCES when something else is in it.
 */
int git_hooks_renew(struct guard *g, int dir, const char *name);
bool git_config_inert(struct guard *g, int dir, const char *name, struct str path);
/*
 * The configuration in `dir`, `path`, begins to count: what passes becomes a file that nobody has open or by another name.
 * 0 (also when there is none), -EACCES when it may not stand, or another error.
 */
int git_config_adopt(struct guard *g, int dir, struct str path);
int git_config_replace(struct guard *g, const struct place *from, const struct place *to, const struct rule *rule,
                       bool keep_source);

/* Opening what verdict_in_place() says for writing. */
long git_in_place_open(struct guard *g, struct place *p, const struct rule *rule, int flags, unsigned mode);
/* Before a call is served: what writers have closed by now has its name. */
void git_modules_settle(struct guard *g);

/* module.c: places of submodules' files */
bool module_text_fits(struct guard *g, struct str directory, struct str old_text, struct str new_text);
/* Whether a link at `to`, or the directory `moved` with the links in it, comes to stand on the way to such a place. */
bool module_behind(struct guard *g, const struct place *to, const struct place *moved);
/* Whether a directory that moves holds a submodule's repository that would then name another place. */
bool module_misled(struct guard *g, const struct place *from, const struct place *to);
/* Whether, when `dir` becomes a repository, submodules' repositories would stand where module.c does not look. */
bool module_lost(struct guard *g, int dir, struct str directory);

/* reporoot.c: names of the `root` list at the roots of repositories that this box did not make */
const struct rule *reporoot_guarded(struct guard *g, struct str path, size_t *ret_end);
/* The next such name that stands, or would stand, below the directory `path`. Begin with a zeroed one. */
const struct rule *reporoot_below(struct guard *g, struct str path, struct rooted *w);
bool reporoot_marks(struct guard *g, const struct place *p); /* the name is what makes a directory a root */
/* Before something goes or comes: 0, or -EACCES with the denial told. */
int reporoot_marker_leaves(struct guard *g, const struct place *p, enum denial_action action);
int reporoot_leaves(struct guard *g, const struct place *from, const struct sys_stat *st);
int reporoot_arrives(struct guard *g, const struct place *from, const struct place *to, const struct sys_stat *st);
/* After something was made. */
void reporoot_made(struct guard *g, const struct place *p);
bool reporoot_tells(struct guard *g, int dir, struct str path,
                    struct buf *names); /* those in a repository that was made here */

/* told.c */
void told_link(struct guard *g, const struct place *p, const char *text);
void told_refs(struct guard *g, const struct place *p); /* the name was written, or something came to stand there */
void told_fifo(struct guard *g, const struct place *p);
void told_moved(struct guard *g, const struct place *from, const struct place *to, bool exchange);
void told_end(struct guard *g); /* all that is left of it */

/* point.c: mount points at guarded names. The name of `p` is the one that `rule` guards. */
bool point_may(struct guard *g, const struct place *p, const struct rule *rule); /* it may be made, empty */
bool point_is(struct guard *g, const struct place *p, const struct rule *rule);  /* it was made so and is empty still */
void points_end(struct guard *g);                                                /* those that are there still go */

/* deny.c */
int deny(struct guard *g, enum denial_action action, const struct rule *rule, struct str path, const char *why);

/* handlers */
long open_call(struct guard *g, int dir, uint64_t path, int flags, unsigned mode);
long make_call(struct guard *g, int dir, uint64_t path, bool directory, unsigned mode,
               uint64_t device); /* mkdir, mknod */
long symlink_call(struct guard *g, uint64_t target, int dir, uint64_t path);
long link_call(struct guard *g, int from_dir, uint64_t from, int to_dir, uint64_t to, int flags);
long unlink_call(struct guard *g, int dir, uint64_t path, int flags);
long rename_call(struct guard *g, int from_dir, uint64_t from, int to_dir, uint64_t to, unsigned flags);
long truncate_call(struct guard *g, uint64_t path, int64_t length);
long chmod_call(struct guard *g, int dir, uint64_t path, unsigned mode, int flags);
long fchmod_call(struct guard *g, int fd, unsigned mode);
long chown_call(struct guard *g, int dir, uint64_t path, unsigned uid, unsigned gid, int flags);
long fchown_call(struct guard *g, int fd, unsigned uid, unsigned gid);
enum times { TIMES_SPEC, TIMES_VAL, TIMES_BUF };
long times_call(struct guard *g, int dir, uint64_t path, uint64_t times, enum times form, int flags);
long setxattr_call(struct guard *g, bool follow, int fd, uint64_t path, uint64_t name, uint64_t value, uint64_t n,
                   int flags); /* path 0: fd */
long removexattr_call(struct guard *g, bool follow, int fd, uint64_t path, uint64_t name);
int xattr_name(struct guard *g, uint64_t at); /* into g->text[1] */
long bind_call(struct guard *g, int fd, uint64_t address, uint32_t n);
long flock_call(struct guard *g, int fd, int operation);
long connect_call(struct guard *g, int fd, uint64_t address, uint32_t n);
long pair_call(struct guard *g, int type, int protocol, uint64_t to);
long mount_call(struct guard *g, uint64_t source, uint64_t target, uint64_t type, uint64_t flags, uint64_t data);
long fsopen_call(struct guard *g, uint64_t type, unsigned flags);

/* look.c: calls that read by name without an open */
int link_text(struct guard *g, int dir, uint64_t path, char text[PATH_MAX]); /* its length */
long readlink_call(struct guard *g, int dir, uint64_t path, uint64_t to, int room);
long getxattr_call(struct guard *g, bool follow, uint64_t path, uint64_t name, uint64_t to, uint64_t room);
long listxattr_call(struct guard *g, bool follow, uint64_t path, uint64_t to, uint64_t room);
long inotify_call(struct guard *g, int fd, uint64_t path, uint32_t mask);

/* peer.c: calls that name a process */
long peer_call(struct guard *g);

/* workers.c */
int worker_own(struct guard *g);      /* descriptors and the working directory that mean the process itself */
void worker_hand_on(struct guard *g); /* somebody else receives */
void workers_share(struct guard *g);  /* callers queue up: another processor may take the next one */
int guard_child(struct guard *g);     /* another process of ours: 1 in it, 0, or -EAGAIN when there are too many */
_Noreturn void guard_leave(struct guard *g); /* how it ends in peace */
int guard_may_block(struct guard *g); /* 0: another worker receives, go on; GONE_ON; -EAGAIN: there are too many */
