/* What the policy says of pushes to the remote `host`. */
#pragma once
#include <limits.h>

#include "base/str.h"
#include "git/gitpush.h"
#include "pinfold.h"

enum { RULES_BRANCHES = 64, RULES_PATTERN = 256, RULES_WORDS = RULES_BRANCHES + 8 };
enum push_verify { PUSH_VERIFY_OFF, PUSH_VERIFY_TOLD, PUSH_VERIFY_REQUIRED };

struct push_rules { /* it points into itself: not to be copied */
    struct gitpush_rules rules;
    enum push_verify verify;
    const char *protect[RULES_BRANCHES];
    char patterns[RULES_BRANCHES][RULES_PATTERN];
};
/* Those of the policy that these options make in the checkout `real`. -errno with a sentence in `why`. */
int push_rules_of(const struct pinfold_policy_options *asked, const char *real, struct push_rules *ret, char *why,
                  size_t room);
/* Those of a policy that was loaded. */
int push_rules_in(struct pinfold_policy *policy, struct push_rules *ret, char *why, size_t room);
/* The rules as words: "force" and "delete" if they are allowed, "--", the protected branches. How many; a NULL follows. */
size_t push_rules_words(const struct push_rules *r, const char *ret[RULES_WORDS]);
/* Reads them; `ret` points to them. Without the "--" they are no rules. */
bool push_rules_said(char *const *words, struct gitpush_rules *ret);
/* Of a policy's text, as policy_print() writes it: what a box may write besides its workspace, and its private caches. How many; -E2BIG. */
int rules_written(struct str text, char ret[][PATH_MAX], size_t room);
/* Whether all that it mounts can only be read. */
bool rules_mounts_read_only(struct str text);
