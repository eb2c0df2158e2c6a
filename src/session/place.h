/*
 * Where a session is: names are anybody's, so what stands in the file system is a hash of owner and name (128 bits of
 * SHA-256), and the name itself in the record. Two directories each: below the runtime directory the socket and the lock,
 * which go with the machine's restart; below the state directory the record and what the session stores.
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

/* Nothing is made. -EINVAL with a sentence for what is no name. Strings live in `mem`. */
int place_named(const char *name, const char *scope, struct arena *mem, struct session_place *ret, struct err *e);
/* Of a directory below sessions/: what its name says; name and scope are the record's. */
int place_of_hash(const char *hash, struct arena *mem, struct session_place *ret, struct err *e);
/* .../pinfold/s and .../pinfold/sessions, in `mem`. */
int place_roots(struct arena *mem, const char **ret_run, const char **ret_state, struct err *e);

/* Makes both directories and takes the lock of the first: its descriptor, for as long as that is open. */
int place_lock(const struct session_place *p, int *ret, struct err *e);
/* A descriptor of the runtime directory, or -errno. */
int place_directory(const struct session_place *p);
/* The session daemon's socket, connected; -ENOENT, -ECONNREFUSED ... */
int place_connect(const struct session_place *p);
bool place_is_hash(const char *name);
/* Both directories with all below them. The lock is held by the caller. */
void place_remove(const struct session_place *p);
