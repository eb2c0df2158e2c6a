/*
 * The program pinfold-bwrap: a sandbox by bubblewrap's command line, in which nothing is pinfold's policy.
 *
 *     bwrap            this process, on the host: reads the line, makes the namespaces, waits, tells the exit status
 *      └ child         in the namespaces: builds the root from the line's operations, pivots into it, locks itself down
 *         └ command    of its own only if the child must stay: as pid 1, or because it holds locks and descriptors
 *
 * All destinations are resolved inside the new root (openat2(2), RESOLVE_IN_ROOT) and all mounts are made by descriptor,
 * so that no link of the sandbox leads to the host.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of bubblewrap whose command line this is. */
#define BWRAP_LIKE "0.13.1"

enum bw_kind {
    BW_BIND,
    BW_BIND_FD,
    BW_REMOUNT_RO,
    BW_OVERLAY_SRC,
    BW_OVERLAY,
    BW_TMP_OVERLAY,
    BW_RO_OVERLAY,
    BW_PROC,
    BW_DEV,
    BW_TMPFS,
    BW_MQUEUE,
    BW_DIR,
    BW_FILE,
    BW_BIND_DATA,
    BW_SYMLINK,
    BW_CHMOD
};
enum { BW_READ_ONLY = 1, BW_DEVICES = 2, BW_TRY = 4 };

struct bw_op {
    enum bw_kind kind;
    unsigned flags;                 /* BW_READ_ONLY ... */
    const char *option;             /* as it was written */
    const char *src, *work, *dest;  /* `work`: of an overlay */
    const char *plain, *plain_work; /* the same without links and ".."; NULL: not known */
    int fd;                         /* the data, or what to bind; -1 */
    int perms;                      /* -1: not said */
    uint64_t size;                  /* of a tmpfs; 0: the kernel's */
    int tree;                       /* a clone that was made before the first mount, -1: none */
};

struct bw_fds {
    int *at;
    size_t n;
};
struct bw_filter {
    void *code;
    size_t bytes;
};

struct bw_line {
    struct bw_op *ops;
    size_t n_ops;
    const char **locks; /* files to lock */
    size_t n_locks;
    struct bw_fds sync;
    struct bw_filter *filters;
    size_t n_filters;
    char **command;                             /* ended by NULL */
    const char *argv0, *chdir, *hostname, *cwd; /* `cwd`: the caller's, NULL: it has none */
    bool unshare_user, user_try, unshare_ipc, unshare_pid, unshare_net, unshare_uts, unshare_cgroup, cgroup_try;
    bool unshare_all, share_net, disable_userns, assert_userns_disabled;
    bool new_session, die_with_parent, as_pid_1, not_boundary, level_prefix;
    int userns, userns2, pidns, block, userns_block, info, json; /* descriptors, -1: not said */
    int seccomp;                                                 /* of --seccomp, -1 */
    int64_t uid, gid;                                            /* -1: the caller's */
    bool caps_said;                                              /* --cap-add or --cap-drop */
    uint64_t caps;                                               /* what the command has */
};

/* say.c: messages on standard error, "bwrap: ...". bw_die*() exit with status 1. */
void bw_levels(bool on);
/* Where a failed start is told (one byte), so that no exit status is reported for it; -1: nowhere. */
void bw_tell_failure_on(int fd);
void bw_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void bw_die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "<sentence>: <strerror(no)>"; `no` of either sign. */
_Noreturn void bw_die_sys(int no, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* help.c */
void bw_help(const char *name, bool to_stderr);

/* options.c: reads the line into *l, or exits with a message. Changes this process's environment as the line says. */
void bw_read_line(struct bw_line *l, int argc, char **argv);

/* words.c: the arguments of options. They exit with a message. */
/* `items` with room for one more at *n, which is counted. */
void *bw_more(void *items, size_t *n, size_t size);
int bw_fd_of(const char *text);
int bw_octal(const char *option, const char *text);
uint64_t bw_size_of(const char *text);
int64_t bw_id_of(const char *text, const char *what);
/* All that can be read from `fd`, which is closed, and a NUL; `what` names it in the message. */
char *bw_read_all(int fd, const char *what, size_t *ret_n);
/* The set of capabilities of this name, as CAP_KILL, cap_kill or ALL. */
uint64_t bw_caps_of(const char *name);
/* What this process may have. */
uint64_t bw_caps_permitted(void);

/* place.c: names in the new root. `top` is its uppermost mount. Descriptors are O_PATH, the caller closes them; -errno. */
struct bw_root {
    int top;
    int scratch; /* a tmpfs that nothing in the sandbox sees; -1: not needed */
    unsigned n_scratch;
    unsigned stacked; /* mounts on the host's "/" that lie between it and `top` */
    int proc;         /* the host's /proc */
};
int bw_open(const struct bw_root *r, const char *path, int flags);
/* The directory above `path`, made with all above it if needed, with mode 0755 less what `perms` (-1: not said) denies to
   the group or to others as a whole; *ret_name: the last name. */
int bw_make_parent(const struct bw_root *r, const char *path, int perms, const char **ret_name);
/* Where to mount: made if it is not there, refused if it is a link or of the other kind. Exits if it cannot be had. */
int bw_target(const struct bw_root *r, const char *path, bool directory, int perms);
/* Attaches the detached mount `tree` (owned from now on) at `target`. */
int bw_attach(struct bw_root *r, int tree, int target);

/* mounts.c: carries out the operations of the line; when it returns, the new root is "/". */
void bw_build_root(struct bw_line *l, int proc, bool own_proc);
/* A source by its plain name, over no link: O_PATH, or -errno. */
int bw_source(const char *plain);
/* overlay.c, special.c: one operation each, in bw_build_root(). */
void bw_overlay(struct bw_root *r, const struct bw_op *sources, size_t n, const struct bw_op *op);
void bw_dev(struct bw_root *r, const struct bw_op *op);
void bw_proc(struct bw_root *r, const struct bw_op *op, bool own);
int bw_tmpfs(int mode, uint64_t size);
int bw_new_mount(const char *type, const char *const *options, unsigned attributes);

/* lockdown.c */
/* Gives up all capabilities but the line's; `root`: the caller is the host's root; `own`: in a new user namespace. */
void bw_drop_caps(const struct bw_line *l, bool root, bool own);
void bw_load_filters(const struct bw_line *l);

/* status.c: what --info-fd and --json-status-fd are told. */
void bw_tell_child(const struct bw_line *l, int pid, unsigned long namespaces);
void bw_tell_exit(const struct bw_line *l, int status);

/* users.c: user namespaces. `proc` is a descriptor of the host's /proc. */
void bw_map_ids(int proc, uint32_t uid, uint32_t outer_uid, uint32_t gid, uint32_t outer_gid);
void bw_nest_users(const struct bw_line *l, int proc, uint32_t uid, uint32_t gid);
void bw_assert_no_users(void);

/* command.c: the end of the child. */
_Noreturn void bw_become_command(const struct bw_line *l);
/* Starts the command and stays until nothing is left; its status is written to `tell`. */
_Noreturn void bw_stay(const struct bw_line *l, int tell);
/* Closes all descriptors but standard ones and these, which are sorted. */
void bw_close_others(int *keep, size_t n);
int bw_exit_code(int status);
/* This process ends with the one that started it, by SIGKILL. */
void bw_die_with_parent(void);
