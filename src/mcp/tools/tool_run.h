/* Tools for single boxes: run, explain, policy. */
#pragma once
#include "mcp/tools/tool.h"

/* For one command, here and in a session. */
#define MAX_TIMEOUT_MS   (7LL * 24 * 3600 * 1000)
#define MAX_OUTPUT       (16u << 20) /* limit for each of stdout and stderr */
#define DEFAULT_OUTPUT   (1u << 20)  /* if the call does not set one */
#define MAX_TOLD_DENIALS 8           /* listed one by one; all are in the structured result */

extern const struct tool tool_run, tool_explain, tool_policy;

/* What a model reads of a result, for run and bash: output, then how it ended unless that is exit 0. */
void result_text(struct mcp_job *j, const char *json);
/* Removes the origins of rules from denials: they are files of the host. */
void result_hide(json_t *result);
/* Prints one line per denial. */
void result_denials(struct mcp_job *j, const json_t *list);
