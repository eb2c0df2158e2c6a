/*
 * The daemon of a session: a process that keeps a box without a command, and passes commands to the box's pid 1. Output
 * and exit of commands go directly to their callers, except for jobs, whose caller is the daemon.
 */
#pragma once
#include "supervisor/run.h"

struct keep_ask {
    struct run_spec box;
    const char *const *env; /* the session's environment, NULL-terminated; its directory */
    const char *cwd;
    const char *run;     /* the session's runtime directory, in which the socket is created */
    const char *stopped; /* file that says that the session ended regularly, and by which limit, if any */
    const char *record;  /* its record: if that is gone, or another session's, this session ends */
    int report;          /* for one sessiond_report; owned */
    bool nested;         /* it lives in a box: the guard around that one makes every connection */
    int lock; /* of the session's directory (flock), shared with the starter: released once the session runs; -1 */
};
/* What the process that started the daemon reads: whether the session runs. */
struct keep_report {
    int32_t r; /* 0, or -errno */
    struct err err;
};
/* Whose denials KEEP_DENIALS asks for (`b`): `job` is a session id of the box's, a job's number, or a shell's. */
enum { KEEP_OF_COMMAND, KEEP_OF_JOB, KEEP_OF_SHELL };
#define KEEP_SOCKET "sock" /* name of the socket in the directory */

/* Returns when the box has ended; always sends the report. */
int sessiond_run(const struct keep_ask *ask, struct err *e);
/* Adds the denials in an answer to KEEP_DENIALS to a result; those that are only one if the command has failed. */
void denied_read(struct box_result *r, struct buf *answer, bool failed);
/* Reports to the starter; only the first call has an effect. */
void sessiond_report(int *report, int r, const struct err *e);
