/* Sends requests to a session daemon (protocol/keep.h). */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "protocol/keep.h"

/* Sends one request with its payload and descriptors on the connection `fd`. */
int ask_send(int fd, struct keep_request q, struct str payload, const int *fds, unsigned n_fds, struct err *e);
struct keep_answer { /* the numbers of a FRAME_ANSWER */
    uint32_t c;
    uint64_t a, b;
};
/* Waits for the answer and appends its bytes to `out`. A refusal is returned as the error. */
int ask_answer(int fd, struct keep_answer *ret, struct buf *out, struct err *e);
struct pinfold_exec_options;
/* The job image of a command. */
int exec_image(const struct pinfold_exec_options *o, uint32_t flags, unsigned rows, unsigned columns, uint32_t umask,
               struct buf *out, struct err *e);
