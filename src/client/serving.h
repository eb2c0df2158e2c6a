/*
 * Shared by the files that serve the shared library's requests: one function for each request of client/messages.h.
 */
#pragma once
#include "client/messages.h"
#include "run/direct.h"

struct request {
    struct arena *mem;
    int fds[MESSAGE_FDS];
    struct pinfold_error *error; /* of the call */
    /* The memory of the answer's fields, freed when it is sent. */
    void *kept[2];
    struct buf packed;
    struct pinfold_result *result;
    struct pinfold_report *report;
};

/* Fills in `ret` if it returns 0 or more. */
#define SERVE_DECLARED(name, request_, answer_)                                                                        \
    int serve_##name(struct request *q, const struct message_##request_ *a, struct message_##answer_ *ret);
MESSAGE_REQUESTS(SERVE_DECLARED)

int serve_bad(struct request *q);
/* Makes an answer of a malloc()ed text, a report or a result; `r` is what the call that made it returned. */
int serve_text(struct request *q, int r, char *text, struct message_text *ret);
int serve_report(struct request *q, int r, struct pinfold_report *report, struct message_report *ret);
int serve_result(struct request *q, int r, struct pinfold_result *result, struct message_result *ret);
/* Gives each of the three in `mask` the next descriptor that was passed; returns their number. */
unsigned serve_fds(const struct request *q, uint64_t mask, int *const into[3]);
void serve_say(void *ctx, enum pinfold_say what, const char *sentence); /* to the caller, before the answer */
void serve_denied(void *ctx, const struct pinfold_denial *d);
void serve_output(void *ctx, int which, const char *bytes, size_t n);
/* Nobody reads the socket while a command runs: if the caller exits, this process must end. */
void serve_end_with_caller(bool on);
