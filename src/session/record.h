/*
 * What is known of a session without asking its daemon: a file of lines "key=value" in its state directory. The owner
 * is a process identified by pid, start time and boot, so that a reused pid is not mistaken for it.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "session/place.h"
#include "plan/plan.h"

/* Something that the session stores: a directory, or a volume and the engine that has it. */
struct kept {
    struct stored what;
    const char *engine, *host, *context; /* of a volume; host and context may be "" */
};

/* An option that the session was started with. */
struct asked_option {
    const char *name, *value; /* value NULL: none */
    bool unkept;              /* a variable's name, whose value is not written down */
};

struct record {
    const char *name, *scope;
    const char *version; /* of the pinfold that started it; NULL: before 0.1.0 */
    unsigned revision;   /* KEEP_REVISION of its session daemon */
    const char *machine; /* its id, the same after a reboot */
    uint64_t pidns;      /* the pid namespace of `pid`; 0: unknown */
    int pid;
    uint64_t start;   /* start time of the session daemon in clock ticks after boot */
    const char *boot; /* the boot id */
    uint64_t created; /* seconds since 1970 */
    const char *engine, *policy_digest, *plan_digest, *workspace, *cwd, *profile;
    const char *values_digest; /* of its variables, which the policy's digest leaves out; "": of an earlier version */
    enum tier tier;
    enum net_mode net;
    features lost;
    struct enforcement *enforced;
    size_t n_enforced;
    uint64_t timeout_ms, grace_ms, output; /* LIMIT_NONE: none */
    enum tty_mode tty;
    struct kept *kept;
    size_t n_kept;
    bool remapped;       /* something of the host's is shown under another name: session/inside.h */
    const char *monitor; /* "yes", or "" */
    const char *image;   /* id of its image, or "" */
    const char *layer;   /* id of its copy-on-write layer, or "", and the name of that, or "" */
    const char *layer_name;
    const char *workspace_is; /* session/replaced.h: which directory it was, or "" */
    const char *hidden_once;  /* session/replaced.h, or "" */
    const char *asked_in;     /* where relative paths of `asked` begin; "": it is not known what it was started with */
    struct asked_option *asked;
    size_t n_asked;
    const char *verifies; /* "yes": git.verify is `required`; or "" */
    const char *reads;    /* "yes": the workspace is only read; or "" */
};

/* A record with this process as the owner of a session under `plan`, whose digests must exist. */
int record_make(const struct session_place *p, const struct plan *plan, struct arena *mem, struct record *ret,
                struct err *e);
/* What values_digest is for the values of this policy, in this session. */
void record_values(const struct record *r, const struct policy *policy, char ret[65]);
/* One more of `asked`; -ENOMEM with a message. Text is borrowed. */
int record_add_asked(struct record *r, const char *name, const char *value, bool unkept, struct arena *mem,
                     struct err *e);
/* Takes over volumes of an earlier session of this name that this one does not use. */
int record_inherit(struct record *r, const struct record *before, struct arena *mem, struct err *e);
/* Atomic. */
int record_write(const struct session_place *p, const struct record *r, struct err *e);
/* -ENOENT without a message if there is none; -EBADMSG with one. */
int record_read(const struct session_place *p, struct arena *mem, struct record *ret, struct err *e);
/* Whether its session daemon is alive. */
bool record_is_alive(const struct record *r);
/* Whether this process can tell that: the session is from this machine and this pid namespace. */
bool record_is_of_here(const struct record *r);
/* Whether it was created before the last boot. */
bool record_is_of_boot(const struct record *r);
