/* The session functions of pinfold.h, in process. */
#pragma once
#include "run/direct.h"
#include "session/record.h"

#define MAX_SESSION_ARENA (4u << 20)

struct pinfold_session {
    struct arena *mem;
    struct session_place place;
    struct record record;
    int files;            /* the socket of the file API (session/session_files.c), or -1 */
    int soon;             /* a connection for the next command (session_open_soon()), or -1 */
    struct limits limits; /* of a command in it: time-out, grace, output; no others */
};

/*
 * Connects to the daemon of a running session; if its socket has vanished the daemon creates it again. -ENOENT or
 * -ESTALE, with a message about what happened to the session.
 */
/* By its record: its daemon, 0 if that has ended; and whether its box shows nothing at other paths. */
void session_seen(const struct pinfold_session *s, int *ret_pid, bool *ret_no_mounts);
int session_connect(const struct session_place *p, struct arena *mem, int *ret, struct err *e);
/* Its socket has no name any more: its owner is asked for a new one, and connected to. -ENOENT: there is no session; -ESTALE: it has ended. */
int session_rebind(const struct session_place *p, struct arena *mem, bool locked);
/* Reports what happened to a session that does not run; returns -ENOENT or -ESTALE. */
int session_gone(const struct session_place *p, struct arena *mem, struct err *e);
/* A name for people: what a terminal would obey, or is long, is not shown as it is. */
const char *session_shown(const struct session_place *p, char room[80]);
/*
 * As pinfold_session_open(), for a command that follows at once: connects first, so that its daemon wakes up and looks at the host's files
 * (sessiond/ask.c) while the command is put together.
 */
int session_open_soon(const struct pinfold_session_options *options, struct pinfold_session **ret,
                      struct pinfold_error *error);
/* A session by its name, of which nothing has been read; NULL with a message. */
struct pinfold_session *session_object(const char *name, const char *scope, struct err *e);
/* Reads its record. */
int session_take_record(struct pinfold_session *s, struct err *e);
/* Forks the session daemon, no child of ours, and waits for its word. The lock is held by the caller. */
int session_begin(struct pinfold_policy *policy, const struct session_place *p, const struct pinfold_session_options *o,
                  int lock, struct err *e);
/* Of a connected session: one whose box is ending answers nobody. One that is stopped, has no time, or refuses the question, lives. */
bool session_serves(int fd);
/*
 * The process that keeps a session whose record was removed, by its socket: its pid, or 0: there is none, or it is of another state
 * directory or pid namespace. It ends by itself within a minute (sessiond/found.c).
 */
int session_unrecorded(const struct session_place *p);
/* Ends the session daemon that the record names, or whose record was removed; 0 also when there is none (any more). */
int session_end(const struct session_place *p, struct arena *mem, struct err *e);
/* The limit that ended a session. */
struct session_limit {
    enum box_limit limit; /* or none */
    uint64_t value;
    struct str used, origin; /* parts of `text`; may be empty */
    char text[1024];
};
/* Call if something in a session failed: whether the session has ended, and by which limit, if any. */
bool session_over(const struct session_place *p, struct arena *mem, struct session_limit *ret);
/* Whether it ended regularly: because somebody stopped it, or by its own limits. */
bool session_is_stopped(const struct session_place *p);
/* Adds to the result of a captured command what its error text leads to; its own denials must be known. */
void session_guess(const struct pinfold_session *s, const struct pinfold_exec_options *o,
                   struct pinfold_result *result);
/* Notes that it ended regularly, or is to be treated so: its record stays until somebody removes it. */
void session_mark_stopped(const struct session_place *p);
