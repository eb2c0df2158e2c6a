/*
 * Shared by the files of the shared library: sends one request to a `pinfold --serve` that it starts, and receives the
 * answer.
 */
#pragma once
#include "client/messages.h"
#include "run/options.h"

struct pinfold_policy {
    struct buf layers; /* as packed by the server */
};
struct pinfold_result {
    struct arena *mem;
    enum pinfold_end end;
    int code, status;
    struct buf out, err, json;
    struct pinfold_report *report; /* its values */
    const char *note;
};

struct pinfold_session {
    char *name, *scope; /* scope NULL: the user's own */
    int files;          /* socket of the file API, or -1 */
    bool no_layer;      /* whoever has that socket sees the host's changes anyway */
    uint64_t limits[3]; /* timeout, grace, output of each command; 0: the session's */
};

/* What is passed with a request, and who receives what precedes the answer. */
struct remote_along {
    const int *fds;
    unsigned n_fds;
    void (*say)(void *ctx, enum pinfold_say what, const char *sentence);
    void *say_ctx;
    enum pinfold_answer (*ask)(void *ctx, const struct pinfold_question *question);
    void *ask_ctx;
    void (*denied)(void *ctx, const struct pinfold_denial *denial);
    void *denied_ctx;
    void (*output)(void *ctx, int which, const char *bytes, size_t n);
    void *output_ctx;
};
/* The memory of an answer's fields. */
struct remote_answer {
    struct buf bytes;
    struct arena *mem;
};
void remote_answer_free(struct remote_answer *a);
#define auto_answer __attribute__((cleanup(remote_answer_free)))

/*
 * Makes one request: sends `fields`, a struct of its shape, and fills in `ret`, a struct of the answer's shape that
 * points into `answer`. `along` may be NULL. Returns what the server's call returned.
 */
int remote_call(enum message_op op, const void *fields, const struct remote_along *along, struct remote_answer *answer,
                void *ret, struct err *e);
/* For answers that are nothing, a text, a report or a result. */
int remote_plain(enum message_op op, const void *fields, const struct remote_along *along, struct err *e);
int remote_text(enum message_op op, const void *fields, char **ret, struct pinfold_error *error);
int remote_report(enum message_op op, const void *fields, struct pinfold_report **ret, struct pinfold_error *error);
int remote_result(enum message_op op, const void *fields, const struct remote_along *along, struct pinfold_result **ret,
                  struct pinfold_error *error);
int remote_broken(struct err *e, int r);
/* Which of the three descriptors to send, and how many; with capture the server keeps the output. */
unsigned remote_fds(const int given[3], bool use_fds, bool capture, int fds[3], uint64_t *ret_mask);
/* A list in one allocation: room for `pointers` entries, `n` of which are given, then the texts. */
char **remote_list(const char *const *list, size_t n, size_t pointers);
