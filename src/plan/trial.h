/*
 * What the outcome of native's trial of this machine (backends/probe.c) means for its facts: which features it has not, why, and
 * what would help. Pure.
 */
#pragma once
#include "base/arena.h"
#include "plan/facts.h"
#include "protocol/step.h"

/* What a box needs of its namespaces, in the order of the trial. */
enum trial {
    TRIAL_MAPS,
    TRIAL_MOUNTS,
    TRIAL_TMPFS,
    TRIAL_ATTACH,
    TRIAL_OVERLAY,
    TRIAL_PROC,
    TRIAL_CATCH, /* and one for each enum catch_way from here on */
    TRIAL_COUNT = TRIAL_CATCH + CATCH_SOCKET
};

struct tried { /* filled in by the child through a pipe */
    int clone, no[TRIAL_COUNT];
};

struct reason {
    const char *why, *remedy;
};
/* "WHAT: the text of errno `no`". */
const char *trial_clause(struct arena *mem, const char *what, int no);
void facts_lack(struct facts *f, features which, struct reason r);
/* Features of Landlock and seccomp, in either tier. `supervised`: by a guard around; `unread`: why no guard could read arguments. */
void facts_of_kernel(struct facts *f, bool supervised, struct reason unread);
/* Without namespaces, for this reason. `memory_files`: calls that read another process's memory are refused. */
void facts_without_namespaces(struct facts *f, struct arena *mem, bool memory_files, struct reason r);
/* The best way to redirect connections that worked, and why a better one did not. */
void facts_of_catch(struct facts *f, struct arena *mem, const struct tried *t);
