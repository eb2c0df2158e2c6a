/* The directory of a box's socket to an agent's filter: in /tmp, the caller's own, locked as long as it is used. */
#pragma once
#include "base/err.h"

struct agent_place {
    char dir[40]; /* or "" */
    int lock;     /* the directory, flock()ed; -1 */
};
#define AGENT_PLACE ((struct agent_place){.lock = -1})

/* The socket in it, connectable by every user who gets into the directory (a box's may be another one). */
#define AGENT_SOCKET "agent"

/*
 * Creates one for the agent `kind` ("ssh", "gpg"), with a listening socket, non-blocking, which the caller owns; removes what a killed
 * pinfold has left. To be undone by agent_place_end(), also after an error.
 */
int agent_place_make(const char *kind, struct agent_place *ret, int *ret_listener, struct err *e);
void agent_place_end(struct agent_place *p);
