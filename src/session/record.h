/*
 * What is known of a session without asking it: a file of lines "key=value" in its state directory. Who owns it is a
 * process by number, start time and boot, so that no later process of that number is taken for it.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "session/place.h"
#include "plan/plan.h"

/* Something of the session's own: a directory, or a volume and who has it. */
struct kept {
    struct stored what;
    const char *engine, *host, *context; /* of a volume; host and context may be "" */
};

struct record {
    const char *name, *scope;
    const char *version; /* of the pinfold that started it; NULL: before 0.1.0 */
    unsigned revision;   /* KEEP_REVISION of its session daemon */
    const char *machine; /* which one, also after a restart */
    uint64_t pidns;      /* the namespace that `pid` is a number of; 0: not known */
    int pid;
    uint64_t start;   /* clock ticks after boot at which the session daemon began */
    const char *boot; /* kernel's random id of this boot */
    uint64_t created; /* seconds of the clock on the wall */
    const char *engine, *policy_digest, *plan_digest, *workspace, *cwd, *profile;
    enum tier tier;
    enum net_mode net;
    features lost;
    struct enforcement *enforced;
    size_t n_enforced;
    uint64_t timeout_ms, grace_ms, output; /* LIMIT_NONE: none */
    enum tty_mode tty;
    struct kept *kept;
    size_t n_kept;
    bool remapped;     /* something of the host's is shown under another name: session/inside.h */
    const char *image; /* id of the image whose files it shows, or "" */
};

/* This process as the owner of a session under `plan`, whose digests are made. */
int record_make(const struct session_place *p, const struct plan *plan, struct arena *mem, struct record *ret,
                struct err *e);
/* Takes over the volumes that an earlier session of the name had and this one does not use. */
int record_inherit(struct record *r, const struct record *before, struct arena *mem, struct err *e);
/* Written whole or not at all. */
int record_write(const struct session_place *p, const struct record *r, struct err *e);
/* -ENOENT without a sentence when there is none; -EBADMSG with one. */
int record_read(const struct session_place *p, struct arena *mem, struct record *ret, struct err *e);
/* Whether its session daemon is alive. */
bool record_is_alive(const struct record *r);
/* Whether this process can tell whether its session daemon is alive: it is of this machine and of this namespace of processes. */
bool record_is_of_here(const struct record *r);
/* Whether it was made before the machine's last start. */
bool record_is_of_boot(const struct record *r);
