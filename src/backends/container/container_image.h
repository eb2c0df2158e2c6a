/* Images themselves: looking into one, and building one. */
#pragma once
#include "backends/container/container_ask.h"

#define CONTAINER_LOOK "/.pinfold/look" /* this program, in a container that only looks */

/*
 * Finds the engine that the policy names, or for `auto` the first of podman and docker that works here and, if the policy names an
 * image, has it: `ret` and its description of the image (`ret_image`; NULL: the image does not matter). Errors are that engine's, or
 * every one's in a sentence.
 */
int container_choose(const struct policy *p, struct arena *mem, struct container_ask *ret, struct node *ret_image,
                     struct err *e);
/* Runs this program alone in a container of the image, with these words; its output goes to `ret`. Nothing of the image is run. */
int container_look(const struct container_ask *ask, const char *const *words, struct buf *ret, struct err *e);
