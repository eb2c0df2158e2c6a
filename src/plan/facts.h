/*
 * What one engine can enforce on this machine, and why not the rest; plus the survey: what the file system has at the
 * paths of the policy. Filled in by engine probes and survey/survey.c; the plan only reads it. Values alone: through a
 * function in here the plan would call out (tests/lint/pure.sh).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "protocol/egress.h"
#include "protocol/feature.h"

enum path_type { PATH_MISSING, PATH_DIR, PATH_FILE, PATH_OTHER /* socket, device, fifo */, PATH_UNREADABLE };

/* A path that the policy names, as it is on the host. */
struct path_fact {
    const char *asked; /* as in the policy */
    /* symbolic links resolved; for a missing path: the real nearest existing parent plus the rest, as text */
    const char *real;
    /* the real nearest existing directory strictly above `real` ("/" for "/"); for a path that may not be examined:
       the directory that denies the search */
    const char *parent;
    enum path_type type;
    int no; /* errno of the lookup if PATH_UNREADABLE or PATH_MISSING */
    uint32_t mode, uid, gid;
    uint64_t dev, ino;
    uint64_t born;    /* creation time, ns since 1970; 0: unknown */
    const char *link; /* where the link is, if the last component itself is a symbolic link, else NULL */
    bool refused;     /* exists, belongs to another user, and its permissions deny this caller reading */
    bool planted;     /* the path crosses a link that a box may have created (survey/written.h) */
    bool foreign;     /* `parent` belongs to another user, and only its owner may create names in it */
};

/* A name that matched a pattern of the policy at the start (struct policy's paths[rule]). */
struct match_fact {
    uint32_t rule;
    const char *real;
    enum path_type type;
    bool refused; /* as in struct path_fact */
};

/* The contents of a directory above a hidden place; only for the Landlock tier, whose rules can only allow. */
struct dir_entry {
    const char *name;
    bool directory;
};
struct dir_fact {
    const char *path; /* real */
    struct dir_entry *entries;
    size_t n_entries; /* sorted by name, without symbolic links */
};

enum cgroup_kind { CGROUP_NONE, CGROUP_V2, CGROUP_V2_SYSTEMD /* over D-Bus */, CGROUP_V1 };
enum { N_HELPERS = 7 }; /* places of pinfold's other programs */
enum tier { TIER_NAMESPACES, TIER_LANDLOCK };

struct engine_reason { /* why this engine was not chosen */
    const char *engine, *why;
};

/* The image whose files are the box's root, for engines with images. */
struct image_fact {
    const char *name;              /* as the policy says it */
    const char *id;                /* "sha256:...", or "" if unknown */
    const char *const *env;        /* "NAME=value" from the image, NULL-terminated */
    const char *const *volumes;    /* directories that it declares as volumes, likewise */
    const char *const *entrypoint; /* words, likewise; none: it has none */
    const char *user;              /* its USER, or "" */
    const char *const *cmd;        /* its CMD, as `entrypoint` */
    const char *workdir;           /* its WORKDIR, or "" */
};

/* What docker and podman report about themselves. */
struct container_fact {
    bool podman, rootless;
    bool remapped;              /* docker's daemon maps user ids of containers to others on the host (userns-remap) */
    const char *socket;         /* docker: the daemon's socket */
    const char *host, *context; /* the daemon named by the policy; NULL: the client's default */
};

struct policy;     /* policy/policy.h */
struct plan_image; /* protocol/step.h */

/* Targets of paths over links when this policy was first examined: later plans accept these targets and no others. */
struct path_pins {
    struct arena *mem;
    struct path_pin {
        const char *asked, *real;
    } * at;
    size_t n;
};

/* What a virtual machine boots, and its default size. */
struct machine_fact {
    const char *kernel, *modules, *release; /* host paths; its version */
    char key[17];                           /* identifies what it boots: 16 hexadecimal digits */
    bool kvm;
    const char *emulated; /* why not KVM, a clause, or NULL */
    uint64_t memory_mib;
    unsigned cpus;
    unsigned tsc_khz; /* frequency of this machine's time-stamp counter, 0: unknown */
};

