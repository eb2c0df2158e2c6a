/*
 * Shared by the files of the shared library: sends one request to a `pinfold --serve` that it starts, and receives the
 * answer.
 */
#pragma once
#include "base/err.h"
#include "run/message.h"
#include "pinfold.h"

struct pinfold_policy {
    struct buf layers; /* as packed by the server */
};
struct pinfold_result {
    struct arena *mem;
    enum pinfold_end end;
    int code, status;
    struct buf out, err;
    const char *json, *note;
};

struct pinfold_session {
    char *name, *scope; /* scope NULL: the user's own */
    int files;          /* socket of the file API, or -1 */
    uint64_t limits[3]; /* timeout, grace, output of each command; 0: the session's */
};

/* What may arrive before the answer. */
struct sayer {
    void (*say)(void *ctx, enum pinfold_say what, const char *sentence);
    void *ctx;
    enum pinfold_answer (*ask)(void *ctx, const struct pinfold_question *question);
    void *ask_ctx;
    void (*output)(void *ctx, int which, const char *bytes, size_t n);
    void *output_ctx;
};

int remote_tell(struct pinfold_error *to, const struct err *from, int r);
int remote_broken(struct err *e, int r);
int remote_options(void *to, size_t room, const void *from, size_t size, struct err *e);
/* Sends the request and receives the answer into `answer`; `ret` is the part of it after the outcome. */
int remote_ask(const struct buf *request, const int *fds, unsigned n_fds, const struct sayer *sayer, struct buf *answer,
               struct str *ret, struct err *e);
/* The same for an answer that is one text. */
int remote_ask_text(const struct buf *request, const int *fds, unsigned n_fds, char **ret, struct pinfold_error *error);
int remote_result(struct str rest, struct pinfold_result **ret);
/* Which of the three descriptors to send, and how many; with capture the server keeps the output. */
unsigned remote_fds(const int given[3], bool use_fds, bool capture, int fds[3], uint64_t *ret_mask);
