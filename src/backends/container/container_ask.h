/*
 * What docker and podman say of themselves and of an image: docker's daemon over its socket, podman by its program. What
 * they said of themselves holds for ten minutes or until something about them changed, and is kept that long.
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

/* Finds the client, and docker's socket. Errors are ERR_CANNOT, for another engine may do. */
int container_find(struct container_ask *ask, struct err *e);
/* What it says of itself, as `docker info` or `podman info` prints it in JSON. */
int container_info(const struct container_ask *ask, struct node *ret, struct err *e);
/* What it says of the image; `info` as above. -ENOENT: it is not there, said with its remedy. */
int container_image(const struct container_ask *ask, const struct node *info, struct node *ret, struct err *e);
/* Fetches the image from its registry, which only --pull asks for. */
int container_pull(const struct container_ask *ask, struct err *e);
/* Removes what is kept of earlier answers for this question. */
void container_forget(const struct container_ask *ask);
/* ---- for container_left.c ---- */
/* Runs the client with these words; 0 with its output, -EIO with what it complained of in `said`, -ETIMEDOUT ... */
int container_client(const struct container_ask *ask, const char *const *words, int timeout_ms, struct buf *ret,
                     struct buf *said);
/* The sentence for that. */
int container_client_failed(const struct container_ask *ask, int r, const struct buf *said, struct err *e);
/* One question to docker's daemon over its socket. */
int container_docker(const struct container_ask *ask, const char *target, struct buf *ret, int *ret_status,
                     struct err *e);
int container_json(struct arena *mem, const char *name, const struct buf *b, struct node *ret, struct err *e);
/* What the clients get of the caller's environment; NULL without memory. */
const char *const *container_env(struct arena *mem);
