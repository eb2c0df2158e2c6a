/*
 * What the files of sessiond/ share.
 *
 *     session daemon.c    the socket, signals, begin and end     ask.c      connections: who asks, and what
 *     answer.c    what is answered                       command.c  a command to pid 1
 *     jobs.c      commands without a caller              shell.c    persistent shells
 *     denied.c    what the guard refused, by command
 *     running.c   what runs just now
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
#define SILENT_US       5000000u /* how long a connection may say nothing */
#define NEVER           UINT64_MAX

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
/* What epoll hands back: kind and number. */
#define TICKET(kind, i) ((uint64_t)(kind) << 32 | (uint32_t)(i))

struct session_request { /* one, taken apart */
    struct keep_request head;
    const char *payload; /* head.bytes of them, and a NUL */
    int fds[KEEP_FDS];   /* without the memory file; owned */
    unsigned n_fds;
    int from; /* the connection; who takes it sets -1 */
    int pid;  /* who asks */
};

struct connection {
    int fd; /* -1: free */
    int pid;
    uint64_t until;
};

struct sessiond {
    const struct keep_ask *ask;
    struct box *box;
    int report, epoll, listener, signals, control, builder;
    uint64_t pid_ns_dev, pid_ns_ino;
    bool told;                /* by a signal to end */
    uint64_t began, commands; /* how many have been passed on */
    uint64_t look_at, record_ino;
    struct connection connections[MAX_CONNECTIONS];
    unsigned n_connections;
    struct buf image;  /* what is sent to pid 1 */
    const char **list; /* for the lists of an image */
    size_t list_room;
    struct err err;
};

uint64_t sessiond_now(void);
int sessiond_watch(struct sessiond *k, int fd, uint32_t events, uint64_t ticket);

/* ---- answer.c ---- */
void answer_refused(int to, const struct err *e, int r);
/* Bytes, in a memory file when they are many, and numbers. */
void answer_bytes(int to, const char *bytes, size_t n, uint32_t c, uint64_t a, uint64_t b);

/* One message without waiting, with the descriptor that came with it (-1: none): bytes, 0 at the end, -errno. */
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
void jobs_denied(struct sessiond *k, const struct denial *d);     /* something in the box was */
void jobs_denials(struct sessiond *k, struct session_request *q); /* of one that has ended */
unsigned jobs_running(void);
uint64_t jobs_next(void);
void jobs_due(struct sessiond *k, uint64_t now);

/* ---- shell.c ---- */
void shells_begin(void);
void shells_ask(struct sessiond *k, struct session_request *q);
void shells_frame(struct sessiond *k, unsigned i); /* SOURCE_SHELL */
void shells_heard(struct sessiond *k, unsigned i); /* SOURCE_SHELL_CALLER */

/* ---- running.c ---- */
struct json;
/* Objects with `pid` (this machine's), `command`, `seconds`, of what runs below process `builder`; 32 at most. */
void running_put(int builder, struct json *j);

/* ---- command.c ---- */
/*
 * Sends the command on to pid 1: the image's own, with the session's environment around it. `reply` and `fds` stay the
 * caller's. 0 or -errno with a sentence.
 */
int command_send(struct sessiond *k, const struct job_image *j, uint32_t more_flags, int reply, const int *fds,
                 unsigned n_fds, struct err *e);
/* The image in the payload, checked; NULL with a sentence. */
const struct job_image *command_image(const char *payload, size_t n, struct err *e);
void command_exec(struct sessiond *k, struct session_request *q);

/* ---- denied.c ---- */
void denied_keep(const struct denial *d);
void denied_put(struct buf *b, const struct denial *d); /* as protocol/keep.h says */
/* What was refused to the result's command since then, and whether that is all of it. */
void denied_add(struct sessiond *k, uint64_t since, struct box_result *r);
void denied_answer(struct sessiond *k, struct session_request *q);

/* ---- ask.c ---- */
void ask_begin(struct sessiond *k);
bool ask_accept(struct sessiond *k); /* whether more may be waiting */
void ask_ready(struct sessiond *k, unsigned i);
uint64_t ask_next(const struct sessiond *k);
void ask_due(struct sessiond *k, uint64_t now);
