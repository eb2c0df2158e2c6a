/*
 * Private to plan/: data passed from one stage of plan_make() to the next.
 *
 *     collect.c   rules and built-in places             -> places, sorted by path inside, one per path
 *     settle.c    each place against the one around it  -> what is done for it (enum act), stubs, guard rules, pins
 *     veil.c      stubs                                 -> groups, each in one mask or cover
 *     steps.c     places and groups, in path order      -> steps of the namespace tier
 *     landlock.c  places                                -> rules of the Landlock tier
 *     guard.c     guard rules                           -> the guard's table
 *     env.c, limits.c, needs.c                          the rest
 *     image.c     steps, strings, table                 -> one flat image
 */
#pragma once
#include "match/path.h"
#include "plan/plan.h"
#include "protocol/guard_table.h"

enum { ABI_REFER = 2, ABI_SCOPES = 6 }; /* linux/landlock.h: moves between directories since ABI 2, scopes since 6 */

static inline bool origin_is_builtin(const struct policy *p, uint32_t origin)
{
    return origin < p->n_origins && p->origins[origin].layer == LAYER_BUILTIN;
}

enum place_kind {
    PLACE_ROOT,    /* "/" itself */
    PLACE_TMPFS,   /* a private tree */
    PLACE_DEVICES, /* /dev */
    PLACE_PROC,    /* /proc */
    PLACE_DIR,     /* in a private tree: a directory, empty file or link that the box gets */
    PLACE_FILE,
    PLACE_LINK,
    PLACE_STORAGE, /* the session's own */
    PLACE_SOCKET,  /* a socket that may be connected to; visible if the host has it */
    PLACE_PATTERN, /* names of one directory by pattern; dst is the pattern */
    PLACE_RW,
    PLACE_CACHE,
    PLACE_RO,
    PLACE_PROTECT,
    PLACE_HIDE
};

/* How a place is implemented. */
enum act {
    ACT_NONE,        /* nothing: its surroundings suffice */
    ACT_ROOT,        /* clone of the root */
    ACT_ATTACH,      /* attaches a clone of the host's tree */
    ACT_STUB,        /* a name in a mask or cover */
    ACT_DENY,        /* mounts an empty object with mode 0 over it */
    ACT_GUARD,       /* the guard decides */
    ACT_HOLLOW,      /* hidden, with something visible below: an empty tmpfs with mount points */
    ACT_PRIVATE,     /* tmpfs, devices, proc */
    ACT_MAKE,        /* directory, file or link in one of our tmpfs */
    ACT_WHITEOUT,    /* in a cache: a whiteout in its private layer */
    ACT_MQUEUE,      /* a fresh mqueue file system */
    ACT_OVERLAY,     /* a private layer over the host's directory */
    ACT_PART,        /* the same as part of the one layer over the home directory (caches.c) */
    ACT_LINKED,      /* a link to a private directory of the state tree (caches.c) */
    ACT_PRIVATE_DIR, /* attaches a private directory of the state tree (nothing below it) */
    ACT_VOLUME,      /* the engine mounts a named volume */
    ACT_LANDLOCK,    /* Landlock rules */
    ACT_REDIRECT,    /* a variable points programs to a private directory */
    ACT_NOT_THERE,   /* nothing of the host is visible there anyway */
    ACT_REFUSED      /* the caller's own permissions deny it already */
};

/* What the box may do with names directly in a place. */
enum region { REGION_READ_ONLY, REGION_WRITABLE, REGION_PRIVATE, REGION_HIDDEN, REGION_CACHE };

struct plan_place {
    const char *dst;    /* inside, clean, real */
    const char *src;    /* host object, real; NULL if none */
    const char *target; /* PLACE_LINK, ACT_LINKED: text of the link */
    const char *parent; /* nearest existing directory above dst, named as in the box */
    const char *upper;  /* caches and storage: the private directory, or the volume */
    const char *why;    /* built-in places: what to print instead of an origin */
    uint32_t origin;
    uint32_t slot;  /* of its source, if attached */
    uint32_t order; /* order of collection, for a stable sort */
    int up;         /* settled: index of the surrounding region, -1 for the root */
    uint16_t mode;
    uint8_t kind, act, region; /* enum place_kind, act, region */
    uint8_t type;              /* enum path_type of the host object */
    uint8_t dst_type;          /* type of what the host (or the surrounding mount) has at dst */
    bool mount;                /* given as a mount: src and dst may differ */
    bool no_links;             /* a mount in which no symbolic link may be created */
    bool workspace;
    bool said;           /* from a rule of the policy, not built in */
    bool builtin;        /* from a rule of a built-in profile: yields to the caller's home */
    bool under_writable; /* settled: the box can write in a directory above, so it could move mounts and masks away */
    bool entered;        /* settled: starts a region */
    bool opened;         /* settled, hidden: something below is visible */
    bool match;          /* from a pattern, expanded at the start */
    bool device;         /* device nodes below must work */
    bool hides;          /* PLACE_PATTERN: hides, otherwise protects */
    bool refused;        /* see struct path_fact */
    bool administrators; /* missing, and what creates such names is the machine's administration (settle.c) */
    bool foreign;        /* likewise */
    bool of_home;        /* another path of something in the caller's home */
    bool own;            /* pinfold's own: overrides any rule for the same path */
    bool closed;         /* pinfold's own: no rule makes it or anything below visible */
    bool parts;          /* closed, but a mount may show elsewhere what is below it */
    bool absent;         /* hidden: a file is absent, instead of denied, where a mask hides it */
    bool once;           /* hidden by a mount over what is there at the start */
    bool link;           /* the name of a symbolic link, besides what it leads to */
    bool inside;         /* names a place below a mount's target, by its path in the box */
    bool dropped;        /* dropped: does not exist after all */
    uint8_t stub;        /* settled: its enum stub, or UINT8_MAX */
};

