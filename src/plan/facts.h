/*
 * What one engine can enforce here and now, and why not the rest; plus the survey: what the file system holds at the
 * paths that the policy names. Filled by engine probes and survey/survey.c; the plan only reads it.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "protocol/egress.h"
#include "protocol/feature.h"

enum path_type { PATH_MISSING, PATH_DIR, PATH_FILE, PATH_OTHER /* socket, device, fifo */, PATH_UNREADABLE };

/* One path the policy names, as the host has it. */
struct path_fact {
    const char *asked;  /* as in the policy                                                             */
    const char *real;   /* symlinks resolved; for a missing path: the real nearest existing parent plus
                          the missing rest, lexically                                                  */
    const char *parent; /* the real nearest existing directory strictly above `real` ("/" for "/"); for a path that
                           may not be looked at: the directory that refuses the search                  */
    enum path_type type;
    int no; /* errno of the look-up when PATH_UNREADABLE or PATH_MISSING */
    uint32_t mode, uid, gid;
    uint64_t dev, ino;
    uint64_t born;    /* ns since 1970; 0: not known */
    const char *link; /* when the last component itself is a symbolic link: where the link stands, else NULL */
    bool refused;     /* exists, belongs to somebody else, and its permissions refuse this caller the reading */
    bool planted;     /* on the way there is a link that a box may have made (survey/written.h)           */
    bool foreign;     /* `parent` belongs to somebody else, and only its owner may make names in it */
};

/* A name that a pattern of the policy matched at the start (struct policy's paths[rule]). */
struct match_fact {
    uint32_t rule;
    const char *real;
    enum path_type type;
    bool refused; /* as in struct path_fact */
};

/* What a directory above a hidden place holds; only for the Landlock tier, whose rules can only allow. */
struct dir_entry {
    const char *name;
    bool directory;
};
struct dir_fact {
    const char *path; /* real */
    struct dir_entry *entries;
    size_t n_entries; /* sorted by name; symbolic links left out */
};

enum cgroup_kind { CGROUP_NONE, CGROUP_V2, CGROUP_V2_SYSTEMD /* over D-Bus */, CGROUP_V1 };
enum tier { TIER_NAMESPACES, TIER_LANDLOCK };

struct engine_reason { /* why it is not the engine */
    const char *engine, *why;
};

/* The image whose files are the box's root, for engines that have images. */
struct image_fact {
    const char *name;           /* as the policy says it                       */
    const char *id;             /* "sha256:...", or "" when nobody said        */
    const char *const *env;     /* "NAME=value" that the image brings, NULL-terminated    */
    const char *const *volumes; /* directories that it declares to be volumes, likewise   */
};

/* What docker and podman said of themselves. */
struct container_fact {
    bool podman, rootless;
    bool remapped;              /* docker's daemon gives containers other user numbers than the host's (userns-remap) */
    const char *socket;         /* docker: where its daemon listens */
    const char *host, *context; /* the daemon, as said by the policy; NULL: the client's own choice */
};

struct policy; /* policy/policy.h */
struct plan_image;

/* What paths over links led to when this policy was looked at first: they may lead there again, and nowhere else. */
struct path_pins {
    struct arena *mem;
    struct path_pin {
        const char *asked, *real;
    } * at;
    size_t n;
};

/* What a virtual machine boots, and how large it may be where nobody asked for less. */
struct machine_fact {
    const char *kernel, *modules, *release; /* host paths; its version */
    char key[17];                           /* of what it boots: 16 hexadecimal digits */
    bool kvm;
    const char *emulated; /* why not KVM, a clause, or NULL */
    uint64_t memory_mib;
    unsigned cpus;
    unsigned tsc_khz; /* of this machine's time-stamp counter, 0: not known */
};

struct facts {
    const char *seatbelt_custom;        /* the text of policy->seatbelt_file, or NULL */
    const struct machine_fact *machine; /* NULL: no virtual machine */
    /* Of an engine that is another program: its path; and, pure, what of an image its command line does (STEP_TOOL, `outer`). */
    const char *tool;
    bool unsandboxed; /* there is no box: the plan is the command's directory and rlimits (--unsandboxed-fallback) */
    void (*take)(struct plan_image *image);
    const char *engine;                 /* "native", "docker", ...                        */
    const struct engine_reason *others; /* when the engine was chosen and not said        */
    size_t n_others;
    const struct policy *policy;            /* what is asked: which image, daemon, runtime    */
    const struct image_fact *image;         /* NULL: the root is the host's                   */
    const struct container_fact *container; /* docker and podman                          */
    enum tier tier;                         /* native                                         */
    features can;                           /* what is honoured                               */
    const char *why_not[FEATURE_COUNT];     /* a clause for each that is not ("user namespaces are forbidden by ...") */
    const char *remedy[FEATURE_COUNT];      /* one command or setting, or NULL                */
    unsigned kernel_major, kernel_minor;
    int landlock_abi;  /* 0: none                                        */
    uint32_t uid, gid; /* of the caller                                  */
    const char *home, *user_name;
    enum cgroup_kind cgroup;
    enum catch_way catch;    /* the best way to catch connections, for net allow  */
    const char *catch_why;   /* why not a better one, or NULL                  */
    bool notify;             /* seccomp user notification                      */
    bool host_loopback;      /* the box uses the host's 127.0.0.1, and ports of it are refused one by one */
    bool uppers;             /* the state directory is on a file system that carries the private layer of an overlay */
    bool overlay;            /* overlayfs may be mounted in a user namespace: assumed on 5.11+ */
    bool layers;             /* and over a veil of `home`, from detached mounts: 6.15+, home on no overlay itself */
    struct path_fact *paths; /* sorted by `asked`                              */
    size_t n_paths;
    const char *written;    /* the memory of what boxes could write (survey/written.h), or NULL */
    struct path_pins *pins; /* what paths led to before, or NULL                             */
    /* Filled by the survey. */
    const char *
        core_program; /* core_pattern, where it names who gets core dumps and the caller's limit cannot stop that; or NULL */
    const char *program;    /* pinfold's own program file, real, or NULL                 */
    const char *helpers[3]; /* where pinfold's other programs are looked for (survey/helper.h), there or not; or NULL */
    const char *runtime;    /* pinfold's own in /tmp (survey/runtime_dir.h), or NULL           */
    const char *state_home, *config_home; /* $XDG_STATE_HOME and $XDG_CONFIG_HOME or their defaults   */
    /* Where something writable or mounted shows pinfold's own by another path (a bind mount): `asked` is the own path. */
    struct path_fact *aliases;
    size_t n_aliases;
    struct match_fact *matches; /* sorted by rule, then real */
    size_t n_matches;
    const char **targets; /* what guarded links and git's configuration lead to in the workspace; real */
    size_t n_targets;
    /* For the start to say: what git on the host would run that may not be the person's, what of it is not protected; or NULL. */
    const char *repository_note, *bounds_note;
    struct dir_fact *dirs; /* sorted by path */
    size_t n_dirs;
};

/* Places every box has something of its own at, and what else the plan asks of a host; NULL-terminated. */
extern const char *const facts_places[];

/*
 * Points `f` to copies in `to` of what is still of use when the plan has been made: not the survey. False without memory, when
 * nothing has changed.
 */
bool facts_move(struct facts *f, struct arena *to);
/* The fact about `asked`, or NULL. */
const struct path_fact *facts_path(const struct facts *f, const char *asked);
