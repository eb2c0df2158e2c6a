/* Tools on sessions: session_start, session_list, session_diff, session_stop, bash, output, kill. */
#pragma once
#include "base/arena.h"
#include "mcp/tools/tool.h"

extern const struct tool tool_session_start, tool_session_list, tool_session_diff, tool_session_stop, tool_bash,
    tool_output, tool_kill;

/* The session that the call names ("default" if none), started if needed; NULL: the job has failed. */
struct pinfold_session *session_of(struct mcp_job *j);
/* The session of that name. */
struct pinfold_session *session_named(struct mcp_job *j, const char *name);
/* The same for a single look: starts and reports nothing. `ret_own`: the caller must free it. NULL: it does not run. */
struct pinfold_session *session_visit(const struct mcp_job *j, const char *name, bool *ret_own);
/* Working directory of commands in that session, as a path in the box; NULL: the job has failed. */
const char *session_cwd(struct mcp_job *j, struct arena *mem);
const char *session_cwd_of(struct mcp_job *j, const char *name, struct arena *mem);
/* Forgets a session that has changed: the next call looks it up again. */
void session_lost(struct mcp_job *j);
void session_forget(const struct mcp_job *j, const char *name);
#define SESSION_ARGUMENT                                                                                               \
    {                                                                                                                  \
        "session", ARGUMENT_TEXT, .help = "The session's name; without one 'default', which is started when needed."   \
    }
