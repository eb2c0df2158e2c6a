/*
 * Behind the session functions of pinfold.h, in process.
 */
#pragma once
#include "run/direct.h"
#include "session/record.h"

#define MAX_SESSION_ARENA (4u << 20)

struct pinfold_session {
    struct arena *mem;
    struct session_place place;
    struct record record;
    int files;            /* the socket of the file API (session/session_files.c), or -1 */
    struct limits limits; /* of a command in it: time-out, grace, output; no others */
};

/*
 * A connection to the session daemon of a session that stands; when its socket has vanished the session daemon makes it anew. -ENOENT,
 * -ESTALE with a sentence that says what became of it.
 */
int session_connect(const struct session_place *p, struct arena *mem, int *ret, struct err *e);
/* What became of a session that is not there; returns -ENOENT or -ESTALE. */
int session_gone(const struct session_place *p, struct arena *mem, struct err *e);
/* The limit by which a session ended. */
struct session_limit {
    enum box_limit limit; /* or none */
    uint64_t value;
    struct str used, origin; /* in words, of `text`; may be empty */
    char text[1024];
};
/* Asked when something in a session did not end well: whether the session is over, and by which limit when by one. */
bool session_over(const struct session_place *p, struct arena *mem, struct session_limit *ret);
/* It ended in good order: by somebody's wish, or by its own limits. */
bool session_is_stopped(const struct session_place *p);
