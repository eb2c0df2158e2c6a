/*
 * What a model wishes for its box: options of the policy as JSON, and the policy that comes of them.
 */
#pragma once
#include "mcp/workers/job.h"

/* The schema of every option, as members of an object that the caller has opened. */
void wishes_schema(struct json *w);
/* False with a sentence: unknown option, or a value of the wrong type. */
bool wishes_check(const json_t *options, char *why, size_t room);
/* What the library says of an option, by the names that the tool has for it: its own argument, or `options.NAME`. */
void wishes_words(const struct mcp_job *j, const char *text, struct buf *out);
/*
 * The policy for this call: the instance's own where nothing is wished (`*ret_own` false), else one to be freed. What is more
 * than the policy gives is put to the person; without a yes it is a failure of the job in words and -EPERM.
 */
int wishes_policy(struct mcp_job *j, uint64_t timeout_ms, struct pinfold_policy **ret, bool *ret_own);
