/*
 * The .env files that a box does not see, as its caller must hear of them.
 *
 * No event tells of a program that could not read one: what hides it is a mount. So a command that failed is told of them in
 * one line. And a mount goes away with its file: editors write a new one and rename it over the old one, which the command
 * can then read.
 */
#pragma once
#include "run/direct.h"

struct env_seen {
    struct {
        uint32_t rule;
        uint64_t dev, ino;
    } at[MAX_ENV_FILES];
    size_t n;
};

/* Before the box: which there are. */
void env_look(const struct policy *p, struct env_seen *ret);
/* After it: adds an entry to what is left for each that is another file now. */
void env_replaced(const struct policy *p, const struct env_seen *before, struct box_result *result);
/* Appends the line for a command that failed, once a day (in pinfold's state directory `state`); nothing if there is nothing to say. */
void env_words(const struct policy *p, const struct env_seen *before, const struct box_result *result,
               const char *state, struct buf *out);
