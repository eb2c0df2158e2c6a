/*
 * An agent's own MCP servers: its settings contain paths of the host. In a session's copies these become paths in the
 * box; those that cannot, and those in files that are not the session's, are reported one by one.
 */
#pragma once
#include "mcp/workers/job.h"

struct settings {
    struct mcp_job *job;
    struct pinfold_session *session;
    const json_t *agent;   /* its entry of pinfold_agent_list() */
    const char *directory; /* its working directory, as a path in the box */
    bool image;            /* the box has an image's files, not the host's */
    json_t *told;          /* [{"server","file","place","path","done"}]: without paths of the host */
    unsigned lines;        /* printed for the user */
};
/* False: a copy that must change could not be written; the user was told. */
bool settings_settle(struct settings *s);
