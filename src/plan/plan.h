/*
 * policy + facts -> plan. Pure. If a guarantee is needed and cannot be enforced, planning fails with ERR_CANNOT, which
 * names each such guarantee, the reason and the remedy; those that the policy lists under `may_lose` go to plan->lost
 * instead.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "plan/facts.h"
#include "policy/policy.h"
#include "protocol/step.h"

#define MAX_PLAN_BYTES (32u << 20)
#define MAX_PLAN_STEPS 100000

/* What enforces a guarantee, for result and explain. */
struct enforcement {
    enum feature what;
    const char *by; /* "mount namespace, read-only root", "seccomp notification", "cgroup v1 memory" */
};

/* A directory of pinfold's own on the host, to be created before the start (as mkdir -p, mode 0700). */
struct plan_dir {
    const char *path;
    bool temporary; /* remove it with its content after the run */
    /* instead of a directory, unless something exists there, a whiteout: mknod(path, S_IFCHR, 0); its parents are
       directories. It hides a name of a cache's lower layer for good */
    bool whiteout;
    bool opaque; /* an opaque directory in such a layer: hides everything of the host's, now and later */
};

/* What an engine with images mounts by its own command line, in this order. */
struct outer {
    enum outer_kind {
        OUTER_BIND,   /* the host's `src` at `dst` */
        OUTER_VOLUME, /* the engine's named volume `src` at `dst` */
        OUTER_TMPFS,  /* private, at most `kib` (0: the kernel's default), mode `mode` */
        OUTER_SHM,    /* the same for /dev/shm, which the engine creates anyway */
        OUTER_TEXT,   /* a file with the content `text` */
        OUTER_DEVICE  /* the host's device */
    } kind;
    const char *src, *dst, *text;
    bool writable;
    uint32_t kib, origin;
    uint16_t mode;
};

/* A directory that the session stores. */
struct stored {
    const char *path; /* inside */
    const char *at;   /* a directory on the host, or an engine's named volume */
    bool volume;
};

struct plan_place; /* plan/make.h: the decision for one path, for explain */

struct proxies; /* policy/proxy.h */

struct plan {
    struct arena *mem;
    struct arena *rest;          /* after plan_settle_down(): everything except the image; or NULL */
    const struct policy *policy; /* borrowed: must outlive the plan */
    const struct facts *facts;   /* borrowed */
    struct plan_image *image;    /* what an engine of ours runs */
    features needs, lost;
    struct enforcement *enforced;
    size_t n_enforced;
    const char **env;         /* "NAME=value", NULL-terminated, in order: the command's environment */
    const char *cwd;          /* inside */
    enum catch_way catch;     /* net allow: how connections reach the egress proxy */
    const char *proxy_socket; /* CATCH_SOCKET: the proxy's socket, in a directory of make_dirs; or NULL */
    const char *names_denied; /* for the start to report: the limits of denying a name here; NULL */
    const char *root_note;    /* for the start to report: root cannot write the workspace in a box; NULL */
    bool layered;             /* changes to the workspace go to a copy-on-write layer */
    bool verifies;            /* git.verify: the guard asks before a protected branch moves (GUARD_RULE_BRANCH) */
    const char *workspace;    /* real path on the host; same path inside unless remapped */
    const char **read_on_every_open;  /* the rules that need FILTER_READS, NULL-terminated, or NULL */
    const char *session;              /* as in plan_ask */
    const struct plan_dir *make_dirs; /* private layers of caches, TMPDIR of the Landlock tier */
    size_t n_make_dirs;
    const struct plan_place *places; /* sorted by path inside */
    size_t n_places;
    const struct outer *outer; /* engines with images */
    size_t n_outer;
    const struct stored *stored; /* of a session */
    size_t n_stored;
    const struct proxies *proxies; /* net allow: the caller's own proxy, or NULL */
    const char **refused;          /* with plan_ask.so_far: why nothing would run, NULL-terminated, or NULL */
    const char **notes;            /* remarks for people about decisions, NULL-terminated, or NULL */
    const char *const *command;    /* of an engine that is another program, once requested: its command line, or NULL */
    const char *command_text;      /* the same for a shell, ending in a newline */
    uint64_t most_files;    /* for explain: the caller's hard limit of open files, which bounds a box's; 0: not asked */
    char digest[65];        /* SHA-256 of image and environment names, hex; filled by plan_digests() */
    char policy_digest[65]; /* without what belongs to single commands */
    const struct policy *said; /* the policy as it was loaded, where keys were added to it (run/keys); or NULL */
};