struct stub_ask {
    const char *path; /* inside */
    const char *dir;  /* the directory to mask */
    uint32_t region;  /* index of the surrounding place */
    uint32_t place;   /* index of the place it implements */
    uint32_t origin;
    uint8_t kind;     /* enum stub */
    bool optional;    /* not worth a cover: only the administrator can create this name */
    const char *text; /* STUB_TEXT_FILE, STUB_LINK */
};
/* A masked or covered directory, with stubs[first .. first + n). */
struct veil {
    const char *dir;
    uint32_t region, origin;
    size_t first, n;
    uint32_t
        slot; /* apart: of the directory's own mount, below this mask and above that of the directories around it */
    bool cover, apart;
};

struct guard_line {
    uint8_t kind, place, judge, flags;
    const char *text, *below;
    uint32_t origin;
};

struct mount_place { /* both ends of a mount, real, and the target as written */
    const char *src, *dst, *asked_to;
};

#define LINKED_AT "/run/pinfold-caches" /* where caches that the host does not have are in a box */

/* Steps and strings under construction. */
struct image_writer {
    struct arena *mem;
    struct step *steps;
    size_t n_steps;
    char *strings;
    size_t n_strings, strings_room;
    uint32_t *index; /* hash table of string offsets (open addressing), 0 free */
    size_t index_size, index_used;
};

struct making {
    struct plan *plan;
    const struct policy *policy;
    const struct facts *facts;
    const struct plan_ask *ask;
    struct arena *mem;
    struct err *e;
    struct image_writer image;

    const struct path_fact **fact_index; /* hash table by `asked` (open addressing) */
    size_t fact_index_size;

    struct plan_place *places;
    size_t n_places;
    struct mount_place *mounts; /* in order of `dst` */
    size_t n_mounts;
    struct stub_ask *stubs;
    size_t n_stubs;
    struct veil *veils;
    size_t n_veils;
    const char **cover_dirs; /* directories in which names created later must not appear */
    size_t n_cover_dirs;
    struct guard_line *guards;
    size_t n_guards;
    const char *last_pin;
    const char **reads; /* texts of rules that need every open to be checked */
    size_t n_reads;
    const char **notes;
    size_t n_notes;
    const char **refused; /* plan_ask.so_far */
    size_t n_refused;
    struct plan_dir *dirs;
    size_t n_dirs;
    const char **set_env; /* "NAME=value" that the plan itself needs (redirected caches) */
    size_t n_set_env;

    struct outer *outer;
    size_t n_outer;
    struct stored *stored;
    size_t n_stored;
    const char *layer;              /* host directory of the layer that all PARTs share, NULL: none */
    const char *linked, *linked_at; /* host directory of LINKED caches, and its path in the box; NULL: none */
    uint32_t linked_slot, linked_origin;
    const char *machine; /* host directory of what a virtual machine boots, shown at VM_FILES; NULL: none */
    uint32_t machine_slot;
    const char *caches;    /* directory of this workspace's caches, once one was needed */
    const char *home;      /* real, or NULL */
    const char *workspace; /* real */
    features asked_losses; /* losses that a key of their own requests */
    features around;       /* what the guard of the box around this one enforces */
    bool layered;          /* the workspace is behind plan_ask.layer */
    bool shm_of_host;      /* a rule makes /dev/shm the host's */
    bool empty_root;       /* an empty root with everything bound into it, instead of a clone of the host's */
    bool any_hide, any_protect, any_cache, needs_cache, any_depth_hide;
    uint32_t n_slots;
};

