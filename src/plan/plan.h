/*
 * policy + facts -> plan. Pure. What is needed and cannot be honoured is an ERR_CANNOT error that names each guarantee,
 * the reason and the remedy, unless the policy lists it under `may_lose`; then it is in plan->lost.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "plan/facts.h"
#include "policy/policy.h"
#include "protocol/step.h"

#define MAX_PLAN_BYTES (32u << 20)
#define MAX_PLAN_STEPS 100000

/* By what a guarantee is enforced, for result and explain. */
struct enforcement {
    enum feature what;
    const char *by; /* "mount namespace, read-only root", "seccomp notification", "cgroup v1 memory" */
};

/* A directory of pinfold's own on the host that whoever starts the plan makes first (as mkdir -p, mode 0700). */
struct plan_dir {
    const char *path;
    bool temporary; /* and removes with its content after the run */
    bool whiteout;  /* no directory but, unless something stands there already, a whiteout: mknod(path, S_IFCHR, 0);
                       its parents are made as directories. It keeps a name of a cache's lower layer from ever showing */
    bool opaque;    /* a directory of such a layer that lets nothing of the host's show through, now or later */
};

/* What an engine with images makes by its own command line, in the order in which it must be made. */
struct outer {
    enum outer_kind {
        OUTER_BIND,   /* the host's `src` at `dst`                                         */
        OUTER_VOLUME, /* the engine's named volume `src` at `dst`                         */
        OUTER_TMPFS,  /* private, at most `kib` (0: the kernel's own idea), mode `mode`    */
        OUTER_SHM,    /* the same for /dev/shm, which the engine makes anyway              */
        OUTER_TEXT,   /* a file that says `text`                                           */
        OUTER_DEVICE  /* the host's device                                                 */
    } kind;
    const char *src, *dst, *text;
    bool writable;
    uint32_t kib, origin;
    uint16_t mode;
};

/* A place of the session's own. */
struct stored {
    const char *path; /* inside */
    const char *at;   /* a directory on the host, or an engine's named volume */
    bool volume;
};

struct plan_place; /* plan/make.h: what was decided for one path, for explain */

struct proxies; /* policy/proxy.h */

struct plan {
    struct arena *mem;
    struct arena *rest;          /* after plan_settle_down(): all but the image; or NULL */
    const struct policy *policy; /* borrowed: must outlive the plan */
    const struct facts *facts;   /* borrowed                        */
    struct plan_image *image;    /* what an engine of ours runs     */
    features needs, lost;
    struct enforcement *enforced;
    size_t n_enforced;
    const char **env;                 /* "NAME=value", NULL-terminated, in order; what the command gets */
    const char *cwd;                  /* inside */
    enum catch_way catch;             /* net allow: how connections come to the egress */
    const char *proxy_socket;         /* CATCH_SOCKET: where the egress listens, in a directory of make_dirs; or NULL */
    const char *names_denied;         /* what a denied name does not mean here, for the start to say; NULL */
    const char *workspace;            /* real path on the host; same path inside unless remapped */
    const char **read_on_every_open;  /* why FILTER_READS is on: the rules' texts, NULL-terminated, or NULL */
    const struct plan_dir *make_dirs; /* private layers of caches, TMPDIR of the Landlock tier */
    size_t n_make_dirs;
    const struct plan_place *places; /* sorted by path inside */
    size_t n_places;
    const struct outer *outer; /* engines with images */
    size_t n_outer;
    const struct stored *stored; /* of a session */
    size_t n_stored;
    const struct proxies *proxies; /* net allow: what the caller himself goes through, or NULL */
    const char **refused;          /* with plan_ask.so_far: why nothing would be run, NULL-terminated, or NULL */
    const char **notes;            /* sentences for people about what was decided, NULL-terminated, or NULL */
    const char *const *command;    /* of an engine that is another program, once somebody asked: its words, or NULL */
    const char *command_text;      /* the same for a shell, with a newline at the end */
    char digest[65];               /* SHA-256 of image and environment names, hex; filled by plan_digests() */
    char policy_digest[65];        /* without what belongs to each command */
};

/* What differs from run to run under one policy. `environ` is the caller's; names only decide, values are copied. */
struct plan_ask {
    const char *cwd;            /* of the caller, absolute and real */
    bool cwd_said;              /* it was asked for by name: nowhere else, and what no mount shows is the box's own */
    const char *const *environ; /* NULL-terminated */
    bool tty;                   /* the command gets a terminal */
    const char *state_home;     /* in the place of the user's, which cannot be written; NULL: that */
    /*
     * Two overlays must not share an upper layer (overlayfs.rst: undefined behaviour), so concurrent boxes of one
     * workspace take different slots of its caches; the caller holds a lock on the one it names here. 0 otherwise.
     */
    unsigned cache_slot;
    /* For explain alone: what cannot be honoured is put into plan->refused, and the rest is planned without it. */
    bool so_far;
    /*
     * Of a session: where it keeps what it stores, a directory on the host and a name that its volumes begin with. NULL: none,
     * and what is stored is private and goes with the box.
     */
    const char *storage, *volume;
    const char
        *instance; /* unique among living boxes of this user (a pid): names TMPDIR in the Landlock tier; NULL "0" */
};

int plan_make(const struct policy *policy, const struct facts *facts, const struct plan_ask *ask, struct plan **ret,
              struct err *e);
struct plan *plan_free(struct plan *p);
/* What denying a name does not mean where all else is allowed: a sentence for the start to say, or NULL. */
const char *egress_names_denied(const struct policy *p);
/*
 * For a box that lives: gives back what of the plan's memory only planning and explaining needed (places, notes, values of
 * the environment). All else stays where it was said to be, `image` in its place. False without memory or where the plan
 * needs more: nothing has changed then. Afterwards it points into `facts` and `policy` themselves only.
 */
bool plan_settle_down(struct plan *p);
/* Fills digest and policy_digest; apart, because a run that reports neither need not pay for them. */
int plan_digests(struct plan *p, struct err *e);
/* Of the image alone, which is what a box is told to run: SHA-256 in hexadecimal. */
void plan_image_digest(const struct plan *p, char ret[65]);
/* The same policy_digest without a plan, for the engine of that name and the image of that id (NULL: of none). */
int policy_digest(const struct policy *p, const char *engine, const char *image_id, char ret[65], struct err *e);
/* For people and as JSON: steps, filters, limits, environment (values only with `show_values`), needs, losses, digest. */
int plan_explain(const struct plan *p, bool show_values, struct buf *out);
/* For people without the steps, and with what the built-in profiles say by the hundred only counted. */
int plan_explain_brief(const struct plan *p, bool show_values, struct buf *out);
int plan_explain_json(const struct plan *p, bool show_values, struct buf *out);
struct json;
void plan_explain_members(const struct plan *p, bool show_values, struct json *j); /* the same through any writer */
