/*
 * The directories of a session. Names are arbitrary, so the file system has a hash of owner and name (128 bits of
 * SHA-256), and the record has the name itself. Two directories each: below the runtime directory the socket and the
 * lock, which vanish on reboot; below the state directory the record and the stored files.
 */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include "base/arena.h"
#include "base/err.h"

#define MAX_SESSION_NAME 4096
#define PLACE_HASH       33

struct session_place {
    char hash[PLACE_HASH];
    const char *name, *scope; /* scope "": the user's own */
    const char *run, *state;  /* directories of this session, absolute */
};

/* Computes the paths; creates nothing. -EINVAL with a message for an invalid name. Strings live in `mem`. */
int place_named(const char *name, const char *scope, struct arena *mem, struct session_place *ret, struct err *e);
/* The same for a directory below sessions/; name and scope come from the record. */
int place_of_hash(const char *hash, struct arena *mem, struct session_place *ret, struct err *e);
/* .../pinfold/s and .../pinfold/sessions, in `mem`. */
int place_roots(struct arena *mem, const char **ret_run, const char **ret_state, struct err *e);

/* Creates both directories and locks the first: returns the descriptor that holds the lock. */
int place_lock(const struct session_place *p, int *ret, struct err *e);
/* Returns a descriptor of the runtime directory, or -errno. */
int place_directory(const struct session_place *p);
/* Connects to the session daemon; -ENOENT, -ECONNREFUSED ... */
int place_connect(const struct session_place *p);
bool place_is_hash(const char *name);
/* Whether the runtime directory was made for a session of this state directory. */
bool place_is_of_here(const struct session_place *p);
/* Removes both directories with everything below. The caller holds the lock. */
void place_remove(const struct session_place *p);
