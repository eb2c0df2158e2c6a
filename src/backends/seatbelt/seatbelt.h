/*
 * macOS's Seatbelt: translates a plan into a profile in its language (SBPL, s-expressions) and a command line of
 * sandbox-exec(1). Pure and without any platform headers: the text is the same on every system, so it can be tested on
 * Linux.
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
    uint16_t proxy_port;     /* net allow: port of the egress proxy on 127.0.0.1 */
};

struct seatbelt {
    const char *profile;
    const char *const *argv; /* sandbox-exec -p PROFILE -D ... -- COMMAND, NULL-terminated */
};

/* What Seatbelt can enforce, into `f` (engine, tier, can, why_not); the rest of `f` stays. */
void seatbelt_facts(struct facts *f);
/* All of it is in `mem`. The profile has passed seatbelt_check(). */
int seatbelt_make(const struct seatbelt_ask *ask, struct arena *mem, struct seatbelt *ret, struct err *e);

/*
 * Whether `text` is a profile: (version 1) first, parentheses and strings closed, and, with `ours`, only known
 * operations, filters and modifiers, each where it may be; a user's profile may use the rest of Scheme.
 */
int seatbelt_check(struct str text, bool ours, struct err *e);
