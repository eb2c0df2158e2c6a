/* libpinfold in the same process, for the command line and `pinfold --serve`: the objects behind pinfold.h. */
#pragma once
#include "supervisor/run.h"
#include "backends/native/net_kept.h"
#include "run/load.h"
#include "pinfold.h"

#define MAX_POLICY_ARENA (MAX_POLICY_BYTES + MAX_LAYERS_BYTES)
#define MAX_PLAN_ARENA   (64u << 20)
#define MAX_ANSWER_TEXT  (256u << 20) /* a policy, a plan, a doctor's report as text; a result as JSON */
#define DEFAULT_CAPTURE  (16u << 20)

struct pinfold_policy {
    int users; /* reference count: results hold on to their policy, because plans refer to it */
    struct arena *mem;
    struct layers layers;
    struct policy *policy;
    struct path_pins *pins; /* targets of its paths when first examined */
    struct net_kept net_kept;
    char digest[65]; /* of the last result reported, "" before; of the engine `digest_of`, without an image */
    char digest_of[16];
};

/* A plan and everything that it borrows. Must not move: the plan points to `facts`. */
struct prepared {
    struct arena *mem;
    const struct engine *engine;
    struct facts facts;
    struct plan *plan;
};
/* choose.c: engine, probe, survey, plan. `thorough` probes by trying, which starts a process. */
int prepare(const struct pinfold_policy *p, const struct plan_ask *ask, bool thorough, struct prepared *ret,
            struct err *e);
/* The plan for explain if the policy cannot be enforced (plan_ask.so_far): of the named engine, or of the first that
   returns one. */
int prepare_so_far(const struct pinfold_policy *p, const struct plan_ask *ask, struct prepared *ret);
void prepared_free(struct prepared *p);
/* What explain prints for it, malloc()ed; NULL for nothing. */
char *explain_refused(const struct pinfold_policy *p, enum pinfold_explain_format format, int show_values);
/* If the engine is another program: adds its command line to the plan, for explain. */
int explain_command(struct prepared *p, enum pinfold_explain_format format, struct err *e);

struct session_place;

struct pinfold_result {
    struct pinfold_policy *policy;
    struct prepared prepared;
    struct box_result box;
    bool captured;
    const char *session;                        /* in `mem`; NULL: a run of its own */
    void (*complete)(struct pinfold_result *r); /* called once before its JSON is made; or NULL */
    const struct session_place *place; /* for that: the session's place, in `mem`, and the time of the request */
    uint64_t began;
    const char *note;  /* lines for the user, in `mem`; or NULL */
    struct arena *mem; /* for a command in a session: in place of its plan; or NULL */
    struct buf json;   /* made on demand: its digests cost more than a start may */
};

/* Messages after a command: why it ended, limits, denials with their remedies. */
void say_notes(const struct pinfold_run_options *o, const struct pinfold_result *result);
/* Fills in `to` from `from` if both are set; returns r. */
int tell(struct pinfold_error *to, const struct err *from, int r);
/* A policy from packed layers, for requests of the shared library. */
int policy_of_layers(struct str packed, struct pinfold_policy **ret, struct err *e);
/* Passes the text of `b` to the caller, who must free() it. */
int give(struct buf *b, char **ret, struct pinfold_error *error);
/* Copies options of a caller that may be built against an older, smaller struct: missing members are zero. */
int take_options(void *to, size_t room, const void *from, size_t size, struct err *e);
/* The command's standard descriptors: `given` with `use_fds`, else 0, 1, 2; /dev/null (*null, opened once) for -1. */
int stdio_of(const int given[3], bool use_fds, int *null, int stdio[3], struct err *e);