struct facts {
    const char *seatbelt_custom;        /* the text of policy->seatbelt_file, or NULL */
    const struct machine_fact *machine; /* NULL: no virtual machine */
    const char *tool;                   /* if the engine is another program: its path */
    uint32_t tool_namespaces; /* those that its command line creates, with the root and the host name; 0: none */
    bool unsandboxed;   /* no box: the plan has only the command's directory and rlimits (--unsandboxed-fallback) */
    const char *engine; /* "native", "docker", ... */
    const struct engine_reason *others; /* if the engine was chosen by `auto` */
    size_t n_others;
    const struct policy *policy;            /* for its image, daemon, runtime and network */
    bool redirects;                         /* asked: plan_ask.redirects */
    const struct image_fact *image;         /* NULL: the root is the host's */
    const struct container_fact *container; /* docker and podman */
    enum tier tier;                         /* native */
    features can;                           /* what is enforced */
    /* a clause for each feature that is not ("user namespaces are forbidden by ...") */
    const char *why_not[FEATURE_COUNT];
    const char *remedy[FEATURE_COUNT]; /* one command or setting, or NULL */
    unsigned kernel_major, kernel_minor;
    int landlock_abi;  /* 0: none */
    bool memory_files; /* Landlock tier: process_vm_writev(2) is refused, memory is a file in /proc */
    uint32_t uid, gid; /* of the caller, the effective ones */
    const char *home, *user_name;
    enum cgroup_kind cgroup;
    bool cgroup_trees;    /* version 1 is mounted: a tree for each controller */
    bool cpu_by_group;    /* a control group holds processor time exactly; otherwise the box is stopped and continued */
    enum catch_way catch; /* the best way to redirect connections, for net allow */
    const char *catch_why;           /* why not a better one, or NULL */
    bool notify;                     /* seccomp user notification */
    bool nested;                     /* pinfold itself is in a box of its own */
    const struct plan_image *around; /* what that box's guard has told of its rules, checked; or NULL */
    const char *around_top;          /* where it guards names as at the top of a writable tree, because we asked */
    bool host_loopback;              /* the box uses the host's 127.0.0.1, and single ports of it are refused */
    bool uppers;                     /* the state directory's file system supports the upper layer of an overlay */
    bool overlay;                    /* overlayfs can be mounted in a user namespace: assumed from 5.11 on */
    bool layers; /* also over a mask of `home`, from detached mounts: from 6.15 on, if home is not an overlay itself */
    struct path_fact *paths; /* sorted by `asked` */
    size_t n_paths;
    const char *written;    /* the record of what boxes could write (survey/written.h), or NULL */
    struct path_pins *pins; /* earlier targets of paths, or NULL */
    bool thorough;          /* for explain, among others: what only it says is looked at, too */
    /* Filled in by the survey. */
    const char *
        /* the program or socket in core_pattern that hears of crashes, if no limit can prevent that; or NULL */
        core_handler;
    const char *program;            /* pinfold's own program file, real, or NULL */
    const char *helpers[N_HELPERS]; /* where pinfold's other programs may be (survey/helper.h), or NULL */
    bool is_clone;                  /* helpers[0] is build/ of the clone that ./pinfold builds */
    const char **clone;             /* what that build reads, where the box could write around it */
    size_t n_clone;
    const char *runtime;                  /* the runtime directory in /tmp (survey/runtime_dir.h), or NULL */
    const char *state_home, *config_home; /* $XDG_STATE_HOME and $XDG_CONFIG_HOME or their defaults */
    /* Other paths of what is hidden, protected or pinfold's own, where two mounts show one object: `asked` is the real path
       that rules name. Sorted by it. */
    struct path_fact *aliases;
    size_t n_aliases;
    struct match_fact *matches; /* sorted by rule, then real */
    size_t n_matches;
    const char **targets; /* targets of guarded links and of git's configuration in the workspace; real */
    size_t n_targets;
    /* To report at the start: programs that git on the host would run that may not be the person's, and those not
       protected; or NULL. */
    const char *repository_note, *bounds_note;
    const char *repository; /* where the workspace's git keeps its branches; NULL: there is none, or nobody looked */
    struct dir_fact *dirs;  /* sorted by path */
    size_t n_dirs;
};

/* Paths where every box has something of its own, and what else a plan needs from a host; NULL-terminated. */
extern const char *const facts_places[];

/*
 * Replaces what is still needed after planning (not the survey) by copies in `to`, and points `f` to these. False
 * without memory; then nothing has changed.
 */
bool facts_move(struct facts *f, struct arena *to);
/* The fact whose `asked` is this, or NULL. */
const struct path_fact *facts_path(const struct facts *f, const char *asked);
