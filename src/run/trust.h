/*
 * Trust in a project's policy: one small file per trusted path in the trust store (<state>/trust/), named by the
 * SHA-256 of the real path, with the SHA-256 of the content and the path in it. Changing or moving the policy ends the
 * trust. Every box hides the store, so only the person outside can grant trust.
 */
#pragma once
#include "base/arena.h"
#include "base/err.h"

/* Whether the file at the real path `path` with this content is trusted. A store writable by others trusts nothing. */
bool trust_given(struct arena *mem, const char *state, const char *path, struct str content);
/* Whether it was trusted, with this content or another. */
bool trust_was_given(struct arena *mem, const char *state, const char *path);
/* Trusts (or no longer trusts) the policy at `path`; `ret` gets a message in `mem`. */
int trust_say(struct arena *mem, const char *state, const char *path, bool withdraw, const char **ret, struct err *e);
/* Trusts it only if it has this content: who has written it, or shown it, trusts nothing that took its place meanwhile. */
int trust_content(struct arena *mem, const char *state, const char *path, struct str content, struct err *e);

#define PROJECT_POLICY ".pinfold/policy.yaml"
