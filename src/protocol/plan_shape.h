/*
 * Questions about a plan's steps that its builder asks, and whoever starts it: which run when, how many descriptors they take, where they
 * may be divided. Pure.
 */
#pragma once
#include "base/str.h"
#include "protocol/step.h"

/* When a step runs: while the tree is built, then in pid 1 inside, then what locks it. Of each command: limits and directory. */
enum phase { PHASE_BUILD, PHASE_INSIDE, PHASE_LOCK, PHASE_NONE /* arguments of the step before */, PHASE_COMMAND };
enum phase step_phase(const struct plan_image *p, unsigned kind);

bool plan_has(const struct plan_image *p, enum step_kind kind);
/* The `n`-th step of that kind, or NULL. */
const struct step *plan_nth(const struct plan_image *p, enum step_kind kind, uint32_t n);
/* The COVER of the root itself, or NULL. */
const struct step *plan_cover_of_root(const struct plan_image *p);
/* Descriptors of sources, one for each slot, and of overlays, behind them. */
uint32_t plan_slots(const struct plan_image *p);
/* How many overlays it may mount. */
uint32_t plan_overlays(const struct plan_image *p);
/*
 * The step after which pid 1 may be cloned: after DEVICES, of which DEVPTS is a part. Pid 1's own steps touch only /proc and /dev, so no
 * later step of BUILD may be there, or change the root again. 0: none.
 */
uint32_t plan_split_at(const struct plan_image *p);
/* What the stubs of a cover `s` say about the entry `name` of the directory at `prefix` ("" or "a/b/"). */
enum cover_says { COVER_BINDS, COVER_STUBS, COVER_ON_THE_WAY };
enum cover_says step_cover_says(const struct plan_image *p, const struct step *s, struct str prefix, struct str name);