/* What differs between runs under one policy. `environ` is the caller's: variables are selected by name and copied. */
struct plan_ask {
    const char *cwd; /* of the caller, absolute and real */
    /* requested explicitly: fail rather than start elsewhere; a path outside of all mounts is the box's own */
    bool cwd_said;
    bool of_image;              /* the command is the image's own, which starts in its WORKDIR */
    const char *const *environ; /* NULL-terminated */
    bool tty;                   /* the command gets a terminal */
    const char *state_home;     /* used instead of the user's, which is not writable; NULL: the user's */
    /*
     * Two overlays must not share an upper layer (undefined behaviour: Documentation/filesystems/overlayfs.rst), so
     * concurrent boxes of one workspace use different slots of its caches. The caller holds a lock on the slot it names
     * here. 0 otherwise.
     */
    unsigned cache_slot;
    /* Only for explain: puts what cannot be enforced into plan->refused, and plans the rest without it. */
    bool so_far;
    /*
     * For a session: where it stores its files, a directory on the host and a prefix for volumes. NULL: nothing is
     * stored; such places are private and vanish with the box.
     */
    const char *storage, *volume;
    bool redirects;  /* a thorough probe tries how connections are redirected, though this policy has no network */
    uint32_t grants; /* ms that somebody has to allow a write while the command runs; 0: nobody is asked */
    bool piped;      /* a command may get a pipe of its caller's to read, which the guard keeps from being written */
    const char *session; /* its name, for a container engine's own lists; NULL: none. Not part of a digest */
    /*
     * Copy-on-write: the host's directory with upper/ and work/ of the layer that the workspace's changes go to; the
     * caller holds it. NULL: they go to the workspace. `layer_hidden`: the name that upper/ gets once it is mounted, which
     * no box can learn.
     */
    const char *layer, *layer_hidden;
    /* With `layer`: directories of kept layers between the workspace and it, the uppermost first, NULL-terminated; or NULL. */
    const char *const *layer_below;
    /*
     * With `layer`: the directory in a slot of the caches that this box uses. No box is told of it: its caches are
     * mounted so that their place on the host cannot be read in the box. So nothing can be led there, and they need no
     * guard.
     */
    const char *secret;
    const char
        *instance; /* unique among this user's running boxes (a pid): part of TMPDIR in the Landlock tier; NULL: "0" */
};

int plan_make(const struct policy *policy, const struct facts *facts, const struct plan_ask *ask, struct plan **ret,
              struct err *e);
struct plan *plan_free(struct plan *p);
/* What denying a name cannot prevent if everything else is allowed: a sentence for the start to print, or NULL. */
const char *egress_names_denied(const struct policy *p);
/*
 * For a box that stays: frees what only planning and explaining needed (places, notes, values of the environment). All
 * else stays valid; `image` does not move. False without memory or if the plan still needs it: nothing has changed.
 * Afterwards the plan refers only to `facts` and `policy` themselves.
 */
bool plan_settle_down(struct plan *p);
/* Fills in digest and policy_digest; separate, because runs that report neither should not pay for them. */
int plan_digests(struct plan *p, struct err *e);

/* Of another user's workspace root may do in a box only what the mode lets everybody do: it has no capabilities there. */
bool plan_shuts_root_out(const struct path_fact *top, uint32_t gid, bool read_only);
const char *plan_root_words(struct arena *mem, const struct path_fact *top, bool read_only); /* NULL: no memory */
/* Digest of the image alone, which is what a box is told to run: SHA-256 in hexadecimal. */
void plan_image_digest(const struct plan *p, char ret[65]);
/* Of all its masks and their stubs, and the ids of the box. */
void plan_masks_digest(const struct plan *p, char ret[65]);
/* policy_digest without a plan, for the named engine and the image of this id (NULL: none). */
int policy_digest(const struct policy *p, const char *engine, const char *image_id, char ret[65], struct err *e);
/* What of the policy is not in that: the values of variables, with a salt. */
void policy_values_digest(const struct policy *p, const char *salt, char ret[65]);
/* For people and as JSON: steps, filters, limits, environment (values only with `show_values`), needs, losses, digest. */
int plan_explain(const struct plan *p, bool show_values, struct buf *out);
/* Whether the command's user is whom the image's USER says, or that says nobody. A name means what the image says, so it never is. */
bool plan_has_image_user(const struct plan *p);
/* For people, without the steps; entries of the built-in profiles are only counted. */
int plan_explain_brief(const struct plan *p, bool show_values, struct buf *out);
int plan_explain_json(const struct plan *p, bool show_values, struct buf *out);
struct json;
void plan_explain_members(const struct plan *p, bool show_values, struct json *j); /* the same through any writer */

/* Whether the box has a file of its own at `path`, such as /etc/hosts, whatever the host has there. */
bool plan_own_file(const struct plan *p, const char *path);
