/* Answers of why/ for a policy, with a remedy that was tried on a plan of its own. */
#pragma once
#include "run/direct.h"
#include "why/why.h"

/* What would change an answer. */
struct why_remedy {
    const char *flag,
        *value; /* an option that was found to allow the act: "rw", "/srv/data", or one without a value: "env-files", ""; NULL: none */
    const char *outside; /* what a person can do outside of the box; NULL: nothing else */
};

/* The answer for a box of this policy, started here and now; the caller frees *ret_plan, to which it may point. */
int reason_ask(const struct pinfold_policy *p, enum why_act act, const char *target, struct arena *mem, struct why *ret,
               struct prepared *ret_plan, struct err *e);
/* Whether writing to this path of the box and of the host is refused only because it is outside of what the box can write. */
bool reason_is_read_only(const struct pinfold_policy *p, const char *path);
/* The remedy for a refusal by `p`; plans again for each option that might help. Texts in `mem`. -errno with `e`. */
int reason_remedy(const struct pinfold_policy *p, enum why_act act, const char *target, const struct why *said,
                  struct arena *mem, struct why_remedy *ret, struct err *e);
