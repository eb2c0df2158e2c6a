/* A monitored box: what refused a call that failed, by the same answers as `pinfold why`. */
#pragma once
#include "run/direct.h"
#include "why/why.h"

struct monitoring {
    const struct pinfold_policy *policy;
    const struct plan *plan; /* kept as long as the box runs */
    bool names;              /* whoever reads the result may learn which names the host has that the box does not */
    unsigned remedies;       /* that were tried so far: each one plans again */
    const char *start_name;  /* of a session, as in struct box_terms */
    /* The last remedy and what it was for: a directory's missing names have one. Nothing is kept while last_object is "". */
    enum why_act last_act;
    enum why_cause last_cause;
    bool last_missing;
    char last_object[512], last_rule[512], last_flag[32], last_value[512], last_outside[512];
};

/* For struct run_spec, with a struct monitoring. */
enum explained monitor_explain(void *ctx, const struct failed_call *call, struct arena *mem, struct denial *ret,
                               const char **ret_action);
