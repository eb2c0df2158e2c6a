/* libpinfold in the same process, for the command line and `pinfold --serve`: the objects behind pinfold.h. */
#pragma once
#include "base/value.h"
#include "supervisor/run.h"
#include "backends/native/net_kept.h"
#include "run/load.h"
#include "run/options.h"

#define MAX_POLICY_ARENA (MAX_POLICY_BYTES + MAX_LAYERS_BYTES)
#define MAX_PLAN_ARENA   (64u << 20)
#define MAX_ANSWER_TEXT  (256u << 20) /* a policy, a plan, a doctor's report as text; a result as JSON */
#define DEFAULT_CAPTURE  (16u << 20)

struct pinfold_policy {
    int users; /* reference count: results hold on to their policy, because plans refer to it */
    struct arena *mem;
    struct layers layers;
    struct policy *policy;
    struct policy **extended; /* made of it for runs (run/keys/ssh.h); results may refer to them */
    size_t n_extended;
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
/* After an engine of images that nobody has named failed at its start (r): adds to the error which other one could be
   named; returns r. */
int engine_after(const struct pinfold_policy *p, const struct plan_ask *ask, const struct engine *failed, int r,
                 struct err *e);
/* The plan for explain if the policy cannot be enforced (plan_ask.so_far): of the named engine, or of the first that
   returns one. */
int prepare_so_far(const struct pinfold_policy *p, const struct plan_ask *ask, struct prepared *ret);
void prepared_free(struct prepared *p);
/* Where the engine is another program: fills the plan's command line, for explain. */
int explain_command(struct prepared *p, enum pinfold_explain_format format, struct err *e);

struct session_place;

struct pinfold_result {
    struct pinfold_policy *policy;
    struct prepared prepared; /* of a run; a session's plan is with its daemon */
    struct box_terms terms;
    struct box_result box;
    bool captured;
    const char *session;                        /* in `mem`; NULL: a run of its own */
    const char *scope, *workspace;              /* likewise, the session's */
    void (*complete)(struct pinfold_result *r); /* called once before its JSON is made; or NULL */
    const struct session_place *place; /* for that: the session's place, in `mem`, and the time of the request */
    uint64_t began;
    uint32_t shell;           /* likewise: the number of the persistent shell that it ran in; 0: none, or not known */
    struct sink *sink;        /* of a run, while it lasts; or NULL */
    struct layer_held *layer; /* likewise */
    const char *note;         /* sentences for the person, a line each, in `mem`; or NULL */
    struct arena *mem;        /* of a command in a session: what `terms` says; or NULL */
    bool in_mem;              /* this object, too */
    /* Made when first asked for: their digests cost more than a start may. */
    struct buf json;
    struct values values;
};

/* Whether it may be a caller's own name for a command; says what is wrong. NULL: there is none. */
int caller_id_check(const char *id, struct err *e);
/* Messages after a command: why it ended, limits, denials with their remedies. */
void say_notes(const struct pinfold_run_options *o, const struct pinfold_result *result);
/* A policy from packed layers, for requests of the shared library. */
int policy_of_layers(struct str packed, struct pinfold_policy **ret, struct err *e);
/* What a command gets of the caller's: `given` with `use_fds`, else 0, 1, 2; /dev/null (*null, opened once) for -1. */
int stdio_of(const int given[3], bool use_fds, int *null, int stdio[3], struct err *e);
