/*
 * Building images: pinfold's own (their files are in this program) and a project's. The engine's client does it; what it prints becomes
 * steps. For the command line only (client/entry.h).
 */
#pragma once
#include <stdint.h>

#include "run/image/image.h"

enum { IMAGE_BUILD_LINES = 20, IMAGE_BUILD_LINE = 400, IMAGE_BUILD_TEXT = 200, IMAGE_VERSION = 64 };

/* One instruction of the Dockerfile. */
struct image_step {
    unsigned number, total; /* number 0: none has begun */
    char text[IMAGE_BUILD_TEXT];
    bool cached;
    uint64_t elapsed_ms;
};

enum image_build_say { IMAGE_STEP_BEGINS, IMAGE_STEP_GOES_ON, IMAGE_STEP_ENDED };

struct image_build {
    const char *engine;      /* NULL: as the policy here says */
    const char *own;         /* "base" or "budgie"; or NULL: a project's */
    const char *context;     /* a project's: the directory of its Dockerfile */
    const char *base;        /* a project's: the image that its Dockerfile begins with, which must be there */
    const char *tag;         /* NAME:TAG */
    const char *network;     /* of its steps; NULL: the engine's default */
    const char *const *args; /* NAME=VALUE, NULL-terminated */
    void (*say)(void *ctx, enum image_build_say what, const struct image_step *step);
    void *ctx;
};

struct image_built {
    const char *engine; /* which it was built by */
    int status;         /* 0, or the client's */
    struct image_step failed;
    char last[IMAGE_BUILD_LINES][IMAGE_BUILD_LINE]; /* of its output, oldest first */
    unsigned n_last;
    uint64_t elapsed_ms;
};
/* 0 when the engine has ended, whatever its status; -errno if it could not be asked. */
int image_build(const struct image_build *b, struct image_built *ret, struct pinfold_error *error);
/* A tool's version as it is said, or the number that `latest` means for npm now. `package`: of npm, or NULL if it is not there. */
int image_version(const char *option, const char *package, const char *said, char ret[IMAGE_VERSION],
                  struct pinfold_error *error);
/* The file of that name ("Dockerfile") of the image `own`, or NULL. */
const char *image_own_file(const char *own, const char *name);

/* ---- pure: what docker's two builders and podman print ---- */

enum image_line { IMAGE_LINE_NOTHING, IMAGE_LINE_OUTPUT, IMAGE_LINE_STEP, IMAGE_LINE_CACHED };
/* What a line of the client is; *text is what of it people are shown. Fills number, total and text of `step` for IMAGE_LINE_STEP. */
enum image_line image_build_line(struct str line, struct str *text, struct image_step *step);
