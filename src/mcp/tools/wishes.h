/* Wishes of a model for its box: policy options as JSON, and the policy made from them. */
#pragma once
#include "mcp/workers/job.h"

/* Writes the schema of every option, as members of an object that the caller has opened. */
void wishes_schema(struct json *w);
/* False with a message: unknown option, or a value of the wrong type. */
bool wishes_check(const json_t *options, char *why, size_t room);
/* Rewrites the library's message about an option with the tool's names: its own argument, or `options.NAME`. */
void wishes_words(const struct mcp_job *j, const char *text, struct buf *out);
/*
 * Rewrites the library's remedy for a refusal by what the caller of this tool can do: an argument, about which the person is
 * asked, or an option of the server, which the person starts. `origin`: where the rule was said, which is left out.
 */
void wishes_remedy(const struct mcp_job *j, const char *remedy, const char *origin, struct buf *out);
/*
 * The policy for this call: the instance's own if there are no wishes (`*ret_own` false), else one to be freed. If they
 * exceed the policy, the user is asked; without a yes the job fails with a message and -EPERM.
 */
int wishes_policy(struct mcp_job *j, uint64_t timeout_ms, struct pinfold_policy **ret, bool *ret_own);