/* around.c: which of what a guard would enforce the guard of the box around this one does; why not the others. */
features around_holds(const struct making *m, const char **ret_why);
/* facts.c: the fact about `asked`; NULL with an error if the survey lacks it. */
const struct path_fact *fact_of(struct making *m, const char *asked);
int facts_begin(struct making *m);
/* "policy.yaml:9:3", for messages; in the arena, never NULL. */
const char *origin_of(struct making *m, uint32_t origin);
int no_memory(struct making *m);
int note(struct making *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Why the place exists: its origin, or its built-in reason. */
const char *place_origin(const struct plan *p, const struct plan_place *at, char *text, size_t n);

/* Stable sort of pointers: n steps for sorted input, otherwise n log n. */
int sort_pointers(struct arena *mem, const void **at, size_t n, int (*order)(const void *, const void *));

int collect(struct making *m);
/* The name in the box of the host's `real`, if the root is an image; otherwise `real`. */
const char *path_inside(struct making *m, const char *real);
int collect_private(struct making *m);
struct plan_place *place_add(struct making *m, enum place_kind kind, const char *dst, uint32_t origin);
int settle(struct making *m);
int add_guard(struct making *m, enum guard_rule_kind kind, const char *text, uint32_t origin);
/* A private tree; `kept`: a directory (or volume) of the host instead of the box's memory. */
int add_private(struct making *m, const char *text, bool kept, uint32_t origin);
int add_pins(struct making *m, const struct plan_place *around, const char *dst, uint32_t origin);
int add_read(struct making *m, const char *rule);
/* For a place that is missing together with directories above it: the first missing one, below which all is absent. */
const char *first_missing(struct making *m, const struct plan_place *p);
/* What a mask has for a hidden place. */
enum stub stub_of_hidden(const struct plan_place *p);
/* The private directory of the cache at `dst`, in the caller's state; NULL without a state directory or memory. */
const char *cache_dir(struct making *m, const char *dst);
/* A name for a file or volume, unique to the path (letters, digits). */
const char *short_name(struct making *m, const char *path);
int add_make_dir(struct making *m, const char *path, bool temporary);
/* Whether `p` is below the caller's home. */
bool in_home(const struct making *m, const struct plan_place *p);
/* Landlock tier: sets the variable that makes programs use a private directory instead of the cache at p->dst. */
int redirect_cache(struct making *m, struct plan_place *p);
int add_env(struct making *m, const char *name, const char *value);
/* The working directory of the command, as a path in the box. */
const char *cwd_of(struct making *m);
/* After settle(), if the home directory will be masked: turns caches into parts and links. */
int caches_gather(struct making *m);
/* plan_ask.secret where the kernel mounts overlays of what is in no tree, otherwise NULL. */
const char *secret_caches(const struct making *m);
/* Of a box with a layer: which of its caches no box is told of (plan_ask.secret). */
int caches_secret_settle(struct making *m);
int linked_caches_step(struct making *m);
/* A virtual machine in the box: its boot files, and /dev/kvm (machine.c). */
int machine_begin(struct making *m);
int machine_source(struct making *m);
int machine_steps(struct making *m);
int machine_check(struct making *m);
int machine_check_hides(struct making *m); /* call after settle() */
/* The value of the proxy variables. */
const char *machine_proxy(const struct making *m);
int veils_make(struct making *m);
int steps_make(struct making *m);
/* net allow: the network's files in /etc, the variables, and the steps (egress.c). */
int egress_stubs(struct making *m);
int egress_check_places(struct making *m);
int egress_env(struct making *m);
int egress_steps(struct making *m);
/* How connections will be redirected, and which allow rules a method with one listener per port cannot support. */
enum catch_way catch_of(const struct making *m);
features egress_needs(const struct policy *p);
/* CATCH_SOCKET: puts the proxy's socket into the private directory `dir`. */
int egress_socket(struct making *m, const char *dir);
/* net allow: the caller's own proxy (parent.c). */
int parent_make(struct making *m);
/* Checks that ports can be published here (publish.c). */
int publish_check(struct making *m);
int landlock_make(struct making *m);
/* In a box of the Landlock tier in a box '/' cannot be listed, and landlock_make() refuses a third. */
bool landlock_is_third(const struct making *m);
/* For an image as root: what the engine mounts, and the remaining steps for pinfold-init (outer.c). */
int outer_make(struct making *m);
/* The last steps of both tiers: limits, lock steps, working directory. */
int lock_make(struct making *m);
/* Without a box: ignores the decisions about places; only limits and working directory remain. */
int bare_make(struct making *m);
int limits_make(struct making *m);
int guard_names(struct making *m);
int guard_order(struct making *m);
int branches_plan(struct making *m); /* branches.c: git.verify: required where the box can write the repository */
int env_make(struct making *m);
int needs_make(struct making *m);
/* Size limit of a private tree in KiB, 0 for the kernel's default. */
uint32_t private_kib(const struct making *m, const char *dst);
uint32_t filter_of(const struct making *m);

/* image.c */
int image_begin(struct image_writer *w, struct arena *mem);
/* Offset of `s` in the string table; 0 for "" and NULL. UINT32_MAX without memory. */
uint32_t image_string(struct image_writer *w, const char *s);
/* Appends a zeroed step of `kind`; NULL without memory or beyond MAX_PLAN_STEPS. */
struct step *image_step(struct image_writer *w, enum step_kind kind, uint32_t origin);
/* The same, with a path as first argument. */
struct step *image_path(struct image_writer *w, enum step_kind kind, const char *path, uint32_t origin);
int image_end(struct making *m, struct plan_image **ret);
