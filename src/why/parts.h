/* Private to why/: walk.c finds what a path leads to in the box, files.c and reach.c decide. */
#pragma once
#include <sys/stat.h>

#include "judge/judge.h"
#include "plan/make.h"
#include "plan/seen.h"
#include "why/why.h"

struct why_question {
    const struct plan *plan;
    enum why_act act;
    const char *target; /* as asked */
    struct arena *mem;
    struct err *e;
    struct why *ret;
    unsigned scripts;    /* that have led to this program */
    bool guarded, reads; /* the guard judges calls that change; and opens for reading */
    struct rules rules;  /* of the guard, if `guarded` */
};

/* An object on the way, or the last one. */
struct why_node {
    const char *path; /* in the box */
    struct seen_at seen;
    const char *at; /* on the host, if it is there */
    bool exists;
    struct stat st; /* the mode, owner and size if it exists */
};

enum why_stop {
    WALK_ARRIVED,
    WALK_DENIED /* by a rule */,
    WALK_PERMISSION /* by the host */,
    WALK_MISSING,
    WALK_LOOP,
    WALK_NOT_DIRECTORY
};
struct why_walk {
    enum why_stop stop; /* MISSING: a directory on the way is; the last name may be missing and still have ARRIVED */
    const char *rest;   /* of the path, below `last` */
    struct why_node last, above; /* what the walk ended at, and the directory that it is in */
};

/* Walks as a process in the box does; follows the last link, too. -errno with q->e. */
int why_walk(struct why_question *q, const char *path, struct why_walk *ret);
/* Whether ordinary permissions let the box's processes do `want` (R_OK ...) with an existing object. */
bool why_permits(const struct why_question *q, const struct why_node *node, int want);
/* The guard's own judgement of names; files.c. */
int why_file(struct why_question *q);
int why_connect(struct why_question *q);
int why_signal(struct why_question *q);

/* Fill in the answer; each returns 0. `rule` NULL: none. */
int why_say(struct why_question *q, enum why_verdict verdict, enum why_cause cause, int no, const char *mechanism,
            const char *reason);
void why_rule(struct why_question *q, const char *rule, uint32_t origin);
void why_place(struct why_question *q, const struct plan_place *at);
int why_memory(struct why_question *q);
