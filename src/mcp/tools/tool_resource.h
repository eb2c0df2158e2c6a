/*
 * Resources, in the worker: handles resources/list, resources/read and subscriptions. These tools are not listed; the
 * peer calls them, and their results are those of the methods.
 */
#pragma once
#include "mcp/tools/tool.h"

/* A session's denials since a time ("2026-01-01T00:00:00.000Z"), as an array of audit events with what a model may
   know. */
json_t *session_denials(const struct mcp_job *j, const char *session, const char *since);

/* arguments: from, a number: start of the next page of the list */
extern const struct tool tool_resource_list;
/* arguments: uri */
extern const struct tool tool_resource_read;
/* arguments: name ("session" or "path" of a template), value (what was typed), session (whose paths) */
extern const struct tool tool_resource_complete;
/* arguments: uris, start (whether to start the session), before (results of an earlier check for each, "" for none):
   {"stamps":{URI: "..."}}, "" for a missing one */
extern const struct tool tool_resource_look;
