/*
 * Shared by the files of sessiond/.
 *
 *     sessiond.c  socket, signals, start and end    ask.c      connections and their requests
 *     answer.c    answers                           command.c  sends a command to pid 1
 *     jobs.c      commands without a caller         shell.c    persistent shells
 *     denied.c    the guard's denials, by command   running.c  what runs at the moment
 *     peer.c      where a client is
 */
#pragma once
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include "base/fd.h"
#include "sessiond/sessiond.h"
#include "protocol/job.h"
#include "protocol/keep.h"

#define MAX_CONNECTIONS 512
#define MAX_JOBS        256
#define MAX_ATTACHED    64
#define MAX_SHELLS      32
#define SILENT_US       30000000u /* a connection that sends nothing is closed after this time */
#define STARVED_US      100000u   /* how long not to accept when descriptors are exhausted */
#define PASSED_KNOWN    64u       /* more than pid 1 keeps waiting and has not answered yet */
#define FRESH_US        20000u /* how long a look at the host's files holds for the connection that it was made for */
#define NEVER           UINT64_MAX
#define PASS_PIDFD      76 /* SO_PASSPIDFD, Linux 6.5 */

enum command_source {
    SOURCE_LISTEN,
    SOURCE_SIGNALS,
    SOURCE_CONNECTION,
    SOURCE_JOB,
    SOURCE_JOB_OUT,
    SOURCE_ATTACHED,
    SOURCE_SHELL,
    SOURCE_SHELL_CALLER
};
/* data of an epoll event: kind and number. */
#define TICKET(kind, i) ((uint64_t)(kind) << 32 | (uint32_t)(i))

struct session_request { /* one parsed request */
    struct keep_request head;
    const char *payload; /* head.bytes bytes, and a NUL */
    int fds[KEEP_FDS];   /* without the memfd; owned */
    unsigned n_fds;
    int from; /* the connection; whoever takes it over sets -1 */
    int pid;  /* of the caller */
    /* When a look at the host's files began that came after this connection; 0: none did. */
    uint64_t looked;
};

struct connection {
    int fd; /* -1: free */
    int pid;
    uint64_t until, looked; /* looked: as in struct session_request */
};

struct sessiond {
    const struct keep_ask *ask;
    struct box *box;
    int report, epoll, listener, signals, control, builder;
    uint64_t pid_ns_dev, pid_ns_ino;
    bool told;                /* a signal asked it to end */
    uint64_t began, commands; /* commands: how many were passed on */
    uint64_t look_at, record_ino;
    uint64_t accept_at; /* descriptors were exhausted: when to accept again; 0 */
    struct connection connections[MAX_CONNECTIONS];
    unsigned n_connections;
    struct buf image;  /* what is sent to pid 1 */
    const char **list; /* for the lists of an image */
    size_t list_room;
    struct err err;
    /* Whether callers are passed on to pid 1 (command_pass()), and that has been told what their commands get. */
    bool passes, passed;
    uint64_t cookies
        [PASSED_KNOWN]; /* SO_COOKIE of the connections that were passed on last, from `next_cookie` on; 0: none */
    unsigned next_cookie;
};

uint64_t sessiond_now(void);
int sessiond_watch(struct sessiond *k, int fd, uint32_t events, uint64_t ticket);

/* ---- found.c ---- */
bool sessiond_is_found(const struct sessiond *k);
bool sessiond_has_record(struct sessiond *k);
/* Its box is ending, and nobody finds it any more: who starts a session of its name waits for that end, and has another. */
void sessiond_leave(struct sessiond *k);

/* ---- peer.c ---- */
/* Of the process that `process` is, which had the number `pid` when it sent; -1: what has that number now. */
bool peer_pid_namespace(int process, int pid, uint64_t *ret_dev, uint64_t *ret_ino);

/* ---- answer.c ---- */
void answer_refused(int to, const struct err *e, int r);
/* Sends bytes, in a memfd if they are many, and numbers. */
void answer_bytes(int to, const char *bytes, size_t n, uint32_t c, uint64_t a, uint64_t b);

