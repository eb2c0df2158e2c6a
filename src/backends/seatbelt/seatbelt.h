/*
 * macOS's Seatbelt: a policy becomes a profile in its language (an s-expression, SBPL) and a command line of sandbox-exec(1).
 * Pure, and free of any platform's headers: the text is the same wherever it is made, which is how it is tested.
 */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "plan/plan.h"

#define SEATBELT_PROGRAM "/usr/bin/sandbox-exec"

struct seatbelt_ask {
    const struct plan *plan; /* made with the facts of seatbelt_facts() */
    const char *const *argv; /* the command */
    const char *custom;      /* the text of policy->seatbelt_file, or NULL */
    uint16_t proxy_port;     /* net allow: where the egress listens on 127.0.0.1 */
};

struct seatbelt {
    const char *profile;
    const char *const *argv; /* sandbox-exec -p PROFILE -D ... -- COMMAND, NULL-terminated */
};

/* What Seatbelt can enforce, into `f` (engine, tier, can, why_not); the rest of `f` stays. */
void seatbelt_facts(struct facts *f);
/* All of it lives in `mem`. The profile has passed seatbelt_check(). */
int seatbelt_make(const struct seatbelt_ask *ask, struct arena *mem, struct seatbelt *ret, struct err *e);

/*
 * Whether `text` is a profile: (version 1) first, parentheses and strings closed, and, with `ours`, only the operations,
 * filters and modifiers that are known, each where it may stand; a profile that a person wrote may use the rest of Scheme.
 */
int seatbelt_check(struct str text, bool ours, struct err *e);
