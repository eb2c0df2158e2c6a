/*
 * Asks docker and podman about themselves and about an image: docker's daemon over its socket, podman by its program.
 * What they say about themselves is cached for ten minutes, or until something that it depends on has changed.
 */
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "plan/facts.h"
#include "policy/text/node.h"
#include "policy/policy.h"

struct container_ask {
    const struct policy *policy;
    struct arena *mem;
    const char *program; /* the client's path */
    const char *socket;  /* docker: the daemon's */
    bool podman;
};

/* Finds the client, and docker's socket. Errors are ERR_CANNOT: another engine may work. */
int container_find(struct container_ask *ask, struct err *e);
/* Its description of itself, as `docker info` or `podman info` print it in JSON. */
int container_info(const struct container_ask *ask, struct node *ret, struct err *e);
/* Its description of the image; `info` as above. -ENOENT, with the remedy in the message: the image is missing. */
int container_image(const struct container_ask *ask, const struct node *info, struct node *ret, struct err *e);
/* Pulls the image from its registry; only for --pull. */
int container_pull(const struct container_ask *ask, struct err *e);
/* Removes cached answers to this question. */
void container_forget(const struct container_ask *ask);
/* ---- for container_left.c and container_image.c ---- */
/* Runs the client with these arguments: 0 and its output, -EIO with its messages in `said`, -ETIMEDOUT ... */
int container_client(const struct container_ask *ask, const char *const *words, int timeout_ms, struct buf *ret,
                     struct buf *said);
/* The same for a client whose output goes to the descriptor `out`, for as long as that takes. */
int container_pour(const struct container_ask *ask, const char *const *words, int out, struct buf *said);
/* Called with each piece of output, and with n == 0 about once a second. */
typedef void container_output(void *ctx, const char *piece, size_t n);
/*
 * The same for a client that takes its time, in the caller's process group, with `more` (NULL-terminated) in its environment: its
 * output and messages go to `output` as they come. 0, its exit status, or -errno.
 */
int container_watch(const struct container_ask *ask, const char *const *words, const char *const *more,
                    container_output *output, void *ctx);
/* The error message for that. */
int container_client_failed(const struct container_ask *ask, int r, const struct buf *said, struct err *e);
/* One request to docker's daemon over its socket. */
int container_docker(const struct container_ask *ask, const char *target, struct buf *ret, int *ret_status,
                     struct err *e);
int container_json(struct arena *mem, const char *name, const struct buf *b, struct node *ret, struct err *e);
/* The part of the caller's environment that clients get; NULL without memory. */
const char *const *container_env(struct arena *mem);
