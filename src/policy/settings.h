/*
 * Settings that are given several times (--settings A --settings B): each can only tighten what those before it said.
 */
#pragma once
#include "policy/merge.h"

/* Texts of settings that were added before, in their order. */
struct settings_before {
    struct layer_text **texts;
    size_t n;
    const struct policy_world *world; /* for their paths */
};
/*
 * Divides `next`, which comes after others: what stays in it are statements about what none of the others spoke of, and
 * hosts that they allow, too; *ret_rest gets those that may only tighten (an untrusted text, see policy/tighten.c).
 * Hosts and writable paths that `next` does not allow are removed from the others, and hosts that the others do not allow are added to
 * what could not be honoured. Memory is taken from `mem`; -ENOMEM with a message.
 */
int settings_divide(const struct settings_before *before, struct layer_text *next, struct layer_text *ret_rest,
                    struct arena *mem, struct err *e);
