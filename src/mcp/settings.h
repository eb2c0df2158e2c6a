/*
 * An agent's own MCP servers: its settings contain paths of the host. In a session's copies these become paths in the
 * box; those that cannot, and those in files that are not the session's, are reported one by one.
 */
#pragma once
#include "mcp/workers/job.h"

struct settings {
    struct mcp_job *job;
    struct pinfold_session *session;
    const struct pinfold_value *agent; /* its entry of pinfold_agent_list_report() */
    const char *directory;             /* where it works, as the box has it */
    bool image;                        /* the box has an image's files, not the host's */
    json_t *told;                      /* [{"server","file","place","path","done"}]: without names of the host */
    unsigned lines;                    /* that the person was told */
};
/* False: a copy that must change could not be written; the user was told. */
bool settings_settle(struct settings *s);
