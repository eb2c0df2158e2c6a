/* What the caller of a run is told of a refusal while the command runs, and of a guess after it; what would allow it. */
#pragma once
#include "run/direct.h"

/* The caller is told of a refusal (pinfold_run_options.denied). `policy`: whose names are guarded; or NULL. */
void say_denied(const struct pinfold_run_options *o, const struct denial *d, const struct policy *policy);
/* For struct box_terms: an option with its value, or words; of a session, how it gets that option. */
void denied_offer(const struct box_terms *terms, const struct box_result *r, const struct denial *d, struct buf *out);
/* The denial's own remedy, in words for a session that the command line starts by that name (NULL: for a run); in `mem`, or NULL. */
char *denied_remedy(const struct denial *d, const char *start_name, enum net_mode net, struct arena *mem);