/* Receives one message without waiting, with its descriptor (-1: none): bytes, 0 at the end, -errno. */
ssize_t answer_receive(int from, void *p, size_t room, int *ret_fd);

/* ---- jobs.c ---- */
void jobs_begin(void);
void jobs_start(struct sessiond *k, struct session_request *q);
void jobs_list(struct sessiond *k, struct session_request *q);
void jobs_output(struct sessiond *k, struct session_request *q);
void jobs_kill(struct sessiond *k, struct session_request *q);
void jobs_attach(struct sessiond *k, struct session_request *q);
void jobs_frame(struct sessiond *k, unsigned i);                  /* SOURCE_JOB */
void jobs_bytes(struct sessiond *k, unsigned i);                  /* SOURCE_JOB_OUT */
void jobs_heard(struct sessiond *k, unsigned i);                  /* SOURCE_ATTACHED */
void jobs_denied(struct sessiond *k, const struct denial *d);     /* something in the box was denied */
void jobs_denials(struct sessiond *k, struct session_request *q); /* of a job that has ended */
unsigned jobs_running(void);
uint64_t jobs_next(void);
void jobs_due(struct sessiond *k, uint64_t now);

/* ---- shell.c ---- */
void shells_begin(void);
void shells_ask(struct sessiond *k, struct session_request *q);
void shells_frame(struct sessiond *k, unsigned i); /* SOURCE_SHELL */
uint32_t shells_session(struct sessiond *k,
                        uint32_t number);          /* of this shell, from 1 on, in the box's numbering; 0: unknown */
void shells_heard(struct sessiond *k, unsigned i); /* SOURCE_SHELL_CALLER */

/* ---- running.c ---- */
struct json;
/* Writes objects with `pid` (the host's), `command`, `seconds` for processes below `builder`; at most 32. */
void running_put(int builder, struct json *j);

/* ---- command.c ---- */
/* What the host had changed when the caller connected is seen from now on. */
int command_fresh(struct sessiond *k, const struct session_request *q, struct err *e);
/*
 * Sends the command to pid 1, with the session's environment added, after command_fresh(). `reply` and `fds` remain the
 * caller's. 0 or -errno with a message.
 */
int command_send(struct sessiond *k, const struct job_image *j, uint32_t more_flags, int reply, const int *fds,
                 unsigned n_fds, struct err *e);
/* The image in the payload, checked; NULL with a message. */
const struct job_image *command_image(const char *payload, size_t n, struct err *e);
void command_exec(struct sessiond *k, struct session_request *q);
/* Whether pid 1 of this box can judge and start commands of callers itself. */
bool command_may_pass(const struct sessiond *k);
/* Passes the connection `fd` of a caller on to pid 1, which reads the request; false: that is to be read here. */
bool command_pass(struct sessiond *k, int fd, uint64_t looked);
/* Whether this connection, which pid 1 gives back, was passed on to it, and comes back for the first time: pid 1 sees what runs in the box,
   and what it could make up may not become a request. One that too many others have followed is not known any more; its caller connects
   again. */
bool command_passed(struct sessiond *k, int fd);
/* "standard input" ... of a command's stream that was refused. */
int command_refused(unsigned which, struct err *e);

/* ---- denied.c ---- */
void denied_keep(const struct denial *d);
void denied_put(struct buf *b, const struct denial *d); /* in the form of protocol/keep.h */
/* Those since then of a command whose session id has just become known; no soft ones, and without hearing more. */
void denied_early(uint64_t since, struct box_result *r);
/* Adds what was denied to the result's command since then, and whether that is complete. */
void denied_add(struct sessiond *k, uint64_t since, struct box_result *r);
void denied_answer(struct sessiond *k, struct session_request *q);

/* ---- ask.c ---- */
void ask_begin(struct sessiond *k);
bool ask_accept(struct sessiond *k); /* returns whether more may be waiting */
void ask_ready(struct sessiond *k, unsigned i);
void ask_back(void *ctx, int fd, uint32_t stream); /* box_sessiond.back */
uint64_t ask_next(const struct sessiond *k);
void ask_due(struct sessiond *k, uint64_t now);
