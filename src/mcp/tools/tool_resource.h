/*
 * Resources, in the worker: what resources/list, resources/read and watching them ask for. They are tools in no list, called by the
 * peer, and their results are those of the methods themselves.
 */
#pragma once
#include "mcp/tools/tool.h"

/* What a session was denied since then ("2026-01-01T00:00:00.000Z"), an array of the audit log's events as a model may know them. */
json_t *session_denials(const struct mcp_job *j, const char *session, const char *since);

/* arguments: from, a number: of the list's next page */
extern const struct tool tool_resource_list;
/* arguments: uri */
extern const struct tool tool_resource_read;
/* arguments: uris, start (the session may be), before (what an earlier look told of each, "" for none): {"stamps":{URI: "..."}}, "" where there is nothing */
extern const struct tool tool_resource_look;
