/*
 * Images for boxes: what one has and lacks, and building them (build.h). For the command line only (client/entry.h).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "pinfold.h"

/* Where the base image has things, and what a rule of sudo may name. */
#define IMAGE_FIREWALL   "/usr/local/bin/init-firewall.sh"
#define IMAGE_ENTRYPOINT "/usr/local/bin/entrypoint.sh"
#define IMAGE_USER       "node"
#define IMAGE_LABEL      "io.pinfold.image" /* of our images, and of those that are built on them */

struct image_finding {
    const char *id, *text, *remedy;
    bool note; /* worth knowing, and nothing that a box lacks */
};

struct image_check_ask {
    const char *engine; /* NULL: as the policy here says */
    const char *image;
    const char *const *agents; /* NULL-terminated: names of agents, or of programs that must be there */
};

struct image_checked {
    const char *engine, *image, *id, *system, *user, *base; /* base: what IMAGE_LABEL says, or "" */
    const char *const *programs;                            /* of agents, found */
    const struct image_finding *findings;
    size_t n;
    void *mem;
};
/* 0 and what was found, also if nothing was; -errno. `ret` is freed with image_checked_free(). */
int image_check(const struct image_check_ask *ask, struct image_checked *ret, struct pinfold_error *error);
void image_checked_free(struct image_checked *c);

/* ---- pure ---- */

enum sudo_scope { SUDO_NOT_THEIRS, SUDO_FIREWALL, SUDO_WIDER };
/*
 * What a line of sudoers(5) lets this user do: nothing (a rule of others), run the firewall's script alone, or anything else. What is
 * not understood is anything else. `groups`: NULL-terminated names of the user's.
 */
enum sudo_scope image_sudo_scope(struct str line, const char *user, const char *const *groups);

/*
 * Calls `found` for each thing that a project's Dockerfile must not do (its base image has it, or does it at run time), with the line
 * of the instruction. `text`: the Dockerfile.
 */
typedef void image_dockerfile_found(void *ctx, unsigned line, const struct image_finding *f);
void image_dockerfile_check(struct str text, image_dockerfile_found *found, void *ctx);
