/* Tools for single boxes: run, explain, policy. */
#pragma once
#include "mcp/tools/tool.h"

/* For one command, here and in a session. */
#define MAX_TIMEOUT_MS   (7LL * 24 * 3600 * 1000)
#define MAX_OUTPUT       (16u << 20) /* limit for each of stdout and stderr */
#define DEFAULT_OUTPUT   (1u << 20)  /* if the call does not set one */
#define MAX_TOLD_DENIALS 8           /* listed one by one; all are in the structured result */

extern const struct tool tool_run, tool_explain, tool_policy;

/* What a model reads of a result, the same for run and bash: output, then how it ended where that is not exit 0. */
void result_text(struct mcp_job *j, const struct pinfold_result *result);
/* A result with remedies for this tool's caller, and without where the rules were said of what was denied: a file of the host. */
void result_write(const struct mcp_job *j, struct json *w, const char *name, const struct pinfold_value *result);
/* Copy-on-write, as on the command line: --cow, --cow=NAME, --cow-from. */
#define COW_ARGUMENTS                                                                                                  \
    {"cow", ARGUMENT_SWITCH, .help = "Put changes to the workspace in a layer, which the user looks at and applies."}, \
        {"cow_name", ARGUMENT_TEXT,                                                                                    \
         .help = "The same, in the layer of this name: later boxes that name it go on with it."},                      \
    {                                                                                                                  \
        "cow_from", ARGUMENT_TEXT,                                                                                     \
            .help = "The same, in a new layer on top of this kept one (its name or id), which is not changed."         \
    }
/* What the library calls `cow` of it; NULL: the workspace itself, unless the policy or `cow_from` says otherwise. */
const char *cow_of(const struct mcp_job *j);
/* A line for each of the denials. */
void result_denials(struct mcp_job *j, const struct pinfold_value *list);
