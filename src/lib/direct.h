/*
 * libpinfold in the same process: what the command line and `pinfold --serve` use. The objects behind pinfold.h.
 */
#pragma once
#include "box/run.h"
#include "lib/load.h"
#include "pinfold.h"

#define MAX_POLICY_ARENA (MAX_POLICY_BYTES + MAX_LAYERS_BYTES)
#define MAX_PLAN_ARENA   (64u << 20)
#define MAX_ANSWER_TEXT  (256u << 20) /* a policy, a plan, a doctor's report as text; a result as JSON */
#define DEFAULT_CAPTURE  (16u << 20)

struct pinfold_policy {
    int users; /* results hold on to their policy: a plan refers into it */
    struct arena *mem;
    struct layers layers;
    struct policy *policy;
};

/* A plan and all that it borrows. Does not move: the plan points to `facts`. */
struct prepared {
    struct arena *mem;
    struct facts facts;
    struct plan *plan;
};
/* survey, probe, plan. `thorough` probes by trying, which costs a process. */
int prepare(const struct pinfold_policy *p, const struct plan_ask *ask, bool thorough, struct prepared *ret,
            struct err *e);
void prepared_free(struct prepared *p);

struct pinfold_result {
    struct pinfold_policy *policy;
    struct prepared prepared;
    struct box_result box;
    bool captured;
    struct buf json; /* made when first asked for: its digests cost more than a start may */
};

/* Fills `to` from `from` when both are there; returns r. */
int tell(struct pinfold_error *to, const struct err *from, int r);
/* A policy from packed layers, for requests of the shared library. */
int policy_of_layers(struct str packed, struct pinfold_policy **ret, struct err *e);
/* Hands the text of `b` to a caller who will free() it. */
int give(struct buf *b, char **ret, struct pinfold_error *error);
