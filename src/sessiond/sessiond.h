/*
 * The session daemon of a session: a process that holds a box without a command alive, and hands commands on to the box's pid 1.
 * What a command writes and how it ends never passes it, but for jobs, whose caller it is itself.
 */
#pragma once
#include "supervisor/run.h"

struct keep_ask {
    const struct plan *plan;
    const struct engine *engine;
    const char *const *env; /* the session's environment, NULL-terminated; its directory */
    const char *cwd;
    void (*lasting)(void *ctx); /* struct box_ask's */
    void *lasting_ctx;
    const struct span *spare;
    size_t n_spare;
    const char *name, *scope; /* the session's, for the audit log */
    const char *run;          /* the session's runtime directory: the socket is made there */
    const char *stopped;      /* a file that says that it ended in good order, and by which limit if by one */
    const char *record;       /* its record: a session whose record is gone, or another one's, ends */
    int report;               /* written to once: sessiond_report; owned */
    int lock;                 /* of the session's directory (flock), its starter's too: given back once it stands; -1 */
};
/* What the process that started the session daemon reads: whether the session stands. */
struct keep_report {
    int32_t r; /* 0, or -errno */
    struct err err;
};
#define KEEP_SOCKET "sock" /* its name in the directory */

/* Returns when the box is gone; the report is made in any case. */
int sessiond_run(const struct keep_ask *ask, struct err *e);
/* Adds the denials of an answer to KEEP_DENIALS to a result. */
void denied_read(struct box_result *r, struct buf *answer);
/* Tells the starter, once: later calls do nothing. */
void sessiond_report(int *report, int r, const struct err *e);
