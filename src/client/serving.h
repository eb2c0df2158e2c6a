/* Shared by the files that serve requests of the shared library. */
#pragma once
#include "run/direct.h"
#include "run/message.h"

struct request {
    struct arena *mem;
    struct str rest; /* not read yet */
    int fds[MESSAGE_FDS];
    struct buf *answer;          /* what follows the outcome */
    struct pinfold_error *error; /* of the call */
};

int serve_bad(struct request *q);
int serve_text_argument(struct request *q, const char **ret);
int serve_number(struct request *q, uint64_t *ret);
int serve_list(struct request *q, const char *const **ret);
int serve_policy_argument(struct request *q, struct pinfold_policy **ret);
int serve_answer_text(struct request *q, int r, char *text);
void serve_answer_result(struct request *q, struct pinfold_result *result);
void serve_say(void *ctx, enum pinfold_say what, const char *sentence); /* to the caller, before the answer */
/* While a command runs nobody reads the socket: this process ends if the caller closes it. */
void serve_end_with_caller(bool on);
/* serve_session.c: sessions and commands in them. */
int serve_session(struct request *q, uint64_t op);
/* serve_files.c: the file socket of a session; agents. */
int serve_session_files(struct request *q, struct pinfold_session *session);
int serve_agent(struct request *q, uint64_t op);
